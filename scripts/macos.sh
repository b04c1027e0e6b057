#!/bin/sh
# `make test-macos`: what exists of Ramway on macOS, compiled and run there: the core and the buffer pool, each within one process,
# a ring and a bus between processes, the documentation's programs, and the Go module. The command, the other languages and
# most of the core's tests between processes use what only Linux has.
#
# On another system it compiles the same for macOS as far as its standard library is installed, and runs nothing.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

passed=0 failed=0
step() { # NAME COMMAND...
    name=$1
    shift
    say "$name"
    if run_logged "macos $name" limited "$@"; then
        passed=$((passed + 1))
        # shellcheck disable=SC2046
        set -- $(awk -f scripts/count.awk "$log")
        if [ "$1" -ne 0 ]; then ok "$1 tests"; else ok ""; fi
    else
        failed=$((failed + 1))
        bad ""
        show_log
    fi
}

if [ "$(uname -s)" = Darwin ]; then how=test for='' goos=''; else how='check --profile test' for='--target aarch64-apple-darwin' goos=darwin; fi
no_fail_fast=
if [ "$how" = test ]; then no_fail_fast=--no-fail-fast; fi
# shellcheck disable=SC2086
{
    step "core" cargo $how $locked $for $no_fail_fast -p ramway --features tokio --lib --test two_processes
    step "pool" cargo $how $locked $for $no_fail_fast -p ramway-pool --lib --test buffer --test freeze --test io --test limit --test many_pools
    if [ "$how" = test ]; then step "documentation" cargo test $locked --no-fail-fast -p ramway -p ramway-pool --doc; fi
}
if have go; then
    if [ "$how" = test ]; then step "go" go -C bindings/go test -count=1 -timeout 600s ./...
    else step "go" env GOOS=$goos GOARCH=arm64 CGO_ENABLED=0 go -C bindings/go vet ./...; fi
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
