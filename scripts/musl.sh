# What building for musl needs: the target's standard library, and a linker. Sourced after lib.sh.
# shellcheck shell=sh

# The standard library of a target, from rustup where that has it.
add_target() { # TRIPLE
    [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] && return 0
    if have rustup && run_logged "target-$1" rustup target add "$1"; then return 0; fi
    bad "the standard library for $1 is missing: rustup target add $1"
    return 1
}

# Rust's musl targets bring their own C library and start files; with the linker of the toolchain they need nothing of the
# system, so that they are built on any machine for any processor.
own_linker() { # TRIPLE
    case $1 in *-musl) ;; *) return 0 ;; esac
    name=$(printf '%s' "$1" | tr 'a-z-' 'A-Z_')
    export "CARGO_TARGET_${name}_LINKER=rust-lld"
}
