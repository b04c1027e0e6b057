#!/bin/sh
# build.sh LANGUAGE ROOT OUT: OUT/runtime, the runtime for arm64, and OUT/agent, what it needs beside the agent's own files. What is
# native is built for arm64; what a virtual machine runs is what the language's own agent is. scripts/cross.sh sets the linker.
set -eu
language=$1 root=$2 out=$3 triple=aarch64-unknown-linux-gnu
here=$(cd "$(dirname "$0")" && pwd)
runtime=$(sh "$here/runtime.sh" "$language")
ln -sfn "$runtime" "$out/runtime"
mkdir -p "$out/agent"
# As cargo's target directory is said to a build of the runner.
target=${CARGO_TARGET_DIR:-$root/target}

case $language in
python)
    cargo build --quiet --manifest-path "$root/Cargo.toml" --target "$triple" -p ramway-python
    rm -rf "$out/agent/ramway"
    cp -R "$root/bindings/python/python/ramway" "$out/agent/ramway"
    cp "$target/$triple/debug/lib_ramway.so" "$out/agent/ramway/_ramway.abi3.so"
    ;;
node)
    # As the package for this platform, where the module looks for it after the module that is built for this machine.
    package=$out/agent/modules/@ramway/node-linux-arm64-gnu
    rm -rf "$package"
    sh "$root/bindings/node/test.sh" cross "$triple" "$package"
    mv "$package"/*.node "$package/index.node"
    mkdir -p "$root/agents/node/node_modules"
    ln -sfn ../../../bindings/node "$root/agents/node/node_modules/ramway"
    ${triple%%-*}-linux-gnu-gcc -std=c11 -O2 -Wall -Wextra -Werror -shared -fPIC -o "$out/agent/address.node" "$root/agents/node/address.c"
    ;;
java | csharp)
    plain=$target/conformance/$language
    mkdir -p "$plain"
    sh "$root/agents/$language/build.sh" "$root" "$plain"
    rm -rf "$out/agent"
    ln -sfn "$plain" "$out/agent"
    ;;
esac
