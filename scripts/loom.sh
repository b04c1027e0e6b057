#!/bin/sh
# `make loom`: the models of the ring and of the sleep protocol, in a target directory of their own because
# `--cfg loom` changes every crate.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR="$target/loom"
# Optimised, because schedules are counted in millions; not across crates, because that takes longer than it saves.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
# A model that fails as it must prints a panic: without its backtrace.
export RUST_BACKTRACE=0
# shellcheck disable=SC2086
exec cargo test $locked -p ramway --release --no-fail-fast --test loom
