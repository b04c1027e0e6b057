"""echo, ping, read, show, flood and drain."""

import ctypes
import os
import struct
import sys
import time
import zlib
from ctypes import c_ubyte

import ramway
from common import (
    PATIENCE,
    Args,
    Messages,
    attached,
    both,
    close,
    ended,
    ms_since,
    receiving,
    say,
    sending,
)


def echo(args: Args) -> None:
    tx, rx = both(args, args.back, args.ring)
    attached(tx)
    received = total = 0
    first = last = -1
    while True:
        began = time.monotonic_ns()
        try:
            message = rx.recv(args.limit)
        except ramway.Error as error:
            end, elapsed_ms = ended(error), ms_since(began)
            break
        last = message.tag & 0xFFFFFFFF
        first = last if received == 0 else first
        received, total = received + 1, total + len(message)
        tx.send(message, message.type_id, message.tag, timeout=args.limit)
        message.release()
    say(f"{end} received={received} first={first} last={last} bytes={total} elapsed_ms={elapsed_ms}")
    close(tx, rx)


def ping(args: Args) -> None:
    tx, rx = both(args, args.ring, args.back)
    attached(tx)
    messages = Messages(args.sizes, tx.max_message_len)
    total, times, last = 0, [], time.perf_counter_ns()
    for seq in range(args.count):
        if args.check == "yes":
            type_id, tag, data = messages.make(seq)
            tx.send(data, type_id, tag, timeout=args.limit)
            message = rx.recv(args.limit)
            messages.check(seq, message, message)
        else:
            tx.send(payload(args.sizes, seq), timeout=args.limit)
            message = rx.recv(args.limit)
            total += words(message)
        message.release()
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


def read(args: Args) -> None:
    if args.region:
        with ramway.Region.open(args.region, timeout=PATIENCE) as region, memoryview(region) as view:
            say(f"region len={len(view)} crc32={zlib.crc32(view)}")
        say("closed")
        return
    if args.role == "producer":
        read_as_producer(args)
    else:
        read_as_consumer(args)


def read_as_producer(args: Args) -> None:
    tx = sending(args)
    attached(tx)
    if args.pause == "yes":
        sys.stdin.readline()
    try:
        say("last none" if tx.last_tag is None else f"last tag={tx.last_tag}")
        type_id, tag, data = Messages(args.size, tx.max_message_len).make(0)
        tx.try_send(data, type_id, tag)
        say("sent")
    except ramway.Error as error:
        say(ended(error))
    close(tx)


def read_as_consumer(args: Args) -> None:
    rx = receiving(args)
    attached(rx)
    if args.pause == "yes":
        sys.stdin.readline()
    try:
        while True:
            with rx.recv(args.limit) as message:
                say(
                    f"message type_id={message.type_id} tag={message.tag} len={len(message)} "
                    f"crc32={zlib.crc32(message)}"
                )
    except ramway.Error as error:
        say(ended(error))
    close(rx)


SHOWN = 4096


def address_of(view: memoryview) -> int:
    """Where a view's bytes are; ctypes alone says it of a writable one only."""
    import numpy as np

    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])


def obey(address: int) -> None:
    """Writes and reads single bytes of the message in place, as standard input says."""
    say(f"view addr={address:#x} len={SHOWN} pid={os.getpid()}")
    data = ctypes.cast(address, ctypes.POINTER(c_ubyte))
    for line in sys.stdin:
        match line.split():
            case ["poke", offset, value]:
                data[int(offset)] = int(value)
                say("poked")
            case ["peek", offset]:
                say(f"byte value={data[int(offset)]}")
            case _:
                return


def show(args: Args) -> None:
    if args.role == "producer":
        tx = sending(args)
        attached(tx)
        slot = tx.reserve(SHOWN, timeout=args.limit)
        slot[:] = b"\x11" * SHOWN
        # The view goes before the commit, which would cut it off; the address stays the message's.
        address = address_of(memoryview(slot))
        slot.commit()
        obey(address)
        close(tx)
    else:
        rx = receiving(args)
        attached(rx)
        message = rx.recv(args.limit)
        obey(address_of(memoryview(message)))
        message.release()
        close(rx)


def payload(size: int, seq: int) -> bytes:
    return struct.pack(f"<{size // 8}Q", *range(seq, seq + size // 8))


def words(view: ramway.Message) -> int:
    # An unpack of few words is faster than a view of them.
    return sum(struct.unpack_from(f"<{len(view) // 8}Q", view))


def flood(args: Args) -> None:
    tx = sending(args)
    attached(tx)
    batch, size = args.batch or 1, args.sizes
    count = size // 8
    pack = struct.Struct(f"<{count}Q").pack_into
    for seq in range(args.count):
        slot = tx.reserve(size, timeout=args.limit)
        pack(slot, 0, *range(seq, seq + count))
        slot.commit(flush=(seq + 1) % batch == 0 or seq + 1 == args.count)
    say(f"sent count={args.count} next={args.count}")
    close(tx)


def drain(args: Args) -> None:
    rx = receiving(args)
    attached(rx)
    seen = total = 0
    began = time.perf_counter_ns()
    for until in args.count // 10, args.count:
        if until == args.count:
            began = time.perf_counter_ns()
        while seen < until:
            batch = rx.recv_batch(min(args.batch or 1, until - seen), args.limit)
            for message in batch:
                total += words(message)
            seen += len(batch)
    elapsed = time.perf_counter_ns() - began
    say(f"rate messages={args.count - args.count // 10} ns={elapsed} sum={total & 2**64 - 1}")
    close(rx)
