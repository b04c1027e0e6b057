#!/bin/sh
# `make dist`: the `ramway` command as one static, stripped program, for each target named (default: this machine's).
# Fails if a program is not static, or is larger than what a small container should have to carry.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
. scripts/musl.sh

limit=4000000
[ $# -gt 0 ] || set -- "$(uname -m)-unknown-linux-musl"
need_cargo || exit 1
for triple in "$@"; do
    say "ramway for $triple, static"
    add_target "$triple" || exit 1
    own_linker "$triple"
    # shellcheck disable=SC2086
    run_logged "dist-$triple" cargo build $locked --profile dist --target "$triple" -p ramway-cli || { bad "not built"; show_log; exit 1; }
    program=$target/$triple/dist/ramway
    size=$(wc -c <"$program")
    if LC_ALL=C grep -aq '/ld-\(musl\|linux\)-[a-z0-9_.-]*' "$program"; then bad "$program asks for a dynamic loader"; exit 1; fi
    if [ "$size" -gt "$limit" ]; then bad "$program has $size bytes, more than $limit"; exit 1; fi
    ok "$program, $size bytes"
done
