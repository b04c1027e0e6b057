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
sh "$here/../archive.sh" "$out" -jar "$out/program/program.jar"
printf '%s\n' "$JAVA_HOME" >"$made"
