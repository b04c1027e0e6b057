"""Flags, messages, places: what all commands share."""

import argparse
import ctypes
import os
import select
import sys
import time
import zlib

import binding

PATIENCE_NS = 10_000_000_000
COMMANDS = ("produce", "consume", "echo", "ping", "die", "read", "show", "flood", "drain")


def parse(argv):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("command", choices=COMMANDS)
    for flag in "ring", "back", "listen", "connect", "region":
        parser.add_argument("--" + flag)
    for flag in "create", "resume", "progress", "oversize", "pause":
        parser.add_argument("--" + flag, choices=("yes", "no"), default="no")
    numbers = {"capacity": 65536, "align": 16, "timeout": 20000, "cpu": None, "size": 0, "start": None, "count": None,
               "until": None, "batch": None, "endings": 1, "linger": None, "pace": 0, "work": 0, "group": 1}
    for flag, default in numbers.items():
        parser.add_argument("--" + flag, type=int, default=default)
    parser.add_argument("--check", choices=("yes", "no"), default="yes")
    parser.add_argument("--wait", choices=binding.WAITS, default="hybrid")
    parser.add_argument("--how", choices=("send", "reserve", "try", "recv", "batch", "into"))
    parser.add_argument("--role", choices=("producer", "consumer"))
    parser.add_argument("--sizes", type=lambda text: text if text in ("mixed", "ramp") else int(text), default="mixed")
    args = parser.parse_args(argv)
    args.limit = binding.FOREVER if args.timeout == 0 else args.timeout * 1_000_000
    return args


def say(line):
    """One event, written at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Bad(Exception):
    """A message did not arrive as it was sent."""

    def __init__(self, seq, text):
        super().__init__(text)
        self.seq = seq


class Messages:
    """Every message of a ring whose longest has `longest` bytes."""

    def __init__(self, sizes, longest):
        self.sizes, self.longest = sizes, longest
        length = max(longest + 1, sizes if isinstance(sizes, int) else 0) + 256
        # Every payload is a piece of it.
        self.pattern = memoryview((bytes(range(256)) * (length // 256 + 1))[:length])

    def length(self, seq):
        if self.sizes == "mixed":
            if seq % 1000 == 999:
                return self.longest
            if seq % 100 == 0:
                return 0
            x = seq * 2654435761 & 0xFFFFFFFF
            return x % (self.longest + 1) if seq % 50 == 1 else x % 257
        return seq % (self.longest + 1) if self.sizes == "ramp" else self.sizes

    def make(self, seq, length=None):
        """Type id, tag and payload of message number `seq`."""
        start = seq % 256
        data = self.pattern[start:start + (self.length(seq) if length is None else length)]
        return seq % 60000, zlib.crc32(data) << 32 | seq & 0xFFFFFFFF, data

    def check(self, seq, message):
        type_id, tag, data = self.make(seq)
        if len(message.view) != len(data):
            raise Bad(seq, f"length {len(message.view)} instead of {len(data)}")
        if (message.type_id, message.tag) != (type_id, tag):
            raise Bad(seq, f"type id {message.type_id}, tag {message.tag:#x} instead of {type_id}, {tag:#x}")
        if zlib.crc32(message.view) != tag >> 32 or message.view != data:
            raise Bad(seq, "the bytes")


def open_ends(args, to, source):
    """A sender and a receiver: on rings those of the names that are not None."""
    if args.listen or args.connect:
        options = binding.BusOptions(size=ctypes.sizeof(binding.BusOptions), wait_policy=binding.WAITS[args.wait])
        if args.connect:
            options.timeout_ns = PATIENCE_NS
            return binding.bus(("bus_connect", args.connect), options)
        options.capacity, options.align = args.capacity, args.align
        return binding.bus(("bus_listen", args.listen), options, PATIENCE_NS)
    create = args.create == "yes"
    options = binding.Options(size=ctypes.sizeof(binding.Options), wait_policy=binding.WAITS[args.wait],
                              timeout_ns=PATIENCE_NS)
    if create:
        options.capacity, options.align = args.capacity, args.align
    if not to and not source:
        sys.exit("--ring, --listen or --connect is needed")
    return (binding.Sender.named(to, options, create) if to else None,
            binding.Receiver.named(source, options, create) if source else None)


def attached(end):
    say(f"attached pid={os.getpid()} epoch={end.epoch()} peer_epoch={end.peer_epoch()} capacity={end.capacity} "
        f"max={end.longest}")


def close(*ends):
    for end in ends:
        if end is not None:
            # What closing says on a bus whose peer is dead does not matter.
            end.close()
    say("closed")


def linger(args):
    if args.linger is not None:
        select.select([sys.stdin], [], [], args.linger / 1000)


def await_successor(args, end, noted):
    """False if none came in time."""
    began = time.monotonic()
    while end.peer_epoch() == noted:
        if args.timeout and time.monotonic() - began >= args.timeout / 1000:
            return False
        time.sleep(0.001)
    return True
