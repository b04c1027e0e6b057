"""produce, consume and die."""

import os
import signal
import time
from functools import partial

import ramway
from common import (
    Args,
    BadMessage,
    Messages,
    attached,
    await_successor,
    close,
    ended,
    linger,
    ms_since,
    polling,
    receiving,
    say,
    sending,
)


def put(tx: ramway.Sender, args: Args, message: tuple[int, int, memoryview], flush: bool) -> None:
    """Sends one message as --how says."""
    type_id, tag, data = message
    wait = args.how != "try"
    if args.how != "reserve" and flush:
        if wait:
            tx.send(data, type_id, tag, timeout=args.call_limit)
        else:
            tx.try_send(data, type_id, tag)
        return
    slot = (
        tx.reserve(len(data), type_id, tag, timeout=args.call_limit)
        if wait
        else tx.try_reserve(len(data), type_id, tag)
    )
    slot[:] = data
    slot.commit(flush=flush)


def produce(args: Args) -> None:
    tx = sending(args)
    attached(tx)
    messages = Messages(args.sizes, tx.max_message_len)
    seq = args.start or 0
    end = seq + args.count
    if args.resume == "yes":
        tag = tx.last_tag
        seq = seq if tag is None else (tag & 0xFFFFFFFF) + 1
        say(f"resuming next={seq}")

    sent = endings = 0

    def report(error: ramway.Error, began: int) -> None:
        say(ended(error, f" sent={sent} next={seq} elapsed_ms={ms_since(began)}"))

    if args.oversize == "yes":
        try:
            put(tx, args, messages.make(seq, tx.max_message_len + 1), True)
        except ramway.TooLargeError as error:
            report(error, time.monotonic_ns())
        else:
            raise BadMessage(seq, "a message longer than the longest was sent")
    batch = args.batch or 1
    while seq < end:
        flush = (sent + 1) % batch == 0 or seq + 1 == end
        epoch, began = tx.peer_epoch, time.monotonic_ns()
        try:
            polling(args, partial(put, tx, args, messages.make(seq), flush))
        except (ramway.ClosedError, ramway.PeerDeadError) as error:
            report(error, began)
            endings += 1
            if endings >= args.endings:
                break
            if await_successor(args, tx, epoch):
                continue
            report(ramway.TimedOutError(), began)
            break
        except ramway.Error as error:
            report(error, began)
            break
        if args.progress == "yes":
            say(f"at seq={seq}")
        seq, sent = seq + 1, sent + 1
        if args.pace:
            time.sleep(args.pace / 1e6)
    if seq >= end:
        say(f"sent count={sent} next={seq}")
    linger(args)
    close(tx)


class Seen:
    """What a consumer has seen so far."""

    def __init__(self, args: Args, longest: int) -> None:
        self.args, self.messages = args, Messages(args.sizes, longest)
        self.next: int | None = args.start
        self.first, self.last, self.received, self.bytes = -1, -1, 0, 0

    def take(self, message: ramway.Message, payload: ramway.Message | bytes | None = None) -> None:
        payload = message if payload is None else payload
        seq = message.tag & 0xFFFFFFFF if self.next is None else self.next
        self.messages.check(seq, message, payload)
        if self.first < 0:
            self.first = seq
        if self.args.progress == "yes":
            say(f"at seq={seq}")
        if self.args.work:
            time.sleep(self.args.work / 1e6)
        self.last, self.next = seq, seq + 1
        self.received += 1
        self.bytes += len(payload)

    def left(self) -> int:
        count, until = self.args.count, self.args.until
        return min(
            2**62 if count is None else count - self.received, 2**62 if until is None else until - (self.next or 0)
        )

    def report(self, name: str, elapsed_ms: int) -> None:
        say(
            f"{name} received={self.received} first={self.first} last={self.last} bytes={self.bytes} "
            f"elapsed_ms={elapsed_ms}"
        )


def get(rx: ramway.Receiver, seen: Seen) -> None:
    """Receives one message, or a batch of them, as --how says. EmptyError if it was not to wait."""
    args = seen.args
    if args.how == "batch":
        for message in rx.recv_batch(min(args.batch or 32, seen.left()), args.call_limit):
            with message:
                seen.take(message)
        return
    received = rx.try_recv() if args.how == "try" else rx.recv(args.call_limit)
    if received is None:
        raise ramway.EmptyError
    with received as message:
        seen.take(message, message.tobytes() if args.how == "into" else None)


def consume(args: Args) -> None:
    rx = receiving(args)
    attached(rx)
    seen = Seen(args, rx.capacity - 16)
    endings = elapsed_ms = 0
    end = "end name=Count number=0"
    while seen.left() > 0:
        epoch, began = rx.peer_epoch, time.monotonic_ns()
        try:
            polling(args, partial(get, rx, seen))
            elapsed_ms = ms_since(began)
            continue
        except (ramway.ClosedError, ramway.PeerDeadError) as error:
            elapsed_ms, end = ms_since(began), ended(error)
            endings += 1
            if endings < args.endings:
                seen.report(end, elapsed_ms)
                if await_successor(args, rx, epoch):
                    end = "end name=Count number=0"
                    continue
                end = ended(ramway.TimedOutError())
        except ramway.Error as error:
            elapsed_ms, end = ms_since(began), ended(error)
        break
    seen.report(end, elapsed_ms)
    linger(args)
    close(rx)


def die(args: Args) -> None:
    if args.role == "producer":
        tx = sending(args)
        attached(tx)
        messages = Messages(args.sizes, tx.max_message_len)
        start = args.start or 0
        for seq in range(start, start + args.count):
            put(tx, args, messages.make(seq), True)
        last = start + args.count
        type_id, tag, data = messages.make(last)
        slot = tx.reserve(len(data), type_id, tag, timeout=args.limit)
        half = len(data) // 2
        slot[:half] = data[:half]
        slot.commit(half, flush=False)
    else:
        rx = receiving(args)
        attached(rx)
        seen = Seen(args, rx.capacity - 16)
        for left in range(args.count, 0, -1):
            message = rx.recv(args.limit)
            seen.take(message)
            if left > 1:
                message.release()
        last = seen.last
    say(f"dying next={last}")
    os.kill(os.getpid(), signal.SIGKILL)
