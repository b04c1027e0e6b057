#!/bin/sh
# What the Makefile runs: `sh test.sh test|programs`.
set -u
cd "$(dirname "$0")" || exit 1
make=${MAKE:-make}
root=$(cd ../.. && pwd)
case ${CARGO_TARGET_DIR:-} in
/*) target=$CARGO_TARGET_DIR ;;
*) target=$root/${CARGO_TARGET_DIR:-target} ;;
esac
export CARGO_TARGET_DIR="$target"
JAVA_HOME=$(sh "$root/scripts/jdk.sh") || exit 1
export JAVA_HOME
maven="mvn -q -B"
built=$target/examples-jvm

# Everything is installed where Maven keeps what it has downloaded: that is how the three find each other.
$maven -f "$root/bindings/java/pom.xml" -Dmaven.test.skip=true -Dramway.build="$target/java" install &&
    $maven -f "$root/bindings/kotlin/pom.xml" -Dmaven.test.skip=true -Dramway.build="$target/kotlin" install &&
    $maven -Dramway.build="$built" package || exit 1

profile=dev directory=debug
if [ "${1:-test}" = programs ]; then profile=release directory=release; fi
(cd "$root" && { [ $profile = dev ] && sh scripts/built.sh camera robot || cargo build --quiet --profile $profile -p ramway-examples; }) || exit 1

RAMWAY_EXAMPLES_RUST=$target/$directory
RAMWAY_EXAMPLES_JAVA=$JAVA_HOME/bin/java
RAMWAY_EXAMPLES_LIBRARIES=$built/lib
RAMWAY_EXAMPLES_CLASSES=$built/classes
export RAMWAY_EXAMPLES_RUST RAMWAY_EXAMPLES_JAVA RAMWAY_EXAMPLES_LIBRARIES RAMWAY_EXAMPLES_CLASSES

if [ "${1:-test}" = programs ]; then
    run="$RAMWAY_EXAMPLES_JAVA --enable-native-access=ALL-UNNAMED -cp"
    printf '%s\n' "$run '$built/lib/*' $PWD/OrderBook.java quotes 1000000 0" \
        "$run '$built/classes:$built/lib/*' SensorsKt sensors" "$RAMWAY_EXAMPLES_RUST/sensors sensors 1000000 100000" \
        "$run '$built/classes:$built/lib/*' PlantKt press lathe mill saw drill"
    exit
fi

# The interpreter that has the Python port's wheel.
python=$("$make" --no-print-directory -s -C ../python environment | tail -n 1)
if [ ! -x "$python" ]; then
    echo 'there is no environment with the Python package' >&2
    exit 1
fi
report=$(mktemp) || exit 1
trap 'rm -f "$report"' EXIT
# The settings are the Python binding's, but not its tests.
# shellcheck disable=SC2086
"$python" -m pytest -c ../../bindings/python/pyproject.toml --rootdir . --junitxml "$report" ${ARGS:-} tests
rc=$?
# shellcheck disable=SC2046
set -- $("$python" -I ../../bindings/python/tests/count.py "$report")
printf '%d passed, %d failed, %d skipped\n' "$1" "$2" "$3"
[ "$rc" -eq 0 ]
