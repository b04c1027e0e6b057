#!/bin/sh
# What the Makefile runs: `sh test.sh build|all|quick|lint|pack|clean`.
#
#   ARGS           parts of names of tests
#   RAMWAY_BUILD   where everything goes that is made; default: csharp below cargo's target directory
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=../../scripts/suite.sh
. ../../scripts/suite.sh
build=${RAMWAY_BUILD:-$target/csharp}
mkdir -p "$build" || exit 1
build=$(cd "$build" && pwd)/

# One at a time, where the system can say so: several suites may want the same build at once.
lock() { if command -v flock >/dev/null; then exec 9>"${build}lock" && flock 9; fi; }
unlock() { if command -v flock >/dev/null; then exec 9>&-; fi; }

build() {
    lock
    step 'toolchain' sh toolchain.sh &&
        step 'library and tests' sh dotnet.sh build tests/Ramway.Tests.csproj -c Release -p:RamwayBuild="$build"
    built=$?
    unlock
    return $built
}

# The Rust side's command, for the tests that talk to it. Without cargo they are skipped.
command_to_talk_to() {
    find_command
    [ -z "${RAMWAY_CLI:-}" ] && command -v cargo >/dev/null || return 0
    step 'the ramway command' cargo build --quiet --package ramway-cli --bin ramway && find_command
}

# Tests: what they print, and the last line's counts.
tests() {
    command_to_talk_to
    # The newest, of the framework that was just built for; the names are ours.
    # shellcheck disable=SC2012
    program=$(ls -t "$build"bin/Ramway.Tests/Release/*/Ramway.Tests.dll | head -n 1)
    # shellcheck disable=SC2086
    { sh dotnet.sh exec "$program" ${ARGS:-} 2>&1; echo "$?" >"$tmp/rc"; } | tee "$tmp/log"
    read -r rc <"$tmp/rc"
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)*$/\1 \2 \4/p' "$tmp/log" | tail -n 1) 0 0 0
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + ${3:-0}))
}

written() {
    find . -name '*.cs' -o -name '*.csproj' -o -name '*.props' -o -name '*.sh' -o -name '*.md' | sort | xargs awk '
        FNR == 1 { if (lines > 700) bad(last ": " lines " lines, at most 700"); last = FILENAME }
        { lines = FNR }
        /[ \t]$/ { bad(FILENAME ":" FNR ": white space at the end") }
        /\t/ { bad(FILENAME ":" FNR ": a tab") }
        length > 140 && FILENAME !~ /\.md$/ { bad(FILENAME ":" FNR ": " length " characters, at most 140") }
        function bad(what) { print what; found = 1 }
        END { if (lines > 700) bad(last ": " lines " lines, at most 700"); exit found }'
}

lint() {
    step 'white space and lengths' written
    if command -v shellcheck >/dev/null; then
        step 'shellcheck' shellcheck -x test.sh toolchain.sh dotnet.sh
    else
        # It looks at three scripts and at nothing that users get: not worth a failure, nor a package.
        printf '==> shellcheck: not run, it is not installed\n'
    fi
}

pack() {
    build && step 'package' sh dotnet.sh pack src/Ramway.csproj -c Release -p:RamwayBuild="$build" -o "${build}package" &&
        ls "${build}package"
}

case "${1:-all}" in
build) build ;;
quick) build && tests ;;
all)
    lint
    build && tests
    ;;
lint) lint ;;
pack) pack ;;
clean) rm -rf "${build}bin" "${build}obj" "${build}package" ;;
*)
    echo "sh test.sh build|all|quick|lint|pack|clean" >&2
    exit 2
    ;;
esac
case "${1:-all}" in
all | quick)
    if [ "$skipped" -ne 0 ]; then
        printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    else
        printf '%d passed, %d failed\n' "$passed" "$failed"
    fi
    ;;
esac
[ "$failed" -eq 0 ]
