#!/bin/sh
# What the Makefile runs: `sh test.sh build|install|all|quick|lint|javadoc|dist|clean`.
#
#   CI=true    what cannot be run here (no JDK, no Maven) is a failure
#   ARGS       more for Maven, such as -Dtest=BusTest
set -u
cd "$(dirname "$0")" || exit 1
. ../../scripts/suite.sh
root=$(cd ../.. && pwd)
build=$target/java
if [ "${1:-all}" = clean ]; then
    rm -rf "$build"
    exit
fi
find_command

# A check that is a test: it counts.
check() { # NAME COMMAND...
    if step "$@"; then passed=$((passed + 1)); fi
}

maven() { mvn -q -B -Dramway.build="$build" "$@"; }

# A registry that does not answer at once is asked again.
fetch() {
    for try in 1 2 3; do
        "$@" >"$tmp/fetched" 2>&1 && return 0
        cat "$tmp/fetched"
        grep -q -e 'could not be resolved' -e 'Could not transfer' "$tmp/fetched" || return 1
        [ "$try" = 3 ] || sleep 5
    done
    return 1
}

# One at a time, where the system can say so: several suites may want the jar at once.
mkdir -p "$target" || exit 1
lock() { if command -v flock >/dev/null; then exec 9>"$target/java-package.lock" && flock 9; fi; }
unlock() { if command -v flock >/dev/null; then exec 9>&-; fi; }

install_jar() {
    lock
    step 'the jar in the local repository' fetch maven -Dmaven.test.skip=true install
    installed=$?
    unlock
    return $installed
}

# The dependency of README.md, in a project of a user's.
maven_project() {
    mkdir -p "$tmp/project/src/main/java" || return 1
    cp "$tmp/src/Producer.java" "$tmp/project/src/main/java/"
    {
        echo '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>user</groupId>'
        echo '<artifactId>user</artifactId><version>1</version><properties><maven.compiler.release>22</maven.compiler.release>'
        echo '<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties><dependencies>'
        awk '/^```/ { inside = 0 } inside; /^```xml/ { inside = 1 }' README.md
        echo '</dependencies><build><plugins><plugin><groupId>org.apache.maven.plugins</groupId>'
        echo '<artifactId>maven-compiler-plugin</artifactId><version>3.14.0</version></plugin></plugins></build></project>'
    } >"$tmp/project/pom.xml"
    install_jar && fetch mvn -q -B -f "$tmp/project/pom.xml" compile && [ -f "$tmp/project/target/classes/Producer.class" ]
}

jar() {
    for file in "$build"/ramway-*.jar; do
        case $file in *-sources.jar | *-javadoc.jar) ;; *) printf '%s\n' "$file" ;; esac
    done
}

# The compiler's own warnings are errors: see pom.xml.
package() {
    lock
    step 'javac and the jar' fetch maven -DskipTests package
    built=$?
    unlock
    return $built
}

shape() {
    find src -name '*.java' | while read -r file; do
        awk -v file="$file" '
            length($0) > 140 { printf "%s:%d: %d characters, 140 are the most\n", file, FNR, length($0); bad = 1 }
            /\t/ { printf "%s:%d: a tab\n", file, FNR; bad = 1 }
            / $/ { printf "%s:%d: a space at the end\n", file, FNR; bad = 1 }
            END { if (FNR > 700) { printf "%s: %d lines, 700 are the most\n", file, FNR; bad = 1 }; exit bad }' "$file" ||
            echo bad >"$tmp/shape"
    done
    [ ! -e "$tmp/shape" ]
}

lint() { check 'lines and files' shape; }

javadoc() { check 'javadoc without a warning' fetch maven compile javadoc:javadoc; }

# Java 22, the first with java.lang.foreign: whatever compiled it.
class_files() {
    find "$build/classes" -name '*.class' >"$tmp/classes"
    [ -s "$tmp/classes" ] || { echo 'no class files'; return 1; }
    while read -r class; do
        major=$(od -An -tu1 -j6 -N2 "$class" | awk '{ print $1 * 256 + $2 }')
        [ "$major" = 66 ] || { echo "$class has major version $major, not 66"; return 1; }
    done <"$tmp/classes"
}

tests() {
    rm -rf "$build/surefire-reports"
    # shellcheck disable=SC2086
    maven ${ARGS:-} test 2>&1 | tee "$tmp/log"
    counts=$(sh "$root/scripts/surefire.sh" "$build/surefire-reports")
    printf '==> tests: %s\n' "$counts"
    # shellcheck disable=SC2046
    set -- $(printf '%s\n' "$counts" | sed 's/[^0-9][^0-9]*/ /g')
    # Maven ends with an error that no test is guilty of: the tests do not compile, or their process died.
    if grep -q '^\[ERROR\]' "$tmp/log" && [ "$2" -eq 0 ]; then set -- "$1" 1 "$3"; fi
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# The programs of README.md as a user has them: with nothing but the jar.
user() {
    for base in /dev/shm "$tmp"; do
        if [ -d "$base" ] && [ -w "$base" ]; then break; fi
    done
    memory=$(mktemp -d "$base/ramway-java.XXXXXX") && mkdir -p "$tmp/src/user" || exit 1
    export RAMWAY_DIR="$memory"
    for program in Producer Consumer; do
        awk -v file="// $program.java" '/^```/ { inside = 0 } inside; $0 == file { inside = 1 }' README.md >"$tmp/src/$program.java"
        { echo 'package user;' && cat "$tmp/src/$program.java"; } >"$tmp/src/user/$program.java"
    done
    echo 'module user { requires dev.ramway; }' >"$tmp/src/user/module-info.java"
    archive=$(jar)
    check 'a program on the class path' on_the_class_path
    check 'a module that requires dev.ramway' on_the_module_path
    check 'what a program is told that may not call libc' refused
    check 'a Maven project with the dependency of the page' maven_project
    check 'nothing is left behind' rmdir "$memory"
    unset RAMWAY_DIR
}

# Both ends of one ring, in two processes; one says what it got.
both() { # COMMAND
    "$@" Producer >"$tmp/producer" 2>&1 &
    producer=$!
    "$@" Consumer >"$tmp/consumer" 2>&1
    status=$?
    wait "$producer" || status=1
    cat "$tmp/producer" "$tmp/consumer"
    [ "$status" -eq 0 ] && [ "$(cat "$tmp/consumer")" = 'type 1, tag 7: hello
42 and 0.5
that was all' ]
}

# A program that hangs is a failure.
run_plain() { timeout 60 "$JAVA_HOME/bin/java" --enable-native-access=ALL-UNNAMED -cp "$archive:$tmp/plain" "$1"; }

run_module() { timeout 60 "$JAVA_HOME/bin/java" --enable-native-access=dev.ramway -p "$archive:$tmp/modules" -m "user/user.$1"; }

on_the_class_path() {
    "$JAVA_HOME/bin/javac" -cp "$archive" -d "$tmp/plain" "$tmp/src/Producer.java" "$tmp/src/Consumer.java" && both run_plain
}

on_the_module_path() {
    "$JAVA_HOME/bin/javac" -p "$archive" -d "$tmp/modules/user" "$tmp"/src/user/*.java && both run_module
}

refused() {
    # Virtual machines from 24 on warn unless they are told to refuse; those before refuse if anything else is named.
    deny=--illegal-native-access=deny
    "$JAVA_HOME/bin/java" $deny -version >/dev/null 2>&1 || deny=--enable-native-access=java.base
    ! "$JAVA_HOME/bin/java" $deny -cp "$archive:$tmp/plain" Producer >"$tmp/denied" 2>&1
    cat "$tmp/denied"
    grep -q 'start it with --enable-native-access=dev.ramway' "$tmp/denied"
}

# A Maven repository with what goes to Central; the signatures are made by whoever publishes it.
dist() {
    rm -rf "$build/dist" && fetch maven -Prelease -Dgpg.skip -DskipTests -DaltDeploymentRepository="dist::file://$build/dist" deploy &&
        find "$build/dist" -name "ramway-*.*"
}

if ! JAVA_HOME=$(sh "$root/scripts/jdk.sh" 2>"$tmp/why"); then
    missing 'Java' "$(cat "$tmp/why"); install one, or let JAVA_HOME name it"
elif ! command -v mvn >/dev/null; then
    missing 'Java' 'Maven (mvn) is not on the PATH'
else
    export JAVA_HOME
    case "${1:-all}" in
    build) package && jar ;;
    install) install_jar || failed=1 ;;
    all)
        if package; then
            lint
            javadoc
            check 'class files for Java 22' class_files
            user
            tests
        fi
        ;;
    quick) tests ;;
    lint) package && lint ;;
    javadoc) javadoc ;;
    dist) dist || failed=1 ;;
    *)
        echo 'sh test.sh [build|install|all|quick|lint|javadoc|dist|clean]' >&2
        exit 2
        ;;
    esac
fi
case "${1:-all}" in
all | quick) printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped" ;;
esac
[ "$failed" -eq 0 ]
