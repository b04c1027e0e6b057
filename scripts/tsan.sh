#!/bin/sh
# `make tsan`: the ring between two threads under the thread sanitizer. It cannot relate two mappings of the same memory,
# so what it runs is the protocol over one (core/src/ring/tests.rs).
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
export TSAN_OPTIONS="suppressions=$(cd "$target" && pwd)/tsan-suppressions halt_on_error=1"
export CARGO_TARGET_DIR="$target/tsan"
# shellcheck disable=SC2086
exec cargo +nightly test $locked -p ramway --lib --target "$host" -- ring::tests region::bytes
