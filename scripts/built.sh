#!/bin/sh
# built.sh PROGRAM...: succeeds if `make test` has just built these below debug/ of cargo's target directory, with the whole workspace.
# Cargo, asked for one of them alone, would build it and much of what it uses once more, with the fewer features that it needs.
cd "$(dirname "$0")/.." || exit 1
[ "${RAMWAY_BUILT:-}" = yes ] || exit 1
for program in "$@"; do
    [ -x "${CARGO_TARGET_DIR:-target}/debug/$program" ] || exit 1
done
