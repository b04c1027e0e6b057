#!/bin/sh
# What the Makefile runs: `sh test.sh test|programs|environment`. Environment and wheel are made as for the binding's
# own tests.
set -u
cd "$(dirname "$0")/../../bindings/python" || exit 1
. ../../scripts/suite.sh
. ./environments.sh
examples=$(cd ../../examples && pwd)
make=${MAKE:-make}

# The other halves: cargo's profile, and where it puts its programs.
programs() { # PROFILE DIRECTORY
    export RAMWAY_EXAMPLES_RUST="$target/$2" RAMWAY_EXAMPLES_CPP="$target/examples-cpp"
    (cd ../.. && { [ "$1" = dev ] && sh scripts/built.sh camera robot || cargo build --quiet --profile "$1" -p ramway-examples; }) &&
        "$make" --no-print-directory -C ../../capi build &&
        "$make" --no-print-directory -C "$examples/cpp" OUT="$RAMWAY_EXAMPLES_CPP"
}

if [ "${1:-test}" = programs ]; then
    programs release release && printf '%s\n' "$RAMWAY_EXAMPLES_RUST" "$RAMWAY_EXAMPLES_CPP"
    exit
fi

lock
if ! find_interpreters; then
    echo 'there is no CPython 3.11 or later (with venv and pip: on Debian, the package python3-venv)' >&2
    exit 1
fi
if [ "${1:-test}" = test ]; then programs dev debug || exit 1; fi
need_tools && build_wheel && environment "$work/venv-examples" "$python" test examples &&
    install_wheel "$work/venv-examples" || exit 1
unlock

# For examples in other languages that have a half in Python.
if [ "${1:-test}" = environment ]; then
    printf '%s\n' "$work/venv-examples/bin/python3"
    exit
fi

report=$tmp/report.xml
# The settings are the binding's, but not its tests.
# shellcheck disable=SC2086
(cd "$examples/python" && "$work/venv-examples/bin/python3" -m pytest -c ../../bindings/python/pyproject.toml --rootdir . \
    --junitxml "$report" ${ARGS:-} tests)
rc=$?
# shellcheck disable=SC2046
set -- $("$work/venv-examples/bin/python3" -I tests/count.py "$report")
printf '%d passed, %d failed, %d skipped\n' "$1" "$2" "$3"
[ "$rc" -eq 0 ]
