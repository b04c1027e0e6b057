#!/bin/sh
# The suites for other targets: `make test-musl` and `make test-arm64`. What is of another processor runs under qemu's user
# emulation, and a program that a test starts is started through the same emulator, whose words RAMWAY_TEST_RUNNER holds. Tests that
# the emulator cannot run are those of scripts/emulator.txt: each is named with its reason and counted as skipped. The last line
# counts.
#
#   sh scripts/cross.sh TRIPLE...
#   SUITES="rust c go"     which (rust pages c go container orderings languages); all that there are for the target are the default, but for
#                          `languages`, which fetches 190 MB
#   ARGS="--test ring"     to `cargo test`
#   TEST_THREADS=2         tests of one program at a time, in Rust
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
. scripts/musl.sh

suites=${SUITES:-rust pages c go container orderings}
passed=0 failed=0 skipped=0 page_size=
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only
RAMWAY_DIR=$(mktemp -d /dev/shm/ramway-cross.XXXXXX) || exit 1
export RAMWAY_DIR
trap 'rm -rf "$RAMWAY_DIR"' EXIT
trap 'exit 130' INT TERM

install() { needed=$*; install_missing; needed=; } # COMMAND:PACKAGE...
wanted() { case " $suites " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# What this machine lacks: with CI=true a failure.
lacks() { # SUITE WHAT
    if [ "${CI:-}" = true ]; then failed=$((failed + 1)); bad "$1: not run, $2"; else skipped=$((skipped + 1)); note "$1: not run, $2"; fi
}

# A suite that fails and counts no failure has one: its build.
result() { # RC PASSED FAILED SKIPPED
    if [ "$1" -ne 0 ] && [ "$3" -eq 0 ]; then set -- "$1" "$2" 1 "$4"; fi
    if [ "$1" -eq 0 ] && [ "$2" -eq 0 ]; then set -- 1 0 1 "$4"; fi
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    if [ "$1" -eq 0 ]; then ok "$2 passed, $3 failed, $4 skipped"; else bad "$2 passed, $3 failed, $4 skipped"; show_log; fi
}

# The tests of a suite that an emulator cannot run, one a line: "TEST REASON...".
not_emulated() { # SUITE
    [ -n "${RAMWAY_TEST_RUNNER:-}" ] || return 0
    sed -n "s/^$1  *//p" scripts/emulator.txt
}
name_skipped() { not_emulated "$1" | while read -r test reason; do note "skipped: $test: $reason"; done; }

# Sets the C compilers of a target, the linker of Rust's, and RAMWAY_TEST_RUNNER.
tools() { # TRIPLE
    cc='' cxx='' libraries='' processor=${1%%-*}
    variable=CARGO_TARGET_$(printf '%s' "$1" | tr 'a-z-' 'A-Z_')
    case $1 in
    *-linux-gnu)
        cc=$processor-linux-gnu-gcc cxx=$processor-linux-gnu-g++
        install "$cc:gcc-$processor-linux-gnu" "$cxx:g++-$processor-linux-gnu"
        export "${variable}_LINKER=$cc"
        # What programs load lies beside their compiler.
        [ "$processor" = "$(uname -m)" ] || libraries="-L /usr/$processor-linux-gnu"
        ;;
    *-linux-musl)
        own_linker "$1"
        ;;
    esac
    unset RAMWAY_TEST_RUNNER
    if [ "$processor" = "$(uname -m)" ]; then return 0; fi
    install "qemu-$processor-static:qemu-user-static"
    # By its whole path: some tests set PATH.
    qemu=$(command -v "qemu-$processor-static") || { bad "qemu-$processor-static is not there (Debian: qemu-user-static)"; return 1; }
    export RAMWAY_TEST_RUNNER="$qemu${libraries:+ $libraries}"
    export "${variable}_RUNNER=$RAMWAY_TEST_RUNNER"
    # An emulator needs ten times as long for what is not optimised.
    export CARGO_PROFILE_DEV_OPT_LEVEL=1
}

# tokio-uring does not compile for musl, and no emulator has io_uring: not `--all-features`.
rust_suite() { # PACKAGES ARGUMENT...
    packages=$1
    shift
    say "rust, $triple${page_size:+, pages of $page_size bytes}"
    name_skipped rust
    # shellcheck disable=SC2046,SC2086
    run_logged "rust-$triple${page_size:+-$page_size}" limited cargo test $locked --no-fail-fast --target "$triple" \
        $packages --features ramway/tokio,ramway/tower,ramway/serde \
        "$@" -- ${TEST_THREADS:+--test-threads "$TEST_THREADS"} --exact $(not_emulated rust | awk '{ print "--skip", $1 }')
    rc=$?
    # What --skip left out is "filtered out".
    # shellcheck disable=SC2046
    result $rc $(awk -v filtered=1 -f scripts/count.awk "$log")
}

# Buses and rings between processes, with pages as some kernels for arm64 have them. qemu tells programs the size; what it maps itself goes by this
# machine's pages, so that it refuses nothing that a kernel with larger ones would refuse.
pages_suite() {
    small=$RAMWAY_TEST_RUNNER
    # With larger pages than this machine's qemu crashes any program that prints a backtrace.
    export RUST_BACKTRACE=0
    for page_size in 16384 65536; do
        export RAMWAY_TEST_RUNNER="${small%% *} -p $page_size ${small#* }"
        export "${variable}_RUNNER=$RAMWAY_TEST_RUNNER"
        rust_suite '-p ramway' --test bus --test two_processes
    done
    page_size=
    unset RUST_BACKTRACE
    export RAMWAY_TEST_RUNNER="$small" "${variable}_RUNNER=$small"
}

c_suite() { # TRIPLE [static|shared [NAME=VALUE]...]
    of=$1 library=${2:-}
    shift $(($# > 1 ? 2 : 1))
    say "c and c++, $of${library:+, $library library}"
    if [ -z "$cc" ] || ! have "$cc"; then lacks "c and c++" "there is no C compiler for it"; return 0; fi
    run_logged "c-$of${library:+-$library}" limited env "$@" "$MAKE_COMMAND" --no-print-directory -C capi test-cross \
        TRIPLE="$of" CC="$cc" CXX="$cxx" LINK="$library"
    rc=$?
    # shellcheck disable=SC2046
    result $rc $(counted)
}

# Against the static library, and where this machine can load programs for musl also against the shared one, of which Rust's targets for
# musl make none unless told that programs load their C library.
musl_c_suites() { # TRIPLE
    say "zig's compilers for $1"
    install python3:python3-venv
    if have python3 && zig_compilers "$1"; then ok ""; else lacks "c and c++" "zig cannot be had from PyPI, or does not compile"; return 0; fi
    c_suite "$1" static
    [ -z "${RAMWAY_TEST_RUNNER:-}" ] || return 0
    loader=/lib/ld-musl-${1%%-*}.so.1
    install "$loader:musl"
    if ! have "$loader"; then say "c and c++, $1, shared library"; lacks "c and c++" "$loader is not there (Debian: musl)"; return 0; fi
    # zig's C++ library has calls of statx in it, which musl has since 1.2.5 and Debian 12 does not; no test makes one.
    c_suite "$1" shared "RUSTFLAGS=${RUSTFLAGS:-} -C target-feature=-crt-static" "${variable}_LINKER=$cc" "RAMWAY_LINK_MORE=$zig/statx.o"
}

go_suite() { # TRIPLE
    say "go, $1"
    have go || install_missing
    if ! have go; then lacks go "go is not there"; return 0; fi
    # The other side of some tests, for this machine's processor. They would build it themselves, within their own time, or be skipped.
    run_logged "go-peers-$1" limited cargo build $locked --quiet -p ramway-cli -p ramway-examples --bin ramway --bin ticks --bin meters ||
        { result $? 0 1 0; return 0; }
    name_skipped go
    RAMWAY_TEST_SKIP=$(not_emulated go | awk '{ printf "%s^%s$", n++ ? "|" : "", $1 }')
    export RAMWAY_TEST_SKIP
    run_logged "go-$1" limited "$MAKE_COMMAND" --no-print-directory -C bindings/go test-arm64
    rc=$?
    # shellcheck disable=SC2046
    set -- $rc $(counted)
    result "$1" "$2" "$3" $(($4 + $(not_emulated go | wc -l)))
}

container_suite() { # TRIPLE
    sh scripts/dist.sh "$1" || { failed=$((failed + 1)); return 0; }
    say "containers with nothing but the command, $1"
    run_logged "container-$1" sh cli/tests/container.sh "$target/$1/dist/ramway"
    rc=$?
    # shellcheck disable=SC2046
    result $rc $(counted)
}

orderings_suite() { # TRIPLE
    say "orderings in the machine code, $1"
    run_logged "orderings-$1" sh scripts/orderings.sh
    rc=$?
    # shellcheck disable=SC2046
    result $rc $(counted)
}

languages_suite() { # TRIPLE
    say "python, node, java and c#, $1"
    install_missing
    if [ -n "${RAMWAY_TEST_RUNNER:-}" ]; then
        name_skipped languages
        run_logged "languages-$1" limited sh scripts/cross-languages.sh
    else
        run_logged "languages-$1" limited "$MAKE_COMMAND" --no-print-directory -C conformance quick
    fi
    rc=$?
    sed -n 's/^skipped: /    skipped: /p' "$log"
    # shellcheck disable=SC2046
    set -- $rc $(counted)
    result "$1" "$2" "$3" $(($4 + $(not_emulated languages | wc -l)))
}

need_cargo || exit 1
for triple; do
    say "tools for $triple"
    if add_target "$triple" && tools "$triple"; then ok "${RAMWAY_TEST_RUNNER:-}"; else failed=$((failed + 1)); continue; fi
    # shellcheck disable=SC2086
    if wanted rust; then rust_suite '-p ramway -p ramway-pool -p ramway-cli -p ramway-format' ${ARGS:---lib --bins --tests}; fi
    case $triple in
    *-musl)
        if wanted c; then musl_c_suites "$triple"; fi
        if wanted container && [ -z "${RAMWAY_TEST_RUNNER:-}" ]; then container_suite "$triple"; fi
        ;;
    *)
        if wanted c; then c_suite "$triple"; fi
        if wanted pages && [ -n "${RAMWAY_TEST_RUNNER:-}" ]; then pages_suite; fi
        if wanted orderings; then orderings_suite "$triple"; fi
        if wanted go; then go_suite "$triple"; fi
        if wanted languages; then languages_suite "$triple"; fi
        ;;
    esac
done

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
