# What building for musl needs: the target's standard library, a linker, and for C and C++ compilers. Sourced after lib.sh.
# shellcheck shell=sh disable=SC2154

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

# Sets $cc and $cxx: zig's compilers, of the version that bindings/zig pins, which bring musl and a C++ library for any processor. Debian's
# musl-gcc has no C++. For their first programs they compile those libraries, which takes minutes, once.
zig_compilers() { # TRIPLE
    run_logged zig "$MAKE_COMMAND" --no-print-directory -C bindings/zig compiler || return 1
    zig=$(cd "$target/zig" && pwd) || return 1
    export ZIG_GLOBAL_CACHE_DIR="$zig/cache" ZIG_LOCAL_CACHE_DIR="$zig/cache"
    program=$(find "$zig/venv" -path '*/ziglang/zig' -type f)
    cc=$zig/${1%%-*}-musl-cc cxx=$zig/${1%%-*}-musl-c++
    for kind in cc c++; do
        printf '#!/bin/sh\nexec "%s" %s -target %s-linux-musl "$@"\n' "$program" $kind "${1%%-*}" >"$zig/${1%%-*}-musl-$kind" &&
            chmod +x "$zig/${1%%-*}-musl-$kind" || return 1
    done
    printf '#include <iostream>\nint main() { std::cout << "compiled\\n"; }\n' >"$zig/first.cpp"
    printf 'int statx(void) { return -1; }\n' >"$zig/statx.c"
    for optimised in -O0 -O2; do
        run_logged "zig-$1" "$cxx" $optimised "$zig/first.cpp" -lunwind -o "$zig/first" || return 1
    done
    run_logged "zig-$1" "$cc" -O2 -c "$zig/statx.c" -o "$zig/statx.o"
}
