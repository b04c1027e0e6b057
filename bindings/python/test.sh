#!/bin/sh
# What the Makefile runs: `sh test.sh build|venv|all|quick|debug|lint|torch|sdist|dist|clean`.
#
#   CI=true    what cannot be run here (no CPython 3.11, a package that cannot be had) is a failure
#   PYTHONS    the interpreters to use instead of those that pythons.sh finds
#   ARGS       further arguments of pytest
#   PROFILE    cargo's profile of the wheel
#
# The tests run against the wheel as it is installed. Environments are used again as long as the interpreter and the
# lists of packages in pyproject.toml are the same.
set -u
cd "$(dirname "$0")" || exit 1
. ./environments.sh
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0 skipped=0

# Rings of tests that name no directory of their own.
if [ -z "${RAMWAY_DIR:-}" ]; then
    shared=/dev/shm
    if [ ! -w "$shared" ]; then shared=$tmp; fi
    RAMWAY_DIR=$(mktemp -d "$shared/ramway-python.XXXXXX") || exit 1
    export RAMWAY_DIR
    trap 'rm -rf "$tmp" "$RAMWAY_DIR"' EXIT
fi

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

# Runs the suite. `count` is `all`, or `failures` for a further run of tests that were counted before.
suite() { # NAME COUNT PYTHON ARGUMENT...
    name=$1 count=$2 python3=$3
    shift 3
    began=$(date +%s)
    rm -f "$tmp/report.xml"
    # shellcheck disable=SC2086
    "$python3" "$@" -m pytest --junitxml "$tmp/report.xml" ${ARGS:-} >"$tmp/log" 2>&1
    rc=$?
    # shellcheck disable=SC2046
    set -- $("$python3" -I tests/count.py "$tmp/report.xml")
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
    failed=$((failed + $2))
    if [ "$count" = all ]; then passed=$((passed + $1)) skipped=$((skipped + $3)); fi
    printf '==> %s: %d passed, %d failed, %d skipped (%d s)\n' "$name" "$1" "$2" "$3" $(($(date +%s) - began))
    if [ "$2" -ne 0 ]; then cat "$tmp/log"; else grep '^SKIPPED' "$tmp/log"; fi
}

lint() {
    # What is Python's elsewhere in the repository follows the same rules.
    set -- python tests
    for elsewhere in ../../examples/python ../../conformance/programs/python ../../bench/peers/python; do
        [ -d "$elsewhere" ] && set -- "$@" "$elsewhere"
    done
    step 'ruff check' "$tools/bin/ruff" check --config pyproject.toml --no-cache "$@"
    step 'ruff format' "$tools/bin/ruff" format --config pyproject.toml --no-cache --check "$@"
    step 'mypy --strict' "$tools/bin/mypy" --cache-dir "$work/mypy"
    if command -v node >/dev/null; then
        step 'pyright' fetch_pyright && step 'pyright' "$tools/bin/pyright" --pythonpath "$tools/bin/python3"
    else
        missing 'pyright' 'it needs Node.js (node)'
    fi
    step 'stubtest' env MYPYPATH= MYPY_CACHE_DIR="$work/mypy-stubtest" "$tools/bin/stubtest" --allowlist tests/stubtest.allow ramway
}

# pyright's package fetches the program itself when it is first started.
fetch_pyright() { fetch "$tools/bin/pyright" --version; }

newest() {
    if ! step "environment of $newest" ready "$newest" test all; then
        # jax and uvloop have no wheels for an interpreter that is newer than they are.
        if [ "${CI:-}" != true ]; then failed=$((failed - 1)) skipped=$((skipped + 1)); fi
        step "environment of $newest without jax and uvloop" ready "$newest" test || return 1
    fi
    suite "Python $newest" all "$work/venv-$newest/bin/python3"
}

others() {
    for version in $(printf '%s\n' "$interpreters" | sed 's/ .*//'); do
        [ "$version" != "$newest" ] || continue
        step "environment of $version" ready "$version" test &&
            suite "Python $version" failures "$work/venv-$version/bin/python3"
    done
}

debug() {
    PYTHONMALLOC=debug suite "Python $newest, PYTHONMALLOC=debug -X dev -W error" "$1" \
        "$work/venv-$newest/bin/python3" -X dev -W error
}

# The sdist alone, in a directory and an environment of its own, as pip does it where there is no wheel. Not optimised:
# what is looked at is that everything is in it.
sdist() {
    "$tools/bin/maturin" sdist --out "$tmp/sdist" && "$python" -m venv --without-pip "$tmp/clean" &&
        (cd "$tmp" && MATURIN_PEP517_ARGS='--profile dev' fetch "$tools/bin/python3" -m pip \
            --python clean/bin/python3 install -q sdist/*.tar.gz &&
            clean/bin/python3 -I -c 'if True:
                import ramway
                tx, rx = ramway.Ring.pair(4096)
                tx.send(b"x")
                assert rx.recv_bytes() == b"x"')
}

# What is uploaded: zig's linker knows the older C libraries.
dist() {
    fetch "$tools/bin/python3" -m pip install -q ziglang && mkdir -p dist && rm -f dist/*.whl dist/*.tar.gz &&
        "$tools/bin/maturin" sdist --out dist &&
        "$tools/bin/maturin" build --quiet --locked --release --zig --compatibility manylinux_2_17 --out dist &&
        ls dist
}

case "${1:-all}" in
all | build | venv | quick | debug | lint | torch | sdist | dist) ;;
clean)
    rm -rf "$work" dist
    exit
    ;;
*)
    echo 'sh test.sh [all|build|venv|quick|debug|lint|torch|sdist|dist|clean]' >&2
    exit 2
    ;;
esac

lock
if ! find_interpreters; then
    missing 'Python' 'there is no CPython 3.11 or later (with venv and pip: on Debian, the package python3-venv)'
elif step 'tools' need_tools && step 'wheel' build_wheel && step 'wheel into the tools' install_wheel "$tools"; then
    unlock
    case "${1:-all}" in
    build)
        # Where pip is pointed to: one wheel, and nothing older beside it.
        mkdir -p dist && rm -f dist/*.whl && cp "$wheel" dist && ls "$PWD"/dist/*.whl
        ;;
    venv)
        ln -sfn venv-tools "$work/venv" && printf '%s\n' "$work/venv"
        ;;
    all)
        lint
        newest && debug failures
        others
        step 'sdist' sdist
        ;;
    quick) newest ;;
    debug) ready "$newest" test all >"$tmp/log" 2>&1 && debug all ;;
    lint) lint ;;
    torch)
        step 'environment with PyTorch' environment "$work/venv-torch" "$python" test torch &&
            step 'wheel' install_wheel "$work/venv-torch" && suite 'with PyTorch' all "$work/venv-torch/bin/python3"
        ;;
    sdist) step 'sdist' sdist ;;
    dist) dist || failed=1 ;;
    esac
fi
case "${1:-all}" in
all | quick | debug | torch) printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped" ;;
esac
[ "$failed" -eq 0 ]
