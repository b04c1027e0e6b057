"""measure: the loops that are timed.

Every message is one of `CYCLE`, in order and from its beginning each time: little-endian 64-bit words that differ from
message to message. They are made before what is measured begins: here, making one takes as long as sending it. The
receiver reads every byte with `zlib.adler32`, one call for each message (for an array of messages, one call), which is
the cheapest way that Python has to read all of a small buffer; it takes bytes and every other buffer, and its running
value at the end says whether anything was lost, repeated, exchanged or damaged.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import cycle, islice, pairwise
from typing import TYPE_CHECKING, Any, cast
from zlib import adler32

import ramway
from line import Line, RefusedError, say
from message import BadMessage

if TYPE_CHECKING:
    from collections.abc import Buffer

CYCLE = 4096
"""How many messages differ."""
LEADS = ("ping", "send", "show")

now = time.perf_counter_ns
"""CLOCK_MONOTONIC: the same in all processes."""


@lru_cache(maxsize=4)
def pool(size: int) -> list[bytes]:
    """The messages of this size: message n is the 64-bit words n, n + 1, …"""
    words = struct.Struct(f"<{size // 8}Q")
    return [words.pack(*range(n, n + size // 8)) for n in range(CYCLE)]


def messages(size: int, count: int) -> Iterator[bytes]:
    """The first `count` of them."""
    return islice(cycle(pool(size)), count)


def grouped(of: Iterable[bytes], size: int) -> list[list[bytes]]:
    """In lists of `size`, the last one shorter."""
    left = iter(of)
    return list(iter(lambda: list(islice(left, size)), []))


class Timed:
    """What one loop gives: what reading came to, and nanoseconds of each group."""

    def __init__(self) -> None:
        self.check, self.samples = 1, list[int]()


def ping(tx: ramway.Sender, rx: ramway.Receiver, groups: list[list[bytes]], timed: Timed) -> None:
    send, receive = tx.send, rx.recv
    check, stamps = 1, [now()]
    for group in groups:
        for message in group:
            send(message)
            check = adler32(receive(), check)
        stamps.append(now())
    timed.check, timed.samples = check, [after - before for before, after in pairwise(stamps)]


def echo(tx: ramway.Sender, rx: ramway.Receiver, answers: list[bytes], timed: Timed) -> None:
    send, receive = tx.send, rx.recv
    check = 1
    for answer in answers:
        check = adler32(receive(), check)
        send(answer)
    timed.check = check


def send_each(tx: ramway.Sender, of: list[bytes]) -> None:
    send = tx.send
    for message in of:
        send(message)


def receive_each(arriving: Iterable[Buffer], timed: Timed) -> None:
    check = 1
    for message in arriving:
        check = adler32(message, check)
    timed.check = check


def record(size: int) -> Any:
    """What a message is to a program that receives several as one array."""
    import numpy as np

    tick = [("time", "<u8"), ("price", "<f8"), ("volume", "<u8"), ("id", "<u8")]
    return np.dtype(tick if size == 32 else [("words", "<u8", (size // 8,))])


def arrays(size: int, count: int, batch: int) -> list[Any]:
    """The messages as arrays of `batch`."""
    import numpy as np

    whole = np.resize(np.frombuffer(b"".join(pool(size)), dtype=record(size)), count)
    return [whole[at : at + batch] for at in range(0, count, batch)]


def send_together(tx: ramway.Sender, groups: list[Any]) -> None:
    for group in groups:
        tx.send_array(group)


def receive_together(rx: ramway.Receiver, kind: Any, count: int, batch: int, timed: Timed) -> None:
    recv_array, left, check = rx.recv_array, count, 1
    while left > 0:
        array = recv_array(kind, min(left, batch))
        check = adler32(array, check)
        left -= len(array)
    timed.check = check


SEEN = b"seen"


def show(tx: ramway.Sender, rx: ramway.Receiver, size: int, count: int) -> None:
    """Sends frames, of which only what is looked at is written: to write 800 MiB empties the caches that both
    processors share. Each follows the word that the other side has seen the one before."""
    for n in range(count):
        with tx.reserve_tensor((size // 4,), "float32") as slot:
            array = slot.numpy()
            array[:: 1 + len(array) // 256] = array[-1] = n
            del array
        rx.recv().release()


def look(tx: ramway.Sender, rx: ramway.Receiver, size: int, count: int, timed: Timed) -> None:
    """Times a frame that is there, from asking for it to having it as an array."""
    try_recv = rx.try_recv
    for n in range(count):
        while True:
            began = now()
            if (message := try_recv()) is not None:
                break
        array = message.tensor().numpy()
        first = array[0]
        timed.samples.append(now() - began)
        if first != n or array.shape != (size // 4,):
            raise BadMessage(n, "the array received is not the array sent")
        # Not all of it: what reading 800 MiB leaves in the caches is no part of receiving the next.
        if any(element != n for element in (*array[:: 1 + len(array) // 256], array[-1])):
            raise BadMessage(n, "the bytes received are not the bytes sent")
        # Gives the memory back.
        del array, message
        tx.send(SEEN)


def latest(sub: ramway.Subscriber, size: int, count: int, group: int, timed: Timed) -> None:
    """Reads the newest message again and again."""
    newest, check, seen, stamps = sub.latest, 1, 0, [now()]
    while seen < count:
        if (message := newest()) is None:
            # The publisher has overtaken it again and again: a reader tries again.
            continue
        if len(message) != size:
            raise BadMessage(0, "a message of another length than was said")
        check = adler32(message, check)
        seen += 1
        if seen % group == 0:
            stamps.append(now())
    timed.check, timed.samples = check, [after - before for before, after in pairwise(stamps)]


def measure(tx: ramway.Sender | None, rx: ramway.Receiver | None, line: Line) -> None:
    what, size, count = line.text("do"), line.number("size"), line.number("count")
    batch, group, wait = line.number("batch", 1), line.number("group", 1), line.wait()
    line.end()
    for end in tx, rx:
        if end is not None:
            end.wait = wait
    timed = Timed()
    run = prepared(what, cast(ramway.Sender, tx), cast(ramway.Receiver, rx), size, count, batch, group, timed)
    say("ready")
    if what in LEADS:
        # The other side is told first: it polls by then.
        sys.stdin.readline()
    began = now()
    run()
    ended = now()
    samples = ",".join(map(str, timed.samples))
    say(f"measured began_ns={began} ended_ns={ended} adler32={timed.check} samples={samples}")


def prepared(
    what: str, tx: ramway.Sender, rx: ramway.Receiver, size: int, count: int, batch: int, group: int, timed: Timed
) -> Callable[[], None]:
    """One loop, with everything made that it needs."""
    match what:
        case "ping":
            groups = grouped(messages(size, count), group)
            return lambda: ping(tx, rx, groups, timed)
        case "echo":
            answers = list(messages(size, count))
            return lambda: echo(tx, rx, answers, timed)
        case "send" if batch > 1:
            parcels = arrays(size, count, batch)
            return lambda: send_together(tx, parcels)
        case "send":
            each = list(messages(size, count))
            return lambda: send_each(tx, each)
        case "receive" if batch > 1:
            kind = record(size)
            return lambda: receive_together(rx, kind, count, batch, timed)
        case "receive":
            return lambda: receive_each(islice(rx, count), timed)
        case "latest":
            return lambda: latest(cast(ramway.Subscriber, rx), size, count, group, timed)
        case "show":
            return lambda: show(tx, rx, size, count)
        case "look":
            return lambda: look(tx, rx, size, count, timed)
    raise RefusedError(f"do={what}")


def lock(line: Line) -> None:
    """Keeps all memory of this process where it is, from now on."""
    line.end()
    current_and_future = 3
    if ctypes.CDLL(None, use_errno=True).mlockall(current_and_future) != 0:
        raise RefusedError(f"locking memory is refused: {os.strerror(ctypes.get_errno())}")
    say("locked")
