#!/bin/sh
# What a bare Debian container lacks before `.ci/run`: rustup with the stable toolchain, and what that needs. Everything else is
# installed by `make test`. As root, in a container that is thrown away afterwards: it changes Git's and rustup's settings.
set -eu
cd "$(dirname "$0")/.."
export DEBIAN_FRONTEND=noninteractive

apt-get update -q
apt-get install -q -y --no-install-recommends build-essential ca-certificates git make procps rustup
# The checkout belongs to the runner's user, and Git refuses what belongs to somebody else.
git config --global --add safe.directory "$PWD"
rustup toolchain install stable --profile minimal --component clippy --component rustfmt
rustup default stable
