#!/bin/sh
# The Rust, C, C++ and (without musl) Go suites for other targets: `make test-musl` and `make test-arm64`. A target of another
# processor runs under qemu's user emulation: a program that a test starts is started through the same emulator, whose words
# RAMWAY_TEST_RUNNER holds. The last line counts.
#
#   sh scripts/cross.sh TRIPLE...
#   SUITES="rust c go"     which
#   ARGS="-- ring"         to `cargo test`
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
. scripts/musl.sh

suites=${SUITES:-rust c go container orderings}
passed=0 failed=0 skipped=0
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only
case $target in /*) whole=$target ;; *) whole=$PWD/$target ;; esac
RAMWAY_DIR=$(mktemp -d /dev/shm/ramway-cross.XXXXXX) || exit 1
export RAMWAY_DIR
trap 'rm -rf "$RAMWAY_DIR"' EXIT
trap 'exit 130' INT TERM

wanted() { case " $suites " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
skip() { skipped=$((skipped + 1)); note "not run: $1"; }
add() { # RC PASSED FAILED SKIPPED
    [ "$1" -eq 0 ] || [ "$3" -ne 0 ] || set -- "$1" "$2" 1 "$4"
    passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
    if [ "$1" -eq 0 ]; then ok "$2 passed, $4 skipped"; else bad "$2 passed, $3 failed, $4 skipped"; show_log; fi
}
# The last line "N passed, N failed" of the log.
counted() {
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)\{0,1\} *$/\1 \2 \4/p' "$log" | tail -n 1 |
        awk '{ p = $1; f = $2; s = $3 } END { print p + 0, f + 0, s + 0 }'
}

# Sets cc, cxx (commands of one word) and RAMWAY_TEST_RUNNER for the target.
tools() { # TRIPLE
    cc='' cxx='' runner='' processor=${1%%-*}
    # What programs of glibc for another processor load lies beside its compiler.
    libraries=
    case $1 in
    "$processor"-unknown-linux-gnu)
        cc=$processor-linux-gnu-gcc cxx=$processor-linux-gnu-g++ libraries="-L /usr/$processor-linux-gnu"
        needed="$cc:gcc-$processor-linux-gnu $cxx:g++-$processor-linux-gnu" install_missing
        name=$(printf '%s' "$1" | tr 'a-z-' 'A-Z_')
        export "CARGO_TARGET_${name}_LINKER=$cc"
        ;;
    *)
        own_linker "$1"
        if zig=$(zig_command); then
            mkdir -p "$whole/zig"
            for kind in cc c++; do
                printf '#!/bin/sh\nexec %s %s -target %s-linux-musl "$@"\n' "$zig" "$kind" "$processor" >"$whole/zig/$1-$kind"
                chmod 755 "$whole/zig/$1-$kind"
            done
            cc=$whole/zig/$1-cc cxx=$whole/zig/$1-c++
        fi
        ;;
    esac
    unset RAMWAY_TEST_RUNNER
    [ "$processor" = "$(uname -m)" ] && return 0
    needed="qemu-$processor-static:qemu-user-static" install_missing
    have "qemu-$processor-static" || { bad "qemu-$processor-static is not there (Debian: qemu-user-static)"; return 1; }
    runner="qemu-$processor-static${libraries:+ $libraries}"
    export RAMWAY_TEST_RUNNER="$runner"
    name=$(printf '%s' "$1" | tr 'a-z-' 'A-Z_')
    export "CARGO_TARGET_${name}_RUNNER=$runner"
}

# Zig's C and C++ compilers have musl's library for every processor in them. From PyPI, where it is not installed.
zig_command() {
    if have zig; then echo zig; return 0; fi
    zig_python=$whole/zig/python/bin/python
    if [ ! -x "$zig_python" ]; then
        { python3 -m venv "$whole/zig/python" && "$zig_python" -m pip install -q ziglang; } >&2 || return 1
    fi
    "$zig_python" -c 'import ziglang' 2>/dev/null && echo "$zig_python -m ziglang"
}

for triple in "$@"; do
    say "tools for $triple"
    if add_target "$triple" && tools "$triple"; then ok "${cc##*/} ${RAMWAY_TEST_RUNNER:-}"; else failed=$((failed + 1)); continue; fi

    # tokio-uring does not compile for musl: not `--all-features`.
    if wanted rust; then
        say "rust, $triple"
        # shellcheck disable=SC2086
        run_logged "rust-$triple" limited cargo test $locked --no-fail-fast --target "$triple" \
            -p ramway -p ramway-pool -p ramway-cli --features ramway/tokio,ramway/tower,ramway/serde --lib --bins --tests ${ARGS:-}
        rc=$?
        # shellcheck disable=SC2046
        add $rc $(awk -f scripts/count.awk "$log")
    fi

    if wanted c; then
        say "c and c++, $triple"
        if [ -z "$cc" ]; then skip 'no compiler: neither zig nor PyPI is there'; else
            # shellcheck disable=SC2086
            run_logged "c-$triple" limited "$MAKE_COMMAND" --no-print-directory -C capi test-cross TRIPLE="$triple" CC="$cc" CXX="$cxx"
            rc=$?
            # shellcheck disable=SC2046
            add $rc $(counted)
        fi
    fi

    case $triple in
    *-musl)
        if wanted container && [ -z "${RAMWAY_TEST_RUNNER:-}" ]; then
            sh scripts/dist.sh "$triple" || { failed=$((failed + 1)); continue; }
            say "containers with nothing but the command, $triple"
            run_logged "container-$triple" sh cli/tests/container.sh "$target/$triple/dist/ramway"
            rc=$?
            # shellcheck disable=SC2046
            add $rc $(counted)
        fi
        ;;
    aarch64-unknown-linux-gnu)
        if wanted orderings; then
            say "orderings in the machine code, $triple"
            run_logged "orderings-$triple" sh scripts/orderings.sh
            rc=$?
            # shellcheck disable=SC2046
            add $rc $(counted)
        fi
        if wanted go; then
            say "go, $triple"
            if have go; then
                run_logged "go-$triple" limited "$MAKE_COMMAND" --no-print-directory -C bindings/go test-arm64
                rc=$?
                # shellcheck disable=SC2046
                add $rc $(counted)
            else skip 'go is not there'; fi
        fi
        ;;
    esac
done

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
