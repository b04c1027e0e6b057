#!/bin/sh
# `make packages`: the archives, as registries and users get them, into target/packages; each is then installed from there into an
# empty folder, where the first program of its page is run. Ends with a line that counts them.
#
#   sh scripts/packages.sh [NAME]...     all of them, without a name; what each does is in scripts/packages/NAME.sh
#
#   QUICK=1     for this machine only, and nothing that is native is optimised
#   PROFILE=dev Python's and JavaScript's native modules are not optimised
#   MACHINES    the processors to build for (default: "x86_64 aarch64")
#   PACK_ONLY   the archives are made, and not tried
#   TRY_ONLY    those that lie in target/packages are tried, on a machine that did not make them
#   CI=true     a toolchain that is missing is a failure
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

if [ -n "${QUICK:-}" ]; then export PROFILE=dev; fi
mkdir -p "$target/packages" || exit 1
packages=$(cd "$target/packages" && pwd)
target=${packages%/packages}
build=$target/packages-build
mkdir -p "$build" || exit 1
version=$(sh scripts/version.sh)
here=$(uname -m)
# shellcheck disable=SC2034
if [ -n "${QUICK:-}" ]; then machines=$here; else machines=${MACHINES:-x86_64 aarch64}; fi
# The time of what is in an archive: the commit's, wherever and whenever it is built.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH="$epoch"
tmp=$(mktemp -d) || exit 1
for base in /dev/shm "$tmp"; do
    if [ -d "$base" ] && [ -w "$base" ]; then break; fi
done
RAMWAY_DIR=$(mktemp -d "$base/ramway-packages.XXXXXX") || exit 1
export RAMWAY_DIR
# Go's module cache is read-only.
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp" "$RAMWAY_DIR"' EXIT
trap 'exit 130' INT TERM

# No folder of this machine is in what is compiled, so that it is the same bytes wherever that was.
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/ramway --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
if [ "${PROFILE:-}" != dev ]; then export RUSTFLAGS; fi

passed=0 failed=0 skipped=0
step() { # NAME COMMAND...
    name=$1
    shift
    say "$name"
    if run_logged "packages $name" "$@"; then passed=$((passed + 1)); ok ""; else failed=$((failed + 1)); bad ""; show_log; return 1; fi
}
pack() { # NAME COMMAND...
    [ -n "${TRY_ONLY:-}" ] || step "$@"
}
try() { # NAME COMMAND...
    [ -n "${PACK_ONLY:-}" ] || step "$@"
}
absent() { # NAME WHAT
    if [ "${CI:-}" = true ]; then failed=$((failed + 1)); else skipped=$((skipped + 1)); fi
    say "$1"
    note "not run: $2"
}

# A block of a page: the first in the language that has the line (or, without one, the first).
block() { # PAGE LANGUAGE [LINE]
    awk -v fence="\`\`\`$2" -v line="${3:-}" '
        /^```/ && inside { inside = 0; if (line == "" || found) { printf "%s", text; exit } }
        $0 == fence { inside = 1; text = ""; found = 0; next }
        inside { text = text $0 "\n"; if ($0 == line) found = 1 }' "$1"
}

# The producer and the consumer of a page, at the same time; the consumer must have got what was sent.
both() { # EXPECTED PRODUCER CONSUMER (commands)
    sh -c "$3" >"$tmp/consumed" &
    consumer=$!
    sh -c "$2" || { kill "$consumer"; return 1; }
    wait "$consumer" && grep -q -e "$1" "$tmp/consumed" || { cat "$tmp/consumed"; return 1; }
}

# A tar archive of files, below a folder of its own: the same bytes whoever makes it.
archive() { # FILE FOLDER FROM NAME...
    file=$1 folder=$2 from=$3
    shift 3
    tar -C "$from" --sort=name --owner=0 --group=0 --numeric-owner --mode=go=u-w --mtime="@$epoch" --format=gnu --exclude-vcs \
        --transform="flags=rSh;s|^\./||;s|^|$folder/|;s|/\.\$||" -cf - "$@" | gzip -n -9 >"$file"
}

for language in crates python node go jvm csharp zig c program debian; do
    # shellcheck source=/dev/null
    . "scripts/packages/$language.sh"
done
all="crates python node go java kotlin csharp zig c program debian"
# shellcheck disable=SC2086
[ "$#" -gt 0 ] || set -- $all
for language; do
    case " $all " in
    *" $language "*) "package_$language" ;;
    *) echo "packages.sh: one of $all, not '$language'" >&2; exit 2 ;;
    esac
done
printf 'archives: %s\n%d passed, %d failed, %d skipped\n' "$packages" "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
