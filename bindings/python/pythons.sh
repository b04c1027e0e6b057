#!/bin/sh
# Prints "VERSION PATH" of every CPython from 3.11 on that this machine has, one a minor version, oldest first: what
# pyenv, uv, python.org's and manylinux' images and the system installed, and what is on the PATH. `PYTHONS="a b"` names
# them instead. Fails if there is none. Each is asked itself: a name that starts nothing, as pyenv's shims do for
# versions that are not chosen, is passed over, and so is one that can make no virtual environment.
#
#   --with-pip         only those whose environments get a pip (Debian has that in python3-venv)
#   --free-threaded    those without an interpreter lock instead, from 3.14 on, whose versions end with a t ("3.14t PATH"): they
#                      load no wheel of the stable ABI, but one that is built for each of them
#   --released-free-threaded   the versions alone of those without a lock that a release has wheels for, whether or not they are here
set -u

if [ "${1:-}" = --released-free-threaded ]; then
    exec sed -n 's/^free-threaded = "\(.*\)"/\1/p' "$(dirname "$0")/pyproject.toml"
fi

# A virtual environment counts as the interpreter behind it.
question='
import importlib.util, os, sys, sysconfig
free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
oldest = (3, 14) if free_threaded else (3, 11)
if (sys.implementation.name == "cpython" and sys.version_info >= oldest and free_threaded == bool(sys.argv[1:])
        and importlib.util.find_spec("venv")):
    can_install = importlib.util.find_spec("ensurepip") is not None
    path = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    print(*sys.version_info[:3], int(can_install), path)
'

candidates() {
    if [ -n "${PYTHONS:-}" ]; then
        for python in $PYTHONS; do command -v "$python"; done
        return
    fi
    for pattern in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3 "$HOME"/.local/share/uv/python/cpython-*/bin/python3 \
        /opt/python/cp3*/bin/python3 /Library/Frameworks/Python.framework/Versions/3.*/bin/python3 \
        /Library/Frameworks/PythonT.framework/Versions/3.*/bin/python3; do
        [ -x "$pattern" ] && printf '%s\n' "$pattern"
    done
    printf '%s\n' "$PATH:/usr/local/bin:/usr/bin" | tr ':' '\n' | while IFS= read -r directory; do
        case $directory in "" | */shims) continue ;; esac
        for python in "$directory"/python3 "$directory"/python3.[0-9] "$directory"/python3.[0-9][0-9] \
            "$directory"/python3.[0-9][0-9]t; do
            [ -x "$python" ] && printf '%s\n' "$python"
        done
    done
}

limited() {
    if command -v timeout >/dev/null; then timeout 20 "$@"; else "$@"; fi
}

pip=0 suffix=
for option in "$@"; do
    case $option in
    --with-pip) pip=1 ;;
    --free-threaded) suffix=t ;;
    esac
done

# Of one minor version the first that brings pip, of those the newest.
candidates | while IFS= read -r python; do
    limited "$python" -I -c "$question" $suffix </dev/null 2>/dev/null
done | sort -u | sort -k1,1n -k2,2n -k4,4nr -k3,3nr | awk -v pip="$pip" -v suffix="$suffix" '
    !seen[$1 "." $2]++ && $4 >= pip { version = $1 "." $2 suffix; sub(/^[^\/]*/, ""); print version, $0; found = 1 }
    END { exit !found }'
