"""tachyon-ipc: one bus each way. Sent by `send`, as in its README; received by the guard of `acquire_rx`, read in place
as a buffer, which is faster than the README's iteration. The receiver says that it never sleeps (`set_polling_mode`),
as its own benchmark does. Together: what `acquire_tx` gave is flushed once, and `drain_batch` receives."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import repeat
from typing import Any

import ends
import tachyon
from protocol import Burst, Setup, about

_SPINS = (1 << 31) - 1
"""Looks before it would sleep: far away."""
_TELLS_AFTER = 32
"""A receiver tells a sender of free space after so many messages only."""


class Buses(ends.End):
    """One bus to send on, one to receive from."""

    def __init__(self, tx: tachyon.Bus, rx: tachyon.Bus) -> None:
        self._tx, self._rx = tx, rx
        # What the methods call; only here a number of spins can be given, and a flush be left out.
        self._native_tx: Any = tx._bus  # type: ignore[attr-defined]
        self._native_rx: Any = rx._bus  # type: ignore[attr-defined]
        rx.set_polling_mode(1)

    def ping(self, groups: list[list[bytes]]) -> list[int]:
        send, acquire, adler32, now = self._tx.send, self._native_rx.acquire_rx, zlib.adler32, ends.now
        check, stamps = ends.BEGIN, [now()]
        for group in groups:
            for message in group:
                send(message)
                with acquire(_SPINS) as guard:
                    check = adler32(guard, check)
            stamps.append(now())
        return [*stamps, check]

    def echo(self, answers: Iterable[bytes]) -> int:
        send, acquire, adler32 = self._tx.send, self._native_rx.acquire_rx, zlib.adler32
        check = ends.BEGIN
        for answer in answers:
            with acquire(_SPINS) as guard:
                check = adler32(guard, check)
            send(answer)
        return check

    def send(self, groups: list[Any]) -> None:
        if len(groups) == 1:
            self._send_each(groups[0])
            return
        acquire, flush = self._native_tx.acquire_tx, self._native_tx.flush
        for group in groups:
            for message in group:
                size = len(message)
                while True:
                    try:
                        with acquire(size) as slot:
                            with memoryview(slot) as view:
                                view[:size] = message
                            slot.actual_size = size
                        break
                    except tachyon.TachyonError:
                        # What was not flushed must be, or nobody makes room.
                        flush()
            flush()

    def _send_each(self, group: list[bytes]) -> None:
        send = self._tx.send
        for message in group:
            while True:
                try:
                    send(message)
                    break
                except tachyon.TachyonError:
                    # It has no way to wait for room.
                    pass

    def receive(self, burst: Burst) -> int:
        adler32, check = zlib.adler32, ends.BEGIN
        if burst.mode == "each":
            acquire = self._native_rx.acquire_rx
            for _ in repeat(None, burst.count):
                with acquire(_SPINS) as guard:
                    check = adler32(guard, check)
            return check
        left, drain = burst.count, self._native_rx.drain_batch
        while left > 0:
            with drain(min(left, burst.batch), _SPINS) as batch:
                for message in batch:
                    check = adler32(message, check)
                left -= len(batch)
        return check


class Tachyon(ends.Mechanism):
    """The bus by its Python binding."""

    def about(self) -> dict[str, Any]:
        what = "Tachyon's SPSC bus, polling: send; acquire_rx or drain_batch, read in place"
        return about("tachyon-python", "peer", True, what, version("tachyon-ipc"))

    def can(self, burst: Burst) -> bool:
        return burst.test == "one-way" or (burst.test, burst.mode) == ("rtt", "spin")

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        capacity = 1 << (max(setup.capacity, 2 * _TELLS_AFTER * (setup.largest + 128)) - 1).bit_length()

        def finish() -> ends.End:
            # Each returns when the other side has connected.
            tx = tachyon.Bus.listen(f"{setup.directory}/there", capacity)
            return Buses(tx, tachyon.Bus.listen(f"{setup.directory}/back", capacity))

        return None, finish

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        rx = _connect(f"{setup.directory}/there")
        return Buses(_connect(f"{setup.directory}/back"), rx)


def _connect(path: str) -> tachyon.Bus:
    """The listener may not be there yet."""
    until = time.monotonic() + 10
    while True:
        try:
            return tachyon.Bus.connect(path)
        except (OSError, tachyon.TachyonError):
            if time.monotonic() > until:
                raise
            time.sleep(0.001)


MECHANISMS = [Tachyon()]
