"""produce, consume, echo and ping."""

import time
from functools import partial

import ramway
from line import Limits, Line, RefusedError, ended, ms_since, say
from message import BadMessage, Messages

from topic import longest


class Plan:
    """The keys that produce and consume have."""

    def __init__(self, line: Line, batch: int) -> None:
        self.sizes, self.how = line.text("sizes", "mixed"), line.text("how")
        self.count, self.start = line.maybe("count"), line.maybe("start")
        self.batch, self.endings = line.number("batch", batch), line.number("endings", 1)
        self.limits, self.progress = Limits(line), line.yes("progress")
        line.end()

    def goes_on(self, error: ramway.Error) -> bool:
        """Whether the stream goes on after this one, with a successor of the other side."""
        if isinstance(error, ramway.ClosedError | ramway.PeerDeadError):
            self.endings -= 1
            return self.endings > 0
        return False

    def successor(self, end: ramway.Sender | ramway.Receiver, noted: int) -> bool:
        """False if none came in time."""
        began, limit = time.monotonic(), self.limits.whole
        while end.peer_epoch == noted:
            if limit is not None and time.monotonic() - began >= limit:
                return False
            time.sleep(0.001)
        return True


def put(tx: ramway.Sender, plan: Plan, message: tuple[int, int, memoryview], flush: bool) -> None:
    """Sends one message as `how` says."""
    type_id, tag, data = message
    limit = plan.limits.call
    if plan.how == "try" and flush:
        tx.try_send(data, type_id, tag)
    elif plan.how != "reserve" and flush:
        tx.send(data, type_id, tag, timeout=limit)
    else:
        slot = tx.reserve(len(data), type_id, tag, timeout=limit)
        slot[:] = data
        slot.commit(flush=flush)


def produce(tx: ramway.Sender, line: Line) -> None:
    plan = Plan(line, 1)
    if plan.count is None:
        raise RefusedError("count is missing")
    messages = Messages(plan.sizes, tx.max_message_len)
    seq = plan.start or 0
    end = seq + plan.count
    sent = 0
    while seq < end:
        flush = (sent + 1) % plan.batch == 0 or seq + 1 == end
        epoch, began = tx.peer_epoch, time.monotonic_ns()
        try:
            plan.limits.wait(partial(put, tx, plan, messages.make(seq), flush))
        except ramway.Error as error:
            say(ended(error, f" sent={sent} next={seq} elapsed_ms={ms_since(began)}"))
            if not plan.goes_on(error):
                return
            if not plan.successor(tx, epoch):
                say(ended(ramway.TimedOutError(), f" sent={sent} next={seq} elapsed_ms={ms_since(began)}"))
                return
            continue
        if plan.progress:
            say(f"at seq={seq}")
        seq, sent = seq + 1, sent + 1
    say(f"sent count={sent} next={seq}")


class Seen:
    """What a consumer has seen so far."""

    def __init__(self, plan: Plan, rx: ramway.Receiver) -> None:
        self.plan, self.messages = plan, Messages(plan.sizes, longest(rx))
        self.next = plan.start
        self.first, self.last, self.received, self.bytes = -1, -1, 0, 0
        # Of a topic: how many messages it was told that it lost.
        self.lost = 0 if isinstance(rx, ramway.Subscriber) else None

    def number(self, message: ramway.Message) -> int:
        """The message's number, of a topic by its seq, whose first is 1."""
        if not isinstance(message, ramway.TopicMessage):
            return message.tag & 0xFFFFFFFF if self.next is None else self.next
        seq = message.seq - 1
        if self.next is not None and self.next + message.lost != seq:
            raise BadMessage(seq, f"it comes after {message.lost} lost ones, and {self.next} was expected")
        self.lose(message.lost)
        return seq

    def lose(self, lost: int) -> None:
        """It was told that so many were lost."""
        self.lost = (self.lost or 0) + lost

    def lagged(self, lost: int) -> None:
        say(f"lagged lost={lost}")
        self.lose(lost)
        if self.next is not None:
            self.next += lost

    def take(self, message: ramway.Message, payload: ramway.Message | bytes) -> None:
        seq = self.number(message)
        self.messages.check(seq, message, payload)
        if self.first < 0:
            self.first = seq
        if self.plan.progress:
            say(f"at seq={seq}")
        self.last, self.next = seq, seq + 1
        self.received += 1
        self.bytes += len(payload)

    def left(self) -> int:
        return 2**62 if self.plan.count is None else self.plan.count - self.received

    def report(self, name: str, elapsed_ms: int) -> None:
        say(
            f"{name} received={self.received} first={self.first} last={self.last} bytes={self.bytes} "
            f"elapsed_ms={elapsed_ms}" + ("" if self.lost is None else f" lost={self.lost}")
        )


def get(rx: ramway.Receiver, seen: Seen) -> None:
    """Receives one message, or a batch of them, as `how` says. EmptyError if it was not to wait."""
    plan = seen.plan
    limit = plan.limits.call
    if plan.how == "batch":
        for message in rx.recv_batch(min(plan.batch, seen.left()), limit):
            with message:
                seen.take(message, message)
        return
    received = rx.try_recv() if plan.how == "try" else rx.recv(limit)
    if received is None:
        raise ramway.EmptyError
    with received as message:
        seen.take(message, message.tobytes() if plan.how == "into" else message)


def consume(rx: ramway.Receiver, line: Line) -> None:
    plan = Plan(line, 32)
    seen = Seen(plan, rx)
    elapsed_ms = 0
    while seen.left() > 0:
        epoch, began = rx.peer_epoch, time.monotonic_ns()
        try:
            plan.limits.wait(partial(get, rx, seen))
            elapsed_ms = ms_since(began)
        except ramway.LaggedError as error:
            seen.lagged(error.lost)
        except ramway.Error as error:
            elapsed_ms = ms_since(began)
            seen.report(ended(error), elapsed_ms)
            if not plan.goes_on(error):
                return
            if not plan.successor(rx, epoch):
                seen.report(ended(ramway.TimedOutError()), elapsed_ms)
                return
    seen.report("end name=Count number=0", elapsed_ms)


def echo(tx: ramway.Sender, rx: ramway.Receiver, line: Line) -> None:
    limit = Limits(line).whole
    line.end()
    received = total = 0
    first = last = -1
    while True:
        began = time.monotonic_ns()
        try:
            message = rx.recv(limit)
        except ramway.Error as error:
            counts = f" received={received} first={first} last={last} bytes={total} elapsed_ms={ms_since(began)}"
            say(ended(error, counts))
            return
        last = message.tag & 0xFFFFFFFF
        first = last if received == 0 else first
        received, total = received + 1, total + len(message)
        tx.send(message, message.type_id, message.tag, timeout=limit)
        message.release()


def ping(tx: ramway.Sender, rx: ramway.Receiver, line: Line) -> None:
    count, limit = line.number("count"), Limits(line).whole
    messages = Messages(line.text("sizes", "mixed"), tx.max_message_len)
    line.end()
    for seq in range(count):
        type_id, tag, data = messages.make(seq)
        tx.send(data, type_id, tag, timeout=limit)
        with rx.recv(limit) as message:
            messages.check(seq, message, message)
    say(f"answered count={count}")
