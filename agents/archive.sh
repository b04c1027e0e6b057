#!/bin/sh
# archive.sh OUT ARGUMENT...: OUT/program.jsa, an archive of the classes that an agent on a JVM loads, by running it (OUT/jdk,
# with these arguments) once through what most scenarios begin with. Without it every start takes twice as long.
set -eu
out=$1
shift
base=/dev/shm
if [ ! -w "$base" ]; then base=$out; fi
place=$(mktemp -d "$base/ramway-conformance.XXXXXX")
trap 'rm -rf "$place"' EXIT
printf '%s\n' "open role=producer ring=r create=yes" "produce count=20" close "open role=consumer ring=r" consume close |
    RAMWAY_DIR=$place "$out/jdk/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit="$out/program.jsa" \
        --enable-native-access=ALL-UNNAMED "$@" >"$out/archive.log" 2>&1 ||
    echo "no archive of classes: see $out/archive.log" >&2
