"""The client of RPC for asyncio, in an event loop of its own thread: its commands."""

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

import ramway
from line import Line, RefusedError, ended, say
from ramway.rpc import AsyncClient, AsyncPending, AsyncStream, CallError, Reply
from rpc_client import Asked, Calls, Expected, Tally, options, say_attached, say_described, say_failed

T = TypeVar("T")


async def outcome_of(call: Coroutine[Any, Any, Reply] | AsyncPending) -> Reply | CallError:
    """What comes of a call."""
    try:
        return await call
    except CallError as error:
        return error


class AsyncCalling:
    """A client, and the calls that it keeps. All of it is the loop's: the loop goes on between commands."""

    def __init__(self, name: str, line: Line) -> None:
        given = options(line)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        try:
            self.client = self.run(AsyncClient.connect(name, **given))
        except BaseException:
            self.end()
            raise
        self.kept: deque[tuple[Calls, Asked, asyncio.Task[Reply | CallError]]] = deque()
        self.streams: list[tuple[AsyncStream, Expected]] = []
        say_attached(self.client)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Has the loop do it, and waits for that."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def close(self) -> None:
        async def leave() -> None:
            self.client.close()
            for _, _, task in self.kept:
                task.cancel()
            await asyncio.gather(*(task for _, _, task in self.kept), return_exceptions=True)

        self.run(leave())
        self.streams.clear()
        self.end()

    def obey(self, line: Line) -> None:
        match line.word:
            case "call":
                self.run(self.call(line))
            case "start":
                self.run(self.start(line))
            case "collect":
                self.run(self.collect(line))
            case "stream":
                self.run(self.stream(line))
            case "next":
                self.run(self.next(line))
            case "cancel":
                self.run(self.cancel(line))
            case "health":
                self.run(self.health(line))
            case "describe":
                line.end()
                say_described(self.run(self.client.describe()))
            case "measure":
                # Here, for what it imports.
                import rpc_measure

                rpc_measure.awaits(self.client, self.run, line)
            case "state":
                self.run(self.state(line))
            case _:
                raise RefusedError(f"{line.word} is no command of a client")

    def begin(self, calls: Calls, asked: Asked) -> AsyncPending:
        """Makes a call at once. A task that was made to do that begins later."""
        return self.client.start(calls.method, asked.body, timeout=calls.timeout, meta=asked.meta or None)

    async def call(self, line: Line) -> None:
        calls = Calls(line)
        count, start = line.number("count", 1), line.number("start", 0)
        in_flight, cancel = line.number("in_flight", 1), line.yes("cancel")
        line.end()
        tally = Tally()
        tasks: deque[tuple[Asked, asyncio.Task[Reply | CallError]]] = deque()

        async def oldest() -> None:
            asked, task = tasks.popleft()
            if cancel and asked.seq % 2 == 1:
                task.cancel()
                tally.cancelled += 1
                return
            calls.count(tally, asked, await task)

        for seq in range(start, start + count):
            asked = calls.asked(seq)
            if len(tasks) >= in_flight:
                await oldest()
            if in_flight == 1 and not cancel:
                meta = asked.meta or None
                call = self.client.call(calls.method, asked.body, timeout=calls.timeout, meta=meta)
                calls.count(tally, asked, await outcome_of(call))
                continue
            try:
                tasks.append((asked, self.loop.create_task(outcome_of(self.begin(calls, asked)))))
            except CallError as error:
                calls.count(tally, asked, error)
        while tasks:
            await oldest()
        tally.say(f"called count={count}")

    async def start(self, line: Line) -> None:
        calls = Calls(line)
        count, start = line.number("count", 1), line.number("start", 0)
        line.end()
        for seq in range(start, start + count):
            asked = calls.asked(seq)
            self.kept.append((calls, asked, self.loop.create_task(outcome_of(self.begin(calls, asked)))))
        say(f"started count={count}")

    async def collect(self, line: Line) -> None:
        limit = line.number("timeout", 20000) / 1000
        line.end()
        tally, count = Tally(), 0
        while self.kept:
            calls, asked, task = self.kept[0]
            # Not `wait_for`, which would cancel the call.
            await asyncio.wait((task,), timeout=limit)
            if not task.done():
                say(ended(ramway.TimedOutError()))
                return
            self.kept.popleft()
            calls.count(tally, asked, task.result())
            count += 1
        tally.say(f"called count={count}")

    async def stream(self, line: Line) -> None:
        many, options = Expected.many(line)
        for expected in many:
            self.streams.append((self.client.stream(4, expected.body(), **options), expected))
        say(f"started count={len(many)}")

    async def next(self, line: Line) -> None:
        rounds, limit = line.maybe("count"), line.number("timeout", 20000) / 1000
        line.end()
        tally, received = Tally(), 0
        while self.streams and rounds != 0:
            for stream, expected in self.streams:
                outcome: Reply | CallError | None
                try:
                    outcome = await asyncio.wait_for(stream.next(), limit)
                except CallError as error:
                    outcome = error
                except TimeoutError:
                    say(ended(ramway.TimedOutError()))
                    return
                received += expected.came(outcome, tally)
            self.streams = [kept for kept in self.streams if not kept[1].ended]
            rounds = None if rounds is None else rounds - 1
        tally.say(f"streamed received={received}")

    async def cancel(self, line: Line) -> None:
        line.end()
        for _, _, task in self.kept:
            task.cancel()
        for stream, _ in self.streams:
            stream.cancel()
        # A task is cancelled when it is next let go on.
        await asyncio.gather(*(task for _, _, task in self.kept), return_exceptions=True)
        say(f"cancelled count={len(self.kept) + len(self.streams)}")
        self.kept.clear()
        self.streams.clear()

    async def health(self, line: Line) -> None:
        line.end()
        try:
            await self.client.ping()
        except CallError as error:
            say_failed(error)
        else:
            say("healthy")

    async def state(self, line: Line) -> None:
        line.end()
        say(f"state in_flight={self.client.in_flight}")
