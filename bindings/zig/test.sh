#!/bin/sh
# What the Makefile runs: `sh test.sh compiler|build|all|lint|clean`.
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=../../scripts/suite.sh
. ../../scripts/suite.sh
# Zig's standard library changes with each release.
version=0.17.1
built=$target/zig
python=$built/venv/bin/python

compiler() {
    [ "$("$python" -m ziglang version 2>/dev/null)" = "$version" ] && return 0
    mkdir -p "$built" && python3 -m venv "$built/venv" && "$python" -m pip install --quiet "ziglang==$version"
}

compile() { # ARGUMENT...
    "$python" -m ziglang build-exe --cache-dir "$built/cache" --global-cache-dir "$built/cache" "$@"
}

build() {
    if ! step 'the compiler' compiler; then
        # It comes over the network: its absence says nothing about the code.
        failed=$((failed - 1))
        missing 'zig' "Zig $version cannot be installed from PyPI"
        return 1
    fi
    step 'the program' compile -O ReleaseSafe -femit-bin="$built/ramway-zig" src/main.zig &&
        step 'the program of the tests' compile -femit-bin="$built/play" --dep ramway -Mroot=tests/play.zig -Mramway=src/ramway.zig
}

# The Rust side's command, for the tests that talk to it.
find_or_build_command() {
    find_command
    [ -n "${RAMWAY_CLI:-}" ] || { step 'the ramway command' cargo build --quiet --package ramway-cli --bin ramway && find_command; }
}

tests() {
    python3 tests/run.py "$built/play" "$built/ramway-zig" "$RAMWAY_CLI" >"$tmp/log" 2>&1
    rc=$?
    cat "$tmp/log"
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$tmp/log" | tail -n 1) 0 0
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1; fi
    passed=$((passed + $1)) failed=$((failed + $2))
}

case ${1:-all} in
compiler) step 'the compiler' compiler ;;
build) build ;;
lint) build && step 'zig fmt' "$python" -m ziglang fmt --check src tests build.zig ;;
all)
    if build; then
        step 'zig fmt' "$python" -m ziglang fmt --check src tests build.zig
        find_or_build_command && tests
    fi
    ;;
clean) rm -rf "$built" ;;
*)
    echo "test.sh: compiler, build, all, lint or clean, not '$1'" >&2
    exit 2
    ;;
esac
[ "${1:-all}" = clean ] || printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
