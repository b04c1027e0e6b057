#!/bin/sh
# build.sh ROOT OUT: Kotlin's library with the Java port under it, the program, and an archive of loaded classes, without
# which every start takes twice as long. Nothing is done where nothing has changed.
set -eu
root=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
JAVA_HOME=$(sh "$root/scripts/jdk.sh")
export JAVA_HOME
made=$out/made-by
if [ -f "$made" ] && [ "$(cat "$made")" = "$JAVA_HOME" ] &&
    [ -z "$(find "$root/bindings/java/pom.xml" "$root/bindings/java/src/main" "$root/bindings/kotlin/pom.xml" \
        "$root/bindings/kotlin/src/main" "$here" -newer "$made" -print -quit)" ]; then
    exit 0
fi
rm -f "$made" "$out/program.jsa"
maven() { # DIRECTORY OUT GOAL
    mvn -q -B -f "$1/pom.xml" -Dramway.build="$2" -Dmaven.test.skip=true "$3"
}
maven "$root/bindings/java" "$out/java" install
maven "$root/bindings/kotlin" "$out/kotlin" install
maven "$here" "$out/program" package
ln -sfn "$JAVA_HOME" "$out/jdk"

# Once through what every command begins with. Where that cannot be, the program starts more slowly.
base=/dev/shm
if [ ! -w "$base" ]; then base=$out; fi
place=$(mktemp -d "$base/ramway-conformance.XXXXXX")
trap 'rm -rf "$place"' EXIT
printf '%s\n' "open role=producer ring=r create=yes" "produce count=20" close "open role=consumer ring=r" consume close |
    RAMWAY_DIR=$place "$JAVA_HOME/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit="$out/program.jsa" \
        --enable-native-access=ALL-UNNAMED -jar "$out/program/program.jar" >"$out/archive.log" 2>&1 ||
    echo "no archive of classes: see $out/archive.log" >&2
printf '%s\n' "$JAVA_HOME" >"$made"
