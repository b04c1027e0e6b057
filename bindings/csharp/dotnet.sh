#!/bin/sh
# `sh dotnet.sh ARGUMENT...` is `dotnet ARGUMENT...` by the SDK that toolchain.sh finds or fetches, in an environment where
# nothing is sent anywhere and no server stays behind.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command=$(sh "$here/toolchain.sh")
# The SDK that is fetched is older than the runtime it runs on, and there is no ICU in small containers.
export DOTNET_ROLL_FORWARD=Major DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_CLI_TELEMETRY_OPTOUT=1 \
    DOTNET_GENERATE_ASPNET_CERTIFICATE=false DOTNET_SKIP_FIRST_TIME_EXPERIENCE=1 DOTNET_NOLOGO=1
case ${1:-} in
build | pack | msbuild)
    verb=$1
    shift
    # What is built on the fetched SDK needs no package, and its NuGet is too old to ask for one. A newer SDK may have to fetch
    # the reference assemblies of net8.0.
    case $("$command" --version) in
    3.*) set -- -p:RestoreConfigFile="$here/offline.config" "$@" ;;
    esac
    exec "$command" "$verb" -nologo -m:1 -nodereuse:false -p:UseSharedCompilation=false "$@"
    ;;
esac
exec "$command" "$@"
