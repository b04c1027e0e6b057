"""last, take, region, write and hold."""

import ctypes
import sys
import zlib
from ctypes import c_ubyte

import ramway
from line import Limits, Line, RefusedError, ended, say

OPEN_TIMEOUT = 10.0
"""Seconds to wait for a name, a role or the other side."""


def last(tx: ramway.Sender, line: Line) -> None:
    line.end()
    say("last none" if tx.last_tag is None else f"last tag={tx.last_tag}")


def take(rx: ramway.Receiver, line: Line) -> None:
    limit, tensor, how = Limits(line).whole, line.yes("tensor"), line.text("how")
    line.end()
    if how not in ("", "try"):
        raise RefusedError(f"how={how}")
    try:
        message = rx.try_recv() if how == "try" else rx.recv(limit)
        if message is None:
            raise ramway.EmptyError
    except ramway.LaggedError as error:
        say(ended(error, f" lost={error.lost}"))
        return
    except ramway.Error as error:
        say(ended(error))
        return
    with message:
        if tensor:
            # Here alone, for what it imports.
            from tensor import describe

            if (text := describe(message)) is not None:
                say(text)
                return
        stamp = f" seq={message.seq} lost={message.lost}" if isinstance(message, ramway.TopicMessage) else ""
        sent = f"type_id={message.type_id} tag={message.tag}"
        say(f"message {sent} len={len(message)} crc32={zlib.crc32(message)}{stamp}")


def region(line: Line) -> None:
    name = line.text("name")
    line.end()
    with ramway.Region.open(name, timeout=OPEN_TIMEOUT) as region, memoryview(region) as view:
        say(f"region len={len(view)} crc32={zlib.crc32(view)}")


def write(tx: ramway.Sender, line: Line) -> None:
    """Reserves, fills, and commits what is to be kept."""
    length = line.number("len")
    kept, unflushed = line.number("kept", length), line.yes("unflushed")
    line.end()
    slot = tx.reserve(length, timeout=OPEN_TIMEOUT)
    slot[:] = b"\x11" * length
    # The view goes before the commit, which would cut it off; the address stays the message's.
    address = address_of(memoryview(slot))
    slot.commit(kept, flush=not unflushed)
    look_at(address, length, 0)


def hold(rx: ramway.Receiver, line: Line) -> None:
    line.end()
    with rx.recv(OPEN_TIMEOUT) as message:
        look_at(address_of(memoryview(message)), len(message), message.tag)


def address_of(view: memoryview) -> int:
    """Where a view's bytes are; ctypes alone says it of a writable one only."""
    import numpy as np

    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])


def look_at(address: int, length: int, tag: int) -> None:
    """Writes and reads single bytes of a message by its address, until `release`."""
    say(f"view addr={address:#x} len={length} tag={tag}")
    data = ctypes.cast(address, ctypes.POINTER(c_ubyte))
    for text in sys.stdin:
        line = Line(text)
        if line.word == "poke":
            data[line.number("offset")] = line.number("value")
            say("poked")
        elif line.word == "peek":
            say(f"byte value={data[line.number('offset')]}")
        elif line.word == "release":
            say("released")
            return
        else:
            raise RefusedError(f"{line.word} while a message is held")
        line.end()
