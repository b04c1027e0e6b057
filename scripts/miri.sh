#!/bin/sh
# `make miri`: the tests whose names begin with `miri_`: those that map no memory and make no system call of their own.
set -eu
cd "$(dirname "$0")/.."
exec cargo +nightly miri test -p ramway --lib miri_
