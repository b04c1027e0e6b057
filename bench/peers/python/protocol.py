"""What `ramway bench` tells a worker and hears from it: version 1 of the protocol of `bench/src/worker.rs`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import Any, Self

VARIABLE = "RAMWAY_BENCH_WORKER"
"""The environment variable that says what this process is to do, as JSON."""
VERSION = 1


class Failure(Exception):
    """What becomes the row's text."""


class _Words:
    @classmethod
    def read(cls, words: dict[str, Any]) -> Self:
        """From JSON; what is not known here is left out."""
        return cls(**{field.name: words[field.name] for field in fields(cls) if field.name in words})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Burst(_Words):
    """How much to do at a stretch."""

    test: str
    """`rtt`, `one-way`, `view` or `call`; `readers`, `latest` or `producers`; there are others, which nothing here can
    do."""
    mode: str
    """How the sides wait (`spin`, `hybrid`, `block`) or publish (`each`, `batch`)."""
    size: int
    """Bytes of a message."""
    smallest: int
    """The same, unless messages are of different sizes."""
    count: int
    """Messages or round trips."""
    group: int
    """Operations that one sample stands for."""
    batch: int
    """Messages that are published together."""
    threads: int = 1
    """Readers (`readers`), writers (`latest`: none, if nothing is written) or producers."""
    gap_ns: int = 0
    """Nanoseconds between two values (`latest`)."""


@dataclass(frozen=True)
class Setup(_Words):
    """What both processes know before they open a mechanism."""

    directory: str
    """In memory, empty at first and nobody else's; removed afterwards."""
    capacity: int
    """Bytes of buffering between the two sides, where that can be chosen."""
    largest: int
    """Bytes of the largest message that will come."""
    cpus: tuple[int | None, int | None]
    """Where the leading and the following process are pinned to."""
    realtime: bool
    """Whether to ask for SCHED_FIFO and locked memory."""


def about(name: str, kind: str, copied: bool, what: str, version: str = "") -> dict[str, Any]:
    """A line of the list: `kind` is `ramway`, `peer` or `by-hand`."""
    python = ".".join(map(str, sys.version_info[:2]))
    return {"name": name, "kind": kind, "copied": copied, "what": f"Python {python}: {what}", "version": version}


def outcome(elapsed_ns: int, operations: int, samples_ns: list[int], both: dict[str, list[int]]) -> dict[str, Any]:
    """What one burst measured; `both` is what the two processes used, the leading one's first."""
    samples = [ns * 1000 for ns in samples_ns]
    whole = {"elapsed_ps": elapsed_ns * 1000, "operations": operations, "samples_ps": samples}
    return {**whole, "allocations": None, "parts": [], **both}
