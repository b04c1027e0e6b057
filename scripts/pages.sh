#!/bin/sh
# Pages of 16 KiB and of 64 KiB, as kernels for arm64 may have them: `make test-pages`. qemu tells the programs the size of a page
# (`-p`), and the core's tests run with it; then processes with different pages meet over one ring, which no real machine has.
# The last line counts.
#
# qemu itself maps by this machine's pages, so that it refuses nothing that a kernel with larger pages would refuse: the tests of
# `sys/mem.rs` hold that everything is mapped at multiples of the page.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh

triple=aarch64-unknown-linux-gnu
passed=0 failed=0 skipped=0
RAMWAY_DIR=$(mktemp -d /dev/shm/ramway-pages.XXXXXX) || exit 1
export RAMWAY_DIR
trap 'rm -rf "$RAMWAY_DIR"' EXIT
trap 'exit 130' INT TERM

for size in 16384 65536; do
    say "the core with pages of $size bytes"
    PAGE_SIZE=$size SUITES=rust ARGS="${ARGS:---lib --bins --tests}" run_logged "pages-$size" sh scripts/cross.sh $triple
    rc=$?
    sed -n '/^ *\(skipped\|no result\)/p' "$log"
    # shellcheck disable=SC2046
    set -- $rc $(counted)
    if [ "$1" -ne 0 ] && [ "$3" -eq 0 ]; then set -- "$1" "$2" 1 "$4"; fi
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    if [ "$1" -eq 0 ]; then ok "$2 passed, $4 skipped"; else bad "$2 passed, $3 failed, $4 skipped"; show_log; fi
done

ramway=$target/$triple/debug/ramway
as() { size=$1; shift; timeout 120 qemu-aarch64-static -p "$size" -L /usr/aarch64-linux-gnu "$ramway" "$@"; } # PAGE ARGUMENT...

# A ring of the smallest capacity that its maker can have is read by another process, whose pages have another size.
meet() { # MAKER READER
    name=ring-$1-$2
    seq 1000 >"$RAMWAY_DIR/sent"
    as "$1" send "$name" --capacity "$1" --lines --quiet <"$RAMWAY_DIR/sent" &
    until [ -e "$RAMWAY_DIR/$name" ] || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
    as "$2" recv "$name" --quiet --timeout 60s >"$RAMWAY_DIR/got" 2>"$RAMWAY_DIR/said"
    status=$?
    # One who cannot read leaves it to one who can.
    if [ $status -ne 0 ]; then as "$1" recv "$name" --quiet --timeout 60s >"$RAMWAY_DIR/got"; fi
    wait $! && cmp -s "$RAMWAY_DIR/sent" "$RAMWAY_DIR/got" || status=lost
}
result() { # NAME WANTED
    if [ "$status" = "$2" ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $1: $status, not $2"
        cat "$RAMWAY_DIR/said"
    fi
}
say "processes with different pages"
before=$failed
for maker in 4096 16384 65536; do
    for reader in 4096 16384 65536; do
        meet $maker $reader
        # Not a segment that it can use (AbiMismatch): the data begins in the middle of one of its pages.
        if [ $reader -gt $maker ]; then wanted=9; else wanted=0; fi
        result "a ring made with pages of $maker bytes, read with those of $reader" $wanted
    done
done
if [ "$failed" -eq "$before" ]; then ok ""; else bad ""; fi

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
