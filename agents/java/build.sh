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
# One of an earlier version may be there.
rm -f "$out"/port/ramway-*.jar
# A directory that another run may use at the same time is worse than a slow build: nothing is shared with the port's tests.
mvn -q -B -f "$root/bindings/java/pom.xml" -Dramway.build="$out/port" -Dmaven.test.skip=true package
cp "$out"/port/ramway-[0-9]*[0-9].jar "$out/ramway.jar"
rm -rf "$out/classes"
"$JAVA_HOME/bin/javac" --release 22 -Xlint:all,-restricted -Werror -cp "$out/ramway.jar" -d "$out/classes" "$here"/*.java
"$JAVA_HOME/bin/jar" --create --file "$out/program.jar" -C "$out/classes" .
ln -sfn "$JAVA_HOME" "$out/jdk"
sh "$here/../archive.sh" "$out" -cp "$out/ramway.jar:$out/program.jar" Agent
printf '%s\n' "$JAVA_HOME" >"$made"
