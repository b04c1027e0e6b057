"""NuGet packages: `nuget.py settle PACKAGE...` and `nuget.py check NUPKG SNUPKG`.

`settle` writes each anew, so that the same contents are the same bytes. `check` fails for what nuget.org would refuse
or warn of: metadata, licence, page, documentation, symbols.
"""

import re
import sys
import zipfile

FIELDS = ("id", "version", "authors", "description", "license", "readme", "projectUrl", "repository", "tags")
CORE = "package/services/metadata/core-properties/ramway.psmdcp"
REPOSITORY = r'<repository [^>]*type="git"[^>]*url="https://[^"]*"[^>]*commit="[0-9a-f]{40}"'
SOURCES = b"raw.githubusercontent.com/ramway/ramway/"


def settle(path: str) -> None:
    """Without the times, and without the numbers that are drawn by chance each time it is packed."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    settled = {}
    for name, data in entries.items():
        if name == "_rels/.rels":
            text = re.sub(r"[0-9a-f]{32}\.psmdcp", "ramway.psmdcp", data.decode("utf-8-sig"))
            pieces = re.split(r'Id="R\w+"', text)
            data = "".join(f'{piece}Id="R{n}"' for n, piece in enumerate(pieces[:-1])).encode() + pieces[-1].encode()
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
    # The NuGet of the SDK that is fetched where there is none knows of no page.
    old = b"NuGet.Build.Tasks.Pack, Version=5.4." in package.read(CORE)
    wanted = [field for field in FIELDS if not (old and field == "readme")]
    found = [f"the .nuspec has no {field}" for field in wanted if not re.search(rf"<{field}[ >]", text)]
    if not re.search(REPOSITORY, text):
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
        # A portable file of symbols begins with BSJB; SourceLink is a text in it that names raw files of the commit.
        elif not (data := symbols.read(pdb)).startswith(b"BSJB") or SOURCES not in data:
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
