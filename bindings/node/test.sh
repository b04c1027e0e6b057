#!/bin/sh
# What the Makefile runs: `sh test.sh build|native|all|quick|lint|pack|dist|clean`, and for another target `sh test.sh cross TRIPLE FOLDER`.
#
#   CI=true    what cannot be run here (no Bun for this machine, no browser) is a failure
#   RUNTIMES   of node, bun and deno, those to use
#   ARGS       names of test files
#   PROFILE    cargo's profile of the native modules (release)
#   MACHINES   of dist: the processors to build for (x86_64 aarch64)
#
# npm's packages are those of package-lock.json, and none of them runs a script at installation.
set -u
cd "$(dirname "$0")" || exit 1
. ../../scripts/suite.sh
export CARGO_TARGET_DIR="$target" NO_COLOR=1 npm_config_loglevel=error npm_config_update_notifier=false
# In CI the committed lock file must be right; elsewhere cargo may bring it up to date.
locked=
if [ "${CI:-}" = true ]; then locked=--locked; fi
bin=$PWD/node_modules/.bin
mkdir -p "$target" || exit 1
need_memory node

# Tests: what they print, and the last line's counts.
tests() { # NAME COMMAND...
    name=$1
    shift
    printf '==> %s\n' "$name"
    { "$@" 2>&1; echo "$?" >"$tmp/rc"; } | tee "$tmp/log"
    read -r rc <"$tmp/rc"
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$tmp/log" | tail -n 1) 0 0 0
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# A registry that does not answer at once is asked again.
fetch() {
    for try in 1 2 3; do
        "$@" && return 0
        echo "$* failed (try $try of 3)"
        [ "$try" = 3 ] || sleep 5
    done
    return 1
}

# One at a time, where the system can say so: several suites may want the same module at once.
lock() { if command -v flock >/dev/null; then exec 9>"$target/node-package.lock" && flock 9; fi; }
unlock() { if command -v flock >/dev/null; then exec 9>&-; fi; }

packages() {
    if [ -f node_modules/.package-lock.json ] && [ "$(cat node_modules/.wanted 2>/dev/null)" = "$(cksum <package-lock.json)" ]; then
        return 0
    fi
    fetch npm ci --ignore-scripts --no-audit --no-fund && cksum <package-lock.json >node_modules/.wanted
}

# The profile is the workspace's: see Cargo.toml. What is there already may be in use by a running program.
native() {
    # The command looks for what is made in a directory with the profile's name, and that of dev is another: dev is what it builds
    # where it is told of none.
    profile="--profile ${PROFILE:-release}"
    if [ "${PROFILE:-release}" = dev ]; then profile=; fi
    # shellcheck disable=SC2086
    "$bin/napi" build --platform $profile --no-js --dts native.d.cts --output-dir "$tmp/native" -- \
        $locked || return 1
    for made in "$tmp"/native/*; do
        cmp -s "$made" "${made##*/}" || mv "$made" . || return 1
    done
}

# The module for another target, linked as the environment says, into a folder of its own; types and JavaScript are the same for all.
cross() { # TRIPLE FOLDER
    # shellcheck disable=SC2086
    "$bin/napi" build --platform --target "$1" --no-js --dts native.d.cts --output-dir "$tmp/native" -- $locked || return 1
    cmp -s "$tmp/native/native.d.cts" native.d.cts || mv "$tmp/native/native.d.cts" . || return 1
    mkdir -p "$2" && cp "$tmp"/native/*.node "$2" && javascript
}

# Of a source that is no longer there nothing is left over.
javascript() {
    "$bin/tsc" --outDir "$tmp/dist" || return 1
    diff -r "$tmp/dist" dist >/dev/null 2>&1 || { rm -rf dist && cp -R "$tmp/dist" dist; }
}

build() {
    lock
    step "npm's packages" packages && step 'native module' native && step 'JavaScript and types' javascript
    built=$?
    unlock
    return $built
}

lint() {
    # What is JavaScript elsewhere in the repository follows the same rules.
    set -- .
    for elsewhere in ../../examples/node ../../agents/node ../../bench/peers/node; do
        [ -d "$elsewhere" ] && set -- "$@" "$elsewhere"
    done
    step 'biome' "$bin/biome" check --config-path=. --error-on-warnings "$@"
    step 'types of the tests' "$bin/tsc" -p test
    for usage in test/types/tsconfig.*.json; do
        step "types for users: $usage" "$bin/tsc" -p "$usage"
    done
    step 'publint and attw' node test/package.mjs lint
}

peer() {
    # shellcheck disable=SC2086
    cargo build --quiet $locked --release -p ramway-node-peer
}

# The command that some tests talk to.
command_to_talk_to() {
    # shellcheck disable=SC2086
    sh ../../scripts/built.sh ramway || cargo build --quiet $locked --package ramway-cli --bin ramway
}

run_tests() {
    step "the tests' other side" peer && step 'the ramway command' command_to_talk_to || return 1
    RAMWAY_PEER=$target/release/ramway-node-peer RAMWAY_CLI=$target/debug/ramway
    export RAMWAY_PEER RAMWAY_CLI
    # shellcheck disable=SC2086
    tests 'tests' node test/run.mjs ${RUNTIMES:+--only "$RUNTIMES"} ${ARGS:-}
}

# Whoever runs the tests may have the Node.js of an older system first on the PATH.
new_enough() {
    node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null
}

# What is uploaded: the package, and those of the platforms: for glibc and for musl. zig's linker knows the older C libraries.
dist() {
    zig=$target/zigbuild
    if [ ! -x "$zig/bin/cargo-zigbuild" ]; then
        python3 -m venv "$zig" && fetch "$zig/bin/pip" install -q ziglang cargo-zigbuild || return 1
    fi
    mkdir "$tmp/portable"
    case ${PROFILE:-release} in dev) built=debug ;; *) built=${PROFILE:-release} ;; esac
    for machine in ${MACHINES:-x86_64 aarch64}; do
        case $machine in aarch64) processor=arm64 ;; *) processor=x64 ;; esac
        for libc in gnu musl; do
            triple=$machine-unknown-linux-$libc version= flags=
            if [ ! -d "$(rustc --print target-libdir --target "$triple")" ] && ! fetch rustup target add "$triple"; then return 1; fi
            # A module of musl's is loaded by the program's own C library.
            if [ $libc = gnu ]; then version=.2.17; else flags='-C target-feature=-crt-static'; fi
            PATH=$zig/bin:$PATH CARGO_PROFILE_RELEASE_STRIP=true CARGO_PROFILE_DEV_DEBUG=false RUSTFLAGS="${RUSTFLAGS:-} $flags" \
                cargo zigbuild --quiet --locked --profile "${PROFILE:-release}" --target "$triple$version" -p ramway-node &&
                cp "$target/$triple/$built/libramway_node.so" "$tmp/portable/ramway.linux-$processor-$libc.node" || return 1
        done
    done
    node test/package.mjs dist "$tmp/portable"
}

case "${1:-all}" in
clean) ;;
*)
    if ! new_enough; then
        missing 'Node.js' "20 or later is needed, here is $(node --version 2>/dev/null || echo none)"
        case "${1:-all}" in all | quick) ;; *) exit 1 ;; esac
        printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
        exit "$failed"
    fi
    ;;
esac
case "${1:-all}" in
native) lock && step "npm's packages" packages && step 'native module' native ;;
build) build ;;
cross) lock && step "npm's packages" packages && step "for $2" cross "$2" "$3" ;;
all)
    if build; then
        lint
        tests 'the packages, installed' node test/package.mjs test
        run_tests
    fi
    ;;
quick) build && run_tests ;;
lint) build && lint ;;
pack) build && node test/package.mjs dist || failed=1 ;;
# Of this machine's own module only the types are taken.
dist) (PROFILE=dev && build) && dist || failed=1 ;;
clean) rm -rf dist dist-npm npm node_modules native.d.cts ./*.node ;;
*)
    echo 'sh test.sh [all|build|native|cross TRIPLE FOLDER|quick|lint|pack|dist|clean]' >&2
    exit 2
    ;;
esac
case "${1:-all}" in
all | quick) printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped" ;;
esac
[ "$failed" -eq 0 ]
