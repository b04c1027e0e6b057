"""The standard library's ways: `multiprocessing.Pipe` (a socket pair), `multiprocessing.Queue` (a pipe, a lock and a
thread that pickles), and a copy out of `multiprocessing.shared_memory`. None of them has a wait that polls."""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Iterable
from itertools import repeat
from multiprocessing.shared_memory import SharedMemory
from typing import TYPE_CHECKING, Any

import ends
from protocol import Burst, Failure, Setup, about

if TYPE_CHECKING:
    from collections.abc import Buffer

    from numpy.typing import NDArray

_SPAWN = multiprocessing.get_context("spawn")


class Calls(ends.End):
    """An end of a function that sends and a function that receives."""

    def __init__(self, send: Callable[[Any], object], receive: Callable[[], Buffer]) -> None:
        self._send, self._receive = send, receive

    def ping(self, groups: list[list[bytes]]) -> list[int]:
        return ends.ping(self._send, self._receive, groups)

    def echo(self, answers: Iterable[bytes]) -> int:
        return ends.echo(self._send, self._receive, answers)

    def send(self, groups: list[Any]) -> None:
        for group in groups:
            ends.send_each(self._send, group)

    def receive(self, burst: Burst) -> int:
        receive, check = self._receive, ends.BEGIN
        for _ in repeat(None, burst.count):
            check = zlib.adler32(receive(), check)
        return check


class Pipe(ends.Mechanism):
    """`send_bytes` and `recv_bytes`, which spare the pickling."""

    def about(self) -> dict[str, Any]:
        return about("pipe-python", "kernel", True, "multiprocessing.Pipe: send_bytes and recv_bytes")

    def can(self, burst: Burst) -> bool:
        return (burst.test, burst.mode) in (("rtt", "block"), ("one-way", "each"))

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        ours, theirs = _SPAWN.Pipe()
        return theirs, lambda: Calls(ours.send_bytes, ours.recv_bytes)

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        return Calls(ticket.send_bytes, ticket.recv_bytes)


class Queue(ends.Mechanism):
    """`put` and `get`."""

    def about(self) -> dict[str, Any]:
        return about("queue-python", "kernel", True, "multiprocessing.Queue: put and get")

    def can(self, burst: Burst) -> bool:
        return (burst.test, burst.mode) in (("rtt", "block"), ("one-way", "each"))

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        # As many messages wait as the others' rings hold, as far as the system lets a semaphore count.
        room = min(setup.capacity // setup.largest, 1 << 14)
        there, back = _SPAWN.Queue(room), _SPAWN.Queue(room)
        return (there, back), lambda: Calls(there.put, back.get)

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        there, back = ticket
        return Calls(back.put, there.get)


COPIED = 1 << 20


class Copy(ends.End):
    """An array over shared memory in each process; the receiver copies it, because the sender may write again."""

    def __init__(self, memory: SharedMemory, owns: bool) -> None:
        import numpy

        self._memory, self._owns, self._copy = memory, owns, numpy.array
        assert memory.buf is not None
        self._array = numpy.frombuffer(memory.buf, dtype=numpy.float32, count=COPIED // 4)

    def show(self, size: int, n: int) -> None:
        self._array.fill(n)

    def look(self, size: int, n: int, wait: Callable[[], None]) -> tuple[int, NDArray[Any]]:
        wait()
        began = ends.now()
        array = self._copy(self._array)
        first = array[0]
        taken = ends.now() - began
        if first != n:
            raise Failure("the array received is not the array sent")
        return taken, array

    def close(self) -> None:
        del self._array
        self._memory.close()
        if self._owns:
            self._memory.unlink()


class Shared(ends.Mechanism):
    """What takes the place of a message where the memory is all that is shared."""

    def about(self) -> dict[str, Any]:
        what = "1 MiB copied out of multiprocessing.shared_memory, whatever the group's size"
        return about("shared-memory-python", "by-hand", True, what)

    def can(self, burst: Burst) -> bool:
        return burst.test == "view"

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        memory = SharedMemory(create=True, size=COPIED)
        return memory.name, lambda: Copy(memory, True)

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        return Copy(SharedMemory(ticket), False)


MECHANISMS = [Pipe(), Queue(), Shared()]
