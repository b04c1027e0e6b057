#!/bin/sh
# Fetches the chart library of the benchmark's page from npm, and checks it against the committed hashes.
#
#   sh scripts/vendor-uplot.sh            the committed version; fails if a hash differs
#   sh scripts/vendor-uplot.sh VERSION    another version; writes its hashes
set -eu
cd "$(dirname "$0")/../bench/src/page/vendor"
committed=$(sed -n 's/.*(https:\/\/github.com\/leeoniya\/uPlot) \([0-9.]*\) .*/\1/p' README.md)
version=${1:-$committed}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# npm checks the archive against the hash that its registry states for the version.
(cd "$work" && npm pack --silent "uplot@$version" >/dev/null && tar xzf "uplot-$version.tgz")
if [ "$version" = "$committed" ]; then
    (cd "$work/package/dist" && cp ../LICENSE . && sha256sum -c --quiet - <"$OLDPWD/SHA256SUMS")
fi
cp "$work/package/dist/uPlot.iife.min.js" "$work/package/dist/uPlot.min.css" "$work/package/LICENSE" .
if [ "$version" != "$committed" ]; then
    sha256sum uPlot.iife.min.js uPlot.min.css LICENSE >SHA256SUMS
    hash=$(sed -n 's/  uPlot.iife.min.js$//p' SHA256SUMS)
    sed -i -e "s/uPlot) $committed /uPlot) $version /" -e "s/^    [0-9a-f]\{64\}  /    $hash  /" README.md
fi
printf 'uPlot %s: %s bytes, as in SHA256SUMS\n' "$version" "$(wc -c <uPlot.iife.min.js)"
