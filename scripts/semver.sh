#!/bin/sh
# `make semver`: whether the version of the crates says what has changed in their API since the last release, by cargo-semver-checks.
# Its first argument, or SINCE, is another commit to compare with.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
since=${1:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if [ -z "$since" ]; then
    echo 'nothing is released yet: there is no tag v* to compare with (sh scripts/semver.sh COMMIT compares with a commit)'
    exit 0
fi
have cargo-semver-checks || { echo 'cargo-semver-checks is not on the PATH: cargo install --locked cargo-semver-checks' >&2; exit 1; }
cargo semver-checks --package ramway --package ramway-pool --all-features --baseline-rev "$since"
