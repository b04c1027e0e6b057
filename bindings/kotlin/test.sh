#!/bin/sh
# What the Makefile runs: `sh test.sh build|test|dist|clean`.
set -u
cd "$(dirname "$0")" || exit 1
root=$(cd ../.. && pwd)
case ${CARGO_TARGET_DIR:-} in
/*) target=$CARGO_TARGET_DIR ;;
*) target=$root/${CARGO_TARGET_DIR:-target} ;;
esac
if [ "${1:-test}" = clean ]; then
    rm -rf "$target/kotlin"
    exit
fi
JAVA_HOME=$(sh "$root/scripts/jdk.sh") || exit 1
export JAVA_HOME
built=$target/kotlin
maven="mvn -q -B -Dramway.build=$built"

# The Java port is found where Maven keeps what it has downloaded.
mvn -q -B -f ../java/pom.xml -Dmaven.test.skip=true -Dramway.build="$target/java" install || exit 1

case ${1:-test} in
build) $maven -Dmaven.test.skip=true install ;;
dist)
    # A Maven repository with what goes to Central; the signatures are made by whoever publishes it.
    rm -rf "$built/dist"
    $maven -Prelease -Dgpg.skip -Dmaven.test.skip=true -DaltDeploymentRepository="dist::file://$built/dist" deploy &&
        find "$built/dist" -name 'ramway-*.*'
    ;;
test)
    for shared in /dev/shm "${TMPDIR:-/tmp}"; do
        if [ -d "$shared" ] && [ -w "$shared" ]; then break; fi
    done
    # Rings of the tests, and of the processes that they start.
    RAMWAY_DIR=$(mktemp -d "$shared/ramway-kotlin.XXXXXX") || exit 1
    export RAMWAY_DIR
    trap 'rm -rf "$RAMWAY_DIR"' EXIT
    trap 'exit 130' INT TERM
    rm -rf "$built/surefire-reports"
    # shellcheck disable=SC2086
    $maven ${ARGS:-} package
    rc=$?
    left=$(ls "$RAMWAY_DIR")
    if [ -n "$left" ]; then
        echo "left behind: $left" >&2
        rc=1
    fi
    counts=$(sh "$root/scripts/surefire.sh" "$built/surefire-reports")
    if [ "$rc" -ne 0 ]; then
        # A build that failed, or something left behind, has no failed test of its own.
        counts=$(printf '%s\n' "$counts" | sed 's/, 0 failed/, 1 failed/')
    fi
    printf '%s\n' "$counts"
    [ "$rc" -eq 0 ]
    ;;
*)
    echo "test.sh: build, test, dist or clean, not '$1'" >&2
    exit 2
    ;;
esac
