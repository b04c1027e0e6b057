#!/bin/sh
# `make test`: installs what the tests need, runs all of them, and ends with one line that counts them.
#
#   CI=true        a missing toolchain is a failure instead of a skipped suite
#   SKIP_LINT=1    leaves out rustfmt and clippy (`make lint` runs them alone)
#   VERBOSE=1      prints each test binary's own summary line (on with CI=true)
#   TEST_LANES=1   no two suites at a time: see `join` below
#   TEST_TIMEOUT   seconds after which one suite is stopped and counted as failed (default 3000)
#
# Each suite's whole output goes to a log under the target directory; what is printed is one line a suite, and the
# log of a suite that failed. How long each one took is kept there too, for the first line of the next run.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh

passed=0 failed=0 skipped=0
# Which suite of how many; before they run they are counted, with the seconds that they took the last time.
lane='' number=0 total=0 counting='' expected=0 unknown=0
record=$logs/seconds

# Tests that name no directory of their own get one that nobody else uses.
for base in /dev/shm "${TMPDIR:-/tmp}"; do
    if [ -d "$base" ] && [ -w "$base" ]; then break; fi
done
RAMWAY_DIR=$(mktemp -d "$base/ramway-test.XXXXXX") || exit 1
export RAMWAY_DIR
# A .NET program that a test kills would leave its diagnostics socket in the temporary directory.
export DOTNET_EnableDiagnostics=0
lanes=$(mktemp -d) && mkdir "$lanes/of" || exit 1
trap 'rm -rf "$RAMWAY_DIR" "$lanes"' EXIT
trap 'exit 130' INT TERM

# add PASSED FAILED SKIPPED
add() {
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# Counts a suite (status 1), or says which one begins.
suite() { # NAME
    if [ -n "$counting" ]; then
        total=$((total + 1))
        last=$(sed -n "s/^$1: //p" "$record" 2>/dev/null | tail -n 1)
        # One of another lane runs meanwhile.
        if [ -n "$lane" ] && [ -n "$last" ]; then last=$((last / 2)); fi
        if [ -n "$last" ]; then expected=$((expected + last)); else unknown=$((unknown + 1)); fi
        return 1
    fi
    number=$((number + 1))
    say "suite $number of $total: $1"
}

# Keeps how long it took.
remember() { # NAME
    { grep -v "^$1: " "$record" 2>/dev/null; printf '%s: %d\n' "$1" $(($(date +%s) - started)); } >"$record.new"
    mv "$record.new" "$record"
}

# A step that is no test: only its failure counts.
check() { # NAME COMMAND...
    name=$1
    shift
    suite "$name" || return 0
    if run_logged "$name" "$@"; then ok ""; else add 0 1 0; bad "failed"; show_log; fi
    remember "$name"
}

# What `cargo test` printed is counted by scripts/count.awk. A build that failed has no test binary: one failure.
cargo_suite() { # NAME COMMAND...
    name=$1
    shift
    suite "$name" || return 0
    run_logged "$name" "$@"
    rc=$?
    # shellcheck disable=SC2046
    set -- $(awk -f scripts/count.awk "$log")
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
    finish_suite "$rc" "$@"
}

# A suite of another language ends with "N passed, N failed" (", N skipped" may follow).
plain_suite() { # NAME COMMAND...
    name=$1
    shift
    suite "$name" || return 0
    run_logged "$name" "$@"
    plain_result $?
}

# Counts what a suite in $log says of itself.
plain_result() { # RC
    rc=$1
    # shellcheck disable=SC2046
    set -- $(counted)
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
    if [ "$rc" -eq 0 ] && [ $(($1 + $2 + $3)) -eq 0 ]; then
        printf 'the suite ended well but counted no test\n' >>"$log"
        set -- 0 1 0
    fi
    finish_suite "$rc" "$@"
}

finish_suite() { # RC PASSED FAILED SKIPPED
    add "$2" "$3" "$4"
    remember "$name"
    text="$2 passed"
    if [ "$3" -ne 0 ]; then text="$text, $3 failed"; fi
    if [ "$4" -ne 0 ]; then text="$text, $4 skipped"; fi
    if [ -n "${VERBOSE:-}" ]; then
        grep -E '^ +(Running|Doc-tests) |^test result: |[0-9]+ passed, [0-9]+ failed' "$log" | sed 's/^ */    /'
    fi
    if [ "$1" -eq 0 ] && [ "$3" -eq 0 ]; then ok "$text"; else bad "$text"; show_log; fi
}

# A suite whose toolchain is missing: skipped, or with CI=true failed.
missing() { # NAME WHAT
    if [ -n "$counting" ]; then total=$((total + 1)); return 0; fi
    suite "$1"
    if [ "${CI:-}" = true ]; then add 0 1 0; bad "missing: $2"; else add 0 0 1; note "skipped: missing $2"; fi
}

# The suites of other languages: a directory whose Makefile has a target `test`, and the commands that it needs.
# One line each; a new binding adds its own.
language_suite() { # NAME DIRECTORY COMMAND...
    name=$1 directory=$2
    shift 2
    [ -f "$directory/Makefile" ] || return 0
    lacking=
    for command in "$@"; do
        # Which Java is on the PATH does not say which others are there.
        case $command in
        jdk) sh scripts/jdk.sh >/dev/null 2>&1 || lacking="$lacking a JDK of version 22 or later" ;;
        *) have "$command" || lacking="$lacking $command" ;;
        esac
    done
    if [ -n "$lacking" ]; then missing "$name" "$lacking"; return 0; fi
    if [ -n "$counting" ] || [ -z "$lane" ]; then
        plain_suite "$name" limited "$MAKE_COMMAND" --no-print-directory -C "$directory" test
    else
        number=$((number + 1))
        printf '%d %s %s\n' "$number" "$directory" "$name" >>"$lanes/of/$lane"
    fi
}

# Most of the languages' suites keep one processor busy: a linker, a compiler, or a test that waits for another process. So those of
# two lanes run side by side, each lane's one after the other. In one lane are those that must not meet: Kotlin's builds the
# Java port anew, in the directory from which Java's tests run.
lane() { if [ "${TEST_LANES:-2}" != 1 ]; then lane=$1; fi; }

# Runs what the lanes have, and reports it in the order in which the suites are numbered.
join() {
    lane=
    [ -z "$counting" ] && [ -n "$(ls "$lanes/of")" ] || return 0
    sort -n "$lanes"/of/* >"$lanes/all"
    # The one who waits is in the background and not those who run: what a shell starts there ignores Ctrl-C, and the tests of
    # Ctrl-C need it as a terminal has it.
    (
        passed=0 failed=0 skipped=0
        while read -r number directory name; do
            printf '==> suite %d of %d: %s ...\n' "$number" "$total" "$name"
            until [ -e "$lanes/$number.ended" ] || [ -e "$lanes/over" ]; do
                kill -0 $$ 2>/dev/null || exit 1
                sleep 1
            done
            log=$(log_of "$name")
            [ -e "$lanes/$number.ended" ] || echo "1 0 0 its lane was stopped" | tee "$log" >"$lanes/$number.ended"
            read -r rc from to _ <"$lanes/$number.ended"
            started=$(($(date +%s) - to + from))
            plain_result "$rc"
        done <"$lanes/all"
        echo "$passed $failed $skipped" >"$lanes/counts"
    ) &
    for one in "$lanes"/of/*; do basename "$one"; done | xargs -n 1 -P 2 sh scripts/lane.sh "$lanes"
    : >"$lanes/over"
    wait
    # shellcheck disable=SC2046
    add $(cat "$lanes/counts" || echo 0 1 0)
    rm -rf "${lanes:?}"/* && mkdir "$lanes/of"
}

# The programs of the workspace are there, for scripts/built.sh, whatever came of the tests.
note_built() {
    if [ -z "$counting" ] && grep -q '^ *Finished ' "$log"; then export RAMWAY_BUILT=yes; fi
}
all_suites() {
    if [ -z "${SKIP_LINT:-}" ]; then check "linters" sh scripts/lint.sh; fi

    cargo_suite "rust" limited cargo test $locked --workspace --all-features --no-fail-fast
    note_built
    if [ -d core/models ]; then cargo_suite "models (loom)" limited sh scripts/loom.sh; fi
    lane 1
    language_suite "c and c++" capi cc c++ cmake pkg-config
    language_suite "go" bindings/go go
    language_suite "java" bindings/java mvn jdk
    language_suite "kotlin" bindings/kotlin mvn jdk
    lane 2
    language_suite "python" bindings/python cargo python3
    language_suite "node, bun and deno" bindings/node cargo node npm
    language_suite "c#" bindings/csharp npm python3
    language_suite "zig" bindings/zig cargo python3
    join
    language_suite "the report page" bench/page-tests node npm chromium
    language_suite "languages with each other" conformance cc c++ python3
    language_suite "examples in python" examples/python cc c++ python3
    language_suite "examples of rpc" examples/rpc cargo cc c++ go python3
    language_suite "examples in java and kotlin" examples/jvm mvn jdk cargo python3
    language_suite "examples in c#" examples/csharp c++ npm python3
    language_suite "examples in javascript" examples/node cc c++ python3 node npm chromium
    # Last: Zenoh's crates take minutes to build.
    if [ -f bridge/Makefile ]; then cargo_suite "bridge" limited "$MAKE_COMMAND" --no-print-directory -C bridge test; fi
}

counting=yes
all_suites
counting=
if [ "$expected" -eq 0 ]; then long="an hour on two quiet processors, more on busy ones and where all is downloaded first"
elif [ "$unknown" -ne 0 ]; then long="$(minutes "$expected") as the last time, and $unknown suites that have not run here yet"
else long="$(minutes "$expected") as the last time"; fi

printf 'make test: installs what is missing, then runs %d suites; about %s (make check: the short one)\n' "$total" "$long"
if [ "${CI:-}" = true ]; then VERBOSE=${VERBOSE-1}; fi
need_cargo || exit 1

say "needed packages"
if install_missing; then ok "$installed"; else note "could not install:$still_missing"; fi

all_suites

if [ "$failed" -ne 0 ]; then printf 'logs: %s\n' "$logs"; fi
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
