#!/bin/sh
# lane.sh FOLDER LANE: runs the suites of a lane one after the other, for scripts/test.sh, which runs two of these side by side.
# A line of FOLDER/of/LANE is a suite: its number, its directory, and its name. Of each there is, once it has ended,
# FOLDER/NUMBER.ended: status, and the seconds of its beginning and of its end.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh

while read -r number directory name; do
    began=$(date +%s)
    # "Nothing is left behind" is asked of directories too: each suite has its own.
    RAMWAY_DIR=$(mktemp -d "${RAMWAY_DIR%/*}/ramway-test.XXXXXX") || exit 1
    export RAMWAY_DIR
    trap 'rm -rf "$RAMWAY_DIR"' EXIT
    run_logged "$name" limited "$MAKE_COMMAND" --no-print-directory -C "$directory" test
    echo "$? $began $(date +%s)" >"$1/$number.new"
    rm -rf "$RAMWAY_DIR"
    # Whoever waits for it finds all of it.
    mv "$1/$number.new" "$1/$number.ended"
done <"$1/of/$2"
