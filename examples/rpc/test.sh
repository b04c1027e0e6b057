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
