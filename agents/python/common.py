"""Flags, messages, places: what all commands share."""

import argparse
import os
import select
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import ramway

PATIENCE = 10.0
COMMANDS = ("produce", "consume", "echo", "ping", "die", "read", "show", "tensors", "flood", "drain")

End: TypeAlias = ramway.Sender | ramway.Receiver
Args: TypeAlias = argparse.Namespace
T = TypeVar("T")


def parse(argv: Sequence[str]) -> Args:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", choices=COMMANDS)
    for flag in "ring", "back", "listen", "connect", "region":
        parser.add_argument("--" + flag)
    for flag in "create", "resume", "progress", "oversize", "pause":
        parser.add_argument("--" + flag, choices=("yes", "no"), default="no")
    numbers: dict[str, int | None] = dict.fromkeys(("cpu", "start", "count", "until", "batch", "linger", "poll"))
    numbers |= {"capacity": 65536, "align": 16, "timeout": 20000, "size": 0, "endings": 1, "pace": 0, "work": 0}
    numbers["group"] = 1
    for flag, default in numbers.items():
        parser.add_argument("--" + flag, type=int, default=default)
    parser.add_argument("--check", choices=("yes", "no"), default="yes")
    parser.add_argument("--wait", choices=("spin", "block", "hybrid"), default="hybrid")
    parser.add_argument("--how", choices=("send", "reserve", "try", "recv", "batch", "into"))
    parser.add_argument("--role", choices=("producer", "consumer"))
    parser.add_argument("--sizes", type=lambda text: text if text in ("mixed", "ramp") else int(text), default="mixed")
    args = parser.parse_args(argv)
    args.limit = None if args.timeout == 0 else args.timeout / 1000
    # The time-out of one call.
    args.call_limit = args.limit if args.poll is None else args.poll / 1e6
    return args


def polling(args: Args, call: Callable[[], T]) -> T:
    """A call, with --poll again and again for as long as a wait may last."""
    began = time.monotonic()
    while True:
        try:
            return call()
        except ramway.TimedOutError:
            if args.poll is None or (args.limit is not None and time.monotonic() - began >= args.limit):
                raise


def say(line: str) -> None:
    """One event, written at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class BadMessage(Exception):
    """A message did not arrive as it was sent."""

    def __init__(self, seq: int, text: str) -> None:
        super().__init__(text)
        self.seq = seq


class Messages:
    """Every message of a ring whose longest has `longest` bytes."""

    def __init__(self, sizes: str | int, longest: int) -> None:
        self.sizes, self.longest = sizes, longest
        length = max(longest + 1, sizes if isinstance(sizes, int) else 0) + 256
        # Every payload is a piece of it.
        self.pattern = memoryview((bytes(range(256)) * (length // 256 + 1))[:length])

    def length(self, seq: int) -> int:
        if isinstance(self.sizes, int):
            return self.sizes
        if self.sizes == "ramp":
            return seq % (self.longest + 1)
        if seq % 1000 == 999:
            return self.longest
        if seq % 100 == 0:
            return 0
        x = seq * 2654435761 & 0xFFFFFFFF
        return x % (self.longest + 1) if seq % 50 == 1 else x % 257

    def make(self, seq: int, length: int | None = None) -> tuple[int, int, memoryview]:
        """Type id, tag and payload of message number `seq`."""
        start = seq % 256
        data = self.pattern[start : start + (self.length(seq) if length is None else length)]
        return seq % 60000, zlib.crc32(data) << 32 | seq & 0xFFFFFFFF, data

    def check(self, seq: int, message: ramway.Message, payload: ramway.Message | bytes) -> None:
        type_id, tag, data = self.make(seq)
        if len(payload) != len(data):
            raise BadMessage(seq, f"length {len(payload)} instead of {len(data)}")
        if (message.type_id, message.tag) != (type_id, tag):
            raise BadMessage(seq, f"type id {message.type_id}, tag {message.tag:#x} instead of {type_id}, {tag:#x}")
        if zlib.crc32(payload) != tag >> 32 or payload != data:
            raise BadMessage(seq, "the bytes")


def rings(args: Args, name: str) -> ramway.Ring:
    if args.create == "yes":
        return ramway.Ring.create(name, capacity=args.capacity, align=args.align, wait=args.wait, timeout=PATIENCE)
    return ramway.Ring.open(name, wait=args.wait, timeout=PATIENCE)


def bus(args: Args) -> ramway.Bus | None:
    if args.connect:
        return ramway.Bus.connect(args.connect, timeout=PATIENCE, wait=args.wait)
    if args.listen:
        return ramway.Bus.listen(args.listen, args.capacity, align=args.align, wait=args.wait, timeout=PATIENCE)
    return None


def sending(args: Args) -> ramway.Sender:
    """The sending end of --ring, or of the bus."""
    if connection := bus(args):
        return connection.sender
    return rings(args, args.ring).sender()


def receiving(args: Args) -> ramway.Receiver:
    """The receiving end of --ring, or of the bus."""
    if connection := bus(args):
        return connection.receiver
    return rings(args, args.ring).receiver()


def both(args: Args, to: str, source: str) -> tuple[ramway.Sender, ramway.Receiver]:
    if connection := bus(args):
        return connection.sender, connection.receiver
    return rings(args, to).sender(), rings(args, source).receiver()


def attached(end: End) -> None:
    longest = min(end.capacity - 16, 2**31 - 17)
    say(
        f"attached pid={os.getpid()} epoch={end.epoch} peer_epoch={end.peer_epoch} capacity={end.capacity} "
        f"max={longest}"
    )


def ended(error: ramway.Error, text: str = "") -> str:
    return f"end name={error.kind} number={error.code}{text}"


def close(*ends: End) -> None:
    for end in ends:
        try:
            end.close()
        except ramway.Error:
            # What closing says on a bus whose peer is dead does not matter.
            pass
    say("closed")


def linger(args: Args) -> None:
    if args.linger is not None:
        select.select([sys.stdin], [], [], args.linger / 1000)


def await_successor(args: Args, end: End, noted: int) -> bool:
    """False if none came in time."""
    began = time.monotonic()
    while end.peer_epoch == noted:
        if args.timeout and time.monotonic() - began >= args.timeout / 1000:
            return False
        time.sleep(0.001)
    return True


def ms_since(began: int) -> int:
    return (time.monotonic_ns() - began) // 1_000_000
