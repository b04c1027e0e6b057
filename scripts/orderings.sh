#!/bin/sh
# The orderings on the hot paths, in the arm64 machine code that C's compilers make of the inline headers and rustc of the core.
# x86-64 orders nearly everything by itself: no test there, nor one under an emulator on it, sees that one is missing. The last
# line counts.
#
# A position is read by `ldar` or `ldapr` (acquire) and published by `stlr` (release); `dmb ish` is the full fence of a side that
# fences for a sleeper, `dmb ishld` the acquire fence of what may have been overwritten meanwhile.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
. scripts/musl.sh

passed=0 failed=0
place=$(mktemp -d) || exit 1
trap 'rm -rf "$place"' EXIT

# Prints "FUNCTION INSTRUCTION" for each instruction that orders, of an assembler file.
ordering() {
    awk '/^[A-Za-z_.$0-9]+:/ && !/^\.?L/ { name = $1; sub(/:.*/, "", name) }
        $1 ~ /^(ldar|ldapr|ldaxr|stlr|stlxr)$/ || $1 ~ /^(swp|cas|ldadd)al?$/ { print name, $1 }
        $1 == "dmb" { print name, "dmb-" $2 }' "$1"
}

# The file has these instructions, each in a function whose name matches.
expect() { # WHAT FILE FUNCTION INSTRUCTION...
    what=$1 functions=$2 name=$3
    shift 3
    lacks=
    for instruction; do
        grep -Eq "^[^ ]*${name}[^ ]* $instruction\$" "$functions" || lacks="$lacks $instruction"
    done
    if [ -z "$lacks" ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $what, $name: no$lacks"
    fi
}
acquire='(ldar|ldapr)'

c_code() { # COMMAND...
    "$@" -std=c11 -O2 -Wall -Werror -Icapi/include -S capi/tests/c/orderings.c -o "$place/c.s" || { failed=$((failed + 1)); return; }
    ordering "$place/c.s" >"$place/c"
    for name in ring_commit ring_flush ring_release topic_commit topic_release; do expect "$1" "$place/c" $name stlr dmb-ish; done
    for name in ring_recv topic_recv; do expect "$1" "$place/c" $name "$acquire"; done
    expect "$1" "$place/c" topic_is_overtaken dmb-ishld
    # The positions of a topic: that of the log, and that of the newest message.
    if [ "$(grep -c '^topic_commit stlr$' "$place/c")" -ge 2 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $1, topic_commit: fewer than two stlr"
    fi
}
compilers=0
for cc in aarch64-linux-gnu-gcc "$([ "$(uname -m)" = aarch64 ] && echo cc)"; do
    if [ -n "$cc" ] && have "$cc"; then compilers=$((compilers + 1)); c_code "$cc"; break; fi
done
for clang in clang clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang-15 clang-14; do
    if have $clang; then
        headers=/usr/aarch64-linux-gnu/include
        compilers=$((compilers + 1))
        if [ -d $headers ]; then c_code $clang --target=aarch64-linux-gnu -isystem $headers; else c_code $clang --target=aarch64-linux-gnu; fi
        break
    fi
done
[ $compilers -gt 0 ] || echo 'C: not looked at, no compiler for arm64 is there'

# What rustc made of core/examples/orderings.rs. Without optimisation over the whole program there is one assembler file, and what
# is called in other crates is inlined or generic. Nothing is linked that could run: no C library for arm64 is needed.
triple=aarch64-unknown-linux-gnu
if have cargo && add_target $triple; then
    export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=false
    # So that it holds one, of now.
    rm -rf "$target/orderings/$triple/release/examples"
    # shellcheck disable=SC2086
    run_logged orderings cargo rustc $locked --release --target $triple --target-dir "$target/orderings" -p ramway \
        --example orderings -- --emit asm -C linker=rust-lld -C link-arg=--unresolved-symbols=ignore-all
    file=$(find "$target/orderings/$triple/release/examples" -name 'orderings-*.s' 2>/dev/null | head -n 1)
    if [ -z "$file" ]; then failed=$((failed + 1)); show_log; else
        ordering "$file" >"$place/rust"
        expect rust "$place/rust" ring_send stlr dmb-ish
        expect rust "$place/rust" ring_recv "$acquire" stlr
        expect rust "$place/rust" topic_send stlr dmb-ish
        # Its acquiring load is not inlined, and in the assembler file of another crate.
        expect rust "$place/rust" topic_recv stlr
    fi
else failed=$((failed + 1)); fi

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
