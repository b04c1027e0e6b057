#!/bin/sh
# `sh jdk.sh` prints the home of a JDK of version 22 or later (java.lang.foreign), for JAVA_HOME: the one that JAVA_HOME
# names already, the one on the PATH, or the newest in /usr/lib/jvm. Status 1, and why, where there is none.
set -u
least=22

# version HOME: the feature version of the JDK there; nothing where none with a compiler is.
version() {
    if [ -x "$1/bin/javac" ] && [ -r "$1/release" ]; then
        sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release"
    fi
}

if [ -n "${JAVA_HOME:-}" ]; then
    found=$(version "$JAVA_HOME")
    if [ "${found:-0}" -ge "$least" ]; then
        printf '%s\n' "$JAVA_HOME"
        exit 0
    fi
fi
on_path=$(command -v javac || true)
if [ -n "$on_path" ]; then
    # Through the links that alternatives make.
    home=$(dirname "$(dirname "$(readlink -f "$on_path")")")
    found=$(version "$home")
    if [ "${found:-0}" -ge "$least" ]; then
        printf '%s\n' "$home"
        exit 0
    fi
fi
best=0 home=
for candidate in /usr/lib/jvm/*; do
    # The same JDK may be there by several names, as a link.
    if [ -L "$candidate" ]; then continue; fi
    found=$(version "$candidate")
    if [ "${found:-0}" -gt "$best" ]; then best=$found home=$candidate; fi
done
if [ "$best" -ge "$least" ]; then
    printf '%s\n' "$home"
    exit 0
fi
echo "jdk.sh: no JDK of version $least or later: JAVA_HOME=${JAVA_HOME:-}, javac on the PATH: ${on_path:-none}, in /usr/lib/jvm: ${home:-none}" >&2
exit 1
