#!/bin/sh
# What the Makefile runs: `sh test.sh build|venv|all|quick|debug|free-threaded|lint|torch|sdist|dist|clean`.
#
#   CI=true    what cannot be run here (no CPython 3.11, a package that cannot be had) is a failure
#   PYTHONS    the interpreters to use instead of those that pythons.sh finds
#   ARGS       further arguments of pytest
#   PROFILE    cargo's profile of the wheels
#   TARGETS    of dist: those to build for, as rustc calls them
#   FREE_THREADED  of dist: the free-threaded interpreters to build for, instead of those of pyproject.toml; none need be here
#
# The tests run against the wheel as it is installed. Environments are used again as long as the interpreter and the
# lists of packages in pyproject.toml are the same.
set -u
cd "$(dirname "$0")" || exit 1
. ../../scripts/suite.sh
. ./environments.sh
suites=0
need_memory python

# Starts the suite in the background: most of a test is waiting, so several go at once. `finish` has what came of it.
start() { # NAME PYTHON ARGUMENT...
    suites=$((suites + 1))
    printf '%s\n' "$1" >"$tmp/$suites.name"
    shift
    (
        began=$(date +%s)
        # The shell has what it starts in the background ignore Ctrl-C, and nothing in a shell undoes that; the tests of
        # Ctrl-C want it as a terminal has it.
        # shellcheck disable=SC2086
        "$tools/bin/python3" -I -c 'if True:
            import os, signal, sys
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.execvp(sys.argv[1], sys.argv[1:])' "$@" ${ARGS:-} --junitxml "$tmp/$suites.xml" >"$tmp/$suites.log" 2>&1
        echo "$? $(($(date +%s) - began))" >"$tmp/$suites.rc"
    ) &
}

# Waits for the suites, and counts the tests of the first; of the others, whose tests are the same, only what fails.
finish() {
    wait
    for suite in $(seq "$suites"); do
        read -r rc seconds <"$tmp/$suite.rc"
        # shellcheck disable=SC2046
        set -- $("$tools/bin/python3" -I tests/count.py "$tmp/$suite.xml")
        if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
        failed=$((failed + $2))
        if [ "$suite" = 1 ]; then passed=$((passed + $1)) skipped=$((skipped + $3)); fi
        printf '==> %s: %d passed, %d failed, %d skipped (%d s)\n' "$(cat "$tmp/$suite.name")" "$1" "$2" "$3" "$seconds"
        if [ "$2" -ne 0 ]; then cat "$tmp/$suite.log"; else grep '^SKIPPED' "$tmp/$suite.log"; fi
    done
    suites=0
}

lint() {
    # What is Python's elsewhere in the repository follows the same rules.
    set -- python tests
    for elsewhere in ../../examples/python ../../examples/rpc ../../agents/python ../../bench/peers/python; do
        [ -d "$elsewhere" ] && set -- "$@" "$elsewhere"
    done
    step 'ruff check' "$tools/bin/ruff" check --config pyproject.toml --no-cache "$@"
    step 'ruff format' "$tools/bin/ruff" format --config pyproject.toml --no-cache --check "$@"
    step 'mypy --strict' "$tools/bin/mypy" --cache-dir "$work/mypy"
    step "mypy --strict on the kit's program" env MYPYPATH="$PWD/python:../../agents/python" \
        "$tools/bin/mypy" --strict --config-file= --cache-dir "$work/mypy-kit" ../../agents/python
    if command -v node >/dev/null; then
        step "pyright's program" fetch_pyright && step 'pyright' "$tools/bin/pyright" --pythonpath "$tools/bin/python3"
    else
        missing 'pyright' 'it needs Node.js (node)'
    fi
    step 'mypy --strict on the programs of README.md' typed_readme
    step 'stubtest' env MYPYPATH= MYPY_CACHE_DIR="$work/mypy-stubtest" "$tools/bin/stubtest" --allowlist tests/stubtest.allow ramway
}

# pyright's package fetches the program itself when it is first started.
fetch_pyright() { fetch "$tools/bin/pyright" --version; }

# The environment of the newest interpreter, with what else the tests talk to.
newest_environment() {
    if step "environment of $newest" ready "$newest" test all; then return; fi
    # jax and uvloop have no wheels for an interpreter that is newer than they are.
    if [ "${CI:-}" != true ]; then failed=$((failed - 1)) skipped=$((skipped + 1)); fi
    step "environment of $newest without jax and uvloop" ready "$newest" test
}

newest() {
    start "Python $newest" "$work/venv-$newest/bin/python3" -m pytest
}

debug() {
    start "Python $newest, PYTHONMALLOC=debug -X dev -W error" \
        env PYTHONMALLOC=debug "$work/venv-$newest/bin/python3" -X dev -W error -m pytest
}

# The oldest has the whole suite too; those in between have the tests that need no other process.
others() {
    oldest=${interpreters%% *}
    for version in $(printf '%s\n' "$interpreters" | sed 's/ .*//'); do
        [ "$version" != "$newest" ] || continue
        step "environment of $version" ready "$version" test || continue
        set -- tests
        [ "$version" = "$oldest" ] ||
            set -- tests/test_ring.py tests/test_slot.py tests/test_region.py tests/test_numpy.py tests/test_dlpack.py \
                tests/test_tensor.py tests/test_asyncio.py tests/test_errors.py tests/test_pickle.py
        start "Python $version" "$work/venv-$version/bin/python3" -m pytest "$@"
    done
}

# The whole suite on each interpreter without a lock, with a wheel of its own. Where there is none, that is said.
free_threaded() {
    if [ -z "$free_threaded" ]; then
        echo '==> no free-threaded CPython 3.14 or later (python3.14t): not tried'
        return
    fi
    for version in $(printf '%s\n' "$free_threaded" | sed 's/ .*//'); do
        step "wheel of Python $version" build_free_threaded_wheel "$(interpreter "$version")" &&
            step "environment of $version" ready "$version" test &&
            start "Python $version" "$work/venv-$version/bin/python3" -m pytest
    done
}

# The sdist alone, in directories and an environment of its own, as pip does it where there is no wheel. Not optimised:
# what is looked at is that everything is in it. Cargo's directory is new too: what is unpacked has old times, which cargo
# would take for what it has built before.
sdist() {
    "$tools/bin/maturin" sdist --out "$tmp/sdist" && "$python" -m venv --without-pip "$tmp/clean" &&
        (cd "$tmp" && CARGO_TARGET_DIR="$tmp/target" MATURIN_PEP517_ARGS='--profile dev' "$tools/bin/python3" -m pip \
            --python clean/bin/python3 install -q sdist/*.tar.gz &&
            clean/bin/python3 -I -c 'if True:
                import ramway
                tx, rx = ramway.Ring.pair(4096)
                tx.send(b"x")
                assert rx.recv_bytes() == b"x"')
}

# The first line of README.md that installs, as it stands there, in an environment of its own.
install_line() {
    line=$(sed -n 's/^\(make -C bindings\/python build .*[^ ]\)  *#.*/\1/p' README.md)
    [ -n "$line" ] && "$python" -m venv "$tmp/install" && (cd ../.. && PATH="$tmp/install/bin:$PATH" sh -c "$line") &&
        "$tmp/install/bin/python" -I -c 'import numpy, ramway'
}

# The programs of README.md, typed as strictly as their readers' are.
typed_readme() {
    mkdir -p "$tmp/readme" && "$tools/bin/python3" -I tests/readme_programs.py "$tmp/readme" &&
        "$tools/bin/mypy" --strict --config-file= --cache-dir "$work/mypy-readme" --scripts-are-modules "$tmp"/readme/*.py
}

# One wheel of a target.
dist_wheel() { # TRIPLE COMPATIBILITY ARGUMENT...
    triple=$1 compatibility=$2
    shift 2
    # It asks the first python3 of the PATH for zig.
    PATH=$tools/bin:$PATH "$tools/bin/maturin" build --quiet --locked --profile "${PROFILE:-release}" --zig --target "$triple" \
        --compatibility "$compatibility" --out dist "$@"
}

# What is uploaded: the sdist, and the wheels of each target, which zig's linker links against old C libraries: every Linux since
# glibc 2.17, and those of musl 1.2. The target's own interpreter is not asked: the stable ABI is the same in all of them, and of the
# free-threaded ones, which have none, maturin knows what a wheel has to be.
dist() {
    fetch "$tools/bin/python3" -m pip install -q ziglang && mkdir -p dist && rm -f dist/*.whl dist/*.tar.gz &&
        "$tools/bin/maturin" sdist --out dist || return 1
    for triple in ${TARGETS:-x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl}; do
        if [ ! -d "$(rustc --print target-libdir --target "$triple")" ] && ! fetch rustup target add "$triple"; then return 1; fi
        case $triple in *-musl) compatibility=musllinux_1_2 ;; *) compatibility=manylinux_2_17 ;; esac
        dist_wheel "$triple" "$compatibility" || return 1
        for version in ${FREE_THREADED:-$(sh pythons.sh --released-free-threaded)}; do
            dist_wheel "$triple" "$compatibility" --interpreter "python$version" || return 1
        done
    done
    ls dist
}

case "${1:-all}" in
all | build | venv | quick | debug | free-threaded | lint | torch | sdist | dist) ;;
clean)
    rm -rf "$work" dist
    exit
    ;;
*)
    echo 'sh test.sh [all|build|venv|quick|debug|free-threaded|lint|torch|sdist|dist|clean]' >&2
    exit 2
    ;;
esac

# Some tests talk to the Rust side's command, one to its benchmark. Any build of them will do.
need_commands() {
    need_command && need_benchmark
}
need_benchmark() {
    [ -x "$target/release/ramway-bench" ] || [ -x "$target/debug/ramway-bench" ] || cargo build --quiet --locked -p ramway-bench
}
need_command() {
    if [ -n "${RAMWAY_CLI:-}" ]; then return; fi
    for RAMWAY_CLI in "$target/debug/ramway" "$target/release/ramway"; do
        if [ -x "$RAMWAY_CLI" ]; then export RAMWAY_CLI && return; fi
    done
    RAMWAY_CLI=$target/debug/ramway
    export RAMWAY_CLI
    cargo build --quiet --locked -p ramway-cli
}

lock
if ! find_interpreters; then
    missing 'Python' 'there is no CPython 3.11 or later (with venv and pip: on Debian, the package python3-venv)'
elif [ "${1:-all}" = dist ]; then
    step 'tools' need_tools && { dist || failed=1; }
elif step 'tools' need_tools && step 'wheel' build_wheel && step 'wheel into the tools' install_wheel "$tools"; then
    unlock
    case "${1:-all}" in
    all | quick | debug | free-threaded | torch) step 'the ramway commands' need_commands ;;
    esac
    case "${1:-all}" in
    build)
        # Where pip is pointed to: one wheel, and nothing older beside it.
        mkdir -p dist && rm -f dist/*.whl && cp "$wheel" dist && ls "$PWD"/dist/*.whl
        ;;
    venv)
        ln -sfn venv-tools "$work/venv" && printf '%s\n' "$work/venv"
        ;;
    all)
        newest_environment && newest && debug
        others
        free_threaded
        lint
        step 'sdist' sdist
        step 'the install line' install_line
        finish
        ;;
    quick) newest_environment && newest && finish ;;
    debug) newest_environment && debug && finish ;;
    free-threaded)
        [ -n "$free_threaded" ] || missing 'free-threaded Python' 'there is no python3.14t or later (with venv)'
        free_threaded && finish
        ;;
    lint) lint ;;
    torch)
        step 'environment with PyTorch' environment "$work/venv-torch" "$python" test torch &&
            step 'wheel into it' install_wheel "$work/venv-torch" &&
            start 'with PyTorch' "$work/venv-torch/bin/python3" -m pytest && finish
        ;;
    sdist) step 'sdist' sdist ;;
    esac
fi
case "${1:-all}" in
all | quick | debug | free-threaded | torch) printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped" ;;
esac
[ "$failed" -eq 0 ]
