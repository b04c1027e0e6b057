"""`sbom.py OUT`: what the published crates and the command consist of, as a CycloneDX list, from the lock file.

The other languages' packages have no dependency beside these but what their own manifests name: `golang.org/x/sys` in
Go, kotlinx-coroutines and kotlin-stdlib in Kotlin.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROOTS = ("ramway", "ramway-pool", "ramway-cli", "ramway-capi", "ramway-node", "ramway-python")


def purl(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def component(package: dict, kind: str = "library") -> dict:
    made = {
        "type": kind,
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package["license"]:
        # Crates of before 2018 write a slash for "or".
        made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    return made


def main(out: str) -> None:
    asked = ["cargo", "metadata", "--locked", "--format-version", "1", "--all-features"]
    found = json.loads(subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in found["packages"]}
    # What is linked: neither what tests need nor what builds.
    needs = {
        node["id"]: [to["pkg"] for to in node["deps"] if any(kind["kind"] is None for kind in to["dep_kinds"])]
        for node in found["resolve"]["nodes"]
    }
    here = set(found["workspace_members"])
    first = [key for key in here if packages[key]["name"] in ROOTS]
    reached, left = set(), list(first)
    while left:
        key = left.pop()
        if key not in reached:
            reached.add(key)
            left += needs[key]
    version = next(packages[key]["version"] for key in first if packages[key]["name"] == "ramway")
    listed = sorted((packages[key] for key in reached), key=purl)
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "library", "bom-ref": "ramway", "name": "Ramway", "version": version}},
        "components": [component(package) for package in listed],
        "dependencies": [{"ref": "ramway", "dependsOn": sorted(purl(packages[key]) for key in first)}]
        + [
            {"ref": purl(package), "dependsOn": sorted({purl(packages[to]) for to in needs[package["id"]]})}
            for package in listed
        ],
    }
    Path(out).write_text(json.dumps(bom, indent=1) + "\n")
    print(f"{out}: {len(listed)} components")


main(*sys.argv[1:])
