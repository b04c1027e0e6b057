"""A client of RPC: its commands."""

import os
import time
import zlib
from collections import Counter, deque
from dataclasses import dataclass
from typing import Any, Self

import ramway
from line import Line, RefusedError, ended, ms_since, say
from look import OPEN_TIMEOUT
from message import BadMessage, Messages
from ramway.rpc import AsyncClient, CallError, Client, MethodInfo, Pending, Reply, Stream, method_id
from rpc_server import SUM, pattern, read, words

# In the order of their numbers.
STATUSES = (
    "Ok",
    "Application",
    "NoSuchMethod",
    "TimedOut",
    "Cancelled",
    "Overloaded",
    "ReplyTooLarge",
    "Draining",
    "HandlerFailed",
)


class Tally:
    """How many calls had which outcome."""

    def __init__(self) -> None:
        self.began = time.monotonic_ns()
        self.names: Counter[str] = Counter()
        self.cancelled = self.may_have_run = self.bytes = 0

    def failed(self, error: CallError) -> None:
        self.names[error.status or error.kind] += 1
        self.may_have_run += error.may_have_run

    def say(self, begin: str) -> None:
        """`called` and `streamed`."""
        names = "".join(f" {name}={count}" for name, count in sorted(self.names.items()))
        cancelled = f" cancelled={self.cancelled}" if self.cancelled else ""
        rest = f"may_have_run={self.may_have_run} bytes={self.bytes} elapsed_ms={ms_since(self.began)}"
        say(f"{begin}{names}{cancelled} {rest}")


@dataclass
class Asked:
    """One call."""

    seq: int
    body: bytes
    meta: bytes


def same(seq: int, what: str, found: bytes, expected: bytes) -> None:
    if found != expected:
        raise BadMessage(seq, f"{what} of {len(found)} bytes is not the {len(expected)} bytes that were to come")


def application(seq: int, error: CallError, code: int, text: str) -> None:
    if (error.code, error.text) != (code, text):
        raise BadMessage(seq, f"error {error.code} with '{error.text}' instead of {code} with '{text}'")


class Calls:
    """A row of calls."""

    def __init__(self, line: Line) -> None:
        method = line.text("method")
        try:
            self.method = method_id(SUM) if method == "sum" else int(method)
        except ValueError:
            raise RefusedError(f"method={method}") from None
        self.messages = Messages(line.text("sizes", "mixed"), line.number("longest", 4096))
        self.meta_len, deadline = line.number("meta", 0), line.maybe("deadline")
        self.timeout = None if deadline is None else deadline / 1e6
        self.most_ms = -(-(deadline or 0) // 1000)

    def asked(self, seq: int) -> Asked:
        payload = self.messages.make(seq)[2]
        match self.method:
            case 2:
                body = words(seq, len(payload))
            case 3:
                body = words(seq + 1) + b"call %d" % seq
            case 6 | 7:
                body = b""
            case _:
                body = bytes(payload)
        return Asked(seq, body, pattern(seq + 1, self.meta_len))

    def call(self, client: Client, asked: Asked) -> Reply:
        return client.call(self.method, asked.body, timeout=self.timeout, meta=asked.meta or None)

    def start(self, client: Client, asked: Asked) -> Pending:
        return client.start(self.method, asked.body, timeout=self.timeout, meta=asked.meta or None)

    def check(self, asked: Asked, reply: Reply) -> None:
        seq = asked.seq
        meta = asked.meta if self.method in (1, 5) else b""
        if self.method in (1, 5):
            expected = asked.body
        elif self.method == 2:
            expected = pattern(seq, len(self.messages.make(seq)[2]))
        elif self.method == 7:
            pid, left = read(reply.body, 2)
            if pid != os.getpid() or left > self.most_ms or (left == 0) != (self.most_ms == 0):
                raise BadMessage(seq, f"method 7 replied process {pid} and {left} ms of {self.most_ms}")
            expected = reply.body
        elif self.method == method_id(SUM):
            expected = words(zlib.crc32(asked.body))
        else:
            raise BadMessage(seq, f"method {self.method} replied")
        same(seq, "a body", reply.body, expected)
        same(seq, "metadata", reply.meta, meta)

    def count(self, tally: Tally, asked: Asked, outcome: Reply | CallError) -> None:
        """Counts what came of a call, if it is as it must be."""
        if isinstance(outcome, CallError):
            if outcome.status == "Application" and self.method == 3:
                application(asked.seq, outcome, asked.seq + 1, f"call {asked.seq}")
            tally.failed(outcome)
            return
        self.check(asked, outcome)
        tally.bytes += len(outcome.body)
        tally.names["Ok"] += 1


@dataclass
class Expected:
    """What a stream is to bring, and how far it was read."""

    seq: int
    size: int
    count: int
    code: int
    received: int = 0
    ended: bool = False

    @classmethod
    def many(cls, line: Line) -> tuple[list[Self], dict[str, Any]]:
        """The streams of a command, and the options of their calls."""
        count, size, code = line.number("count"), line.number("size"), line.number("code", 0)
        streams, start = line.number("streams", 1), line.number("start", 0)
        window, deadline = line.maybe("window"), line.maybe("deadline")
        line.end()
        options: dict[str, Any] = {} if window is None else {"window": window}
        if deadline is not None:
            options["timeout"] = deadline / 1e6
        return [cls(seq, size, count, code) for seq in range(start, start + streams)], options

    def body(self) -> bytes:
        return words(self.count, self.size, self.code, self.seq)

    def came(self, outcome: Reply | CallError | None, tally: Tally) -> int:
        """Counts what came of the stream, if it is as it must be; says how many elements that were."""
        if isinstance(outcome, Reply):
            same(self.seq, "an element", outcome.body, pattern(self.seq + self.received, self.size))
            self.received += 1
            tally.bytes += len(outcome.body)
            return 1
        self.ended = True
        if outcome is None:
            self.whole()
            if self.code != 0:
                raise BadMessage(self.seq, "it is complete in place of an error")
            tally.names["Ok"] += 1
            return 0
        if outcome.status == "Application":
            self.whole()
            application(self.seq, outcome, self.code, f"after {self.count}")
        tally.failed(outcome)
        return 0

    def whole(self) -> None:
        if self.received != self.count:
            raise BadMessage(self.seq, f"{self.received} elements instead of {self.count}")


def options(line: Line) -> dict[str, Any]:
    """Of a client that is to be connected."""
    wait, max_buffered = line.wait(), line.maybe("max_buffered")
    timeout = line.number("timeout", int(1000 * OPEN_TIMEOUT)) / 1000
    line.end()
    return {"wait": wait, "max_buffered": max_buffered, "timeout": timeout}


def say_attached(client: Client | AsyncClient) -> None:
    say(f"attached pid={os.getpid()} peer_pid={client.peer_pid or 0} max_in_flight={client.max_in_flight}")


def say_described(methods: list[MethodInfo]) -> None:
    text = ",".join(f"{m.number}" if m.name is None else f"{m.number} {m.name}" for m in methods)
    say(f"described text={text}")


class Calling:
    """A client, and the calls that it keeps."""

    def __init__(self, name: str, line: Line) -> None:
        self.client = Client.connect(name, **options(line))
        self.kept: deque[tuple[Calls, Asked, Pending]] = deque()
        self.streams: list[tuple[Stream, Expected]] = []
        say_attached(self.client)

    def close(self) -> None:
        self.kept.clear()
        self.streams.clear()
        self.client.close()

    def obey(self, line: Line) -> None:
        match line.word:
            case "call":
                self.call(line)
            case "start":
                self.start(line)
            case "collect":
                self.collect(line)
            case "stream":
                self.stream(line)
            case "next":
                self.next(line)
            case "cancel":
                self.cancel(line)
            case "health":
                self.health(line)
            case "describe":
                line.end()
                say_described(self.client.describe())
            case "measure":
                # Here, for what it imports.
                import rpc_measure

                rpc_measure.calls(self.client, line)
            case "state":
                line.end()
                say(f"state in_flight={self.client.in_flight}")
            case _:
                raise RefusedError(f"{line.word} is no command of a client")

    def call(self, line: Line) -> None:
        calls = Calls(line)
        count, start = line.number("count", 1), line.number("start", 0)
        in_flight, cancel = line.number("in_flight", 1), line.yes("cancel")
        line.end()
        tally = Tally()
        pending: deque[tuple[Asked, Pending]] = deque()

        def oldest() -> None:
            asked, call = pending.popleft()
            if cancel and asked.seq % 2 == 1:
                call.cancel()
                tally.cancelled += 1
                return
            try:
                calls.count(tally, asked, call.wait())
            except CallError as error:
                calls.count(tally, asked, error)

        for seq in range(start, start + count):
            asked = calls.asked(seq)
            if len(pending) >= in_flight:
                oldest()
            try:
                if in_flight == 1 and not cancel:
                    calls.count(tally, asked, calls.call(self.client, asked))
                else:
                    pending.append((asked, calls.start(self.client, asked)))
            except CallError as error:
                calls.count(tally, asked, error)
        while pending:
            oldest()
        tally.say(f"called count={count}")

    def start(self, line: Line) -> None:
        calls = Calls(line)
        count, start = line.number("count", 1), line.number("start", 0)
        line.end()
        for seq in range(start, start + count):
            asked = calls.asked(seq)
            self.kept.append((calls, asked, calls.start(self.client, asked)))
        say(f"started count={count}")

    def collect(self, line: Line) -> None:
        limit = line.number("timeout", 20000) / 1000
        line.end()
        tally, count = Tally(), 0
        while self.kept:
            calls, asked, call = self.kept[0]
            outcome: Reply | CallError
            try:
                outcome = call.wait(limit)
            except CallError as error:
                outcome = error
            except ramway.TimedOutError as late:
                say(ended(late))
                return
            self.kept.popleft()
            calls.count(tally, asked, outcome)
            count += 1
        tally.say(f"called count={count}")

    def stream(self, line: Line) -> None:
        many, options = Expected.many(line)
        for expected in many:
            self.streams.append((self.client.stream(4, expected.body(), **options), expected))
        say(f"started count={len(many)}")

    def next(self, line: Line) -> None:
        rounds, limit = line.maybe("count"), line.number("timeout", 20000) / 1000
        line.end()
        tally, received = Tally(), 0
        while self.streams and rounds != 0:
            for stream, expected in self.streams:
                outcome: Reply | CallError | None
                try:
                    outcome = stream.next(limit)
                except CallError as error:
                    outcome = error
                except ramway.TimedOutError as late:
                    say(ended(late))
                    return
                received += expected.came(outcome, tally)
            self.streams = [kept for kept in self.streams if not kept[1].ended]
            rounds = None if rounds is None else rounds - 1
        tally.say(f"streamed received={received}")

    def cancel(self, line: Line) -> None:
        line.end()
        for _, _, call in self.kept:
            call.cancel()
        for stream, _ in self.streams:
            stream.cancel()
        say(f"cancelled count={len(self.kept) + len(self.streams)}")
        self.kept.clear()
        self.streams.clear()

    def health(self, line: Line) -> None:
        line.end()
        try:
            self.client.ping()
        except CallError as error:
            say_failed(error)
        else:
            say("healthy")


def say_failed(error: CallError) -> None:
    say(f"end name={error.status or error.kind} number={number_of(error)}")


def number_of(error: ramway.Error) -> int:
    """Of an error's kind, or of a call's status."""
    status = getattr(error, "status", None)
    return error.code if status is None else STATUSES.index(status)
