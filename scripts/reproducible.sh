#!/bin/sh
# `make reproducible`: makes the archives twice, from two clones of this commit in folders of other names, and compares them byte by
# byte. ONLY="crates go" chooses, as for `make packages`; QUICK and MACHINES are passed on.
#
#   FIRST=target/packages   the archives that `make packages` has made of this commit, in place of the first clone's; those that ONLY and
#                           MACHINES do not choose are not compared
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
[ -z "$(git status --porcelain --untracked-files=no)" ] || note 'what is not committed is not looked at'
work=$(mktemp -d "${TMPDIR:-/tmp}/ramway-twice.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
unset CARGO_TARGET_DIR
clones='one the-other-one'
if [ -n "${FIRST:-}" ]; then
    [ -d "$FIRST" ] || { echo "reproducible.sh: FIRST names the folder $FIRST, which is missing: run make packages first" >&2; exit 2; }
    cp -R "$FIRST" "$work/packages-one"
    clones=the-other-one
fi
for clone in $clones; do
    git clone --quiet --local . "$work/$clone"
    # A moment later, so that a time that is written into an archive differs; every test of a package is the other target's.
    (cd "$work/$clone" && PACK_ONLY=yes sh scripts/packages.sh "$@" && mv target/packages "$work/packages-$clone")
    rm -rf "${work:?}/$clone"
done
names() { (cd "$work/packages-$1" && find . -type f ! -name 'maven-metadata.xml*' | LC_ALL=C sort) }
names the-other-one >"$work/names"
count=$(wc -l <"$work/names")
# `make packages` may have made more than ONLY asks for.
if [ -z "${FIRST:-}" ] && ! missing=$(names one | diff - "$work/names"); then
    printf '%s\n' "$missing" 'the lines above say which files only one of them has'
    exit 1
fi
if differing=$(cd "$work/packages-one" && (cd ../packages-the-other-one && xargs sha256sum <"$work/names") | sha256sum --check --quiet 2>/dev/null); then
    echo "$count files, the same twice"
else
    printf '%s\n' "$differing"
    [ -z "${KEEP:-}" ] || cp -R "$work"/packages-* "$KEEP"
    echo "of $count files those above differ (KEEP=FOLDER keeps both)"
    exit 1
fi
