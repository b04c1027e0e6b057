#!/bin/sh
# What the release pipeline does with the packages that `make packages` has made. CONTRIBUTING.md, "Releases", has
# what comes before and after.
#
#   sh scripts/release.sh check TAG        the tag, the packages' version and CHANGELOG.md say the same
#   sh scripts/release.sh notes VERSION    that version's part of CHANGELOG.md, as the page of a release shows it
#   sh scripts/release.sh gather DIR       all archives into the new folder DIR, with a list of what they consist of and SHA256SUMS
#   sh scripts/release.sh draft TAG DIR    a draft of a release on GitHub with all of DIR; needs `gh` and GH_TOKEN
#   sh scripts/release.sh central DIR      by the maintainer with the key: signs what the Maven archives in DIR hold, by gpg's default key
#                                          or GPG_KEY's, into NAME-maven-signed.zip, which Central's portal takes
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

fail() { echo "release.sh: $*" >&2; exit 1; }
version=$(sh scripts/version.sh)

entries() { # VERSION
    awk -v heading="## [$1]" 'index($0, heading) == 1 { inside = 1; next } /^## / { inside = 0 } inside' CHANGELOG.md
}
repository=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
# A paragraph or an entry is one line, because a release's page breaks lines where they are broken; links lead to the files of the tag.
notes() { # VERSION
    entries "$1" | awk '
        function put() { if (held != "") print held; held = "" }
        /^```/ { put(); code = !code; print; next }
        code { print; next }
        /^$/ { put(); if (some) print ""; next }
        { some = 1 }
        /^#/ { put(); print; next }
        /^ *[-*] / || held == "" { put(); held = $0; next }
        { sub(/^ +/, ""); held = held " " $0 }
        END { put() }' | sed -E "s,\]\(([^):#]+)\),]($repository/blob/v$1/\1),g"
}

check() { # TAG
    [ "$1" = "v$version" ] || fail "the tag is $1, but Cargo.toml says $version: expected the tag v$version (make version V=...)"
    [ -n "$(entries "$version")" ] || fail "CHANGELOG.md has nothing under a heading \"## [$version]\""
    # Go's module has a tag of its own: without it, it is not released.
    if commit=$(git rev-parse -q --verify "refs/tags/$1^{commit}"); then
        [ "$(git rev-parse -q --verify "refs/tags/bindings/go/$1^{commit}")" = "$commit" ] ||
            fail "the tag bindings/go/$1 is not on the commit of $1: git tag -s bindings/go/$1 $commit, and push it"
    fi
    echo "$1: CHANGELOG.md has $(entries "$version" | grep -c '^- ') entries"
}

# What a release has: for both processors and both C libraries, whichever of them the machine is that made it.
wanted() {
    for crate in ramway-pool ramway ramway-agents ramway-cli ramway-bench; do echo "$crate-$version.crate"; done
    for machine in x86_64 aarch64; do
        echo "ramway-$version-cp311-abi3-manylinux*_$machine.whl" "ramway-$version-cp311-abi3-musllinux*_$machine.whl"
        for python in $(sh bindings/python/pythons.sh --released-free-threaded | tr -d .); do
            for libc in manylinux musllinux; do echo "ramway-$version-cp${python%t}-cp$python-${libc}*_$machine.whl"; done
        done
        echo "ramway-$version-$machine-linux.tar.gz" "ramway-c-$version-$machine-linux-gnu.tar.gz"
    done
    for processor in x64 arm64; do echo "ramway-node-linux-$processor-gnu-$version.tgz" "ramway-node-linux-$processor-musl-$version.tgz"; done
    for arch in amd64 arm64; do echo "ramway_${version}_$arch.deb" "libramway${version%%.*}_${version}_$arch.deb" "libramway-dev_${version}_$arch.deb"; done
    echo "ramway-$version.tar.gz" "ramway-$version.tgz" "ramway-go-$version.zip" "ramway-zig-$version.tar.gz"
    echo "ramway-$version-maven.zip" "ramway-kotlin-$version-maven.zip" "Ramway.$version.nupkg" "Ramway.$version.snupkg"
}

gather() { # DIR
    [ ! -e "$1" ] || fail "$1 is there already: expected a folder that can be made"
    [ -d "$target/packages" ] || fail "$target/packages is missing: run make packages first"
    mkdir -p "$1"
    # What belongs to no release (the index of a local proxy) is in folders below it; npm refuses packages of other platforms where a
    # folder is installed, so that they lie apart. What another version left there is not taken.
    for file in "$target/packages"/*"$version"* "$target/packages/npm-others"/*"$version"*; do
        [ ! -f "$file" ] || cp -p "$file" "$1"
    done
    missing=
    for name in $(set -f && wanted); do
        # shellcheck disable=SC2086
        set -- "$1" "$1"/$name
        [ -f "$2" ] || missing="$missing $name"
    done
    [ -z "$missing" ] || { rm -rf "$1"; fail "$target/packages lacks$missing: run make packages, without QUICK and MACHINES"; }
    sh scripts/sbom.sh "$1"
    sums=$(cd "$1" && sha256sum -- *) && printf '%s\n' "$sums" >"$1/SHA256SUMS" && (cd "$1" && sha256sum --check --quiet SHA256SUMS)
    echo "$1: $(wc -l <"$1/SHA256SUMS") files and their SHA256SUMS"
}

draft() { # TAG DIR
    check "$1"
    have gh || fail "gh is not on the PATH: https://cli.github.com"
    (cd "$2" && sha256sum --check --quiet SHA256SUMS)
    {
        printf '[Start in five minutes](%s/blob/%s/docs/start/README.md) has what to do with the files, by language.\n' "$repository" "$1"
        printf 'What they consist of is in `*.cdx.json`. They are checked by `sha256sum --check --ignore-missing SHA256SUMS`, '
        printf 'and where they were made by `gh attestation verify FILE --repo %s`.\n\n' "${repository#*://*/}"
        notes "$version"
    } >"$target/notes.md"
    prerelease=
    case $1 in *-*) prerelease=--prerelease ;; esac
    # shellcheck disable=SC2086
    gh release create "$1" $prerelease --draft --verify-tag --title "Ramway $version" --notes-file "$target/notes.md" "$2"/*
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
