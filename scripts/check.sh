#!/bin/sh
# `make check`: what a change is checked with before each commit, in less than five minutes once all is built. Ends with one
# line that counts its steps. `make test` runs everything.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

passed=0 failed=0 number=0
total=6
printf 'make check: %d steps, a few minutes once everything is built; make test runs all suites\n' "$total"

step() { # NAME COMMAND...
    name=$1
    shift
    number=$((number + 1))
    say "step $number of $total: $name"
    if run_logged "check $name" "$@"; then
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

# quick PACKAGE TEST...: the tests of the crate itself and those of its test files that end within seconds.
quick() {
    package=$1
    shift
    files=
    for file in "$@"; do files="$files --test $file"; done
    # shellcheck disable=SC2086
    limited cargo test $locked -p "$package" --all-features --no-fail-fast --lib $files
}

step "rustfmt" cargo fmt --all --check
# shellcheck disable=SC2086
step "clippy" cargo clippy $locked --workspace --all-targets --all-features -- -D warnings
step "core" quick ramway abi_page badfiles bus_names lifecycle lifecycle_death lifecycle_names readiness region ring \
    ring_batch tensor
step "pool" quick ramway-pool buffer freeze io limit options slots vectors
# shellcheck disable=SC2086
step "facts" limited cargo test $locked -p ramway-format
# Every vector, played to the core in this process: what all languages are compared with.
# shellcheck disable=SC2086
step "vectors" limited cargo test $locked -p ramway-conformance --lib --test vectors --test vectors_core

note 'left out: documentation tests, the command, the bridge, C and C++, all other languages, the matrix of languages, the'
note 'benchmark, models, hostile and long tests of core and pool (make test); make -C bindings/LANGUAGE test is one language'
if [ "$failed" -ne 0 ]; then printf 'logs: %s\n' "$logs"; fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
