# What a proxy of modules serves: the archive has the files that Git tracks, below the module's name and version.
# shellcheck shell=sh disable=SC2154
module=github.com/ramway/ramway/bindings/go
pack_go() {
    rm -rf "$packages/go" && mkdir -p "$packages/go/$module/@v" &&
        python3 - "$module" "v$version" "$packages" <<'END'
import json, subprocess, sys, zipfile
from pathlib import Path

module, version, packages = sys.argv[1:]
served = Path(packages, "go", module, "@v")
source = Path("bindings/go")
# A vendored folder or another module below it belongs to no archive.
names = subprocess.run(["git", "ls-files", "-z", source], check=True, capture_output=True, text=True).stdout.split("\0")
with zipfile.ZipFile(served / f"{version}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for name in sorted(filter(None, names)):
        entry = zipfile.ZipInfo(f"{module}@{version}/{Path(name).relative_to(source)}")
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, Path(name).read_bytes())
(served / f"{version}.mod").write_bytes((source / "go.mod").read_bytes())
(served / f"{version}.info").write_text(json.dumps({"Version": version}))
(served / "list").write_text(version + "\n")
END
    cp "$packages/go/$module/@v/v$version.zip" "$packages/ramway-go-$version.zip"
}
try_go() (
    mkdir -p "$tmp/go" && block docs/start/go.md go >"$tmp/go/main.go" && cd "$tmp/go" &&
        GOPROXY="file://$packages/go,$(go env GOPROXY)" GONOSUMDB="github.com/ramway/*" GOMODCACHE="$tmp/modules" GOFLAGS=-mod=mod &&
        export GOPROXY GONOSUMDB GOMODCACHE GOFLAGS &&
        go mod init hello && go get "$module@v$version" && go build -o hello . &&
        both 'message 2' 'timeout 60 ./hello send' 'timeout 60 ./hello receive'
)
package_go() {
    if ! have go; then absent "go" "go is not on the PATH"; return; fi
    pack "go: module" pack_go && try "go: the first program" try_go
}
