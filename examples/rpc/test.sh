#!/bin/sh
# What the Makefile runs: `sh test.sh test|environment`. Environment and wheel are made as for the Python binding's own tests.
set -u
cd "$(dirname "$0")/../../bindings/python" || exit 1
. ../../scripts/suite.sh
. ./environments.sh
examples=$(cd ../../examples/rpc && pwd)
make=${MAKE:-make}

lock
if ! find_interpreters; then
    echo 'there is no CPython 3.11 or later (with venv and pip: on Debian, the package python3-venv)' >&2
    exit 1
fi
need_tools && build_wheel && environment "$work/venv-rpc" "$python" test examples-rpc &&
    install_wheel "$work/venv-rpc" || exit 1
unlock

if [ "${1:-test}" = environment ]; then
    printf '%s\n' "$work/venv-rpc/bin/python3"
    exit
fi

report=$tmp/report.xml
# The commands of the guide build in the same place.
(cd ../.. && { sh scripts/built.sh ramway stock distance ||
    cargo build --quiet -p ramway-cli -p ramway-examples --bin ramway --bin stock --bin distance; }) && \
    "$make" --no-print-directory -C ../../capi build || exit 1
export RAMWAY_EXAMPLES_RUST="$target/debug" RAMWAY_LIB="$target/release"
# The settings are the binding's, but not its tests.
# shellcheck disable=SC2086
(cd "$examples" && "$work/venv-rpc/bin/python3" -m pytest -c ../../bindings/python/pyproject.toml --rootdir . \
    --junitxml "$report" ${ARGS:-} tests)
rc=$?
# shellcheck disable=SC2046
set -- $("$work/venv-rpc/bin/python3" -I tests/count.py "$report")
printf '%d passed, %d failed, %d skipped\n' "$1" "$2" "$3"
[ "$rc" -eq 0 ]
