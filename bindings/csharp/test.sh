#!/bin/sh
# What the Makefile runs: `sh test.sh build|all|quick|lint|modern|pack|clean`.
#
#   ARGS           parts of names of tests
#   RAMWAY_BUILD   where everything goes that is made; default: csharp below cargo's target directory
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=../../scripts/suite.sh
. ../../scripts/suite.sh
build=${RAMWAY_BUILD:-$target/csharp}
mkdir -p "$build" || exit 1
build=$(cd "$build" && pwd)/

# One at a time, where the system can say so: several suites may want the same build at once.
lock() { if command -v flock >/dev/null; then exec 9>"${build}lock" && flock 9; fi; }
unlock() { if command -v flock >/dev/null; then exec 9>&-; fi; }

build() {
    lock
    step 'toolchain' sh toolchain.sh &&
        step 'library and tests' sh dotnet.sh build tests/Ramway.Tests.csproj -c Release -p:RamwayBuild="$build"
    built=$?
    unlock
    return $built
}

# The Rust side's command, for the tests that talk to it. Without cargo they are skipped.
command_to_talk_to() {
    find_command
    [ -z "${RAMWAY_CLI:-}" ] && command -v cargo >/dev/null || return 0
    step 'the ramway command' cargo build --quiet --package ramway-cli --bin ramway && find_command
}

# Tests: what they print, and the last line's counts.
tests() {
    command_to_talk_to
    # The newest, of the framework that was just built for; the names are ours.
    # shellcheck disable=SC2012
    program=$(ls -t "$build"bin/Ramway.Tests/Release/*/Ramway.Tests.dll | head -n 1)
    # shellcheck disable=SC2086
    { sh dotnet.sh exec "$program" ${ARGS:-} 2>&1; echo "$?" >"$tmp/rc"; } | tee "$tmp/log"
    read -r rc <"$tmp/rc"
    # shellcheck disable=SC2046
    set -- $(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)*$/\1 \2 \4/p' "$tmp/log" | tail -n 1) 0 0 0
    if [ "$rc" -ne 0 ] && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + ${3:-0}))
}

written() {
    find . -name '*.cs' -o -name '*.csproj' -o -name '*.props' -o -name '*.sh' -o -name '*.md' | sort | xargs awk '
        FNR == 1 { if (lines > 700) bad(last ": " lines " lines, at most 700"); last = FILENAME; generated = /^\/\/ Generated/ }
        { lines = generated ? 0 : FNR }
        /[ \t]$/ { bad(FILENAME ":" FNR ": white space at the end") }
        /\t/ { bad(FILENAME ":" FNR ": a tab") }
        length > 140 && FILENAME !~ /\.md$/ { bad(FILENAME ":" FNR ": " length " characters, at most 140") }
        function bad(what) { print what; found = 1 }
        END { if (lines > 700) bad(last ": " lines " lines, at most 700"); exit found }'
}

lint() {
    step 'white space and lengths' written
    if command -v shellcheck >/dev/null; then
        step 'shellcheck' shellcheck -x test.sh toolchain.sh dotnet.sh
    else
        # It looks at three scripts and at nothing that users get: not worth a failure, nor a package.
        printf '==> shellcheck: not run, it is not installed\n'
    fi
}

# What is compiled for .NET 8 only. A newer SDK builds and tests that by itself; the one that is fetched does not know of it, but
# its compiler can do it with the assemblies of the runtime. CS8614: it is older than their annotations.
modern() (
    sdk=$(dirname "$(sh toolchain.sh)") out=$tmp/net8.0
    mkdir -p "$out" || return 1
    {
        echo '-nologo -noconfig -nostdlib -unsafe -optimize -langversion:8.0 -nullable:enable -warnaserror -nowarn:8614'
        echo '-define:NET8_0,NET8_0_OR_GREATER'
        find "$sdk/shared/Microsoft.NETCore.App" -name '*.dll' ! -name '*.Native.dll' | sed 's/^/-r:/'
    } >"$out/common.rsp"
    echo '[assembly: System.Runtime.CompilerServices.InternalsVisibleTo("Ramway.Tests")]' >"$out/tests.cs"
    echo '{"runtimeOptions": {"framework": {"name": "Microsoft.NETCore.App", "version": "8.0.0"}}}' >"$out/Ramway.Tests.runtimeconfig.json"
    compiler=$(find "$sdk/sdk" -name csc.dll)
    find src -name '*.cs' >"$out/library.rsp"
    find tests -name '*.cs' >"$out/tests.rsp"
    sh dotnet.sh exec "$compiler" "@$out/common.rsp" -target:library "-out:$out/Ramway.dll" "$out/tests.cs" "@$out/library.rsp" &&
        sh dotnet.sh exec "$compiler" "@$out/common.rsp" "-r:$out/Ramway.dll" "-out:$out/Ramway.Tests.dll" "@$out/tests.rsp" &&
        sh dotnet.sh exec "$out/Ramway.Tests.dll" WaitTests RingTests RpcTests
)

newer() {
    case $(sh dotnet.sh --version) in
    3.*) ;;
    *) return 0 ;;
    esac
    if step 'what is for .NET 8 only' modern; then passed=$((passed + 1)); fi
}

# What README.md says under "From a clone", done: its nuget.config and its line for the project, with the program of docs/start/csharp.md.
installs() (
    here=$PWD app=$tmp/app
    mkdir -p "$app" "$tmp/package" &&
        sh dotnet.sh pack src/Ramway.csproj -c Release -p:RamwayBuild="$build" -o "$tmp/package" || return 1
    # No other source: whether a registry answers is not the question.
    sed -n '/^<configuration>/,/^<\/configuration>/p' README.md |
        sed -e "s|\.\./ramway/target/csharp/package|$tmp/package|" -e 's|<packageSources>|&<clear />|' >"$app/nuget.config"
    framework=$(sh dotnet.sh --version | sed -e 's/^3\..*/netcoreapp3.1/' -e 's/^\([0-9]*\)\..*/net\1.0/')
    {
        echo '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType>'
        echo "<TargetFramework>$framework</TargetFramework><UseAppHost>false</UseAppHost></PropertyGroup><ItemGroup>"
        grep '^<PackageReference ' README.md
        echo '</ItemGroup></Project>'
    } >"$app/app.csproj"
    awk '/^```/ { inside = 0 } inside; $0 == "```csharp" { inside = 1 }' ../../docs/start/csharp.md >"$app/app.cs"
    cd "$app" &&
        NUGET_PACKAGES="$tmp/packages" sh "$here/dotnet.sh" build -c Release -p:RestoreConfigFile="$app/nuget.config" app.csproj &&
        { timeout 60 sh "$here/dotnet.sh" exec "bin/Release/$framework/app.dll" receive >received & } &&
        timeout 60 sh "$here/dotnet.sh" exec "bin/Release/$framework/app.dll" && wait $! &&
        printf 'message %d\n' 1 2 3 | cmp - received
)

installation() {
    need_memory csharp
    lock
    if step 'the package, installed as README.md says' installs; then passed=$((passed + 1)); fi
    unlock
}

pack() {
    step 'toolchain' sh toolchain.sh &&
        step 'package' sh dotnet.sh pack src/Ramway.csproj -c Release -p:RamwayBuild="$build" \
            -p:RamwayCommit="$(git rev-parse HEAD)" -o "${build}package" &&
        ls "${build}package"
}

case "${1:-all}" in
build) build ;;
quick) build && tests ;;
all)
    lint
    if build; then
        tests
        newer
        installation
    fi
    ;;
lint) lint ;;
modern) newer ;;
pack) pack ;;
clean) rm -rf "${build}bin" "${build}obj" "${build}package" ;;
*)
    echo "sh test.sh build|all|quick|lint|modern|pack|clean" >&2
    exit 2
    ;;
esac
case "${1:-all}" in
all | quick)
    if [ "$skipped" -ne 0 ]; then
        printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    else
        printf '%d passed, %d failed\n' "$passed" "$failed"
    fi
    ;;
esac
[ "$failed" -eq 0 ]
