"""The site's pages and links: `site.py pages OUT REFERENCE...` and `site.py links DIR`. scripts/site.sh runs both.

The pages stay where they are in the repository, where their links lead to other pages and to sources. `pages` makes a
tree of those that docs/SUMMARY.md names, for mdBook: a link to another such page stays one, a link to anything else of
the repository becomes one to its host. `links` reads the finished site and fails for every link that leads nowhere.
"""

import functools
import os
import re
import shutil
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = "https://github.com/ramway/ramway"
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
# What API references are called: folder below api/ (the page that it begins with), and what is there.
REFERENCES = {
    "rust": ("ramway/index.html", "Rust: the crate `ramway` with all its features"),
    "rust-pool": ("../rust/ramway_pool/index.html", "Rust: the crate `ramway-pool`"),
    "c": ("index.html", "C and C++: the three headers"),
    "python": ("ramway.html", "Python"),
    "javascript": ("index.html", "JavaScript and TypeScript"),
    "java": ("index.html", "Java"),
    "kotlin": ("index.html", "Kotlin"),
    "go": ("index.html", "Go"),
    "csharp": ("index.html", "C#"),
}


def place(page: str) -> str:
    """Where a page of the repository is in the book: a folder's README is its index."""
    return re.sub(r"README\.md$", "index.md", page)


def with_links(text: str, change) -> str:
    """The text with `change` applied to every link outside of code blocks."""
    lines, code = [], False
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        code ^= fence
        lines.append(line if code or fence else LINK.sub(lambda m: m[1] + change(m[2]) + m[3], line))
    return "\n".join(lines)


def pages(out: Path, references: list[str]) -> None:
    summary = (ROOT / "docs/SUMMARY.md").read_text()
    named = [os.path.normpath(f"docs/{link}") for _, link, _ in LINK.findall(summary)]
    chapters, assets = dict.fromkeys(named), set()

    def target(page: str, link: str) -> str:
        """What a page's link is in the book."""
        own = f"{HOST}/blob/main/"
        if link.startswith(own):
            path, anchor = urllib.parse.urldefrag(link.removeprefix(own))
            if path not in chapters:
                return link
        elif re.match(r"[a-z]+:", link) or link.startswith("#"):
            return link
        else:
            path, anchor = urllib.parse.urldefrag(link)
            path = os.path.normpath(os.path.join(os.path.dirname(page), path))
        anchor = anchor and "#" + anchor
        here = os.path.dirname(place(page)) or "."
        if path in chapters:
            return os.path.relpath(place(path), here) + anchor
        # Pictures, and the benchmark's pages, which the host would show as text.
        if path.endswith((".png", ".svg", ".html")):
            assets.add(path)
            return os.path.relpath(path, here)
        found = ROOT / path
        assert found.exists(), f"{page} links to {link}, which is not there"
        return f"{HOST}/{'tree' if found.is_dir() else 'blob'}/main/{path}{anchor}"

    shutil.rmtree(out, ignore_errors=True)
    for page in chapters:
        text = (ROOT / page).read_text()
        made = out / "src" / place(page)
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(with_links(text, functools.partial(target, page)))
    for asset in assets:
        (out / "src" / asset).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / asset, out / "src" / asset)

    lines = [""]
    for name in references:
        if name == "bench":
            lines.append("- [The benchmark's page](../bench/run/index.html), of a real run of this version")
        else:
            page, what = REFERENCES[name]
            lines.append(f"- [{what}]({os.path.normpath(f'../api/{name}/{page}')})")
    with (out / "src/docs/reference.md").open("a") as reference:
        reference.write("\n".join(lines) + "\n")

    # Where the sources are, their folder is the list.
    decisions = re.findall(r"^ +- \[(\d+\. .*)\]\(adr/(\S+)\)$", summary, re.MULTILINE)
    assert decisions, "docs/SUMMARY.md names no decision below docs/adr"
    with (out / "src" / place("docs/adr/README.md")).open("a") as page:
        page.write("\n" + "".join(f"- [{title}]({name})\n" for title, name in decisions))

    def chapter(match: re.Match) -> str:
        return match[1] + place(os.path.normpath(f"docs/{match[2]}")) + match[3]

    (out / "src/SUMMARY.md").write_text(LINK.sub(chapter, summary))
    shutil.copy(ROOT / "docs/book.toml", out)
    shutil.copy(ROOT / "docs/site.css", out)
    print(f"{len(chapters)} pages, {len(assets)} pictures and other files")


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list) -> None:
        for name, value in attributes:
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)
            elif value and (name == "src" or (name == "href" and tag != "base")):
                self.links.append(value)


def links(site: Path) -> None:
    """Those of the book's own pages. What the references link to among themselves is their tools' concern."""
    read: dict[Path, Page] = {}

    def page(path: Path) -> Page:
        if path not in read:
            read[path] = Page(path.read_text(errors="replace"))
        return read[path]

    checked, wrong = 0, []
    for path in sorted(site.rglob("*.html")):
        below = path.relative_to(site)
        # The page for an address that does not exist is shown at any address, hence its links are not relative;
        # those of a page of the benchmark are to what its script makes.
        made = below.parts[0] == "api" or below.parent in (Path("bench/run"), Path("docs/benchmarks"))
        if made or below.name in ("404.html", "print.html", "toc.html"):
            continue
        for link in page(path).links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if to.is_dir():
                to /= "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not to.is_file() or (anchor and to.suffix == ".html" and anchor not in page(to).anchors):
                wrong.append(f"{below} links to {link}")
    for line in wrong:
        print(line)
    print(f"{checked} links, {len(wrong)} of them lead nowhere")
    # A site whose links were not found would pass for one whose links are right.
    if wrong or checked < 1000:
        sys.exit(1)


match sys.argv[1:]:
    case ["pages", out, *references]:
        pages(Path(out), references)
    case ["links", site]:
        links(Path(site).resolve())
    case _:
        sys.exit(__doc__)
