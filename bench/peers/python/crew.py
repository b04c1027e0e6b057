"""One to many and many to one between Python processes, a process for each: tests `readers`, `latest` and `producers`.

The leading process is the publisher, the writer or the first producer. What the processes share is made by it, before
they are started, and travels with their arguments, as `multiprocessing` has it. One reader has the other processor;
several run where the scheduler puts them, and so do all producers and their reader.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any
from zlib import adler32

import ends
import usage
from protocol import Burst, Failure, Setup, outcome

if TYPE_CHECKING:
    from collections.abc import Buffer

TESTS = ("readers", "latest", "producers")
DAMAGED = "the bytes received are not the bytes sent"


class Part:
    """One process's end: a publisher, one of the readers, a producer."""

    def begin(self, readers: int) -> None:
        """A sender, before the first burst: waits until so many readers are there, where it must."""

    def send(self, messages: Iterable[bytes]) -> None:
        """Sends each of them."""
        raise NotImplementedError

    def receive(self, count: int) -> Iterable[Buffer]:
        """The next so many messages."""
        raise NotImplementedError

    def newest(self) -> Buffer:
        """The newest value; there is one."""
        raise NotImplementedError

    def close(self) -> None:
        """Gives everything back."""


class Mechanism(ABC):
    """A way from one process to many, or from many to one."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What the list says."""

    @abstractmethod
    def can(self, burst: Burst) -> bool:
        """Whether it can do this at all. What it cannot is no row."""

    def share(self, setup: Setup, burst: Burst) -> Any:
        """What all processes get."""
        return None

    @abstractmethod
    def sender(self, setup: Setup, burst: Burst, shared: Any, index: int) -> Part:
        """The publisher's or writer's end, or that of a producer; `index` is its number."""

    @abstractmethod
    def receiver(self, setup: Setup, burst: Burst, shared: Any, index: int) -> Part:
        """A reader's end; `index` is its number."""


@dataclass(frozen=True)
class Half:
    """What one process did in a burst."""

    samples: list[int]
    ended: int
    used: usage.Used


@lru_cache(maxsize=4)
def checks(size: int) -> dict[int, int]:
    """The check of each message, by which a reader knows that it has a whole one."""
    return {adler32(message): at for at, message in enumerate(ends.pool(size))}


@lru_cache(maxsize=64)
def total(size: int, count: int) -> int:
    """The sum of the checks of the first so many messages."""
    of = list(checks(size))
    return sum(of) * (count // len(of)) + sum(of[: count % len(of)])


def shares(burst: Burst) -> list[int]:
    """How many messages each producer sends."""
    return [burst.count // burst.threads + (at < burst.count % burst.threads) for at in range(burst.threads)]


def reads(part: Part, burst: Burst) -> int:
    """Reads a stream from one publisher, in order."""
    check = ends.BEGIN
    for message in part.receive(burst.count):
        check = adler32(message, check)
    return check


def gathers(part: Part, burst: Burst) -> int:
    """Reads streams from several producers, in whatever order they come."""
    check = 0
    for message in part.receive(burst.count):
        check += adler32(message)
    return check


def looks(part: Part, burst: Burst) -> list[int]:
    """Reads the newest value; gives when each group of times began, and the end."""
    newest, known, stamps = part.newest, checks(burst.size), [ends.now()]
    groups = [burst.group] * (burst.count // burst.group) + [burst.count % burst.group]
    for group in groups:
        for _ in range(group):
            if adler32(newest()) not in known:
                raise Failure(DAMAGED)
        stamps.append(ends.now())
    # The last group is a shorter one.
    return stamps[:-1]


def receiving(part: Part, burst: Burst, turns: ends.Turns) -> tuple[Callable[[], list[int]], Callable[[], None]]:
    """A reader's half of a burst, ready to be run: it gives samples. The second part verifies."""
    found: list[int] = []
    if burst.test == "latest":
        checks(burst.size)

        def look() -> list[int]:
            # The first value of the burst.
            turns.wait_for(0, 0)
            stamps = looks(part, burst)
            turns.say(1, 0)
            return [after - before for before, after in pairwise(stamps)]

        return look, lambda: None

    def read() -> list[int]:
        found.append(reads(part, burst) if burst.test == "readers" else gathers(part, burst))
        return []

    def verify() -> None:
        size, count = burst.size, burst.count
        wanted = (
            ends.expected(size, count) if burst.test == "readers" else sum(total(size, one) for one in shares(burst))
        )
        if found[-1] != wanted:
            raise Failure(DAMAGED)

    return read, verify


def sending(part: Part, burst: Burst, turns: ends.Turns, index: int) -> Callable[[], list[int]]:
    """A sender's half of a burst, ready to be run."""
    if burst.test == "latest":

        def write() -> list[int]:
            values = ends.pool(burst.size)
            part.send(values[:1])
            turns.say(0, 0)
            if burst.threads == 0:
                turns.wait_for(1, 0)
                return []
            at, due = 1, ends.now()
            while not turns.has(1, 0):
                if burst.gap_ns:
                    while ends.now() < due:
                        pass
                    # Not made up for: a writer that lost its processor does not write faster afterwards.
                    due = ends.now() + burst.gap_ns
                part.send(values[at : at + 1])
                at = (at + 1) % len(values)
            return []

        return write
    count = burst.count if burst.test == "readers" else shares(burst)[index]
    messages = list(islice(ends.messages(burst.size, count), count))

    def stream() -> list[int]:
        part.send(messages)
        return []

    return stream


class Crew:
    """The leading process's end, and all others."""

    def __init__(self, module: str, mechanism: Mechanism, setup: Setup, burst: Burst) -> None:
        name = mechanism.about()["name"]
        self._several = burst.test == "producers" or burst.threads > 1
        usage.settle(None if burst.test == "producers" else setup.cpus[0], setup.realtime)
        self._readers = burst.threads if burst.test == "readers" else 1
        producers = burst.threads if burst.test == "producers" else 1
        shared = mechanism.share(setup, burst)
        # The reader first: its processor times are the following process's.
        roles = [("receives", at) for at in range(self._readers)] + [("sends", at) for at in range(1, producers)]
        self._roles = [role for role, _ in roles]
        self._turns = ends.Turns(setup)
        context = multiprocessing.get_context("spawn")
        self._controls: list[Connection] = []
        self._others: list[Any] = []
        self._ending = False
        cpu = None if self._several else setup.cpus[1]
        for role, index in roles:
            ours, theirs = context.Pipe()
            told = (os.getpid(), module, name, setup, burst, shared, role, index, cpu, theirs)
            other = context.Process(target=follow, args=told, daemon=True)
            other.start()
            theirs.close()
            self._controls.append(ours)
            self._others.append(other)
        threading.Thread(target=self._watch, daemon=True).start()
        self._part = mechanism.sender(setup, burst, shared, 0)
        for control in self._controls:
            self._heard(control)
        self._part.begin(self._readers)
        self.pids = [os.getpid(), *(other.pid for other in self._others)]

    def _watch(self) -> None:
        # A leading process may wait for one that will never come again.
        wait([other.sentinel for other in self._others])
        if not self._ending:
            os.write(1, b'{"failed": "the second process died"}\n')
            os._exit(1)

    def _heard(self, control: Connection) -> Any:
        heard = control.recv()
        if isinstance(heard, str):
            raise Failure(heard)
        return heard

    def _tell(self, what: Any) -> None:
        for control in self._controls:
            control.send(what)

    def burst(self, words: dict[str, Any]) -> dict[str, Any]:
        """Does it; gives the outcome."""
        burst = Burst.read(words)
        self._turns.begin()
        run = sending(self._part, burst, self._turns, 0)
        usage.forget_peak()
        self._tell(burst)
        for control in self._controls:
            self._heard(control)
        used, began = usage.Usage(), ends.now()
        self._tell(None)
        samples = run()
        own = Half(samples, ends.now(), used.end())
        halves: list[Half] = [self._heard(control) for control in self._controls]
        ended = max(half.ended for half in (own, *halves))
        sides = [[own], list[Half]()]
        for role, half in zip(self._roles, halves, strict=True):
            sides[role == "receives"].append(half)
        both = {name: [sum(getattr(half.used, name) for half in side) for side in sides] for name in vars(own.used)}
        samples = [ns for half in (own, *halves) for ns in half.samples]
        done = outcome(ended - began, burst.count, samples, both)
        done["ratios"] = self._shares(burst, began, sides)
        return done

    def _shares(self, burst: Burst, began: int, sides: list[list[Half]]) -> list[tuple[str, float]]:
        """How fast the slowest of several readers was, by the mean. No producer knows when its last message is read."""
        if burst.test != "readers" or burst.threads < 2:
            return []
        rates = [1 / max(half.ended - began, 1) for half in sides[1]]
        return [("slowest reader / mean", min(rates) * len(rates) / sum(rates))]

    def stop(self) -> None:
        """Ends the other processes in an orderly way."""
        self._ending = True
        self._tell("quit")
        for other in self._others:
            other.join()
        self._part.close()
        if any(other.exitcode != 0 for other in self._others):
            raise Failure("one of the other processes failed")


def follow(
    parent: int,
    module: str,
    name: str,
    setup: Setup,
    burst: Burst,
    shared: Any,
    role: str,
    index: int,
    cpu: int | None,
    control: Connection,
) -> None:
    """The whole of another process."""
    # Here, because the worker knows this module.
    from worker import find

    usage.die_with(parent)
    try:
        usage.settle(cpu, setup.realtime)
        mechanism = find(module, name)
        if not isinstance(mechanism, Mechanism):
            raise Failure(f"{name} is between two processes only")
        open_part = mechanism.receiver if role == "receives" else mechanism.sender
        part, turns = open_part(setup, burst, shared, index), ends.Turns(setup)
        control.send(None)
        while isinstance(told := control.recv(), Burst):
            control.send(half(part, told, turns, role, index, control))
        part.close()
    except Exception as cause:
        control.send(str(cause) or type(cause).__name__)
        raise


def half(part: Part, burst: Burst, turns: ends.Turns, role: str, index: int, control: Connection) -> Half:
    """Another process's half of a burst."""
    if role == "receives":
        run, verify = receiving(part, burst, turns)
    else:
        run, verify = sending(part, burst, turns, index), lambda: None
    usage.forget_peak()
    control.send(None)
    control.recv()
    used = usage.Usage()
    samples = run()
    done = Half(samples, ends.now(), used.end())
    verify()
    return done
