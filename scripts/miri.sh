#!/bin/sh
# `make miri`: what miri can run of the core, which is what makes no system call of its own: the tests whose names
# contain `miri` (of the ring and of the topic), and those of the layout, the header page and the errors. Of the buffer pool the buffers, the ends of
# threads, the limit and many pools on one thread: it has a fence of miri's there, so that threads have their caches. Not
# the torture test, which did not end there in five minutes.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    if have rustup; then run_logged "rustup miri" rustup component add miri rust-src --toolchain nightly; fi
    if ! cargo +nightly miri --version >/dev/null 2>&1; then
        echo 'miri cannot be had for the nightly toolchain (rustup component add miri rust-src --toolchain nightly); nothing was run'
        exit 1
    fi
fi
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation}"
# Finding the names for a backtrace takes minutes there.
export RUST_BACKTRACE=0
failures=0
# shellcheck disable=SC2086
cargo +nightly miri test $locked -p ramway --lib -- miri_ what_is_formatted two_rings_of_a_bus every_start_and_length || failures=1
# shellcheck disable=SC2086
cargo +nightly miri test $locked -p ramway-pool --no-fail-fast --test buffer --test io --test freeze --test exit --test limit \
    --test many_pools || failures=1
exit $failures
