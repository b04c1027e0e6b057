#!/bin/sh
# `make tsan`: the ring and the topic between threads under the thread sanitizer, and the buffer pool under 64. It cannot
# relate two mappings of the same memory, so what it runs is the protocol over one (core/src/ring/tests.rs,
# core/src/topic/tests.rs).
#
# Of the pool it sees whether a block or a cache that goes from one thread to another is handed over properly. It does not
# see whether a thread's look at its slot may overtake its word that it is inside: it knows no membarrier, and only reports
# accesses without an order, which neither of the two is. The models are for that (scripts/loom.sh).
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

if ! cargo +nightly --version >/dev/null 2>&1; then
    echo 'the nightly toolchain is not installed (rustup toolchain install nightly); nothing was run'
    exit 1
fi
host=$(rustc -vV | sed -n 's/^host: //p')
mkdir -p "$target"
# libtest's own channel and the cell that it hands a test to its thread in: the standard library is not built with the
# sanitizer. Neither is on the stack while a test runs, so nothing of ours is excused.
printf '%s\n' 'race:std::sync::mpmc' 'race:sync::Arc<*Mutex<*Option<test::run_test*as core::ops::drop::Drop' >"$target/tsan-suppressions"
export RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
suppressions=$(cd "$target" && pwd)
export TSAN_OPTIONS="suppressions=$suppressions/tsan-suppressions halt_on_error=1"
export CARGO_TARGET_DIR="$target/tsan"
failures=0
# shellcheck disable=SC2086
cargo +nightly test $locked -p ramway --lib --target "$host" -- ring::tests topic::tests region::bytes || failures=1

# The pool's threads wait for locks, which the sanitizer must see: here the standard library is built with it, too.
source=$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library
if [ ! -d "$source" ] && have rustup; then run_logged "rustup rust-src" rustup component add rust-src --toolchain nightly; fi
if [ ! -d "$source" ]; then
    echo 'the pool was not run: the standard library'"'"'s source is not installed (rustup component add rust-src --toolchain nightly)'
    exit 1
fi
export TSAN_OPTIONS=halt_on_error=1 RAMWAY_POOL_TESTS="${RAMWAY_POOL_TESTS:-1/10}"
# shellcheck disable=SC2086
cargo +nightly test $locked -Zbuild-std -p ramway-pool --target "$host" --no-fail-fast --test torture --test limit \
    --test limit_race --test exit --test many_pools --test slots || failures=1
exit $failures
