#!/bin/sh
# What the Makefile runs: `sh test.sh [lint|cross|arm64|race|fuzz]`, without a word everything but fuzzing.
#
#   CI=true        what cannot be run here (no C compiler, staticcheck cannot be downloaded) is a failure
#   GO             the go command
#   FUZZ_SECONDS   how long each fuzz target runs
set -u
cd "$(dirname "$0")" || exit 1
. ../../scripts/suite.sh
GO=${GO:-go}
# The newest one that supports all that go.mod promises.
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.6.1
command -v "$GO" >/dev/null || { echo 'go is not on the PATH: Go 1.23 or later, https://go.dev/dl'; exit 1; }
find_command

formatted() {
    unformatted=$(gofmt -l .) && [ -z "$unformatted" ] || { printf 'not as gofmt has it: %s\n' "$unformatted"; return 1; }
}

lint() {
    step 'gofmt' formatted
    step 'go vet' "$GO" vet ./...
    if GOBIN="$tmp" GOFLAGS='' "$GO" install "$staticcheck" >"$tmp/log" 2>&1; then
        step 'staticcheck' "$tmp/staticcheck" ./...
        step 'staticcheck for darwin/arm64' env GOOS=darwin GOARCH=arm64 "$tmp/staticcheck" ./...
    else
        cat "$tmp/log"
        missing 'staticcheck' "$staticcheck cannot be had"
    fi
}

# These run on none of the machines here: that they compile, and what vet sees, is all that is known.
cross() {
    export refused="$tmp/refused"
    for target in linux/arm64 darwin/arm64 darwin/amd64; do
        step "go build and go vet for $target" env CGO_ENABLED=0 GOOS="${target%/*}" GOARCH="${target#*/}" \
            sh -c '"$GO" build ./... && "$GO" vet ./...'
    done
    # Where the format cannot be, the compiler says so, and in these words.
    for target in linux/386 linux/s390x windows/amd64; do
        step "a clear refusal of $target" env CGO_ENABLED=0 GOOS="${target%/*}" GOARCH="${target#*/}" \
            sh -c '! "$GO" build . 2>"$refused" && grep -q ramway_needs_linux_or_macos "$refused"'
    done
}

# Counts tests; those of a second run with the same names only where they fail.
tests() { # NAME ARGUMENT...
    name=$1
    shift
    # Most of a test is waiting, hence more at once than there are processors.
    "$GO" test -json -count=1 -parallel 16 -timeout 300s "$@" ./... >"$tmp/events" 2>"$tmp/errors"
    "$tmp/counttests" <"$tmp/events" >"$tmp/log"
    rc=$?
    sed '$d' "$tmp/log"
    cat "$tmp/errors"
    line=$(tail -n 1 "$tmp/log")
    printf '==> %s: %s\n' "$name" "$line"
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$line" | sed 's/[^0-9][^0-9]*/ /g') 0 0 0
    counted_passed=$1 counted_failed=$2 counted_skipped=$3
    if [ "$rc" -ne 0 ] && [ "$counted_failed" -eq 0 ]; then counted_failed=1; fi
}

race() {
    if ! command -v "${CC:-cc}" >/dev/null; then
        missing 'go test -race' 'its run-time library needs a C compiler (cc) to be linked'
        return
    fi
    export CGO_ENABLED=1
    tests 'go test -race' -race
    failed=$((failed + counted_failed))
}

fuzz() {
    for package in $("$GO" list ./...); do
        for target in $("$GO" test -list '^Fuzz' "$package" | grep '^Fuzz'); do
            # Images that cover more are kept as they are: making them smaller first takes longer than it helps.
            step "fuzzing $target for ${FUZZ_SECONDS:-30} s" \
                "$GO" test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZ_SECONDS:-30}s" -fuzzminimizetime 20x "$package"
            tail -n 3 "$tmp/log"
        done
    done
}

# The tests for arm64, under the emulator that RAMWAY_TEST_RUNNER names where this is another processor. RAMWAY_TEST_SKIP is what
# `go test -skip` takes: tests that the emulator cannot run, which whoever names them counts.
arm64() {
    export GOARCH=arm64 CGO_ENABLED=0
    tests 'go test for arm64' -timeout 1200s ${RAMWAY_TEST_RUNNER:+-exec "$RAMWAY_TEST_RUNNER"} ${RAMWAY_TEST_SKIP:+-skip "$RAMWAY_TEST_SKIP"}
    passed=$counted_passed failed=$((failed + counted_failed)) skipped=$((skipped + counted_skipped))
}

export GO
case "${1:-all}" in
lint) lint ;;
cross) cross ;;
race | all | arm64)
    CGO_ENABLED=0 "$GO" build -o "$tmp/counttests" ./internal/counttests || exit 1
    if [ "${1:-all}" = all ]; then
        lint
        cross
        if [ -z "${RAMWAY_CLI:-}" ] && [ "${CI:-}" = true ]; then missing "tests with the ramway command" "it is not built"; fi
        export CGO_ENABLED=0
        tests 'go test, CGO_ENABLED=0'
        passed=$counted_passed failed=$((failed + counted_failed)) skipped=$((skipped + counted_skipped))
    fi
    if [ "${1:-all}" = arm64 ]; then arm64; else race; fi
    if [ "${1:-all}" = race ]; then passed=${counted_passed:-0}; fi
    ;;
fuzz) fuzz ;;
*)
    echo "sh test.sh [lint|cross|arm64|race|fuzz]" >&2
    exit 2
    ;;
esac
case "${1:-all}" in
all | race | arm64)
    if [ "$skipped" -ne 0 ]; then
        printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    else
        printf '%d passed, %d failed\n' "$passed" "$failed"
    fi
    ;;
esac
[ "$failed" -eq 0 ]
