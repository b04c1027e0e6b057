#!/bin/sh
# `make loom`: the models of the ring and of the sleep protocol, in a target directory of their own because
# `--cfg loom` changes every crate.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

tests=
for file in core/tests/loom*.rs; do
    [ -f "$file" ] || { echo "there is no core/tests/loom*.rs"; exit 1; }
    name=${file##*/}
    tests="$tests --test ${name%.rs}"
done
export RUSTFLAGS="${RUSTFLAGS:-} --cfg loom" CARGO_TARGET_DIR="$target/loom"
# shellcheck disable=SC2086
exec cargo test $locked -p ramway --release --no-fail-fast $tests
