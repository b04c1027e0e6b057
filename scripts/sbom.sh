#!/bin/sh
# sbom.sh DIR: what each package consists of, as CycloneDX lists, into DIR: the crates, with all that they ask for anywhere; the static
# command, the native modules and the C library, with what is linked into them, by cargo-cyclonedx, from the lock file; Go's module and
# Kotlin's library by the tools of their languages. The others depend on nothing: Java, C#, Zig, and Python and npm but for their native
# modules.
set -eu
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
. scripts/lib.sh
version=$(sh scripts/version.sh)
mkdir -p "$target/tools"
tools=$(cd "$target/tools" && pwd)
# The same list whenever it is made.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH

have cargo-cyclonedx || [ -x "$tools/bin/cargo-cyclonedx" ] || cargo install --quiet --locked --root "$tools" cargo-cyclonedx@0.5.9
PATH=$PATH:$tools/bin:$tools
# It writes a list beside each manifest, and names our own crates by the folder that they are in here.
listed() { # FOLDER [NAME]
    crate=$(sed -n '/^\[package\]/,/^\[/s/^name = "\(.*\)"/\1/p' "$1/Cargo.toml")
    sed -e "s|file://$PWD|file:///ramway|g" -e 's|?download_url=file://[^"#]*||' "$1/$crate.cdx.json" >"$out/${2:-$crate}-$version.cdx.json"
}
lists() { cargo cyclonedx --quiet --format json --spec-version 1.5 --no-build-deps "$@"; }
lists --all-features --target all
for folder in pool core agents/client cli bench; do listed $folder; done
# The same crates are linked for both processors and both C libraries.
lists --target x86_64-unknown-linux-gnu
for folder in capi bindings/node bindings/python; do listed $folder; done
listed cli ramway-command
git ls-files -z --others '*.cdx.json' -- ':!target' | xargs -0 -r rm -f

if have go; then
    have cyclonedx-gomod || [ -x "$tools/cyclonedx-gomod" ] || GOBIN=$tools GOFLAGS= go install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
    (cd bindings/go && cyclonedx-gomod mod -type library -json -licenses -noserial -output "$out/ramway-go-$version.cdx.json")
fi
if JAVA_HOME=$(sh scripts/jdk.sh 2>/dev/null) && have mvn; then
    export JAVA_HOME
    mvn -q -B -f bindings/kotlin/pom.xml -Dramway.build="$tools/kotlin" org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom \
        -DoutputFormat=json -DoutputName=bom -DincludeBomSerialNumber=false
    mv "$tools/kotlin/bom.json" "$out/ramway-kotlin-$version.cdx.json"
fi
python3 - "$version" "$out"/*"-$version.cdx.json" <<'END'
import json, os, sys, time

version, paths = sys.argv[1], sys.argv[2:]
for path in paths:
    made = json.load(open(path))
    assert made["bomFormat"] == "CycloneDX", path
    about = made["metadata"]
    if path.endswith(f"/ramway-go-{version}.cdx.json"):
        # It asks Git for the version, which a shallow clone does not know; takes the time of now; and finds one licence of the two.
        module, was = about["component"], about["component"]["bom-ref"]
        module["version"] = f"v{version}"
        module["purl"] = module["bom-ref"] = f"pkg:golang/{module['name']}@v{version}?type=module"
        module["licenses"] = [{"expression": "Apache-2.0 OR MIT"}]
        module.pop("evidence", None)
        about["timestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
        for edge in made["dependencies"]:
            if edge["ref"] == was:
                edge["ref"] = module["bom-ref"]
        json.dump(made, open(path, "w"), indent=2)
    component = about["component"]
    assert component["version"].removeprefix("v") == version, f"{path}: of version {component['version']}"
    print(f"{path}: {component['purl']}, {len(made.get('components', []))} components")
END
