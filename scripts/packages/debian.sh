# Debian packages of the archives of `program` and `c`, for the same machines: ramway (the command), libramway0, libramway-dev. What
# is in them is the list of `make install` and of the archives; debhelper or cargo-deb would want it once more.
# shellcheck shell=sh disable=SC2154
deb() { # NAME SECTION DEPENDS DESCRIPTION (from $root, for $arch)
    install -D -m 644 -t "$root/usr/share/doc/$1" scripts/packages/copyright &&
        # Debian's has a form of its own; what changed is in ours.
        printf '%s (%s) stable; urgency=medium\n\n  * CHANGELOG.md.gz beside this file says what changed.\n\n -- %s  %s\n' "$1" "$version" \
            "$maintainer" "$(LC_ALL=C date -u -R -d "@$epoch")" | gzip -n -9 >"$root/usr/share/doc/$1/changelog.gz" &&
        gzip -n -9 -c CHANGELOG.md >"$root/usr/share/doc/$1/CHANGELOG.md.gz" && mkdir -p "$root/DEBIAN" && {
        printf 'Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\n' "$1" "$version" "$arch" "$maintainer"
        [ -z "$3" ] || printf 'Depends: %s\n' "$3"
        printf 'Section: %s\nPriority: optional\nInstalled-Size: %s\nHomepage: https://github.com/ramway/ramway\n' "$2" "$(installed_size)"
        printf 'Description: %s\n' "$4"
    } >"$root/DEBIAN/control" &&
        (cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums) &&
        chmod -R go=u-w "$root" &&
        SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz --build "$root" "$packages/$1_${version}_$arch.deb" && rm -rf "$root"
}
# Whatever a file system takes for them: files in whole KiB, and one for each folder and link.
installed_size() { find "$root/usr" -printf '%y %s\n' | awk '{ kib += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print kib }'; }
# What a library is linked against: by this system's linker also GCC's library, by zig's not.
needs() { # LIBRARY
    printf 'libc6 (>= 2.17)'
    ! readelf -d "$1" | grep -q 'NEEDED.*libgcc_s' || printf ', libgcc-s1'
}
maintainer='The Ramway authors <ramway@users.noreply.github.com>'
about='Rings, buses, topics and calls between the processes of one machine, through
 shared memory: a message is written once and read in place.'
pack_debian() {
    for machine in $machines; do
        case $machine in x86_64) arch=amd64 ;; aarch64) arch=arm64 ;; *) arch=$machine ;; esac
        multiarch=$machine-linux-gnu root=$build/debian-root
        rm -rf "$root" && mkdir -p "$root/usr" && tar -xzf "$packages/ramway-$version-$machine-linux.tar.gz" -C "$root/usr" --strip-components=1 &&
            rm -rf "$root/usr/share/doc" && gzip -n -9 "$root"/usr/share/man/man1/*.1 &&
            mkdir -p "$root/usr/share/zsh" && mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions" &&
            deb ramway utils "" "shared memory between processes (command)
 $about
 .
 This is the command: pipes through shared memory, calls, and an inspection
 of what is shared. It is one static program." || return 1

        all=$build/debian-c
        rm -rf "$all" && mkdir -p "$all" && tar -xzf "$packages/ramway-c-$version-$machine-linux-gnu.tar.gz" -C "$all" --strip-components=1 &&
            mkdir -p "$root/usr/lib/$multiarch" && mv "$all"/lib/libramway.so.* "$root/usr/lib/$multiarch" &&
            chmod 644 "$root/usr/lib/$multiarch/libramway.so.$version" &&
            mkdir -p "$root/DEBIAN" && echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers" &&
            printf 'libramway %s libramway%s (>= %s)\n' "${version%%.*}" "${version%%.*}" "$version" >"$root/DEBIAN/shlibs" &&
            deb "libramway${version%%.*}" libs "$(needs "$root/usr/lib/$multiarch/libramway.so.$version")" "shared memory between processes (library)
 $about
 .
 This is the library for programs in C and C++." || return 1

        mkdir -p "$root/usr/lib/$multiarch" && mv "$all"/lib/* "$root/usr/lib/$multiarch" && mv "$all/include" "$root/usr" &&
            sed -i "s|^prefix=.*|prefix=/usr|; s|^libdir=.*|libdir=\${prefix}/lib/$multiarch|" "$root/usr/lib/$multiarch/pkgconfig/ramway.pc" &&
            sed -i 's|^set(_ramway_includedir .*|set(_ramway_includedir "/usr/include")|' "$root/usr/lib/$multiarch/cmake/ramway/ramway-config.cmake" &&
            deb libramway-dev libdevel "libramway${version%%.*} (= $version)" "shared memory between processes (headers for C and C++)
 $about
 .
 These are the headers, the static library, and the files of pkg-config
 and CMake." || return 1
        rm -rf "$all"
    done
}
# Into an empty root: none of what it depends on is there, and none of its files may be outside of it.
try_debian() (
    root=$tmp/root arch=$(dpkg --print-architecture) multiarch=$here-linux-gnu
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" && touch "$root/var/lib/dpkg/status" &&
        dpkg --root="$root" --force-not-root --force-depends --log=/dev/null --install "$packages"/ramway_"$version"_"$arch".deb \
            "$packages/libramway${version%%.*}_${version}_$arch.deb" "$packages/libramway-dev_${version}_$arch.deb" || return 1
    [ "$("$root/usr/bin/ramway" --version)" = "ramway $version" ] &&
        both 'good morning' "echo good morning | timeout 60 $root/usr/bin/ramway send --quiet hello" "timeout 60 $root/usr/bin/ramway recv --quiet hello" &&
        block docs/start/c.md c >"$tmp/debian.c" || return 1
    PKG_CONFIG_PATH=$root/usr/lib/$multiarch/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=$root/usr/lib/$multiarch
    export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH
    # shellcheck disable=SC2046
    ${CC:-cc} "$tmp/debian.c" $(PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 pkg-config --cflags --libs ramway) -o "$tmp/debian" &&
        both 'good morning (type 1)' "timeout 60 $tmp/debian 'good morning'" "timeout 60 $tmp/debian" || return 1
    # What Debian's own checker calls an error. No archive of ours is a part of Debian, so that some of its rules are none for us.
    # It looks into each object of a static library, and one that is not optimised has hundreds.
    if ! have lintian; then return 0; fi
    set -- "$packages"/*_"$version"_"$arch".deb
    [ -z "${QUICK:-}" ] || set -- "$packages/ramway_${version}_$arch.deb" "$packages/libramway${version%%.*}_${version}_$arch.deb"
    lintian --fail-on error --suppress-tags statically-linked-binary,embedded-library "$@"
)
package_debian() {
    if ! have dpkg-deb; then absent "debian" "dpkg-deb is not on the PATH"; return; fi
    for made_for in $machines; do
        [ -f "$packages/ramway-$version-$made_for-linux.tar.gz" ] || package_program
        [ -f "$packages/ramway-c-$version-$made_for-linux-gnu.tar.gz" ] || package_c
    done
    pack "debian: packages" pack_debian && try "debian: installed into an empty root" try_debian
}
