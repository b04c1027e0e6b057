#!/bin/sh
# `make packages`: the archive of every language, as its registry gets it, into target/packages; each is then installed from there
# into an empty folder, where the first program of that language's page is run. Ends with a line that counts them.
#
#   sh scripts/packages.sh [crates|python|node|go|java|csharp]...     all of them, without a name
#
#   QUICK=1    Python's and JavaScript's native modules for this machine only and not optimised, not for every Linux since glibc 2.17
#   CI=true    a toolchain that is missing is a failure
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
need_cargo || exit 1

if [ -n "${QUICK:-}" ]; then export PROFILE=dev; fi
mkdir -p "$target/packages" || exit 1
packages=$(cd "$target/packages" && pwd)
build=${packages%/packages}/packages-build
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
tmp=$(mktemp -d) || exit 1
for base in /dev/shm "$tmp"; do
    if [ -d "$base" ] && [ -w "$base" ]; then break; fi
done
RAMWAY_DIR=$(mktemp -d "$base/ramway-packages.XXXXXX") || exit 1
export RAMWAY_DIR
# Go's module cache is read-only.
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp" "$RAMWAY_DIR"' EXIT
trap 'exit 130' INT TERM

passed=0 failed=0 skipped=0
step() { # NAME COMMAND...
    name=$1
    shift
    say "$name"
    if run_logged "packages $name" "$@"; then passed=$((passed + 1)); ok ""; else failed=$((failed + 1)); bad ""; show_log; return 1; fi
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

# Crates, in the order in which they are published: each may ask for those before it.
published="ramway-pool ramway ramway-agents ramway-cli ramway-bench"
pack_crates() {
    set --
    for crate in $published; do set -- "$@" -p "$crate"; done
    # Its own check of each crate is a release build of all: what follows builds what is in the archive, too.
    cargo package --locked --allow-dirty --no-verify "$@" && for crate in $published; do
        cp "$target/package/$crate-$version.crate" "$packages" || return 1
    done
}
try_crates() {
    mkdir -p "$tmp/crates/src" && for crate in $published; do tar -xzf "$packages/$crate-$version.crate" -C "$tmp" || return 1; done
    block docs/start/rust.md rust >"$tmp/crates/src/main.rs"
    {
        printf '[package]\nname = "first"\nversion = "0.0.0"\nedition = "2024"\n[dependencies]\nramway = "%s"\n' "$version"
        printf '[workspace]\n[patch.crates-io]\n'
        for crate in $published; do printf '%s = { path = "%s" }\n' "$crate" "$tmp/$crate-$version"; done
    } >"$tmp/crates/Cargo.toml"
    # The lock file of the repository: nothing newer is fetched than what the tests have seen.
    cp Cargo.lock "$tmp/crates" && (cd "$tmp/crates" && CARGO_TARGET_DIR="$build" cargo run --quiet >"$tmp/said") &&
        printf 'message %d\n' 1 2 3 | cmp - "$tmp/said"
}
crates() { step "crates: $published" pack_crates && step "crates: the first program" try_crates; }

pack_python() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/python "$1" && cp bindings/python/dist/* "$packages"
}
try_python() {
    "$python" -m venv "$tmp/python" && "$tmp/python/bin/pip" install -q --disable-pip-version-check --find-links "$packages" "ramway==$version" &&
        block bindings/python/README.md python '# producer.py' >"$tmp/producer.py" &&
        block bindings/python/README.md python '# consumer.py' >"$tmp/consumer.py" &&
        both '1 7 b.any buffer' "timeout 60 $tmp/python/bin/python -I $tmp/producer.py" "timeout 60 $tmp/python/bin/python -I $tmp/consumer.py"
}
python() {
    python=$(sh bindings/python/pythons.sh --with-pip 2>/dev/null | tail -n 1 | cut -d ' ' -f 2)
    if [ -z "$python" ]; then absent "python" "no CPython 3.11 or later was found"; return; fi
    if [ -n "${QUICK:-}" ]; then how=build; else how=dist; fi
    step "python: wheel" pack_python $how && step "python: the first ring" try_python
}

pack_node() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/node "$1" && cp bindings/node/dist-npm/*.tgz "$packages"
}
try_node() {
    mkdir -p "$tmp/node" && (cd "$tmp/node" && npm init -y >/dev/null && npm install --offline --no-audit --no-fund "$packages"/ramway*.tgz) &&
        block bindings/node/README.md js '// producer.mjs' >"$tmp/node/producer.mjs" &&
        block bindings/node/README.md js '// consumer.mjs' >"$tmp/node/consumer.mjs" &&
        both '1 7n* *any text' "timeout 60 node $tmp/node/producer.mjs" "timeout 60 node $tmp/node/consumer.mjs"
}
node() {
    if ! have npm; then absent "node" "npm is not on the PATH"; return; fi
    if [ -n "${QUICK:-}" ]; then how=pack; else how=dist; fi
    step "node: npm packages" pack_node $how && step "node: the first ring" try_node
}

# What a proxy of modules serves: the archive has the files that Git tracks, below the module's name and version.
module=github.com/ramway/ramway/bindings/go
pack_go() {
    rm -rf "$packages/go" && mkdir -p "$packages/go/$module/@v" &&
        python3 - "$module" "v$version" "$packages" <<'END'
import json, subprocess, sys, zipfile
from pathlib import Path

module, version, packages = sys.argv[1:]
served = Path(packages, "go", module, "@v")
source = Path("bindings/go")
# A vendored folder or another module below it belongs to no archive.
names = subprocess.run(["git", "ls-files", "-z", source], check=True, capture_output=True, text=True).stdout.split("\0")
with zipfile.ZipFile(served / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for name in sorted(filter(None, names)):
        entry = zipfile.ZipInfo(f"{module}@{version}/{Path(name).relative_to(source)}")
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, Path(name).read_bytes())
(served / f"{version}.mod").write_bytes((source / "go.mod").read_bytes())
(served / f"{version}.info").write_text(json.dumps({"Version": version}))
(served / "list").write_text(version + "\n")
END
    cp "$packages/go/$module/@v/v$version.zip" "$packages/ramway-go-$version.zip"
}
try_go() (
    mkdir -p "$tmp/go" && block bindings/go/README.md go >"$tmp/go/main.go" && cd "$tmp/go" &&
        GOPROXY="file://$packages/go,$(command go env GOPROXY)" GONOSUMDB="github.com/ramway/*" GOMODCACHE="$tmp/modules" GOFLAGS=-mod=mod &&
        export GOPROXY GONOSUMDB GOMODCACHE GOFLAGS &&
        command go mod init hello && command go get "$module@v$version" && command go build -o hello . &&
        both 'message 2' 'timeout 60 ./hello send' 'timeout 60 ./hello receive'
)
go() {
    if ! have go; then absent "go" "go is not on the PATH"; return; fi
    step "go: module" pack_go && step "go: the first program" try_go
}

pack_java() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/java dist && cp "$target"/java/dist/* "$packages"
}
# The jar alone. A Maven project with the dependency of the page is one of its own tests: `make -C bindings/java test`.
try_java() {
    for program in Producer Consumer; do
        block bindings/java/README.md java "// $program.java" >"$tmp/$program.java"
    done
    flags="--enable-native-access=ALL-UNNAMED -cp $packages/ramway-$version.jar"
    both 'type 1, tag 7: hello' "timeout 60 $JAVA_HOME/bin/java $flags $tmp/Producer.java" "timeout 60 $JAVA_HOME/bin/java $flags $tmp/Consumer.java"
}
java() {
    if ! JAVA_HOME=$(sh scripts/jdk.sh 2>/dev/null) || ! have mvn; then absent "java" "a JDK of version 22 or later, or mvn, is missing"; return; fi
    export JAVA_HOME
    step "java: jars" pack_java && step "java: the first ring" try_java
}

# That it is installed as README.md says, and used, is one of its own tests: `make -C bindings/csharp test`.
pack_csharp() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/csharp pack && cp "$target/csharp/package"/*"$version"*nupkg "$packages"
}
csharp() { step "c#: NuGet package" pack_csharp; }

[ "$#" -gt 0 ] || set -- crates python node go java csharp
for language; do
    case $language in
    crates | python | node | go | java | csharp) $language ;;
    *) echo "packages.sh: crates, python, node, go, java or csharp, not '$language'" >&2; exit 2 ;;
    esac
done
printf 'archives: %s\n%d passed, %d failed, %d skipped\n' "$packages" "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
