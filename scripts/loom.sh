#!/bin/sh
# `make loom`: the models of the ring, the topic, the region and the sleep protocol, and of how a thread's cache of a buffer pool is
# taken away from it, in a target directory of their own because `--cfg loom` changes every crate. Without link-time optimisation: it takes longer than the models run.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR="$target/loom" CARGO_PROFILE_RELEASE_LTO=off
exec cargo test $locked -p ramway-models -p ramway-pool --release --no-fail-fast --test loom "$@"
