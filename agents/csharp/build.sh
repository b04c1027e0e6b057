#!/bin/sh
# build.sh ROOT OUT: the port and the program. The SDK takes its time to find out that nothing has changed.
set -eu
root=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
dotnet=$(sh "$root/bindings/csharp/toolchain.sh")
made=$out/made-by
if [ -f "$made" ] && [ "$(cat "$made")" = "$dotnet" ] &&
    [ -z "$(find "$root/bindings/csharp" "$here" -newer "$made" -not -path '*/tests/*' -print -quit)" ]; then
    exit 0
fi
rm -f "$made"
sh "$root/bindings/csharp/dotnet.sh" build "$here/Agent.csproj" -c Release -v quiet \
    -p:RamwayBuild="$out/build/" -o "$out/app"
# Its other parts are found beside what the link leads to.
ln -sfn "$dotnet" "$out/dotnet"
printf '%s\n' "$dotnet" >"$made"
