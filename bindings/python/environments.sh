# Sourced by test.sh in its directory, after scripts/suite.sh: interpreters, the wheel, and virtual environments. All of it
# lies in $work, below cargo's target directory.

export CARGO_TARGET_DIR="$target"
work=$target/python
tools=$work/venv-tools
mkdir -p "$work" || exit 1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PYTHONDONTWRITEBYTECODE=1
# An environment that the caller has activated is none of this script's.
unset VIRTUAL_ENV PYTHONHOME PYTHONPATH

# A registry that does not answer at once is asked again.
fetch() {
    for try in 1 2 3; do
        "$@" && return 0
        echo "$* failed (try $try of 3)"
        [ "$try" = 3 ] || sleep 5
    done
    return 1
}

# One at a time below $work, where the system can say so: two suites may want the same wheel at once.
lock() { if command -v flock >/dev/null; then exec 9>"$work/lock" && flock 9; fi; }
unlock() { if command -v flock >/dev/null; then exec 9>&-; fi; }

# Sets $interpreters ("VERSION PATH" lines, oldest first), $newest, $free_threaded (lines as those; there may be none), and $python
# for the tools.
find_interpreters() {
    interpreters=$(sh pythons.sh) && python=$(sh pythons.sh --with-pip) || return 1
    free_threaded=$(sh pythons.sh --free-threaded)
    python=$(printf '%s\n' "$python" | sed -n '$s/^[^ ]* //p')
    newest=$(printf '%s\n' "$interpreters" | sed -n '$s/ .*//p')
}

# The interpreter of a version.
interpreter() { # VERSION
    printf '%s\n' "$interpreters" "$free_threaded" | sed -n "s/^$1 //p"
}

# A virtual environment with what the groups of pyproject.toml list. Made anew when the interpreter or a list changed,
# or when it has a package that the groups do not ask for.
environment() { # DIRECTORY PYTHON GROUP...
    directory=$1 base=$2
    shift 2
    wanted="$("$base" -VV) $base, $*, $(sed -n '/^\[dependency-groups\]/,/^\[tool/p' pyproject.toml | cksum)"
    if [ "$(cat "$directory/.wanted" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    rm -rf "$directory"
    # Only the tools' own environment has a pip, which installs into all the others.
    if [ "$directory" = "$tools" ]; then
        "$base" -m venv "$directory" && fetch "$directory/bin/python3" -m pip install -q --upgrade 'pip>=25.1' || return 1
    else
        "$base" -m venv --without-pip "$directory" || return 1
    fi
    # shellcheck disable=SC2046
    fetch "$tools/bin/python3" -m pip --python "$directory/bin/python3" install -q --only-binary :all: \
        $(printf -- '--group %s ' "$@") || return 1
    printf '%s\n' "$wanted" >"$directory/.wanted"
}

need_tools() {
    environment "$tools" "$python" build lint test
}

# Builds the wheel: $wheel. The same sources make the same file.
build_wheel() {
    need_tools || return 1
    rm -rf "$work/built"
    # The profile is the workspace's: see Cargo.toml.
    "$tools/bin/maturin" build --quiet --locked --profile "${PROFILE:-release}" --out "$work/built" || return 1
    wheel=$(ls "$work"/built/*.whl)
}

# The same for a free-threaded interpreter. Cargo's directory is another one: what it has built for an interpreter it builds anew
# for another one.
build_free_threaded_wheel() { # PYTHON
    rm -rf "$work/built-free-threaded"
    CARGO_TARGET_DIR=$work/free-threaded "$tools/bin/maturin" build --quiet --locked --profile "${PROFILE:-release}" \
        --interpreter "$1" --out "$work/built-free-threaded" || return 1
    wheel=$(ls "$work"/built-free-threaded/*.whl)
}

# Puts the wheel into an environment, unless it is there.
install_wheel() { # DIRECTORY
    stamp=$(cksum <"$wheel")
    if [ "$(cat "$1/.wheel" 2>/dev/null)" = "$stamp" ]; then return 0; fi
    rm -f "$1/.wheel"
    "$tools/bin/python3" -m pip --python "$1/bin/python3" install -q --no-index --no-deps --force-reinstall "$wheel" &&
        printf '%s\n' "$stamp" >"$1/.wheel"
}

# The environment of a version with the wheel in it: $work/venv-VERSION.
ready() { # VERSION GROUP...
    version=$1
    shift
    environment "$work/venv-$version" "$(interpreter "$version")" "$@" && install_wheel "$work/venv-$version"
}
