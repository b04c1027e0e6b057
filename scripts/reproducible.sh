#!/bin/sh
# `make reproducible`: makes the archives twice, from two clones of this commit in folders of other names, and compares them byte by
# byte. ONLY="crates go" chooses, as for `make packages`; QUICK and MACHINES are passed on.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
[ -z "$(git status --porcelain --untracked-files=no)" ] || note 'what is not committed is not looked at'
work=$(mktemp -d "${TMPDIR:-/tmp}/ramway-twice.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
unset CARGO_TARGET_DIR
for clone in one the-other-one; do
    git clone --quiet --local . "$work/$clone"
    # A moment later, so that a time that is written into an archive differs; every test of a package is the other target's.
    (cd "$work/$clone" && PACK_ONLY=yes sh scripts/packages.sh "$@" && mv target/packages "$work/packages-$clone")
    rm -rf "${work:?}/$clone"
done
(cd "$work/packages-one" && find . -type f ! -name 'maven-metadata.xml*' | LC_ALL=C sort | xargs sha256sum) >"$work/sums"
count=$(wc -l <"$work/sums")
if differing=$(cd "$work/packages-the-other-one" && sha256sum --check --quiet "$work/sums" 2>/dev/null); then
    echo "$count files, the same twice"
else
    printf '%s\n' "$differing"
    [ -z "${KEEP:-}" ] || cp -R "$work"/packages-* "$KEEP"
    echo "of $count files those above differ (KEEP=FOLDER keeps both)"
    exit 1
fi
