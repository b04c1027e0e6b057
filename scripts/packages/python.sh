# Wheels and the sdist. The wheels of this machine are tried on every CPython that is here, also on those without a lock.
# shellcheck shell=sh disable=SC2154
pack_python() {
    targets=$(for machine in $machines; do echo "$machine-unknown-linux-gnu $machine-unknown-linux-musl"; done)
    "$MAKE_COMMAND" --no-print-directory -C bindings/python "$1" TARGETS="$targets" && rm -f "$packages"/ramway-*.whl && cp bindings/python/dist/* "$packages"
}
try_python() { # PYTHON
    rm -rf "$tmp/python" && "$1" -m venv "$tmp/python" &&
        "$tmp/python/bin/pip" install -q --disable-pip-version-check --no-index --find-links "$packages" "ramway==$version" &&
        block docs/start/python.md python '# producer.py' >"$tmp/producer.py" &&
        block docs/start/python.md python '# consumer.py' >"$tmp/consumer.py" &&
        both '1 7 b.any buffer' "timeout 60 $tmp/python/bin/python -I $tmp/producer.py" "timeout 60 $tmp/python/bin/python -I $tmp/consumer.py"
}
package_python() {
    pythons=$(sh bindings/python/pythons.sh --with-pip 2>/dev/null)
    if [ -z "$pythons" ]; then absent "python" "no CPython 3.11 or later was found"; return; fi
    if [ -n "${QUICK:-}" ]; then how=build; else how=dist; fi
    pack "python: wheels" pack_python $how || return
    # They have wheels of their own, which only `dist` makes.
    if [ $how = dist ]; then
        pythons="$pythons
$(sh bindings/python/pythons.sh --free-threaded --with-pip 2>/dev/null)"
    fi
    for python in $(printf '%s\n' "$pythons" | cut -d ' ' -f 2); do
        try "python: the first program, $("$python" --version)" try_python "$python"
    done
}
