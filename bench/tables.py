#!/usr/bin/env python3
"""The tables of docs/benchmarks.md and of the README's figures, in Markdown.

    python3 bench/tables.py TABLE [--program PATH] [--time TIME] [--from REPORT.json [--with LATER.json]] [--write PAGE]

measures the groups of a table (or takes a report that `ramway bench --json` wrote) and prints it, or puts it into a
page. `all` is every table and every aim, of one run; `front` is the README's. The first row has the figures
themselves; in the others is how many times as long an operation takes, the median of the ratios within the rounds,
and what share arrived where messages were lost. A dash: it cannot do that. Where the hypervisor moved the processors
between two placements, all of it is of one of them. An aim that is missed has its reason from `reasons.toml`; one that
has none there is named at the end, and the status is 1.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

# The columns of the two tables of rings.
RINGS = {
    "round trip, 32 B, polling": "rtt-spin",
    "asleep": "rtt-block",
    "32 B each": "one-way-32-each",
    "32 B batched": "one-way-32-batch",
    "64 KiB": "one-way-64K-each",
    "1 MiB": "one-way-1M-each",
}
# Heads of columns and their groups; heads of rows and their mechanisms, of which each group has at most one.
TABLES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "front": (
        RINGS,
        {
            "**Ramway**": "ring",
            "Tachyon": "tachyon",
            "Tachyon, defaults": "tachyon-default",
            "iceoryx2": "iceoryx2",
            "Unix socket": "uds",
        },
    ),
    "rust": (
        RINGS,
        {
            "**Ramway ring**": "ring",
            "Ramway bus": "bus",
            "raw flag": "raw-flag",
            "bare futex": "futex",
            "ring by hand": "hand-ring",
            "Tachyon, polling mode": "tachyon",
            "Tachyon, defaults": "tachyon-default",
            "iceoryx2": "iceoryx2",
            "ipmpsc": "ipmpsc",
            "ipc_ring": "ipc-ring",
            "ipc-channel": "ipc-channel",
            "ZeroMQ": "zmq",
            "gRPC (tonic), a stream": "tonic",
            "Redis": "redis",
            "pipe": "pipe",
            "Unix socket": "uds",
            "TCP": "tcp",
        },
    ),
    "waits": (
        {
            "a wake-up": "wake",
            "each 50 µs, polling a while": "paced-50us",
            "each 50 µs, asleep": "paced-50us-block",
            "each 1 ms, asleep": "paced-1ms-block",
            "32 of 256 B each 1 ms": "bursty",
        },
        {
            "**Ramway ring**": "ring",
            "bare futex": "futex",
            "ring by hand": "hand-ring",
            "Tachyon": "tachyon",
            "iceoryx2": "iceoryx2",
            "ZeroMQ": "zmq",
            "Unix socket": "uds",
        },
    ),
    "python-rings": (
        {
            "round trip, 32 B": "python-rtt-spin",
            "32 B, `for msg in rx`": "python-one-way-32-each",
            "32 B, as many a call as there are": "python-one-way-32-batch",
            "from Rust, `for msg in rx`": "python-from-rust-32-each",
            "from Rust, `recv_array`": "python-from-rust-32-batch",
        },
        {
            "**Ramway**": "ring-python ring-rust-python",
            "the same loop over a list": "list-python",
            "Tachyon": "tachyon-python",
            "iceoryx2": "iceoryx2-python",
            "pyzmq": "zmq-python",
            "`multiprocessing.Pipe`": "pipe-python",
            "`multiprocessing.Queue`": "queue-python",
        },
    ),
    "node": (
        {
            "round trip, asynchronous": "node-rtt-async",
            "round trip, polling in workers": "node-rtt-spin",
            "from Rust, `for await` over messages": "node-one-way-32-each",
            "from Rust, over batches": "node-one-way-32-batch",
            "to Rust, `trySend`": "node-to-rust-32-each",
            "to Rust, `sendBatch`": "node-to-rust-32-batch",
        },
        {
            "**Ramway**": "ring-rust-node ring-node-rust ring-node",
            "the same by `recvIntoSync`": "ring-into-node",
            "no message: the same loop": "list-node",
            "`net`, a Unix socket": "net-node",
            "`MessagePort`": "port-node",
            "zeromq": "zeromq-node",
        },
    ),
    "jvm": (
        {
            "round trip, 32 B, polling": "jvm-rtt-spin",
            "32 B each": "jvm-one-way-32-each",
            "32 B, 32 together": "jvm-one-way-32-batch",
            "from Rust, a Flow in Kotlin": "jvm-from-rust-32-flow",
        },
        {
            "**Ramway in Java**": "ring-java ring-rust-kotlin",
            "the same, unguarded": "ring-unguarded-java",
            "Ramway in Rust": "ring",
            "Aeron IPC": "aeron-java",
            "Aeron, no bounds checks": "aeron-tuned-java",
            "Agrona `OneToOneRingBuffer`": "agrona-java",
            "Agrona, no bounds checks": "agrona-tuned-java",
            "Chronicle Queue": "chronicle-java",
            "a Flow of numbers, no messages": "flow-kotlin",
        },
    ),
    "csharp": (
        {
            "round trip, 32 B, polling": "csharp-rtt-spin",
            "32 B each": "csharp-one-way-32-each",
            "32 B, 32 together": "csharp-one-way-32-batch",
        },
        {"**Ramway in C#**": "ring-csharp", "a topic in C#": "topic-csharp", "Ramway in Rust": "ring"},
    ),
    "go": (
        {
            "round trip, 32 B, polling": "go-rtt-spin",
            "32 B each": "go-one-way-32-each",
            "32 B, 32 together": "go-one-way-32-batch",
        },
        {"**Ramway in Go**": "ring-go", "a topic in Go": "topic-go", "Ramway in Rust": "ring"},
    ),
    "pool": (
        {
            "1 KiB": "pool-get-1K",
            "64 KiB": "pool-get-64K",
            "64 KiB, two threads": "pool-get-64K-2t",
            "64 MiB": "pool-get-64M",
            "1 MiB, dropped by another thread": "pool-pipeline-1M",
            "mixed sizes, 8 threads": "pool-mixed-8t",
        },
        {
            "**Ramway's pool**": "pool",
            "a thread-local stack by hand": "hand-stack",
            "`malloc`": "malloc",
            "`BytesMut`": "bytes",
            "zeropool": "zeropool",
            "zeropool, safe": "zeropool-safe",
            "lifeguard": "lifeguard",
            "opool": "opool",
            "object-pool": "object-pool",
        },
    ),
    "topics": (
        {
            "1 → 1, 32 B": "topic-32-each",
            "1 → 1, 64 KiB": "topic-64K-each",
            "1 → 3, 32 B": "topic-readers-3",
            "1 → 3, 64 KiB": "topic-readers-3-64K",
        },
        {
            "**Ramway topic**, reliable": "topic topic-readers",
            "Ramway ring": "ring",
            "iceoryx2, waiting": "iceoryx2 iceoryx2-readers",
            "ZeroMQ PUB/SUB, defaults": "zmq-pubsub",
            "ZeroMQ PUB/SUB, `XPUB_NODROP`": "zmq-pubsub-nodrop",
            "ZeroMQ PUSH/PULL": "zmq",
            "Redis `PUBLISH`": "redis-pubsub",
            "Redis `PUBLISH`, 32 at a time": "redis-pubsub-pipelined",
            "Redis lists": "redis",
        },
    ),
    "publish": (
        {"publish, 32 B": "topic-publish-32"},
        {
            "**topic, 1 reliable subscriber**": "topic-reliable-1",
            "topic, 8 reliable": "topic-reliable-8",
            "topic, 64 reliable": "topic-reliable-64",
            "topic, none": "topic-alone",
            "topic, 1 lossy": "topic-lossy-1",
            "topic, 8 lossy": "topic-lossy-8",
            "topic, 64 lossy": "topic-lossy-64",
            "iceoryx2, 1": "iceoryx2-1",
            "iceoryx2, 8": "iceoryx2-8",
        },
    ),
    "latest": (
        {
            "64 B, idle writer": "latest-64-idle",
            "64 B, each µs": "latest-64-1us",
            "64 B, full speed": "latest-64-full",
            "4 KiB, each µs": "latest-4K-1us",
            "4 KiB, each 10 µs": "latest-4K-10us",
        },
        {
            "**Ramway topic**, latest": "topic-latest",
            "seqlock by hand": "hand-seqlock",
            "mmap-sync": "mmap-sync",
            "iceoryx2 blackboard": "iceoryx2-blackboard",
            "ZeroMQ `CONFLATE`": "zmq-conflate",
            "Redis `GET`": "redis-get",
        },
    ),
    "select": (
        {
            "round trip, polling": "select-rtt-spin",
            "round trip, asleep": "select-rtt-block",
            "32 B each": "select-32-each",
        },
        {
            "a plain `recv` of one ring": "ring",
            "**`Select`**, 1 ring": "select-1",
            "**`Select`**, 16 rings": "select-16",
            "**`Select`**, 128 rings": "select-128",
            "epoll, 16 pipes": "epoll-16",
            "epoll, 128 pipes": "epoll-128",
            "`zmq_poll`, 16 sockets": "zmq-poll-16",
            "`zmq_poll`, 128 sockets": "zmq-poll-128",
        },
    ),
    "inbox": (
        {
            "10 in turn, 32 B": "inbox-32-each",
            "4 at once, 32 B": "inbox-producers-32",
            "4 at once, 64 KiB": "inbox-producers-64K",
        },
        {
            "**Ramway inbox**": "inbox-10 inbox-4",
            "rings polled by hand": "rings-10 rings-4",
            "iceoryx2, 4 publishers": "iceoryx2-producers",
            "ZeroMQ PUSH/PULL": "zmq-producers",
            "a Redis list": "redis-producers",
        },
    ),
    "python": (
        {
            "1 → 1, 32 B": "topic-python-32",
            "1 → 1, 64 KiB": "topic-python-64K",
            "1 → 3, 32 B": "topic-python-32-readers-3",
            "1 → 3, 64 KiB": "topic-python-64K-readers-3",
            "newest, each 100 µs": "latest-python-64-100us",
            "newest, full speed": "latest-python-64-full",
            "4 → 1, 32 B": "inbox-python-32",
        },
        {
            "**Ramway**": "topic-python topic-latest-python inbox-python",
            "`multiprocessing.Queue`": "queues-python",
            "`multiprocessing.Pipe`": "pipes-python",
            "`shared_memory` and `Lock`": "shared-lock-python",
        },
    ),
    "calls": (
        {
            "32 B, polling": "rpc-spin",
            "polling, then asleep": "rpc-hybrid",
            "asleep at once": "rpc-block",
            "1 KiB back": "rpc-1K",
            "1 MiB back": "rpc-1M",
            "64 under way": "rpc-64",
        },
        {
            "**Ramway RPC**": "rpc",
            "the same, read in place": "rpc-in-place",
            "a message over a bus and one back": "bus",
            "Tachyon's RPC": "tachyon-rpc",
            "iceoryx2's request-response": "iceoryx2-rpc",
            "gRPC (tonic), Unix socket": "tonic-unary",
            "ZeroMQ REQ/REP": "zmq-req",
            "a Unix socket": "uds",
        },
    ),
    "calls-in-languages": (
        {
            "Python": "rpc-in-python",
            "Go": "rpc-in-go",
            "Java": "rpc-in-java",
            "C#": "rpc-in-csharp",
            "Node.js": "rpc-in-node",
        },
        {
            "**Ramway RPC**": "rpc-python rpc-go rpc-java rpc-csharp rpc-node",
            "its handler inline": "rpc-inline-go rpc-inline-java rpc-inline-csharp",
            "its call awaited": "rpc-async-python rpc-async-csharp",
            "the language's gRPC, Unix socket": "grpc-python grpc-go grpc-java grpc-node",
            "the same, awaited": "grpc-aio-python",
            "Rust's Ramway RPC": "rpc",
        },
    ),
}
# The tables of aims: how the names of their bars begin.
AIMS: dict[str, tuple[str, ...]] = {
    "aims-of-rings": ("ring:", "region:"),
    "aims-of-topics": ("topic:", "latest:", "Select:"),
    "aims-of-calls": ("RPC",),
    "aims-of-python": ("Python:",),
    "aims-of-node": ("Node.js:",),
    "aims-of-jvm": ("Java:", "Kotlin:"),
    "aims-of-csharp": ("C#:",),
    "aims-of-go": ("Go:",),
    "aims-of-the-pool": ("Pool:",),
}
# What is said of the run, before the first table of a page.
MACHINE = "machine"
# What is measured together, and what the bars need besides; None: everything is measured.
SETS: dict[str, tuple[list[str], list[str] | None]] = {
    "all": (
        [MACHINE, *(name for name in TABLES if name != "front"), *AIMS],
        None,
    ),
    "rpc": ([MACHINE, "calls", "calls-in-languages", "aims-of-calls"], ["rpc-"]),
}
# Best known for where the hypervisor has put the two processors.
PLACEMENT = "rtt-spin/raw-flag"


def measured(program: str, only: list[str], time: str) -> dict[str, Any]:
    """The report of a run, of everything where `only` is empty."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "run.json"
        wanted = [word for name in only for word in ("--only", name)]
        subprocess.run([program, "--time", time, *wanted, "--json", str(file)], check=True, stdout=subprocess.DEVNULL)
        report: dict[str, Any] = json.loads(file.read_text())
    return report


def in_placement(report: dict[str, Any], wanted: str | None) -> dict[str, Any]:
    """The report as one of a single placement: of two, of this one, or of the one in which more was measured."""
    seen = (report.get("placement") or {}).get("seen", [])
    names = [one["placement"] for one in seen]
    if wanted and wanted not in names:
        raise SystemExit(f"the run did not see {wanted}, but {', '.join(names) or 'no placement'}")
    if len(seen) < 2:
        return report
    chosen = wanted or max(seen, key=lambda one: one["probes"])["placement"]
    groups = {group["id"]: [one["placement"] for one in group.get("placements", [])] for group in report["groups"]}
    rows = []
    for row in report["rows"]:
        of = groups[row["group"]]
        apart = {one["placement"]: one["figures"] for one in row.get("apart", [])}
        figures = apart.get(chosen) if len(of) > 1 else row["figures"] if not of or of == [chosen] else None
        if row["failure"] or figures:
            rows.append({**row, "figures": figures})
    bars = [bar for bar in report["bars"] if bar.get("placement", chosen) == chosen]
    placement = {**report["placement"], "seen": [one for one in seen if one["placement"] == chosen]}
    return {**report, "rows": rows, "bars": bars, "placement": placement}


def renewed(report: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    """The report with a later one's whole groups and its aims in place of its own. No group has rows of both."""
    missing = {row["id"] for row in report["rows"]} - {row["id"] for row in later["rows"]}
    partial = {row.split("/")[0] for row in missing}
    new = {group["id"] for group in later["groups"]} - partial
    bars = {(bar["what"], bar["bar"]): bar for bar in later["bars"] if bar["met"] is not None}
    kept = {group["id"] for group in report["groups"]} - new
    return {
        **report,
        "groups": [one for part, ids in ((report, kept), (later, new)) for one in part["groups"] if one["id"] in ids],
        "rows": [one for part, ids in ((report, kept), (later, new)) for one in part["rows"] if one["group"] in ids],
        # Those that the earlier run did not know yet come last.
        "bars": [bars.pop((bar["what"], bar["bar"]), bar) for bar in report["bars"]] + list(bars.values()),
    }


def by_round(figures: dict[str, Any]) -> dict[int, float]:
    """The median of each round, by its number."""
    numbers = figures.get("rounds") or range(len(figures["rounds_ns"]))
    return dict(zip(numbers, figures["rounds_ns"], strict=True))


def shown(ns: float) -> str:
    """A time."""
    unit, of = next((unit, of) for unit, of in (("ns", 1.0), ("µs", 1e3), ("ms", float("inf"))) if ns < 1000 * of)
    value = ns / min(of, 1e6)
    return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"


def figure(group: dict[str, Any], figures: dict[str, Any]) -> str:
    """What a row has measured: a rate where it is a stream, else a time."""
    if group["test"] in ("one-way", "readers", "producers"):
        if group["size"] >= 4096:
            return f"{figures['ops_per_s'] * group['size'] / 1e9:.3g} GB/s"
        rate = figures["ops_per_s"]
        return f"{rate / 1e6:.3g} M msg/s" if rate >= 1e6 else f"{rate / 1e3:.3g} k msg/s"
    return shown(figures["ns"]["p50"])


def times(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """How many times as long, and what was lost."""
    a, b = by_round(ours), by_round(theirs)
    common = [b[number] / a[number] for number in a if number in b]
    if not common:
        return "no round in common" + lost(theirs)
    ratio = statistics.median(common)
    text = f"{ratio:.2f}×" if ratio < 10 else f"{ratio:,.0f}×"
    return text + lost(theirs)


def lost(figures: dict[str, Any]) -> str:
    """The share that arrived, where it is not all."""
    share = dict(figures["ratios"]).get("received / sent", 1.0)
    return "" if share > 0.9995 else f", {100 * share:.2g} % arrive"


def table(report: dict[str, Any], name: str) -> str:
    """A table in Markdown."""
    groups, mechanisms = TABLES[name]
    known = {group["id"]: group for group in report["groups"]}
    rows = {row["id"]: row for row in report["rows"]}
    heads = [f"| {' | '.join(['', *groups])} |", f"| --- |{' ---: |' * len(groups)}"]
    ours: dict[str, dict[str, Any]] = {}
    for label, names in mechanisms.items():
        cells = []
        for group in groups.values():
            found = [rows[one] for mechanism in names.split() if (one := f"{group}/{mechanism}") in rows]
            figures = found[0]["figures"] if found else None
            if figures is None:
                cells.append("failed" if found else "–")
            elif group not in ours and label == next(iter(mechanisms)):
                ours[group] = figures
                cells.append(figure(known[group], figures) + lost(figures))
            elif group in ours:
                cells.append(times(ours[group], figures))
            else:
                cells.append(figure(known[group], figures) + lost(figures))
        heads.append(f"| {' | '.join([label, *cells])} |")
    return "\n".join(heads)


def reasons() -> list[dict[str, str]]:
    """Why an aim is missed: for each `what`, and `aim` where one has several, the `why`."""
    found: list[dict[str, str]] = tomllib.loads((Path(__file__).parent / "reasons.toml").read_text())["missed"]
    return found


def aims(report: dict[str, Any], called: tuple[str, ...], known: list[dict[str, str]], without: list[str]) -> str:
    """The bars that are called so; those that are missed for no known reason are added to `without`."""
    lines = ["| what | aim | measured | |", "| --- | --- | ---: | --- |"]
    for bar in report["bars"]:
        if not bar["what"].startswith(called):
            continue
        verdict = {True: "met", False: "**missed**", None: ""}[bar["met"]]
        if bar["met"] is False:
            why = [one["why"] for one in known if one["what"] == bar["what"] and one.get("aim", "") in bar["bar"]]
            if why:
                verdict += f": {why[0]}"
            else:
                without.append(f"{bar['what']}: {bar['bar']}, measured {bar['measured']}")
        lines.append(f"| {bar['what']} | {bar['bar']} | {bar['measured']} | {verdict} |")
    return "\n".join(lines)


def placed(report: dict[str, Any]) -> str:
    """Where the two processors were, and what else ran."""
    machine = report["machine"]
    text = f"Measured on {machine['cpus']} processors of {machine['cpu']}, Linux {machine['kernel'].split('-')[0]}"
    text += f", load before the run {machine['load']:.1f}"
    for seen in (report.get("placement") or {}).get("seen", []):
        where = {"near": "while they were near each other", "far": "while they were far from each other"}
        when = where.get(seen["placement"], "in the one placement that the run saw")
        text += f"; {when}: a word there and back between the two that are used, polled, took"
        return f"{text} {shown(seen['flag_ns'])}."
    return f"{text}."


def written(page: str, tables: dict[str, str]) -> str:
    """The page with these tables in place of the old ones."""
    for name, text in tables.items():
        # With the lines that an earlier run has put there, if one has.
        old = re.compile(rf"(<!-- bench/tables\.py {name} -->\n\n)((?:\|.*\n|Measured on .*\n)*)")
        found = old.search(page)
        if not found:
            raise SystemExit(f"the page has no place for the table {name}: <!-- bench/tables.py {name} -->")
        rest = "" if found[2] else "\n"
        page = f"{page[: found.start()]}{found[1]}{text}\n{rest}{page[found.end() :]}"
    return page


def main() -> int:
    """Gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=[*dict.fromkeys([*SETS, *TABLES, *AIMS])])
    parser.add_argument("--program", default="target/release/ramway-bench", help="ramway-bench")
    parser.add_argument("--time", default="6s", help="for each group")
    parser.add_argument("--from", dest="report", type=Path, help="measure nothing")
    later = "groups that a later run measured anew"
    parser.add_argument("--with", dest="later", type=Path, action="append", default=[], help=later)
    parser.add_argument(
        "--placement", choices=["near", "far", "one"], help="where a run saw two [the one it saw more of]"
    )
    parser.add_argument("--write", type=Path, help="put the tables into this page, each after its comment")
    parser.add_argument("--keep", type=Path, help="write the report there")
    args = parser.parse_args()
    wanted, besides = SETS.get(args.table, ([args.table], []))
    if args.report:
        report = json.loads(args.report.read_text())
    else:
        only = [group for name in wanted if name in TABLES for group in TABLES[name][0].values()]
        rows = [] if besides is None else [*dict.fromkeys([*only, *besides]), PLACEMENT]
        report = measured(args.program, rows, args.time)
    if args.keep:
        args.keep.write_text(json.dumps(report))
    report = in_placement(report, args.placement)
    for file in args.later:
        report = renewed(report, in_placement(json.loads(file.read_text()), None))
    known, without = reasons(), list[str]()
    tables = {}
    for name in wanted:
        if name == MACHINE:
            tables[name] = placed(report)
        elif name in AIMS:
            tables[name] = aims(report, AIMS[name], known, without)
        else:
            tables[name] = table(report, name)
    if MACHINE not in tables:
        print(placed(report), file=sys.stderr)
    if args.write:
        args.write.write_text(written(args.write.read_text(), tables))
    else:
        print("\n".join(f"## {name}\n\n{text}\n" for name, text in tables.items()))
    for bar in without:
        print(f"missed, and bench/reasons.toml does not say why: {bar}", file=sys.stderr)
    return 1 if without else 0


if __name__ == "__main__":
    sys.exit(main())
