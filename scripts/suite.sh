# Shared by the test.sh of the bindings, which source it in their own directories: places, counts, and how a step is shown.
#
#   $target                      cargo's target directory, whole; a relative CARGO_TARGET_DIR is one of the repository
#   $tmp, $memory                go when the script ends
#   $passed, $failed, $skipped   counts for the last line
# shellcheck shell=sh

case ${CARGO_TARGET_DIR:-} in
/*) target=$CARGO_TARGET_DIR ;;
*) target=$(cd ../.. && pwd)/${CARGO_TARGET_DIR:-target} ;;
esac
tmp=$(mktemp -d) || exit 1
memory=
trap 'rm -rf "$tmp" ${memory:+"$memory"}' EXIT
trap 'exit 130' INT TERM
# shellcheck disable=SC2034
passed=0 failed=0 skipped=0

# A step that is no test: only its failure counts.
step() { # NAME COMMAND...
    name=$1
    shift
    began=$(date +%s)
    if "$@" >"$tmp/log" 2>&1; then
        printf '==> %s: ok (%d s)\n' "$name" $(($(date +%s) - began))
    else
        failed=$((failed + 1))
        printf '==> %s: failed\n' "$name"
        cat "$tmp/log"
        return 1
    fi
}

# What this machine lacks.
missing() { # NAME WHAT
    if [ "${CI:-}" = true ]; then failed=$((failed + 1)); else skipped=$((skipped + 1)); fi
    printf '==> %s: not run, %s\n' "$1" "$2"
}

# Some tests talk to the Rust side's command, if it was built.
find_command() {
    [ -z "${RAMWAY_CLI:-}" ] || return 0
    for command in "$target/release/ramway" "$target/debug/ramway"; do
        if [ -x "$command" ]; then export RAMWAY_CLI="$command" && return; fi
    done
}

# Rings of tests that name no directory of their own.
need_memory() { # NAME
    [ -z "${RAMWAY_DIR:-}" ] || return 0
    shared=/dev/shm
    [ -w "$shared" ] || shared=$tmp
    memory=$(mktemp -d "$shared/ramway-$1.XXXXXX") || exit 1
    export RAMWAY_DIR="$memory"
}
