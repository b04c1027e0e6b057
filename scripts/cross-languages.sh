#!/bin/sh
# The suite `languages` of scripts/cross.sh, which sets the emulator and the linker: the languages that a runtime runs. Each one's agent
# for arm64, under the emulator, talks to Rust's agent of this machine, both ways, in the same memory. agents/arm64 has how each is
# fetched, built and started; one that cannot be had here is named and skipped, and with CI=true a failure. The last line counts.
#
#   LANGUAGES="python java"   which; default: those that scripts/emulator.txt does not exclude
set -eu
cd "$(dirname "$0")/.."

# For this machine's own processor, as it is built elsewhere.
(
    unset CARGO_PROFILE_DEV_OPT_LEVEL
    sh scripts/built.sh ramway-conformance || cargo build --quiet -p ramway-conformance
)

languages=${LANGUAGES:-}
for language in python node java csharp; do
    [ -n "${LANGUAGES:-}" ] || grep -q "^languages $language " scripts/emulator.txt || languages="$languages $language"
done

set --
for language in $languages; do
    set -- "$@" --pair "rust:$language-arm64" --pair "$language-arm64:rust"
done
# Streams whose every byte is checked, with waits of each kind; and SIGKILL of either side while the other one sleeps, which wakes it.
for scenario in stream sleepers-learn; do
    set -- "$@" --scenario "ring/$scenario"
done
RAMWAY_AGENTS=agents/arm64 "${CARGO_TARGET_DIR:-target}/debug/ramway-conformance" matrix --quick --jobs 2 "$@"
