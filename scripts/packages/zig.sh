# What `zig fetch` takes: the files that build.zig.zon names.
# shellcheck shell=sh disable=SC2154
zig_paths() { sed -n 's/^ *\.paths = \.{\(.*\)},/\1/p' bindings/zig/build.zig.zon | tr -d '",'; }
pack_zig() {
    # shellcheck disable=SC2046
    archive "$packages/ramway-zig-$version.tar.gz" "ramway-zig-$version" bindings/zig --dereference $(zig_paths)
}
# A project that has the archive as a dependency, with the two programs of the page: a sender and a receiver.
try_zig() (
    zig="$target/zig/venv/bin/python -m ziglang"
    mkdir -p "$tmp/zig/src" && block bindings/zig/README.md zig '// main.zig' >"$tmp/zig/src/main.zig" &&
        block bindings/zig/README.md zig '// build.zig' >"$tmp/zig/build.zig" && cd "$tmp/zig" &&
        echo '.{ .name = .first, .version = "0.0.0", .fingerprint = 0x9271ee571f2e3d4c, .paths = .{""} }' >build.zig.zon || return 1
    # What Zig compiles is kept, with its own library; what it fetches is not.
    rm -rf "$build/zig-cache/p"
    ZIG_GLOBAL_CACHE_DIR=$build/zig-cache ZIG_LOCAL_CACHE_DIR=$build/zig-local
    export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
    $zig fetch --save=ramway "$packages/ramway-zig-$version.tar.gz" &&
        $zig build --prefix "$tmp/zig/out" && both 'message 3' "timeout 60 $tmp/zig/out/bin/first" "timeout 60 $tmp/zig/out/bin/first receive 2>&1"
)
package_zig() {
    pack "zig: package" pack_zig && [ -z "${PACK_ONLY:-}" ] || return
    if ! run_logged "packages zig compiler" "$MAKE_COMMAND" --no-print-directory -C bindings/zig compiler; then
        absent "zig: the first program" "the compiler cannot be had from PyPI"
        return
    fi
    try "zig: the first program" try_zig
}
