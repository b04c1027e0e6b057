#!/bin/sh
# run.sh LANGUAGE ROOT OUT: the agent, by the runtime that build.sh left, under the emulator of RAMWAY_TEST_RUNNER. It takes this
# shell's place: the runner kills, and asks about, the process that it started.
language=$1 agents=$2/agents out=$3
# shellcheck disable=SC2086
set -- ${RAMWAY_TEST_RUNNER:?scripts/cross.sh sets it}
case $language in
python)
    # A whole root with the libraries that Python was built with.
    emulator=$1
    set -- "$emulator" -L "$out/runtime" "$out/runtime/usr/bin/python3" -B -s "$agents/python/main.py"
    export PYTHONPATH="$out/agent"
    ;;
node)
    export RAMWAY_ADDRESS="$out/agent/address.node" NODE_PATH="$out/agent/modules"
    set -- "$@" "$out/runtime/node" "$agents/node/main.js"
    ;;
java)
    set -- "$@" "$out/runtime/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xlog:disable -Xshare:auto \
        --enable-native-access=ALL-UNNAMED -cp "$out/agent/ramway.jar:$out/agent/program.jar" Agent
    ;;
csharp)
    export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_CLI_TELEMETRY_OPTOUT=1
    set -- "$@" "$out/runtime/dotnet" "$out/agent/app/Agent.dll"
    ;;
esac
exec "$@"
