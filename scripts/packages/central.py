"""What Maven Central takes: `central.py settle|check REPOSITORY GROUP:ARTIFACT:VERSION`, `central.py bundle ... ZIP`.

`settle` writes the reference's jar anew, so that the same contents are the same bytes: Dokka's has its files' times.
`check` fails for each thing that Central's portal would refuse a release for, but for signatures, which whoever
publishes makes. `bundle` is the archive that the portal is given: the artifact's folder of the repository.
"""

import hashlib
import re
import sys
import xml.etree.ElementTree as Xml
import zipfile
from pathlib import Path

POM = "{http://maven.apache.org/POM/4.0.0}"
# https://central.sonatype.org/publish/requirements/
WANTED = (
    "name",
    "description",
    "url",
    "licenses/license/name",
    "licenses/license/url",
    "developers/developer/name",
    "scm/connection",
    "scm/developerConnection",
    "scm/url",
)


def folder(repository: Path, group: str, artifact: str, version: str) -> Path:
    return repository / group.replace(".", "/") / artifact / version


def wrong(place: Path, group: str, artifact: str, version: str) -> list[str]:
    found: list[str] = []
    stem = f"{artifact}-{version}"
    if version.endswith("-SNAPSHOT"):
        found.append(f"{version} is no release")
    pom = Xml.parse(place / f"{stem}.pom").getroot()
    for field in WANTED:
        if not (pom.findtext(POM + field.replace("/", "/" + POM)) or "").strip():
            found.append(f"{stem}.pom has no {field}")
    for field, value in (("groupId", group), ("artifactId", artifact), ("version", version)):
        if pom.findtext(POM + field) != value:
            found.append(f"{stem}.pom says another {field} than {value}")
    for dependency in pom.iterfind(f"{POM}dependencies/{POM}dependency"):
        if dependency.findtext(POM + "version", "").endswith("-SNAPSHOT"):
            found.append(f"{stem}.pom depends on a snapshot")
    # Of each jar a file that must be in it.
    for suffix, inside in (("", r".*\.class"), ("-sources", r".*\.(java|kt)"), ("-javadoc", r"index\.html")):
        jar = place / f"{stem}{suffix}.jar"
        if not jar.is_file():
            found.append(f"{jar.name} is missing")
            continue
        names = zipfile.ZipFile(jar).namelist()
        if not any(re.fullmatch(inside, name) for name in names):
            found.append(f"{jar.name} has no file {inside}")
        if suffix == "" and not any("LICENSE" in name for name in names):
            found.append(f"{jar.name} has no licence")
    for file in artifacts(place):
        for kind in ("md5", "sha1"):
            stated = Path(f"{file}.{kind}")
            if not stated.is_file():
                found.append(f"{stated.name} is missing")
            elif stated.read_text().split()[0] != hashlib.new(kind, file.read_bytes()).hexdigest():
                found.append(f"{stated.name} is not that of {file.name}")
    return found


def artifacts(place: Path) -> list[Path]:
    return sorted(file for file in place.iterdir() if file.suffix in (".jar", ".pom"))


def settle(place: Path) -> None:
    for jar in place.glob("*-javadoc.jar"):
        with zipfile.ZipFile(jar) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
            # The manifest comes first: readers of a jar as a stream look for it there.
            for name in sorted(entries, key=lambda name: (not name.startswith("META-INF/"), name)):
                # The time of a new ZipInfo is fixed.
                entry = zipfile.ZipInfo(name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, entries[name])
        for kind in ("md5", "sha1"):
            Path(f"{jar}.{kind}").write_text(hashlib.new(kind, jar.read_bytes()).hexdigest())


def bundle(repository: Path, place: Path, out: Path) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in artifacts(place):
            for each in (file, Path(f"{file}.md5"), Path(f"{file}.sha1"), Path(f"{file}.asc")):
                if each.is_file():
                    # The time of a new ZipInfo: the same bytes whenever it is made.
                    entry = zipfile.ZipInfo(str(each.relative_to(repository)))
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, each.read_bytes())


match sys.argv[1:]:
    case ["settle", repository, artifact]:
        settle(folder(Path(repository), *artifact.split(":")))
    case ["check", repository, artifact]:
        coordinates = artifact.split(":")
        problems = wrong(folder(Path(repository), *coordinates), *coordinates)
        print("\n".join(problems) or f"{artifact}: Central would take it, once it is signed")
        sys.exit(bool(problems))
    case ["bundle", repository, artifact, out]:
        bundle(Path(repository), folder(Path(repository), *artifact.split(":")), Path(out))
    case _:
        sys.exit(__doc__)
