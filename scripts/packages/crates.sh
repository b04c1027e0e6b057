# Crates, in the order in which they are published: each may ask for those before it. One `cargo publish` takes them all.
# shellcheck shell=sh disable=SC2154
published="ramway-pool ramway ramway-agents ramway-cli ramway-bench"
pack_crates() {
    set --
    for crate in $published; do set -- "$@" -p "$crate"; done
    # Its own check of each crate is a release build of all: what follows builds what is in the archive, too.
    cargo package --locked --allow-dirty --no-verify "$@" || return 1
    for crate in $published; do
        cp "$target/package/$crate-$version.crate" "$packages" || return 1
        for file in Cargo.toml LICENSE-APACHE LICENSE-MIT; do
            tar -tzf "$packages/$crate-$version.crate" "$crate-$version/$file" || return 1
        done
    done
    # What a registry would be told; cargo before 1.90 publishes one crate at a time, which wants those before it to be there.
    ! cargo publish --help | grep -q -e --workspace || cargo publish --dry-run --locked --allow-dirty --no-verify "$@"
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
package_crates() { pack "crates: $published" pack_crates && try "crates: the first program" try_crates; }
