#!/bin/sh
# What the release pipeline does with the packages that `make packages` has made. CONTRIBUTING.md, "Releases", has
# what comes before and after.
#
#   sh scripts/release.sh check TAG        the tag, the packages' version and CHANGELOG.md say the same
#   sh scripts/release.sh notes VERSION    that version's part of CHANGELOG.md
#   sh scripts/release.sh gather DIR       all archives into the new folder DIR, with a list of what they consist of and SHA256SUMS
#   sh scripts/release.sh draft TAG DIR    a draft of a release on GitHub with all of DIR; needs `gh` and GH_TOKEN
#   sh scripts/release.sh central DIR      by the maintainer with the key: signs what the Maven archives in DIR hold, by gpg's default key
#                                          or GPG_KEY's, into NAME-maven-signed.zip, which Central's portal takes
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

fail() { echo "release.sh: $*" >&2; exit 1; }
version=$(sh scripts/version.sh)

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
    for wanted in "ramway-$version-x86_64-linux.tar.gz" "ramway-$version-aarch64-linux.tar.gz"; do
        [ -f "$1/$wanted" ] || fail "$target/packages has no $wanted: run make packages, without QUICK and MACHINES"
    done
    # npm refuses those of other platforms where a folder is installed, so that they lie apart.
    [ ! -d "$target/packages/npm-others" ] || cp -p "$target/packages/npm-others"/*.tgz "$1"
    sh scripts/sbom.sh "$1"
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

central() { # DIR
    have gpg || fail "gpg is not on the PATH"
    for bundle in "$1"/*-"$version-maven.zip"; do
        [ -f "$bundle" ] || fail "$1 has no NAME-$version-maven.zip"
        signed=$(mktemp -d)
        python3 -m zipfile -e "$bundle" "$signed"
        find "$signed" -type f ! -name '*.md5' ! -name '*.sha1' -exec gpg ${GPG_KEY:+--local-user "$GPG_KEY"} --batch --armor --detach-sign {} ';'
        (cd "$signed" && python3 -m zipfile -c bundle.zip ./*/) && mv "$signed/bundle.zip" "${bundle%.zip}-signed.zip"
        rm -rf "$signed"
        echo "${bundle%.zip}-signed.zip: $(python3 -m zipfile -l "${bundle%.zip}-signed.zip" | grep -c '\.asc ') signatures"
    done
}

mkdir -p "$target"
case "${1:-}:$#" in
check:2) check "$2" ;;
notes:2) notes "$2" ;;
gather:2) gather "$2" ;;
draft:3) draft "$2" "$3" ;;
central:2) central "$2" ;;
*) fail "check TAG, notes VERSION, gather DIR, draft TAG DIR, or central DIR" ;;
esac
