#!/bin/sh
# `make semver`: whether the version of the crates says what has changed in their API since the last release, by cargo-semver-checks.
# Its first argument, or SINCE, is another commit to compare with.
#
# While the version is still that of the last release, the next one is not chosen: what would ask for more than a patch is listed, and
# is no failure. Once it is raised it must be raised by enough.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
# A commit that is a release itself is compared with the one before it.
since=${1:-${SINCE:-$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null || true)}}
if [ -z "$since" ]; then
    echo 'nothing is released yet: there is no tag v* to compare with (sh scripts/semver.sh COMMIT compares with a commit)'
    exit 0
fi
mkdir -p "$target/tools"
tools=$(cd "$target/tools" && pwd)
if ! have cargo-semver-checks && [ ! -x "$tools/bin/cargo-semver-checks" ]; then
    cargo install --quiet --locked --root "$tools" cargo-semver-checks@0.51.0
fi
PATH=$PATH:$tools/bin
version() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p'; }
before=$(git show "$since:Cargo.toml" | version)
now=$(version <Cargo.toml)
status=0
cargo semver-checks --package ramway --package ramway-pool --all-features --baseline-rev "$since" || status=$?
# 100: it looked, and found something.
if [ $status -ne 100 ] || [ "$before" != "$now" ]; then exit $status; fi
echo "the version is still $now, that of $since: a release of what is above raises it by more than a patch (make version V=X.Y.Z)"
