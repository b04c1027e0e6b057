"""Plain pages of reference: `reference.py csharp XML SOURCES` of what a C# compiler has collected, `reference.py text
TITLE FILE` of a text. The page goes to standard output.

The compiler's list has what is not public too: what the sources call public is shown.
"""

import html
import re
import sys
import xml.etree.ElementTree as Xml
from pathlib import Path

STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; } h3 { margin: 1.5rem 0 0; font-weight: 600; } p, ul, div { margin: .3rem 0; }
@media (prefers-color-scheme: dark) { body { background: #16181d; color: #dde; } a { color: #8bf; } }"""


def page(title: str, body: str) -> str:
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">{viewport}<title>{html.escape(title)}</title><style>{STYLE}</style>'
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{html.escape(title)}</h1>\n{body}</body></html>\n'
    )


def plain(name: str) -> str:
    """`M:Ramway.Bus.Connect(System.String,Ramway.ConnectOptions)` without what a reader knows."""
    name = re.sub(r"^[A-Z]:", "", name).replace("@", "").replace("{", "<").replace("}", ">")
    # The numbers of type parameters; then every name space and outer type.
    name = re.sub(r"`+\d+", "", name)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", name).replace(",", ", ")


def inline(node: Xml.Element) -> str:
    """A comment, as HTML."""
    made = html.escape(node.text or "")
    for child in node:
        target = child.get("cref") or child.get("langword") or child.get("name") or ""
        if child.tag == "see":
            made += f"<code>{html.escape(plain(target.split('(')[0]))}</code>"
        elif child.tag in ("paramref", "typeparamref"):
            made += f"<code>{html.escape(target)}</code>"
        elif child.tag == "para":
            made += f"<p>{inline(child)}</p>"
        elif child.tag == "code":
            made += f"<pre>{inline(child)}</pre>"
        else:
            made += f"<code>{inline(child)}</code>"
        made += html.escape(child.tail or "")
    return made


def public(sources: Path) -> tuple[set[str], set[str]]:
    """The types, and the names of members, that are public; an enum's values are its type's."""
    types: set[str] = set()
    members: set[str] = set()
    for source in sources.rglob("*.cs"):
        text = source.read_text()
        # A constructor has its type's name, and nothing before it.
        declared = r"^\s*public (?:[a-z]+ )*(?:class|struct|interface|enum) (\w+)"
        for name in re.findall(declared, text, re.M):
            types.add(name)
        members.update(f"{name}#ctor" for name in re.findall(r"^\s*public (\w+)\(", text, re.M))
        for kind in re.findall(r"^\s*public (?:[a-z]+ )*delegate .*?(\w+)(?:<\w+>)?\(", text, re.M):
            types.add(kind)
        for body in re.findall(r"public enum \w+[^{]*\{(.*?)\n    \}", text, re.S):
            members.update(re.findall(r"^\s*(\w+)(?: =|,|$)", body, re.M))
        members.update(re.findall(r"^\s*public [^=({;]*?\b(\w+)(?:<[\w, ]+>)?\s*(?:\(|\{|=>|=|;|$)", text, re.M))
        if re.search(r"public interface", text):
            members.update(re.findall(r"^\s{8}[\w<>?\[\], ]+ (\w+)(?:\(|\s*\{)", text, re.M))
    return types, members


def csharp(path: str, sources: str) -> str:
    types, names = public(Path(sources))
    shown: dict[str, list[tuple[str, Xml.Element]]] = {}
    for member in Xml.parse(path).getroot().iter("member"):
        kind, full = member.get("name", "").split(":", 1)
        owner = full.split("(")[0].split(".")
        of, name = (owner[-1], None) if kind == "T" else (owner[-2], owner[-1])
        name = name and re.sub(r"`+\d+", "", name)
        of = re.sub(r"`+\d+", "", of)
        if of not in types or not (name is None or name in names or f"{of}{name}" in names):
            continue
        shown.setdefault(of, []).append(("T" if name is None else name, member))
    body = ["<ul>", *(f'<li><a href="#{name}">{name}</a></li>' for name in sorted(shown)), "</ul>"]
    for of in sorted(shown):
        body.append(f'<h2 id="{of}">{of}</h2>')
        for name, member in sorted(shown[of], key=lambda entry: (entry[0] != "T", entry[0])):
            if name != "T":
                signature = plain(member.get("name", "").replace("#ctor", of))
                body.append(f"<h3><code>{html.escape(signature)}</code></h3>")
            for part in member:
                what = part.get("name") or plain(part.get("cref", ""))
                said = f"<code>{html.escape(what)}</code>: " if part.tag in ("param", "typeparam", "exception") else ""
                if part.tag == "inheritdoc":
                    body.append("<p>As in the type or interface that it is from.</p>")
                else:
                    body.append(f"<div>{said}{inline(part)}</div>")
    assert len(shown) > 20, f"only {len(shown)} public types were found"
    return page("Ramway for .NET", "\n".join(body))


match sys.argv[1:]:
    case ["csharp", path, sources]:
        print(csharp(path, sources), end="")
    case ["text", title, path]:
        print(page(title, f"<pre>{html.escape(Path(path).read_text())}</pre>"), end="")
    case _:
        sys.exit(__doc__)
