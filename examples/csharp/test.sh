#!/bin/sh
# `sh test.sh [PART_OF_A_NAME...]`: the watcher in C# and the camera in C++, and the dashboard with its sensors, as the
# separate processes that they are. RAMWAY_EXAMPLES_CAMERA, RAMWAY_EXAMPLES_BELT and RAMWAY_EXAMPLES_DASHBOARD say where
# the programs are; the last line counts.
set -u
cd "$(dirname "$0")" || exit 1
for base in /dev/shm "${TMPDIR:-/tmp}"; do
    if [ -d "$base" ] && [ -w "$base" ]; then break; fi
done
RAMWAY_DIR=$(mktemp -d "$base/ramway-belt.XXXXXX") || exit 1
export RAMWAY_DIR
children=
trap 'end' EXIT
trap 'exit 130' INT TERM
passed=0 failed=0

end() {
    for pid in $children; do kill -9 "$pid" 2>/dev/null; done
    rm -rf "$RAMWAY_DIR"
}

# The program itself and no shell before it, so that its process id is the one to kill.
dotnet=$(sh ../../bindings/csharp/toolchain.sh) || exit 1
export DOTNET_ROLL_FORWARD=Major DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1
belt() { # LOG ARGUMENT...
    log=$1
    shift
    "$dotnet" exec "$RAMWAY_EXAMPLES_BELT" belt "$@" >"$log" 2>&1 &
    belt=$!
    children="$children $belt"
}

camera() { # LOG PICTURES PER-SECOND
    "$RAMWAY_EXAMPLES_CAMERA" belt "$2" "$3" >"$1" 2>&1 &
    camera=$!
    children="$children $camera"
}

# Waits until a log has a line like this: 30 s are far more than anything here takes.
says() { # LOG PATTERN
    for _ in $(seq 300); do
        grep -q -- "$2" "$1" && return 0
        sleep 0.1
    done
    echo "no '$2' in:"
    cat "$1"
    return 1
}

# A number of the last result: `value LOG counted`.
value() { sed -n 's/^result .*/& /p' "$1" | tail -n 1 | sed -n "s/.* $2=\([^ ]*\) .*/\1/p"; }

holds() { # WHAT EXPRESSION-OF-AWK
    awk "BEGIN { exit !($2) }" && return 0
    echo "not so: $1: $2"
    return 1
}

# All of them by themselves, with success.
ends() { # PID...
    for pid in "$@"; do wait "$pid" || return 1; done
}

left() {
    [ -z "$(ls -A "$RAMWAY_DIR")" ] && return 0
    echo "left behind: $(ls -A "$RAMWAY_DIR")"
    return 1
}

# Everything that the camera drew is seen and counted, and the picture is kept as bright as it was while the lamp fades.
counts_what_passes() {
    belt "$1" --cameras 1
    camera "$1.camera" 600 120
    wait "$camera" || { cat "$1.camera"; return 1; }
    wait "$belt" || { cat "$1"; return 1; }
    cat "$1"
    grep -q 'camera   picture  pictures/s' "$1" || return 1
    lines=$(grep -c '^ *1 .*µs' "$1")
    holds 'a line of the table for every 60 pictures' "$lines == int($(value "$1" seen) / 60)" &&
        holds 'every picture was seen or left out' "$(value "$1" seen) + $(value "$1" left_out) == $(value "$1" drawn)" &&
        holds 'all 600' "$(value "$1" drawn) == 600" &&
        holds 'parcels' "$(value "$1" counted) == $(value "$1" passed) && $(value "$1" passed) >= 8" &&
        holds 'their length, to 4 pixels each' \
            "($(value "$1" length) - $(value "$1" passed_length)) ^ 2 <= (4 * $(value "$1" passed)) ^ 2" &&
        holds 'the speed of the belt' "($(value "$1" speed) - 4) ^ 2 < 0.01" &&
        holds 'amplified by what the lamp has lost' "$(value "$1" gain) > 2.2 && $(value "$1" gain) < 2.8" &&
        holds 'as bright as at first' "($(value "$1" belt) - 60) ^ 2 < 9" &&
        holds 'nothing allocated' "$(value "$1" bytes) == 0" &&
        left
}

# The camera never waits: what finds no room is left out, and every number is accounted for.
leaves_out_what_finds_no_room() {
    belt "$1" --cameras 1 --slow 10
    camera "$1.camera" 400 400
    wait "$camera" || { cat "$1.camera"; return 1; }
    wait "$belt" || { cat "$1"; return 1; }
    tail -n 2 "$1"
    holds 'seen or left out' "$(value "$1" seen) + $(value "$1" left_out) == $(value "$1" drawn)" &&
        holds 'some of each' "$(value "$1" seen) >= 50 && $(value "$1" left_out) >= 50" &&
        left
}

# Two at a time, each over a bus of its own.
watches_two_cameras() {
    belt "$1" --cameras 2
    camera "$1.camera" 200 100
    first=$camera
    camera "$1.camera2" 200 100
    ends "$first" "$camera" "$belt" || { cat "$1" "$1.camera" "$1.camera2"; return 1; }
    holds 'two results' "$(grep -c '^result camera=[12] drawn=200 ' "$1") == 2" && left
}

# A camera that is killed is told from one that ends, and the next one is taken on.
tells_a_camera_that_was_killed() {
    belt "$1" --cameras 2
    camera "$1.camera" 100000 100
    says "$1" '^ *1 .*µs' || return 1
    kill -9 "$camera"
    says "$1" "camera 1 (process $camera) died; seen of it: [1-9]" || return 1
    camera "$1.camera" 100 100
    ends "$camera" "$belt" || { cat "$1" "$1.camera"; return 1; }
    holds 'the second camera' "$(value "$1" drawn) == 100" && left
}

# And a watcher that was killed does not keep its camera waiting.
ends_a_camera_whose_watcher_was_killed() {
    belt "$1" --cameras 1
    camera "$1.camera" 100000 200
    says "$1" '^ *1 .*µs' || return 1
    kill -9 "$belt"
    wait "$camera"
    ended=$?
    cat "$1.camera"
    holds 'it ended by itself' "$ended == 2" && says "$1.camera" 'died' || return 1
    # What is left is a dead listener's name, which the next one takes over.
    belt "$1" --cameras 1
    camera "$1.camera" 30 100
    ends "$camera" "$belt" || { cat "$1" "$1.camera"; return 1; }
    left
}

# A camera whose watcher has stopped is told so, and nothing is left of either.
stops_when_it_is_told_to() {
    belt "$1"
    camera "$1.camera" 100000 100
    says "$1" '^ *1 .*µs' || return 1
    kill -TERM "$belt"
    wait "$belt"
    wait "$camera"
    holds 'the camera ended by itself' "$? == 2" && says "$1.camera" 'closed' &&
        says "$1" 'camera 1: stopped after' && left
}

dashboard() { # LOG ARGUMENT...
    log=$1
    shift
    "$dotnet" exec "$RAMWAY_EXAMPLES_DASHBOARD" "$@" >"$log" 2>&1 &
    started=$!
    children="$children $started"
}

# Three sensors at three rates, one dashboard of all of them: the newest value of each, whatever its rate, and no garbage.
shows_the_newest_of_each_sensor() {
    for sensor in slow:20000 quick:1000 rapid:50; do
        dashboard "$1.${sensor%:*}" sensor "${sensor%:*}" --period "${sensor#*:}"
    done
    dashboard "$1" watch slow quick rapid missing --every 200 --updates 15
    wait "$started" || { cat "$1"; return 1; }
    tail -n 6 "$1"
    holds 'a table each time' "$(grep -c '^update' "$1") == 15" &&
        holds 'nothing allocated by updates' "$(grep -c ': 0 bytes' "$1") >= 14" &&
        says "$1" '^missing *not there yet' || return 1
    # Of the last update: topic, value, age, new, number.
    for topic in slow quick rapid; do
        number=$(tail -n 4 "$1" | awk "\$1 == \"$topic\" { print \$5 }")
        new=$(tail -n 4 "$1" | awk "\$1 == \"$topic\" { print \$4 }")
        holds "$topic is shown, and was not shown as often as it came" "${number:-0} >= 10 && ${new:-0} <= ${number:-0}" || return 1
    done
}

# A sensor that is killed keeps nobody from the others, and its successor goes on in its row.
goes_on_without_a_sensor_that_was_killed() {
    dashboard "$1.one" sensor one --period 2000
    one=$started
    dashboard "$1.two" sensor two --period 2000
    dashboard "$1" watch one two --every 50
    says "$1" '^two .*[0-9]$' && says "$1" '^one .*[0-9]$' || return 1
    kill -9 "$one"
    says "$1" '^one .* the sensor is gone$' || return 1
    gone=$(grep -c '' "$1")
    dashboard "$1.next" sensor one --period 2000
    for _ in $(seq 300); do
        tail -n "+$gone" "$1" | grep -q '^one .*[0-9]$' && return 0
        sleep 0.1
    done
    tail -n 4 "$1"
    return 1
}

for test in shows_the_newest_of_each_sensor goes_on_without_a_sensor_that_was_killed counts_what_passes leaves_out_what_finds_no_room watches_two_cameras tells_a_camera_that_was_killed \
    ends_a_camera_whose_watcher_was_killed stops_when_it_is_told_to; do
    wanted=$#
    for part in "$@"; do case $test in *"$part"*) wanted=0 ;; esac; done
    [ "$wanted" -eq 0 ] || continue
    logs=$(mktemp -d "${TMPDIR:-/tmp}/ramway-belt.XXXXXX") || exit 1
    if $test "$logs/log" >"$logs/said" 2>&1; then
        passed=$((passed + 1))
        echo "ok   $test"
        [ "$test" = counts_what_passes ] && sed 's/^/     /' "$logs/said"
    else
        failed=$((failed + 1))
        echo "FAIL $test"
        sed 's/^/     /' "$logs/said"
    fi
    for pid in $children; do kill -9 "$pid" 2>/dev/null; done
    children=
    wait
    rm -rf "$logs" "$RAMWAY_DIR"
    mkdir -m 700 "$RAMWAY_DIR"
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
