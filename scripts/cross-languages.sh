#!/bin/sh
# The suite `languages` of scripts/cross.sh, which sets the emulator and the linker: the languages that are not built for a processor
# but run by something that is, or that load what is. Each one's agent runs by a runtime for arm64 under the emulator, and talks to Rust's agent of this
# machine, both ways, in the same memory. agents/arm64 has how each is fetched, built and started; one that cannot be had here is
# named and skipped, and with CI=true a failure. The last line counts.
#
#   LANGUAGES="python java"   which
set -eu
cd "$(dirname "$0")/.."

# For this machine's own processor, as it is built elsewhere.
(
    unset CARGO_PROFILE_DEV_OPT_LEVEL
    sh scripts/built.sh ramway-conformance || cargo build --quiet -p ramway-conformance
)

set --
for language in ${LANGUAGES:-python node java csharp}; do
    set -- "$@" --pair "rust:$language-arm64" --pair "$language-arm64:rust"
done
# Streams with every byte checked; a wait and a wake; each side's close and death; a call of RPC; topics.
for scenario in /stream /echo idle-receiver producer-closes sleepers-learn producer-dies consumer-dies rpc/calls rpc/server-dies; do
    set -- "$@" --scenario "$scenario"
done
RAMWAY_AGENTS=agents/arm64 "${CARGO_TARGET_DIR:-target}/debug/ramway-conformance" matrix --quick "$@"
