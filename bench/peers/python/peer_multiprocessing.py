"""The standard library's ways: `multiprocessing.Pipe` (a socket pair), `multiprocessing.Queue` (a pipe, a lock and a
thread that pickles), and a copy out of `multiprocessing.shared_memory`. None of them has a wait that polls. From one to
many there is a queue or a pipe for each reader; from many to one there is one queue; the newest value is copied in and
out of shared memory under a `Lock`."""

from __future__ import annotations

import multiprocessing
import zlib
from collections.abc import Callable, Iterable
from itertools import repeat
from multiprocessing.shared_memory import SharedMemory
from typing import TYPE_CHECKING, Any

import crew
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


class Fan(crew.Part):
    """One of the ends: functions that send, a function that receives."""

    def __init__(self, sends: list[Callable[[bytes], object]], receive: Callable[[], Buffer] | None = None) -> None:
        self._sends, self._receive = sends, receive

    def send(self, messages: Iterable[bytes]) -> None:
        if len(self._sends) == 1:
            ends.send_each(self._sends[0], messages)
            return
        for message in messages:
            for send in self._sends:
                send(message)

    def receive(self, count: int) -> Iterable[Buffer]:
        assert self._receive is not None
        receive = self._receive
        return (receive() for _ in repeat(None, count))


class Queues(crew.Mechanism):
    """`put` into a queue for each reader; or all producers into one."""

    def about(self) -> dict[str, Any]:
        what = "multiprocessing.Queue: one for each reader, or one for all producers"
        return about("queues-python", "kernel", True, what)

    def can(self, burst: Burst) -> bool:
        return burst.test in ("readers", "producers")

    def share(self, setup: Setup, burst: Burst) -> Any:
        room = min(setup.capacity // setup.largest, 1 << 14)
        return [_SPAWN.Queue(room) for _ in range(burst.threads if burst.test == "readers" else 1)]

    def sender(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        return Fan([queue.put for queue in shared])

    def receiver(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        return Fan([], shared[index].get)


class Pipes(crew.Mechanism):
    """`send_bytes` into a pipe for each reader."""

    def about(self) -> dict[str, Any]:
        return about("pipes-python", "kernel", True, "multiprocessing.Pipe: send_bytes, one for each reader")

    def can(self, burst: Burst) -> bool:
        return burst.test == "readers"

    def share(self, setup: Setup, burst: Burst) -> Any:
        return [_SPAWN.Pipe(duplex=False) for _ in range(burst.threads)]

    def sender(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        return Fan([tx.send_bytes for _rx, tx in shared])

    def receiver(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        return Fan([], shared[index][0].recv_bytes)


class Value(crew.Part):
    """Bytes of shared memory that are copied in and out while a lock is held."""

    def __init__(self, memory: SharedMemory, lock: Any, size: int, owns: bool) -> None:
        self._memory, self._lock, self._size, self._owns = memory, lock, size, owns

    def send(self, messages: Iterable[bytes]) -> None:
        view, size = self._memory.buf, self._size
        assert view is not None
        for message in messages:
            with self._lock:
                view[:size] = message

    def newest(self) -> Buffer:
        view = self._memory.buf
        assert view is not None
        with self._lock:
            return bytes(view[: self._size])

    def close(self) -> None:
        self._memory.close()
        if self._owns:
            self._memory.unlink()


class Locked(crew.Mechanism):
    """What one has for the newest value."""

    def about(self) -> dict[str, Any]:
        what = "multiprocessing.shared_memory and a Lock, copied in and out"
        return about("shared-lock-python", "kernel", True, what)

    def can(self, burst: Burst) -> bool:
        return burst.test == "latest"

    def share(self, setup: Setup, burst: Burst) -> Any:
        return SharedMemory(create=True, size=setup.largest), _SPAWN.Lock()

    def sender(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        memory, lock = shared
        return Value(memory, lock, setup.largest, True)

    def receiver(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        memory, lock = shared
        return Value(memory, lock, setup.largest, False)


MECHANISMS = [Pipe(), Queue(), Shared(), Queues(), Pipes(), Locked()]
