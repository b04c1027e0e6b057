"""echo, ping, read, show, flood and drain."""

import ctypes
import os
import struct
import sys
import time
import zlib

import binding
from common import PATIENCE_NS, Messages, attached, close, open_ends, say


def reply(tx, args, type_id, tag, data):
    number, slot = tx.reserve(len(data), args.limit)
    binding.must(number)
    slot[:] = data
    binding.must(tx.commit(len(data), type_id, tag))


def echo(args):
    tx, rx = open_ends(args, args.back, args.ring)
    attached(tx)
    received = total = 0
    first = last = -1
    while True:
        began = time.monotonic_ns()
        number, message = rx.recv(args.limit)
        if number:
            break
        last = message.tag & 0xFFFFFFFF
        first = last if received == 0 else first
        received, total = received + 1, total + len(message.view)
        reply(tx, args, message.type_id, message.tag, message.view)
        rx.release()
    say(f"end name={binding.name(number)} number={number} received={received} first={first} last={last} bytes={total} "
        f"elapsed_ms={(time.monotonic_ns() - began) // 1_000_000}")
    close(tx, rx)


def ping(args):
    tx, rx = open_ends(args, args.ring, args.back)
    attached(tx)
    messages = Messages(args.sizes, tx.longest)
    total, times, last = 0, [], time.perf_counter_ns()
    for seq in range(args.count):
        if args.check == "yes":
            reply(tx, args, *messages.make(seq))
        else:
            number, slot = tx.reserve(args.sizes, args.limit)
            binding.must(number)
            fill(slot, seq)
            binding.must(tx.commit(args.sizes, 0, 0))
        number, message = rx.recv(args.limit)
        binding.must(number)
        if args.check == "yes":
            messages.check(seq, message)
        else:
            total += words(message.view)
        rx.release()
        if (seq + 1) % args.group == 0:
            now = time.perf_counter_ns()
            if seq >= args.count // 10:
                times.append((now - last) / args.group)
            last = now
    times.sort()
    at = [times[int((len(times) - 1) * part)] if times else 0 for part in (0, 0.5, 0.99, 1)]
    say("rtt count={} min_ns={:.1f} p50_ns={:.1f} p99_ns={:.1f} max_ns={:.1f}".format(args.count, *at))
    if args.check == "no":
        say(f"sum value={total & 2**64 - 1}")
    close(tx, rx)


def read(args):
    if args.region:
        copy = binding.region(args.region, PATIENCE_NS)
        say(f"region len={len(copy)} crc32={zlib.crc32(copy)}")
        say("closed")
        return
    tx, rx = open_ends(args, *((args.ring, None) if args.role == "producer" else (None, args.ring)))
    attached(tx if args.role == "producer" else rx)
    if args.pause == "yes":
        sys.stdin.readline()
    if args.role == "producer":
        tag = tx.last_tag()
        say("last none" if tag is None else f"last tag={tag}")
        type_id, tag, data = Messages(args.size, tx.longest).make(0)
        number = tx.send(type_id, tag, bytes(data), binding.TRY)
        say(f"end name={binding.name(number)} number={number}" if number else "sent")
    else:
        while True:
            number, message = rx.recv(args.limit)
            if number:
                break
            say(f"message type_id={message.type_id} tag={message.tag} len={len(message.view)} "
                f"crc32={zlib.crc32(message.view)}")
            rx.release()
        say(f"end name={binding.name(number)} number={number}")
    close(tx, rx)


SHOWN = 4096


def obey(address, view):
    """Writes and reads single bytes of the message in place, as standard input says."""
    say(f"view addr={address:#x} len={SHOWN} pid={os.getpid()}")
    for line in sys.stdin:
        match line.split():
            case ["poke", offset, value]:
                view[int(offset)] = int(value)
                say("poked")
            case ["peek", offset]:
                say(f"byte value={view[int(offset)]}")
            case _:
                return


def show(args):
    if args.role == "producer":
        tx, rest = open_ends(args, args.ring, None)
        attached(tx)
        number, slot = tx.reserve(SHOWN, args.limit)
        binding.must(number)
        slot[:] = b"\x11" * SHOWN
        address = ctypes.addressof(ctypes.c_char.from_buffer(slot))
        binding.must(tx.commit(SHOWN, 0, 0))
        obey(address, slot)
        close(tx, rest)
    else:
        rest, rx = open_ends(args, None, args.ring)
        attached(rx)
        number, message = rx.recv(args.limit)
        binding.must(number)
        obey(message.address, message.view)
        rx.release()
        close(rest, rx)


def fill(slot, seq):
    count = len(slot) // 8
    struct.pack_into(f"<{count}Q", slot, 0, *range(seq, seq + count))


def words(view):
    return sum(view.cast("Q"))


def flood(args):
    tx, rest = open_ends(args, args.ring, None)
    attached(tx)
    batch = args.batch or 1
    for seq in range(args.count):
        number, slot = tx.reserve(args.sizes, args.limit)
        binding.must(number)
        fill(slot, seq)
        binding.must(tx.commit(args.sizes, 0, 0, (seq + 1) % batch == 0 or seq + 1 == args.count))
    say(f"sent count={args.count} next={args.count}")
    close(tx, rest)


def drain(args):
    rest, rx = open_ends(args, None, args.ring)
    attached(rx)
    seen = total = 0
    began = time.perf_counter_ns()
    for until in args.count // 10, args.count:
        if until == args.count:
            began = time.perf_counter_ns()
        while seen < until:
            number, messages = rx.recv_batch(min(args.batch or 1, until - seen), args.limit)
            binding.must(number)
            for message in messages:
                total += words(message.view)
            rx.release()
            seen += len(messages)
    elapsed = time.perf_counter_ns() - began
    say(f"rate messages={args.count - args.count // 10} ns={elapsed} sum={total & 2**64 - 1}")
    close(rest, rx)
