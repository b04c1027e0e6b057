#!/bin/sh
# A camera on the machine "robot", its viewer and its recorder on the machine "desk", and a bridge on each. The machines are two network
# namespaces joined by a cable; who may not make some (not root) has both on the loopback of this one.
#
# usage: run.sh RECORDING [PICTURES] [EVERY-MS]   (PORT: another one than 7447)
set -eu
here=$(dirname "$0")
programs=${PROGRAMS:-$here/target/debug}
bridge=${BRIDGE:-$here/../../bridge/target/debug/ramway-bridge}
recording=${1:?usage: run.sh RECORDING [PICTURES] [EVERY-MS]}
pictures=${2:-300}
every=${3:-10}

base=/dev/shm; [ -d "$base" ] || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/two-machines.XXXXXX")
robot=two-machines-robot-$$
desk=two-machines-desk-$$
bridges=
end() {
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$bridges" ] || kill $bridges 2>/dev/null || true
    wait
    ip netns delete "$robot" 2>/dev/null || true
    ip netns delete "$desk" 2>/dev/null || true
    rm -rf "$work"
}
trap end EXIT
trap 'exit 130' INT TERM

if ip netns add "$robot" 2>/dev/null && ip netns add "$desk" 2>/dev/null &&
    ip link add cable netns "$robot" type veth peer name cable netns "$desk"; then
    ip -n "$robot" address add 10.78.0.1/24 dev cable
    ip -n "$desk" address add 10.78.0.2/24 dev cable
    for net in "$robot" "$desk"; do
        ip -n "$net" link set lo up
        ip -n "$net" link set cable up
    done
    address=10.78.0.2
    on_robot="ip netns exec $robot env RAMWAY_DIR=$work/robot"
    on_desk="ip netns exec $desk env RAMWAY_DIR=$work/desk"
    echo "two network namespaces: $robot and $desk"
else
    address=127.0.0.1
    on_robot="env RAMWAY_DIR=$work/robot"
    on_desk="env RAMWAY_DIR=$work/desk"
    echo "no network namespaces without root: both machines are on this one's loopback"
fi
mkdir "$work/robot" "$work/desk"
for machine in robot desk; do sed "s/DESK:7447/$address:${PORT:-7447}/" "$here/$machine.toml" >"$work/$machine.toml"; done

# The recorder first: it is to have every picture.
$on_desk "$programs/two-machines" recorder pictures "$recording" & recorder=$!
$on_desk "$programs/two-machines" viewer pictures & viewer=$!
until [ -e "$recording" ]; do kill -0 "$recorder"; sleep 0.1; done
$on_desk "$bridge" --config "$work/desk.toml" & bridges=$!
$on_robot "$bridge" --config "$work/robot.toml" & bridges="$bridges $!"
$on_robot "$programs/two-machines" camera pictures "$pictures" "$every"
wait "$recorder"
wait "$viewer"
