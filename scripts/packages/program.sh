# The static command with its manual pages and completions: an archive that is unpacked anywhere, as Homebrew and its like do.
# shellcheck shell=sh disable=SC2154
# With QUICK it is the one that the tests use, which is neither static nor small.
build_program() { # MACHINE
    if [ -n "${QUICK:-}" ]; then
        cargo build --quiet --locked -p ramway-cli --bin ramway && strip -o "$build/ramway" "$target/debug/ramway" && program=$build/ramway
    else
        sh scripts/dist.sh "$1-unknown-linux-musl" && program=$target/$1-unknown-linux-musl/dist/ramway
    fi
}
pack_program() {
    # The pages are made by the program for this machine.
    build_program "$here" && runs_here=$program || return 1
    for machine in $machines; do
        program=$runs_here name=ramway-$version-$machine-linux
        { [ "$machine" = "$here" ] || build_program "$machine"; } && rm -rf "${build:?}/$name" && install -D -m 755 "$program" "$build/$name/bin/ramway" &&
            sh scripts/share.sh "$runs_here" "$build/$name/share" &&
            install -D -m 644 -t "$build/$name/share/doc/ramway" README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT &&
            archive "$packages/$name.tar.gz" "$name" "$build/$name" . || return 1
    done
}
try_program() {
    mkdir -p "$tmp/program" && tar -xzf "$packages/ramway-$version-$here-linux.tar.gz" -C "$tmp/program" --strip-components=1 &&
        [ "$("$tmp/program/bin/ramway" --version)" = "ramway $version" ] &&
        both 'good morning' "echo good morning | timeout 60 $tmp/program/bin/ramway send --quiet hello" "timeout 60 $tmp/program/bin/ramway recv --quiet hello" &&
        try_share "$tmp/program/share"
}
# What reads them accepts them, as far as it is here.
try_share() { # FOLDER
    for page in "$1"/man/man1/*.1; do
        ! have man || [ -z "$(man --warnings=w -l "$page" 2>&1 >/dev/null)" ] || { echo "man warns about $page"; return 1; }
    done
    # shellcheck disable=SC2016
    bash --norc -c '. "$1" && complete -p ramway' bash "$1/bash-completion/completions/ramway" || return 1
    # shellcheck disable=SC2016
    ! have zsh || zsh -f -c 'fpath=("$1" $fpath); autoload -Uz compinit; compinit -u -D; [[ -n "$_comps[ramway]" ]]' zsh "$1/zsh/site-functions" || return 1
    ! have fish || fish --no-execute "$1/fish/vendor_completions.d/ramway.fish"
}
package_program() {
    pack "program: archives" pack_program && try "program: unpacked" try_program
}
