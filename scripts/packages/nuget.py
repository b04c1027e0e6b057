"""NuGet packages: `nuget.py settle PACKAGE...` writes each anew, so that the same contents are the same bytes; `nuget.py check
NUPKG SNUPKG` fails for what nuget.org would refuse or warn of: metadata, licence, page, documentation, symbols."""

import re
import sys
import zipfile


def settle(path: str) -> None:
    """Without the times, and without the numbers that are drawn by chance each time it is packed."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    settled = {}
    for name, data in entries.items():
        if name == "_rels/.rels":
            text = re.sub(r"[0-9a-f]{32}\.psmdcp", "ramway.psmdcp", data.decode("utf-8-sig"))
            ids = iter(range(1, 100))
            data = re.sub(r'Id="R\w+"', lambda _: f'Id="R{next(ids)}"', text).encode()
        settled[re.sub(r"[0-9a-f]{32}\.psmdcp", "ramway.psmdcp", name)] = data
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(settled):
            # The time of a new ZipInfo is fixed.
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, settled[name])


def wrong(package: zipfile.ZipFile, symbols: zipfile.ZipFile) -> list[str]:
    names, symbol_names = package.namelist(), symbols.namelist()
    text = package.read(next(name for name in names if name.endswith(".nuspec"))).decode()
    found = [
        f"the .nuspec has no {field}"
        for field in ("id", "version", "authors", "description", "license", "readme", "projectUrl", "repository", "tags")
        if not re.search(rf"<{field}[ >]", text)
    ]
    if not re.search(r'<repository [^>]*type="git"[^>]*url="https://[^"]*"[^>]*commit="[0-9a-f]{40}"', text):
        found.append("the .nuspec does not say of which commit it is")
    libraries = [name for name in names if re.fullmatch(r"lib/[^/]+/Ramway\.dll", name)]
    if not libraries:
        found.append("there is no lib/FRAMEWORK/Ramway.dll")
    for library in libraries:
        if library.replace(".dll", ".xml") not in names:
            found.append(f"{library} has no documentation")
        pdb = library.replace(".dll", ".pdb")
        if pdb not in symbol_names:
            found.append(f"{pdb} is not among the symbols")
        # A portable file of symbols begins with BSJB; SourceLink is a document in it that names raw files of the commit.
        elif not (data := symbols.read(pdb)).startswith(b"BSJB") or b"raw.githubusercontent.com/ramway/ramway/" not in data:
            found.append(f"{pdb} does not say where its sources are")
    found += [f"{file} is missing" for file in ("README.md", "LICENSE-APACHE", "LICENSE-MIT") if file not in names]
    return found


match sys.argv[1:]:
    case ["settle", *paths]:
        for path in paths:
            settle(path)
    case ["check", package, symbols]:
        problems = wrong(zipfile.ZipFile(package), zipfile.ZipFile(symbols))
        print("\n".join(problems) or "with documentation, symbols and SourceLink")
        sys.exit(bool(problems))
    case _:
        sys.exit(__doc__)
