"""produce, consume and die."""

import os
import signal
import time

import binding
from common import Bad, Messages, attached, await_successor, close, linger, open_ends, say

ENDINGS = (binding.CLOSED, binding.PEER_DEAD)


def ms_since(began):
    return (time.monotonic_ns() - began) // 1_000_000


def put(tx, args, message, flush):
    """Sends one message as --how says; an error's number or 0."""
    type_id, tag, data = message
    limit = binding.TRY if args.how == "try" else args.limit
    if args.how != "reserve" and flush:
        return tx.send(type_id, tag, bytes(data), limit)
    number, slot = tx.reserve(len(data), limit)
    if number:
        return number
    slot[:] = data
    return tx.commit(len(data), type_id, tag, flush)


def produce(args):
    tx, rest = open_ends(args, args.ring, None)
    attached(tx)
    messages = Messages(args.sizes, tx.longest)
    seq = args.start or 0
    end = seq + args.count
    if args.resume == "yes":
        tag = tx.last_tag()
        seq = seq if tag is None else (tag & 0xFFFFFFFF) + 1
        say(f"resuming next={seq}")

    def report(number, began):
        say(f"end name={binding.name(number)} number={number} sent={sent} next={seq} elapsed_ms={ms_since(began)}")

    sent = endings = 0
    if args.oversize == "yes":
        number = put(tx, args, messages.make(seq, tx.longest + 1), True)
        if number == 0:
            raise Bad(seq, "a message longer than the longest was sent")
        report(number, time.monotonic_ns())
    batch = args.batch or 1
    while seq < end:
        flush = (sent + 1) % batch == 0 or seq + 1 == end
        epoch, began = tx.peer_epoch(), time.monotonic_ns()
        number = put(tx, args, messages.make(seq), flush)
        if number:
            report(number, began)
            endings += number in ENDINGS
            if number not in ENDINGS or endings >= args.endings:
                break
            if await_successor(args, tx, epoch):
                continue
            report(binding.TIMED_OUT, began)
            break
        if args.progress == "yes":
            say(f"at seq={seq}")
        seq, sent = seq + 1, sent + 1
        if args.pace:
            time.sleep(args.pace / 1e6)
    if seq >= end:
        say(f"sent count={sent} next={seq}")
    linger(args)
    close(tx, rest)


class Seen:
    """What a consumer has seen so far."""

    def __init__(self, args, longest):
        self.args, self.messages = args, Messages(args.sizes, longest)
        self.next, self.first, self.received, self.bytes = args.start, -1, 0, 0

    def take(self, message):
        if self.next is None:
            self.next = message.tag & 0xFFFFFFFF
        self.messages.check(self.next, message)
        if self.first < 0:
            self.first = self.next
        if self.args.progress == "yes":
            say(f"at seq={self.next}")
        if self.args.work:
            time.sleep(self.args.work / 1e6)
        self.next, self.received, self.bytes = self.next + 1, self.received + 1, self.bytes + len(message.view)

    def left(self):
        count, until = self.args.count, self.args.until
        return min(2**62 if count is None else count - self.received,
                   2**62 if until is None else until - (self.next or 0))

    def last(self):
        return -1 if self.first < 0 else self.next - 1

    def report(self, number, elapsed_ms):
        say(f"end name={binding.name(number) if number else 'Count'} number={number} received={self.received} "
            f"first={self.first} last={self.last()} bytes={self.bytes} elapsed_ms={elapsed_ms}")


def get(rx, seen):
    """Receives one message, or a batch of them, as --how says; an error's number or 0."""
    args = seen.args
    if args.how == "batch":
        number, messages = rx.recv_batch(min(args.batch or 32, seen.left()), args.limit)
    elif args.how == "into":
        number, message = rx.recv_into(args.limit)
        if not number:
            seen.take(message)
        return number
    else:
        number, message = rx.recv(binding.TRY if args.how == "try" else args.limit)
        messages = [message]
    if number:
        return number
    for message in messages:
        seen.take(message)
    rx.release()
    return 0


def consume(args):
    rest, rx = open_ends(args, None, args.ring)
    attached(rx)
    seen = Seen(args, rx.longest)
    number = endings = elapsed_ms = 0
    while seen.left() > 0:
        epoch, began = rx.peer_epoch(), time.monotonic_ns()
        number = get(rx, seen)
        elapsed_ms = ms_since(began)
        if not number:
            continue
        endings += number in ENDINGS
        if number in ENDINGS and endings < args.endings:
            seen.report(number, elapsed_ms)
            if await_successor(args, rx, epoch):
                number = 0
                continue
            number = binding.TIMED_OUT
        break
    seen.report(number, elapsed_ms)
    linger(args)
    close(rest, rx)


def die(args):
    if args.role == "producer":
        tx, _ = open_ends(args, args.ring, None)
        attached(tx)
        messages = Messages(args.sizes, tx.longest)
        seq = args.start or 0
        for seq in range(seq, seq + args.count):
            binding.must(put(tx, args, messages.make(seq), True))
        seq = (args.start or 0) + args.count
        type_id, tag, data = messages.make(seq)
        number, slot = tx.reserve(len(data), args.limit)
        binding.must(number)
        half = len(data) // 2
        slot[:half] = data[:half]
        binding.must(tx.commit(half, type_id, tag, False))
    else:
        _, rx = open_ends(args, None, args.ring)
        attached(rx)
        seen = Seen(args, rx.longest)
        for left in range(args.count, 0, -1):
            number, message = rx.recv(args.limit)
            binding.must(number)
            seen.take(message)
            if left > 1:
                rx.release()
        seq = seen.last()
    say(f"dying next={seq}")
    os.kill(os.getpid(), signal.SIGKILL)
