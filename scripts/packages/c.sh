# libramway with its headers, pkg-config and CMake files: an archive that is unpacked anywhere.
# shellcheck shell=sh disable=SC2154
# Linked by zig against the C library of 2.17, for every machine, but with QUICK: by this system, for itself.
build_c() { # TRIPLE
    if [ -n "${QUICK:-}" ]; then
        libraries=$build/libraries
        cargo build --quiet --locked -p ramway-capi && mkdir -p "$libraries" &&
            strip --strip-unneeded -o "$libraries/libramway.so" "$target/debug/libramway.so" &&
            strip --strip-debug -o "$libraries/libramway.a" "$target/debug/libramway.a"
        return
    fi
    zig=$target/zigbuild
    [ -x "$zig/bin/cargo-zigbuild" ] || { python3 -m venv "$zig" && "$zig/bin/pip" install -q --disable-pip-version-check ziglang cargo-zigbuild; } || return 1
    [ -d "$(rustc --print target-libdir --target "$1")" ] || rustup target add "$1" || return 1
    PATH=$zig/bin:$PATH CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_PROFILE_RELEASE_DEBUG=false \
        cargo zigbuild --quiet --locked --release --target "$1.2.17" -p ramway-capi && libraries=$target/$1/release
}
pack_c() {
    for machine in $machines; do
        triple=$machine-unknown-linux-gnu name=ramway-c-$version-$machine-linux-gnu
        build_c "$triple" && rm -rf "${build:?}/$name" &&
            "$MAKE_COMMAND" --no-print-directory -C capi install LIBRARIES="$(cd "$libraries" && pwd)" DESTDIR="$build/$name" PREFIX=/ \
                LIBDIR=/lib INCLUDEDIR=/include &&
            sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|; s|^libdir=.*|libdir=${prefix}/lib|; s|^includedir=.*|includedir=${prefix}/include|' \
                "$build/$name/lib/pkgconfig/ramway.pc" &&
            install -D -m 644 -t "$build/$name/share/doc/ramway" capi/README.md LICENSE-APACHE LICENSE-MIT &&
            archive "$packages/$name.tar.gz" "$name" "$build/$name" . || return 1
    done
}
# The programs of the pages, by pkg-config as they say, and by find_package.
try_c() (
    mkdir -p "$tmp/c/prefix" "$tmp/c/cmake" &&
        tar -xzf "$packages/ramway-c-$version-$here-linux-gnu.tar.gz" -C "$tmp/c/prefix" --strip-components=1 &&
        block docs/start/c.md c >"$tmp/c/hello.c" && block docs/start/cpp.md cpp >"$tmp/c/hello.cpp" &&
        block docs/start/c.md cmake >"$tmp/c/CMakeLists.txt" && cd "$tmp/c" || return 1
    PKG_CONFIG_PATH=$tmp/c/prefix/lib/pkgconfig LD_LIBRARY_PATH=$tmp/c/prefix/lib
    export PKG_CONFIG_PATH LD_LIBRARY_PATH
    # shellcheck disable=SC2046
    ${CC:-cc} hello.c $(pkg-config --cflags --libs ramway) -o c && ${CXX:-c++} -std=c++20 hello.cpp $(pkg-config --cflags --libs ramway) -o cpp &&
        both 'good morning (type 1)' "timeout 60 ./c 'good morning'" 'timeout 60 ./c' &&
        both 'good morning (type 1)' "timeout 60 ./cpp 'good morning'" 'timeout 60 ./c' &&
        [ "$(pkg-config --modversion ramway)" = "$version" ] || return 1
    have cmake || return 0
    cmake -DCMAKE_PREFIX_PATH="$tmp/c/prefix" -S . -B built && cmake --build built &&
        both 'good morning (type 1)' "timeout 60 built/hello 'good morning'" 'timeout 60 ./cpp'
)
package_c() {
    if ! have "${CC:-cc}" || ! have pkg-config; then absent "c" "a C compiler, or pkg-config, is missing"; return; fi
    pack "c: archives" pack_c && try "c: the first programs, by pkg-config and by CMake" try_c
}
