#!/bin/sh
# `make deny`: what is depended on, by deny.toml: licences, bans, sources; known vulnerabilities where their database can be
# reached; and whether each file of ours has a licence.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1
if ! have cargo-deny; then
    echo 'cargo-deny is not on the PATH: cargo install --locked cargo-deny' >&2
    exit 1
fi
status=0
say "licences, bans and sources"
if run_logged deny cargo deny --locked check licenses bans sources; then ok ""; else bad "failed"; show_log; status=1; fi
say "known vulnerabilities"
if run_logged deny-advisories cargo deny --locked check advisories; then ok ""
elif grep -q 'failed to fetch advisory database' "$log"; then note "not checked: their database cannot be fetched"
else bad "failed"; show_log; status=1; fi
say "each file has a licence (REUSE.toml)"
if ! have reuse; then note "not checked: reuse is not on the PATH (pip install reuse)"
elif run_logged reuse reuse lint; then ok ""; else bad "failed"; show_log; status=1; fi
exit $status
