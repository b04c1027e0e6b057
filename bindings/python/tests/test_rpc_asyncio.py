"""RPC in event loops: clients and servers, alone and together."""

import asyncio
import gc
import os
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import ramway
from loops import KINDS, every_loop, run, turns
from ramway.rpc import AsyncClient, CallError, Client, Fault, Request, Server
from serving import is_late, store
from support import LONG, Thread


class Store:
    """A server `s` with a method of each kind that a loop has."""

    def __init__(self, **options: object) -> None:
        self.gate = asyncio.Event()
        self.running = self.cancelled = self.yielded = 0
        self.closed = asyncio.Event()
        self.server = Server("s", **options)  # type: ignore[arg-type]

        @self.server.method(1)
        async def echo(request: Request) -> bytes:
            request.reply_meta = request.meta
            if len(request.body) % 2:
                await asyncio.sleep(0)
            return request.body

        @self.server.method("Store.Refuse")
        async def refuse(request: Request) -> None:
            raise Fault(9, "not today")

        @self.server.method(3)
        async def fail(request: Request) -> None:
            await asyncio.sleep(0)
            raise ValueError("not a number")

        @self.server.stream(4)
        async def count(request: Request) -> AsyncIterator[bytes]:
            try:
                for n in range(int(request.body)):
                    self.yielded = n + 1
                    yield b"%d" % n
                    if n % 10 == 3:
                        await asyncio.sleep(0)
            finally:
                self.closed.set()

        @self.server.method(5)
        async def gated(request: Request) -> bytes:
            self.running += 1
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                assert request.cancelled
                raise
            finally:
                self.running -= 1
            return request.body

        @self.server.method(6)
        def plain(request: Request) -> bytes:
            return b"plain " + request.body

        @self.server.stream(7)
        def plain_count(request: Request) -> Iterator[bytes]:
            for n in range(int(request.body)):
                yield b"%d" % n

        @self.server.stream(8)
        async def fails(request: Request) -> AsyncIterator[bytes]:
            yield b"one"
            raise Fault(8, "after one")

    async def until(self, running: int) -> None:
        while self.running != running:
            await asyncio.sleep(0.001)


@asynccontextmanager
async def serving(**options: object) -> AsyncIterator[tuple[Store, AsyncClient]]:
    """A store and a client in the running loop."""
    store = Store(**options)
    serves = asyncio.create_task(store.server.serve())
    async with await AsyncClient.connect("s", timeout=LONG) as client:
        yield store, client
    store.server.shutdown()
    await serves


async def idle(client: AsyncClient) -> None:
    while client.in_flight:
        await asyncio.sleep(0.001)


@every_loop
def test_a_call_of_each_kind(kind: str) -> None:
    async def main() -> None:
        async with serving() as (_, client):
            reply = await client.call(1, b"body", meta=b"trace")
            assert (reply.body, reply.meta) == (b"body", b"trace")
            assert (await client.call(6, b"x")).body == b"plain x"
            bodies = [b"x" * n for n in range(300)]
            replies = await asyncio.gather(*(client.call(1, body) for body in bodies))
            assert [reply.body for reply in replies] == bodies
            for method, status, text in (
                ("Store.Refuse", "Application", "not today"),
                (3, "HandlerFailed", "ValueError: "),
            ):
                with pytest.raises(CallError) as failed:
                    await client.call(method)
                assert failed.value.status == status and failed.value.text.startswith(text)
            for method in (4, 7):
                assert [reply.body async for reply in client.stream(method, b"100")] == [b"%d" % n for n in range(100)]
            stream = client.stream(8)
            assert (one := await stream.next()) is not None and one.body == b"one"
            with pytest.raises(CallError, match="error 8: after one"):
                await stream.next()
            assert await stream.next() is None
            with pytest.raises(CallError, match="one reply"):
                await client.call(4, b"1")
            assert [element.body async for element in client.stream(1, b"x")] == [b"x"]
            await client.ping(timeout=LONG)
            assert [method.number for method in await client.describe()][:4] == [1, 3, 4, 5]
            assert (client.peer_pid, client.peer_uid, client.name) == (os.getpid(), os.geteuid(), "s")
            assert client.max_in_flight == 1024 and client.max_request_len == (1 << 20) - 32 and not client.closed
            assert repr(client) == "<ramway.rpc.AsyncClient of 's'>"
            with pytest.raises(ramway.InvalidArgumentError):
                client.stream(4, window=0)
            with pytest.raises(ramway.TooLargeError):
                await client.call(1, bytes(1 << 20))

    run(kind, main())


@every_loop
def test_cancelling_a_task_cancels_its_call(kind: str) -> None:
    async def main() -> None:
        async with serving() as (store, client):
            task = asyncio.create_task(client.call(5))
            await store.until(running=1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await store.until(running=0)
            assert store.cancelled == 1
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await client.call(5)
            pending = client.start(5)
            await store.until(running=1)
            assert not pending.done()
            del pending
            await store.until(running=0)
            pending = client.start(5)
            pending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await pending
            await idle(client)
            pending = client.start(1, b"kept")
            assert (await pending).body == b"kept" and pending.done()

    run(kind, main())


@every_loop
def test_a_storm_of_cancelled_calls(kind: str) -> None:
    async def main() -> None:
        async with serving(max_in_flight=50) as (store, client):
            for round in range(4):
                tasks = [asyncio.create_task(client.call(5 if n % 3 else 1, b"%d" % n)) for n in range(200)]
                await turns()
                for n, task in enumerate(tasks):
                    if (n + round) % 2:
                        task.cancel()
                store.gate.set()
                outcomes = await asyncio.gather(*tasks, return_exceptions=True)
                for n, outcome in enumerate(outcomes):
                    if isinstance(outcome, asyncio.CancelledError):
                        assert (n + round) % 2
                    else:
                        assert not isinstance(outcome, BaseException), outcome
                        assert outcome.body == b"%d" % n
                store.gate.clear()
            await idle(client)
            assert store.running == 0
            assert (await client.call(1, b"still here")).body == b"still here"

    run(kind, main())


@every_loop
def test_a_time_limit_needs_no_traffic(kind: str) -> None:
    async def main() -> None:
        async with serving() as (store, client):
            with pytest.raises(CallError) as late:
                await client.call(5, timeout=0.02)
            # A busy machine may not begin it in time.
            assert isinstance(late.value, ramway.TimedOutError) or is_late(late.value)
            assert (await asyncio.gather(client.call(5, timeout=0.03), client.call(1), return_exceptions=True))[1]
            stream = client.stream(4, b"1000000", timeout=0.05)
            with pytest.raises(CallError):
                async for _ in stream:
                    pass
            await store.until(running=0)
            await idle(client)

    run(kind, main())


@every_loop
def test_a_slow_reader_stops_its_stream_and_nothing_else(kind: str) -> None:
    async def main() -> None:
        async with serving() as (store, client):
            stream = client.stream(4, b"1000", window=4)
            first = await stream.next()
            assert first is not None and first.body == b"0"
            for n in range(30):
                assert (await client.call(1, b"%d" % n)).body == b"%d" % n
            assert store.yielded <= 4 + 2 + 1
            assert [reply.body async for reply in stream] == [b"%d" % n for n in range(1, 1000)]
            store.closed.clear()
            async with client.stream(4, b"1000000") as stream:
                async for element in stream:
                    if element.body == b"20":
                        break
            # Its generator has been closed.
            await asyncio.wait_for(store.closed.wait(), LONG)
            store.closed.clear()
            stream = client.stream(4, b"1000000")
            await stream.next()
            del stream
            await asyncio.wait_for(store.closed.wait(), LONG)
            waiting = client.stream(5)
            first_task = asyncio.create_task(waiting.next())
            await turns()
            with pytest.raises(ramway.BusyError):
                await waiting.next()
            first_task.cancel()
            await turns()
            store.gate.set()
            # The stream was left as it is.
            assert await waiting.next() is not None and await waiting.next() is None
            await idle(client)

    run(kind, main())


def test_ten_thousand_calls_are_in_flight() -> None:
    async def main() -> None:
        async with serving(max_in_flight=10_000, capacity=1 << 21) as (store, client):
            tasks = [asyncio.create_task(client.call(5, b"%d" % n)) for n in range(10_000)]
            await store.until(running=10_000)
            assert client.in_flight == 10_000
            more = asyncio.create_task(client.call(1, b"after"))
            await turns()
            assert not more.done()
            for task in tasks[::2]:
                task.cancel()
            assert (await more).body == b"after"
            await store.until(running=5000)
            store.gate.set()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [getattr(outcome, "body", None) for outcome in outcomes[1::2]] == [
                b"%d" % n for n in range(1, 10_000, 2)
            ]
            assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes[::2])
            await idle(client)

    run("asyncio", main())


@every_loop
def test_closing_ends_what_is_under_way(kind: str) -> None:
    async def main() -> None:
        async with serving() as (store, client):
            task, pending, stream = asyncio.create_task(client.call(5)), client.start(5), client.stream(5)
            waits = asyncio.create_task(stream.next())
            await store.until(running=3)
            client.close()
            client.close()
            for ends in (task, pending, waits):
                with pytest.raises(ramway.Error) as closed:
                    await ends
                assert isinstance(closed.value, ramway.ClosedError | ramway.DetachedError)
            for call in (lambda: client.start(1), lambda: client.stream(4)):
                with pytest.raises(ramway.DetachedError):
                    call()
            with pytest.raises(ramway.DetachedError):
                await client.call(1)
            with pytest.raises(ramway.DetachedError):
                await client.__aenter__()
            assert client.closed
            await store.until(running=0)

    run(kind, main())


@every_loop
def test_a_server_that_drains_ends_when_its_calls_have(kind: str) -> None:
    async def main() -> None:
        store = Store()
        serves = asyncio.create_task(store.server.serve())
        with pytest.raises(ramway.BusyError):
            await asyncio.gather(store.server.serve())
        async with await AsyncClient.connect("s") as client:
            runs = asyncio.create_task(client.call(5, b"done"))
            await store.until(running=1)
            with pytest.raises(ramway.BusyError):
                store.server.close()
            store.server.shutdown(LONG)
            refused: CallError | None = None
            while refused is None:
                try:
                    await client.call(1)
                except CallError as error:
                    refused = error
            assert (refused.status, refused.may_have_run) == ("Draining", False)
            assert not serves.done()
            store.gate.set()
            assert (await runs).body == b"done"
            await serves
            with pytest.raises(ramway.ClosedError):
                await client.call(1)
        with pytest.raises(ramway.DetachedError):
            await store.server.serve()

    run(kind, main())


@every_loop
def test_a_server_whose_task_is_cancelled_is_closed(kind: str) -> None:
    async def main() -> None:
        store = Store()
        serves = asyncio.create_task(store.server.serve())
        async with await AsyncClient.connect("s") as client:
            runs = asyncio.create_task(client.call(5))
            await store.until(running=1)
            serves.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serves
            assert store.server.closed and store.running == 0
            with pytest.raises(ramway.PeerDeadError) as dead:
                await runs
            assert isinstance(dead.value, CallError) and dead.value.may_have_run

    run(kind, main())


def test_what_ends_the_program_ends_serve() -> None:
    async def main(late: bool) -> None:
        server = Server("s")

        @server.method(1)
        async def leave(request: Request) -> None:
            if late:
                await asyncio.sleep(0)
            sys.exit(3)

        serves = asyncio.create_task(server.serve())
        async with await AsyncClient.connect("s", timeout=LONG) as client:
            await client.call(1)
        await serves

    for late in (False, True):
        with pytest.raises(SystemExit):
            asyncio.run(main(late))


def test_run_serves_coroutines_in_a_loop_of_its_own() -> None:
    server = Server("s")

    @server.method(1)
    async def echo(request: Request) -> bytes:
        await asyncio.sleep(0)
        return request.body

    serves = Thread(server.run)
    with Client.connect("s") as client:
        assert client.call(1, b"x").body == b"x"
        server.shutdown(1)
        serves.result()


def test_a_loop_and_threads_meet() -> None:
    """A server of threads with a client of a loop."""

    async def main() -> None:
        async with await AsyncClient.connect("s") as client:
            waits = asyncio.create_task(client.call(5, b"gated"))
            assert [reply.body async for reply in client.stream(4, b"50", window=2)] == [b"%d" % n for n in range(50)]
            assert (await client.call(1, bytes(300_000))).body == bytes(300_000)
            kept.gate.set()
            assert (await waits).body == b"gated"

    with store() as (kept, _):
        asyncio.run(main())


def test_a_full_ring_does_not_stop_the_loop() -> None:
    """Requests beyond the ring's room wait in the client; replies beyond it in the server."""

    async def main() -> None:
        async with serving(capacity=1 << 16, max_in_flight=100) as (_, client):
            bodies = [bytes([n]) * 20_000 for n in range(100)]
            replies = await asyncio.gather(*(client.call(1, body) for body in bodies))
            assert [reply.body for reply in replies] == bodies

    asyncio.run(main())


def test_connecting_is_given_up_with_its_task() -> None:
    async def main() -> None:
        task = asyncio.create_task(AsyncClient.connect("nobody", timeout=None))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(ramway.NotFoundError):
            await AsyncClient.connect("nobody", timeout=0)

    asyncio.run(main())


# A debugging loop keeps where things were made.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "debug"])
def test_nothing_is_left_behind(kind: str) -> None:
    async def main() -> None:
        async with serving() as (store, client):

            async def work(count: int) -> None:
                for n in range(count):
                    await client.call(1, bytes(n % 5), meta=b"m")
                    with pytest.raises(CallError):
                        await client.call(3)
                    async for _ in client.stream(4, b"5"):
                        pass
                    if n % 5 == 0:
                        task = asyncio.create_task(client.call(5))
                        await store.until(running=1)
                        task.cancel()
                        await asyncio.wait([task])
                        await store.until(running=0)
                    client.start(1)

            async def blocks() -> int:
                await idle(client)
                gc.collect()
                return sys.getallocatedblocks()

            await work(20)
            counts = [await blocks()]
            for _ in range(3):
                await work(100)
                counts.append(await blocks())
            # One object that each round leaves behind would be 100 of them, each time; the interpreter's come and go.
            assert min(after - before for before, after in pairwise(counts)) < 90, counts
            assert len(client._streams) == 0

        # One that is not closed leaves the loop with its last reference.
        serves = asyncio.create_task((other := Store()).server.serve())
        dropped = await AsyncClient.connect("s")
        await dropped.call(1)
        gone = weakref.ref(dropped)
        del dropped
        gc.collect()
        assert gone() is None
        while other.server.clients:
            await asyncio.sleep(0.001)
        other.server.shutdown()
        await serves

    run(kind, main())


def test_no_thread_is_left() -> None:
    async def main() -> None:
        async with serving() as (_, client):
            await client.call(1)
            assert [thread for thread in threading.enumerate() if thread.name == "ramway-connect"] == []

    asyncio.run(main())
