#!/bin/sh
# build.sh ROOT OUT: the port's jar, the program's, and an archive of loaded classes, without which every start takes twice
# as long. Nothing is done where nothing has changed.
set -eu
root=$1 out=$2
here=$(cd "$(dirname "$0")" && pwd)
JAVA_HOME=$(sh "$root/scripts/jdk.sh")
export JAVA_HOME
made=$out/made-by
if [ -f "$made" ] && [ "$(cat "$made")" = "$JAVA_HOME" ] &&
    [ -z "$(find "$root/bindings/java/pom.xml" "$root/bindings/java/src/main" "$here" -newer "$made" -print -quit)" ]; then
    exit 0
fi
rm -f "$made" "$out/program.jsa"
# A directory that another run may use at the same time is worse than a slow build: nothing is shared with the port's tests.
mvn -q -B -f "$root/bindings/java/pom.xml" -Dramway.build="$out/port" -Dmaven.test.skip=true package
cp "$out"/port/ramway-[0-9]*[0-9].jar "$out/ramway.jar"
rm -rf "$out/classes"
"$JAVA_HOME/bin/javac" --release 22 -Xlint:all,-restricted -Werror -cp "$out/ramway.jar" -d "$out/classes" "$here"/*.java
"$JAVA_HOME/bin/jar" --create --file "$out/program.jar" -C "$out/classes" .
ln -sfn "$JAVA_HOME" "$out/jdk"

# Once through what every command begins with. Where that cannot be, the program starts more slowly.
base=/dev/shm
if [ ! -w "$base" ]; then base=$out; fi
place=$(mktemp -d "$base/ramway-conformance.XXXXXX")
trap 'rm -rf "$place"' EXIT
printf '%s\n' "open role=producer ring=r create=yes" "produce count=20" close "open role=consumer ring=r" consume close |
    RAMWAY_DIR=$place "$JAVA_HOME/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit="$out/program.jsa" \
        --enable-native-access=ALL-UNNAMED -cp "$out/ramway.jar:$out/program.jar" Agent >"$out/archive.log" 2>&1 ||
    echo "no archive of classes: see $out/archive.log" >&2
printf '%s\n' "$JAVA_HOME" >"$made"
