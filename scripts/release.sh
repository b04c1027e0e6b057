#!/bin/sh
# What the release pipeline does with the packages that `make packages` and `make dist` have made. CONTRIBUTING.md, "Releases", has
# what comes before and after.
#
#   sh scripts/release.sh check TAG        the tag, the packages' version and CHANGELOG.md say the same
#   sh scripts/release.sh notes VERSION    that version's part of CHANGELOG.md
#   sh scripts/release.sh gather DIR       all archives into the new folder DIR, with a list of what they consist of and SHA256SUMS
#   sh scripts/release.sh draft TAG DIR    a draft of a release on GitHub with all of DIR; needs `gh` and GH_TOKEN
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

fail() { echo "release.sh: $*" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)

notes() { # VERSION
    awk -v heading="## [$1]" 'index($0, heading) == 1 { inside = 1; next } /^## / { inside = 0 } inside' CHANGELOG.md
}

check() { # TAG
    [ "$1" = "v$version" ] || fail "the tag is $1, but Cargo.toml says $version: expected the tag v$version (make version V=...)"
    [ -n "$(notes "$version")" ] || fail "CHANGELOG.md has nothing under a heading \"## [$version]\""
    echo "$1: CHANGELOG.md has $(notes "$version" | grep -c '^- ') entries"
}

gather() { # DIR
    [ ! -e "$1" ] || fail "$1 is there already: expected a folder that can be made"
    [ -d "$target/packages" ] || fail "$target/packages is missing: run make packages first"
    mkdir -p "$1"
    # What belongs to no release (the index of a local proxy) is in folders below it.
    for file in "$target/packages"/*; do
        [ ! -f "$file" ] || cp -p "$file" "$1"
    done
    programs=0
    for program in "$target"/*/dist/ramway; do
        [ -f "$program" ] || continue
        triple=$(basename "$(dirname "$(dirname "$program")")")
        name=ramway-$version-$triple
        rm -rf "${target:?}/$name" && mkdir "$target/$name"
        cp "$program" README.md LICENSE-APACHE LICENSE-MIT "$target/$name"
        # The same bytes whenever it is made.
        (cd "$target" && tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$name") | gzip -n -9 >"$1/$name.tar.gz"
        rm -rf "${target:?}/$name"
        programs=$((programs + 1))
    done
    [ "$programs" -gt 0 ] || fail "there is no static program below $target/TRIPLE/dist: run make dist first"
    python3 scripts/sbom.py "$1/ramway-$version.cdx.json"
    (cd "$1" && sha256sum -- * >../SHA256SUMS.new && mv ../SHA256SUMS.new SHA256SUMS && sha256sum --check --quiet SHA256SUMS)
    echo "$1: $(wc -l <"$1/SHA256SUMS") files and their SHA256SUMS"
}

draft() { # TAG DIR
    check "$1"
    have gh || fail "gh is not on the PATH: https://cli.github.com"
    (cd "$2" && sha256sum --check --quiet SHA256SUMS)
    notes "$version" >"$target/notes.md"
    gh release create "$1" --draft --verify-tag --title "Ramway $version" --notes-file "$target/notes.md" "$2"/*
}

mkdir -p "$target"
case "${1:-}:$#" in
check:2) check "$2" ;;
notes:2) notes "$2" ;;
gather:2) gather "$2" ;;
draft:3) draft "$2" "$3" ;;
*) fail "check TAG, notes VERSION, gather DIR, or draft TAG DIR" ;;
esac
