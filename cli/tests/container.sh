#!/bin/sh
# Two containers with nothing in them but the `ramway` command, which has to be static, exchange messages: a root file system
# of one file each, one tmpfs as /dev/shm of both, a process namespace each, no /proc. The last line counts.
#
#   sh container.sh PROGRAM
set -u
program=$(realpath "${1:?usage: container.sh PROGRAM}") || exit 1
if [ -z "${RAMWAY_IN_NAMESPACE:-}" ]; then
    map=
    [ "$(id -u)" -eq 0 ] || map=--map-root-user
    # shellcheck disable=SC2086
    if ! reason=$(unshare $map --mount --pid --fork chroot / true 2>&1); then
        echo "not run, namespaces may not be made here: $reason"
        echo "0 passed, 0 failed, 1 skipped"
        exit 0
    fi
    # All mounts go with the namespace.
    # shellcheck disable=SC2086
    RAMWAY_IN_NAMESPACE=yes exec unshare $map --mount sh "$0" "$program"
fi

place=$(mktemp -d) || exit 1
trap 'cd /; umount -l "$place"; rmdir "$place"' EXIT
mount -t tmpfs -o size=128m none "$place" || exit 1
cd "$place" || exit 1
mkdir shm
chmod 1777 shm
for name in one two; do
    mkdir -p "$name/dev/shm"
    cp "$program" "$name/ramway"
    mount --bind shm "$name/dev/shm" || exit 1
done

passed=0 failed=0
result() { # NAME STATUS
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $1"
        sed 's/^/    /' said
    fi
}
# ramway in a container: its root, then arguments. Nothing of the environment but PATH goes in.
inside() { # CONTAINER ARGUMENTS...
    root=$1
    shift
    timeout 120 env -i PATH="$PATH" unshare --pid --fork chroot "$root" /ramway "$@" 2>>said
}

: >said
inside one --version >version
result 'it starts' $?
echo "a container of $(du -sk one | cut -f1) KiB: $(cat version)"

# A ring, either side first; the bytes are compared.
seq 200000 >sent
for first in send recv; do
    : >said
    if [ $first = recv ]; then
        inside two recv numbers --quiet --timeout 60s >got &
        inside one send numbers --quiet --lines <sent
        a=$?
    else
        inside one send numbers --quiet --lines <sent &
        inside two recv numbers --quiet --timeout 60s >got
        a=$?
    fi
    wait $!
    b=$?
    cmp sent got >>said 2>&1
    result "lines through a ring, $first first" $((a + b + $?))
done

# A topic with a subscriber in each container; and the count of messages, not their times, ends both.
: >said
inside one sub news --reliable --count 3 --quiet --format lines >got-one &
one=$!
inside two sub news --reliable --count 3 --quiet --format lines >got-two &
two=$!
inside one pub news --quiet --lines --wait-for-subscribers 2 --timeout 60s <<'LINES'
first
second
third
LINES
a=$?
wait $one
b=$?
wait $two
c=$?
printf 'first\nsecond\nthird\n' >expected
cmp expected got-one >>said 2>&1
d=$?
cmp expected got-two >>said 2>&1
result 'a topic with a subscriber in each' $((a + b + c + d + $?))

: >said
inside two doctor >said
result 'doctor finds nothing broken' $?

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
