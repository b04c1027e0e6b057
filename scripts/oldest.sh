#!/bin/sh
# `make test-oldest`: the tests with the oldest toolchain that each package says it supports. The version is read from the package,
# and a toolchain of any other version is refused: a job that claims to test the oldest does.
#
#   sh scripts/oldest.sh [rust|python|node|go|java|csharp]...     all that are here, without a name
#
#   CI=true    a toolchain that is not here is a failure
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh

passed=0 failed=0 skipped=0
step() { # NAME COMMAND...
    name=$1
    shift
    say "oldest $name"
    if run_logged "oldest $name" "$@"; then passed=$((passed + 1)); ok "$(tail -n 1 "$log")"; else failed=$((failed + 1)); bad ""; show_log; fi
}
absent() { # NAME WHAT
    if [ "${CI:-}" = true ]; then failed=$((failed + 1)); else skipped=$((skipped + 1)); fi
    say "oldest $1"
    note "not run: $2"
}
# The first number of a package's line: of `rust-version = "1.88"`, 1.88.
stated() { # FILE PATTERN
    sed -n "/$2/s/[^0-9]*\([0-9][0-9.]*\).*/\1/p" "$1" | head -n 1
}

rust() {
    version=$(stated Cargo.toml '^rust-version')
    if ! cargo "+$version" --version >/dev/null 2>&1 && have rustup; then
        run_logged "rustup $version" rustup toolchain install "$version" --profile minimal || true
    fi
    if ! cargo "+$version" --version >/dev/null 2>&1; then absent "Rust $version" "rustup toolchain install $version"; return; fi
    # The libraries and the command: what users build. Lock file as it is: a dependency that asks for more is found here.
    step "Rust $version, all crates" cargo "+$version" check --locked --workspace --all-features
    # Workspaces of their own, which promise the same.
    for workspace in bridge examples/two-machines; do
        [ "$(stated "$workspace/Cargo.toml" '^rust-version')" = "$version" ] ||
            { bad "$workspace/Cargo.toml promises another Rust than $version"; failed=$((failed + 1)); continue; }
        step "Rust $version, $workspace" cargo "+$version" check --locked --manifest-path "$workspace/Cargo.toml"
    done
    step "Rust $version, tests" cargo "+$version" test --locked -p ramway -p ramway-pool --all-features --lib --test ring --test buffer
}

python() {
    version=$(stated bindings/python/pyproject.toml '^requires-python')
    found=$(sh bindings/python/pythons.sh --with-pip 2>/dev/null | sed -n "s/^${version}[0-9.]* //p" | head -n 1)
    if [ -z "$found" ]; then absent "CPython $version" "no CPython $version was found"; return; fi
    step "CPython $version" env PYTHONS="$found" "$MAKE_COMMAND" --no-print-directory -C bindings/python quick
}

node() {
    version=$(stated bindings/node/package.json '"node":')
    case $(command node --version 2>/dev/null) in
    v"$version".*) step "Node.js $version" env RUNTIMES=node "$MAKE_COMMAND" --no-print-directory -C bindings/node quick ;;
    *) absent "Node.js $version" "the one on the PATH is $(command node --version 2>/dev/null || echo none)" ;;
    esac
}

go() {
    version=$(stated bindings/go/go.mod '^go ')
    # Go fetches another version of itself where it may.
    if [ "$(cd bindings/go && GOTOOLCHAIN=go$version command go env GOVERSION 2>/dev/null)" != "go$version" ]; then
        absent "Go $version" "the one on the PATH is another, and go$version cannot be had"
        return
    fi
    # The other sides of some tests, which would be built within the tests' time limit.
    if have cargo; then run_logged "oldest Go, programs" cargo build --quiet -p ramway-examples --bin meters --bin ticks || show_log; fi
    step "Go $version" env GOTOOLCHAIN="go$version" sh -c 'cd bindings/go && go vet ./... && go test -count=1 -timeout 300s ./...'
}

java() {
    version=$(stated bindings/java/pom.xml 'maven.compiler.release>')
    home=$(sh scripts/jdk.sh 2>/dev/null)
    case $(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$home/release" 2>/dev/null) in
    "$version") step "Java $version" env JAVA_HOME="$home" "$MAKE_COMMAND" --no-print-directory -C bindings/java quick ;;
    *) absent "Java $version" "the JDK here is ${home:-none}: let JAVA_HOME name one of version $version" ;;
    esac
}

csharp() {
    # The oldest SDK that builds it; what it is built for is older (netstandard2.1).
    version=8
    case $(dotnet --version 2>/dev/null) in
    $version.*) step ".NET $version" "$MAKE_COMMAND" --no-print-directory -C bindings/csharp test ;;
    *) absent ".NET $version" "the one on the PATH is $(dotnet --version 2>/dev/null || echo none)" ;;
    esac
}

[ "$#" -gt 0 ] || set -- rust python node go java csharp
for language; do
    case $language in
    rust | python | node | go | java | csharp) $language ;;
    *) echo "oldest.sh: rust, python, node, go, java or csharp, not '$language'" >&2; exit 2 ;;
    esac
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
