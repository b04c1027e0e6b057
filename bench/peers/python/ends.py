"""What a mechanism is in Python: an end in each of two processes, and the loops over it.

Every message is one of `POOL`, in order and from its beginning in each burst: 64-bit words that differ from message to
message, as in the other rows. They are made before what is measured begins: here, making one takes as long as sending
it. The receiver reads every byte with `zlib.adler32`, one call for each message (for an array of messages, one call),
which is the cheapest way that Python has to read all of a small buffer; it takes bytes and every other buffer, and
its running value at the end says whether anything was lost, repeated, exchanged or damaged.
"""

from __future__ import annotations

import mmap
import struct
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import cycle, islice, pairwise
from typing import TYPE_CHECKING, Any, Protocol
from zlib import adler32

from protocol import Burst, Failure, Setup

if TYPE_CHECKING:
    from collections.abc import Buffer

    from numpy.typing import NDArray

POOL = 4096
"""How many messages differ. A power of two, which `bench/src/sender.rs` knows too."""
BEGIN = 1
"""What `adler32` begins with."""

now = time.perf_counter_ns
"""CLOCK_MONOTONIC: the same in both processes."""


@lru_cache(maxsize=4)
def pool(size: int) -> Sequence[bytes]:
    """The messages of this size: message n is the 64-bit words n, n + 1, …"""
    words = struct.Struct(f"<{size // 8}Q")
    return [words.pack(*range(n, n + size // 8)) for n in range(POOL)]


def messages(size: int, count: int) -> Iterator[bytes]:
    """The messages of a burst."""
    return islice(cycle(pool(size)), count)


@lru_cache(maxsize=64)
def expected(size: int, count: int) -> int:
    """What reading `count` messages comes to."""
    check = BEGIN
    for message in messages(size, count):
        check = adler32(message, check)
    return check


def verify(check: int, size: int, count: int) -> None:
    """Raises if that is not what was read."""
    if check != expected(size, count):
        raise Failure("the bytes received are not the bytes sent")


def grouped(of: Iterable[bytes], size: int) -> list[list[bytes]]:
    """In lists of `size`, the last one shorter."""
    left = iter(of)
    return list(iter(lambda: list(islice(left, size)), []))


def ping(send: Callable[[bytes], object], receive: Callable[[], Buffer], groups: list[list[bytes]]) -> list[int]:
    """Round trips. Gives when each group of them began, when the last one ended, and what was read."""
    check, stamps = BEGIN, [now()]
    for group in groups:
        for message in group:
            send(message)
            check = adler32(receive(), check)
        stamps.append(now())
    return [*stamps, check]


def echo(send: Callable[[bytes], object], receive: Callable[[], Buffer], answers: Iterable[bytes]) -> int:
    """The other side of `ping`."""
    check = BEGIN
    for answer in answers:
        check = adler32(receive(), check)
        send(answer)
    return check


def send_each(send: Callable[[bytes], object], of: Iterable[bytes]) -> None:
    """A stream, one message after the other."""
    for message in of:
        send(message)


def read_each(arriving: Iterable[Buffer]) -> int:
    """Reads what comes."""
    check = BEGIN
    for message in arriving:
        check = adler32(message, check)
    return check


class End:
    """One side of a mechanism. What it is given is made before what is measured begins."""

    def wait_like(self, mode: str) -> None:
        """How this side waits from now on."""

    def ping(self, groups: list[list[bytes]]) -> list[int]:
        """As `ping`."""
        raise NotImplementedError

    def echo(self, answers: Iterable[bytes]) -> int:
        """As `echo`."""
        raise NotImplementedError

    def send(self, groups: list[Any]) -> None:
        """A stream of what `parcels` made of it."""
        raise NotImplementedError

    def receive(self, burst: Burst) -> int:
        """Reads a stream; gives what that came to."""
        raise NotImplementedError

    def parcels(self, burst: Burst) -> list[Any]:
        """The messages of a stream as `send` wants them: in lists that are published together, or all in one."""
        together = burst.batch if burst.mode == "batch" else burst.count
        return grouped(messages(burst.size, burst.count), together)

    def show(self, size: int, n: int) -> None:
        """Test `view`: makes what the other side will look at, and sends it."""
        raise NotImplementedError

    def look(self, size: int, n: int, wait: Callable[[], None]) -> tuple[int, NDArray[Any]]:
        """Test `view`: how long it took to have it as an array, and the array. `wait` polls until it was sent, for an
        end that cannot tell."""
        raise NotImplementedError

    def calls(self, groups: list[list[bytes]]) -> list[int]:
        """Test `call`: a call for each message, whose reply is what was sent. Gives as `ping` does."""
        raise NotImplementedError

    def serve(self, count: int) -> Callable[[], None]:
        """The other side of `calls`: answers this number of calls. The function that it returns waits until all are
        answered."""
        raise NotImplementedError

    def close(self) -> None:
        """Gives everything back."""


class Turns:
    """Whose turn it is, in a file that both sides map, for tests in which a message is not what says so. Both sides
    poll: a process that slept would measure how its caches fill again."""

    def __init__(self, setup: Setup) -> None:
        with open(f"{setup.directory}/turns", "a+b") as file:
            file.truncate(mmap.PAGESIZE)
            self._said = mmap.mmap(file.fileno(), mmap.PAGESIZE)

    def say(self, side: int, n: int) -> None:
        """This side has done what it does the n-th time, n from 0 on."""
        self._said[64 * side] = n % 255 + 1

    def wait_for(self, side: int, n: int) -> None:
        """Until that side has."""
        said, at, is_said = self._said, 64 * side, n % 255 + 1
        while said[at] != is_said:
            pass

    def has(self, side: int, n: int) -> bool:
        """Whether that side has."""
        return self._said[64 * side] == n % 255 + 1

    def begin(self) -> None:
        """Nothing is said yet: before either side of a burst begins."""
        self._said[0] = self._said[64] = 0


class Pair(Protocol):
    """Two processes that a mechanism starts and measures in its own way."""

    pids: list[int]
    """The sending one, the receiving one."""

    def burst(self, words: dict[str, Any]) -> dict[str, Any]:
        """Does it; gives the outcome."""

    def stop(self) -> None:
        """Ends both in an orderly way."""


class Mechanism(ABC):
    """A way from one process to another: either a pair of its own, or an end in each of two processes of Python's."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """What the list says."""

    @abstractmethod
    def can(self, burst: Burst) -> bool:
        """Whether it can do this at all. What it cannot is no row."""

    def pair(self, setup: Setup, burst: Burst) -> Pair | None:
        """A pair of its own, if it has one."""
        return None

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], End]]:
        """The leading process's part: what the following one needs to know, and how to open this end then."""
        raise NotImplementedError

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> End:
        """The following process's part."""
        raise NotImplementedError


def lead(end: End, burst: Burst, turns: Turns) -> tuple[Callable[[], list[int]], Callable[[], None]]:
    """The leading process's half of a burst, ready to be run: it gives samples. The second part verifies."""
    end.wait_like(burst.mode)
    if burst.test == "one-way":
        parcels = end.parcels(burst)

        def stream() -> list[int]:
            end.send(parcels)
            return []

        return stream, lambda: None
    if burst.test == "view":
        turns.begin()

        def show() -> list[int]:
            for n in range(burst.count):
                end.show(burst.size, n)
                turns.say(0, n)
                turns.wait_for(1, n)
            return []

        return show, lambda: None
    groups = grouped(messages(burst.size, burst.count), burst.group)
    checks: list[int] = []

    def trips() -> list[int]:
        *stamps, check = end.calls(groups) if burst.test == "call" else end.ping(groups)
        checks.append(check)
        return [after - before for before, after in pairwise(stamps)]

    return trips, lambda: verify(checks[-1], burst.size, burst.count)


def follow(end: End, burst: Burst, turns: Turns) -> tuple[Callable[[], list[int]], Callable[[], None]]:
    """The following process's half."""
    end.wait_like(burst.mode)
    if burst.test == "view":
        return lambda: list(_look(end, burst, turns)), lambda: None
    if burst.test == "call":
        wait = end.serve(burst.count)

        def answers_all() -> list[int]:
            wait()
            return []

        # The calling side reads the replies, which are what it sent.
        return answers_all, lambda: None
    checks: list[int] = []
    answers = list(messages(burst.size, burst.count)) if burst.test == "rtt" else []

    def half() -> list[int]:
        checks.append(end.echo(answers) if burst.test == "rtt" else end.receive(burst))
        return []

    return half, lambda: verify(checks[-1], burst.size, burst.count)


def _look(end: End, burst: Burst, turns: Turns) -> Iterator[int]:
    for n in range(burst.count):
        taken, array = end.look(burst.size, n, partial(turns.wait_for, 0, n))
        # Not all of it: what reading 800 MiB leaves in the caches is no part of receiving the next.
        if any(element != n for element in (*array[:: 1 + len(array) // 256], array[-1])):
            raise Failure("the bytes received are not the bytes sent")
        # Gives the memory back.
        del array
        turns.say(1, n)
        yield taken
