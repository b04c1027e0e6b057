"""No message at all: the receiver's loop over messages that it has already. What Ramway or another library is above
this is the library's; the rest is the interpreter's own."""

from __future__ import annotations

import os
from typing import Any

import ends
import usage
from protocol import Burst, Setup, about, outcome


class Loop:
    """One process, which receives what it has."""

    def __init__(self, setup: Setup) -> None:
        usage.settle(setup.cpus[1], setup.realtime)
        self.pids = [os.getpid()]

    def burst(self, words: dict[str, Any]) -> dict[str, Any]:
        """Does it; gives the outcome."""
        burst = Burst.read(words)
        arrivals: list[bytes] = list(ends.messages(burst.size, burst.count))
        if burst.mode == "batch":
            together, whole = burst.batch * burst.size, b"".join(arrivals)
            arrivals = [whole[at : at + together] for at in range(0, len(whole), together)]
        usage.forget_peak()
        used, began = usage.Usage(), ends.now()
        check = ends.read_each(arrivals)
        ended = ends.now()
        both = {name: [0, value] for name, value in vars(used.end()).items()}
        ends.verify(check, burst.size, burst.count)
        return outcome(ended - began, burst.count, [], both)

    def stop(self) -> None:
        """There is nothing to end."""


class List(ends.Mechanism):
    """A list in the receiving process."""

    def about(self) -> dict[str, Any]:
        return about("list-python", "by-hand", False, "the receiver's loop over a list of bytes: no message at all")

    def can(self, burst: Burst) -> bool:
        return burst.test == "one-way" and burst.smallest == burst.size

    def pair(self, setup: Setup, burst: Burst) -> ends.Pair:
        return Loop(setup)


MECHANISMS = [List()]
