#!/usr/bin/env python3
"""The pages of docs/benchmarks: those of one report, a page for each family of groups, because a whole one has megabytes.

    python3 bench/pages.py RUN.json [--program PATH] [--into docs/benchmarks]

RUN.json is what `ramway bench --full --json RUN.json` wrote. The pages are what `ramway bench --html` writes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

# A page's name, and how the groups begin that are on it; a group is on the first page that has it.
PAGES: dict[str, tuple[str, ...]] = {
    "python": ("python-", "topic-python-", "latest-python-", "inbox-python-"),
    "node": ("node-",),
    "jvm": ("jvm-",),
    "csharp": ("csharp-",),
    "go": ("go-",),
    "rpc": ("rpc-",),
    "topics": ("topic-", "latest-"),
    "select": ("select-", "inbox-"),
    "pool": ("pool-", "access-"),
    "round-trips": ("rtt-",),
    "large-streams": ("one-way-4K", "one-way-64", "one-way-1M", "one-way-mixed"),
    "streams": ("one-way-",),
    "work": ("work-",),
    "waits": ("",),
}
# Of a file in the repository, in bytes.
MOST = 1_000_000


def main() -> int:
    """Gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--program", default="target/release/ramway-bench", help="ramway-bench")
    parser.add_argument("--into", type=Path, default=Path("docs/benchmarks"), help="a directory")
    args = parser.parse_args()
    groups: dict[str, list[str]] = {}
    for group in json.loads(args.report.read_text())["groups"]:
        page = next(page for page, begins in PAGES.items() if group["id"].startswith(begins))
        groups.setdefault(page, []).append(group["id"])
    args.into.mkdir(parents=True, exist_ok=True)
    too_large = []
    for page, names in groups.items():
        file = args.into / f"{page}.html"
        command = [args.program, "--from", str(args.report), "--only", ",".join(names), "--html", str(file)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        size = file.stat().st_size
        print(f"{file}: {len(names)} groups, {size / 1e3:.0f} kB")
        if size > MOST:
            too_large.append(str(file))
    for name in too_large:
        print(f"{name} is larger than {MOST} bytes: give some of its groups a page of their own", file=sys.stderr)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
