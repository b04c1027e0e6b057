"""RPC between processes: deaths, signals, restarts."""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import ExitStack

import pytest
import ramway
from ramway.rpc import AsyncClient, CallError, Client, Request, Server
from serving import is_late, serving, wait_until
from support import LONG, Child, Thread, stopped

# A server `s` in a process: of threads, or of an event loop.
SERVER = """
    import asyncio, sys, threading
    from ramway.rpc import Server

    server = Server("s", threads=8)
    is_loop = sys.argv[1] == "loop"

    @server.method(1)
    def echo(request):
        return request.body

    if is_loop:
        @server.method(5)
        async def waits(request):
            sys.stdout.write("began\\n")
            await asyncio.sleep(1000)

        @server.stream(4)
        async def count(request):
            for n in range(int(request.body)):
                yield b"%d" % n
    else:
        @server.method(5, pool=True)
        def waits(request):
            sys.stdout.write("began\\n")
            while not request.cancelled:
                threading.Event().wait(0.001)

        @server.stream(4)
        def count(request):
            for n in range(int(request.body)):
                yield b"%d" % n

    @server.method("Stop")
    def stop(request):
        server.shutdown(float(request.body))

    print("serves", flush=True)
    server.run()
    print("ended", flush=True)
"""

KINDS = pytest.mark.parametrize("kind", ["threads", "loop"])


def served(kind: str) -> Child:
    child = Child(SERVER, kind)
    assert child.line() == "serves"
    return child


def ended(call: Callable[[], object]) -> CallError:
    """How a call ends that has no reply."""
    with pytest.raises(CallError) as raised:
        call()
    return raised.value


@KINDS
def test_calls_between_processes(kind: str) -> None:
    with served(kind) as child, Client.connect("s") as client:
        assert client.peer_pid == child.pid
        for n in range(2000):
            assert client.call(1, b"%d" % n).body == b"%d" % n
        calls = [client.start(1, b"%d" % n) for n in range(10_000)]
        assert [call.wait(LONG).body for call in calls] == [b"%d" % n for n in range(10_000)]
        assert [element.body for element in client.stream(4, b"1000", window=3)] == [b"%d" % n for n in range(1000)]
        client.call("Stop", b"1")
        assert child.finish() == ["ended"]
        error = ended(lambda: client.call(1))
        assert isinstance(error, ramway.ClosedError) and not error.may_have_run


@KINDS
def test_a_server_is_killed_with_calls_in_flight(kind: str) -> None:
    with served(kind) as child, Client.connect("s") as client:
        threads = [Thread(lambda: client.call(5)) for _ in range(3)]
        pending = client.start(5)
        stream = client.stream(4, b"100000000")
        assert stream.next() is not None
        for _ in range(4):
            assert child.line() == "began"
        child.kill()
        for call in (*(thread.result for thread in threads), pending.wait):
            error = ended(call)
            assert isinstance(error, ramway.PeerDeadError) and error.may_have_run
        assert isinstance(ended(lambda: list(stream)), ramway.PeerDeadError)
        error = ended(lambda: client.call(1))
        assert isinstance(error, ramway.PeerDeadError) and not error.may_have_run
        # A new one at the same name is connected to, not found by itself.
        with served(kind), Client.connect("s", timeout=LONG) as again:
            assert again.call(1, b"x").body == b"x"


@KINDS
def test_a_loops_server_is_killed_with_calls_in_flight(kind: str) -> None:
    async def main() -> None:
        with served(kind) as child:
            async with await AsyncClient.connect("s") as client:
                assert client.peer_pid == child.pid
                tasks = [asyncio.create_task(client.call(5)) for _ in range(3)]
                stream = client.stream(4, b"100000000")
                assert await stream.next() is not None
                for _ in range(3):
                    assert await asyncio.to_thread(child.line) == "began"
                child.kill()
                for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                    assert isinstance(outcome, ramway.PeerDeadError) and isinstance(outcome, CallError)
                    assert outcome.may_have_run
                with pytest.raises(ramway.PeerDeadError):
                    async for _ in stream:
                        pass
                with pytest.raises(ramway.PeerDeadError):
                    await client.call(1)

    asyncio.run(main())


@pytest.mark.parametrize("is_loop", [False, True])
def test_a_client_is_killed_with_calls_in_flight(is_loop: bool) -> None:
    """Its calls are cancelled, and nobody else's."""
    began, cancelled = [], []
    server = Server("s", threads=8)

    if is_loop:

        @server.method(5)
        async def waits(request: Request) -> None:
            began.append(request.peer_pid)
            try:
                await asyncio.sleep(1000)
            except asyncio.CancelledError:
                cancelled.append(request.peer_pid)
                raise

        @server.method(6)
        async def waits_less(request: Request) -> bytes:
            while not request.cancelled and len(cancelled) < 3:
                await asyncio.sleep(0.001)
            return b"%d" % len(cancelled)
    else:

        @server.method(5, pool=True)
        def waits_too(request: Request) -> None:
            began.append(request.peer_pid)
            wait_until(lambda: request.cancelled)
            cancelled.append(request.peer_pid)

        @server.method(6, pool=True)
        def waits_less_too(request: Request) -> bytes:
            wait_until(lambda: len(cancelled) == 3)
            return b"%d" % len(cancelled)

    code = """
        from ramway.rpc import Client
        client = Client.connect("s")
        calls = [client.start(5) for _ in range(3)]
        print("called", flush=True)
        calls[0].wait()
    """
    with serving(server), Client.connect("s") as client, Child(code) as child:
        other = client.start(6)
        client.ping()
        assert child.line() == "called"
        wait_until(lambda: len(began) == 3)
        assert server.clients == 2
        child.kill()
        assert other.wait(LONG).body == b"3"
        assert began == cancelled == [child.pid] * 3
        wait_until(lambda: server.clients == 1)


@KINDS
def test_a_server_that_is_stopped_is_waited_for_as_long_as_was_said(kind: str) -> None:
    with served(kind) as child, Client.connect("s") as client:
        with stopped(child):
            error = ended(lambda: client.call(1, timeout=0.05))
            assert isinstance(error, ramway.TimedOutError) and error.may_have_run
            pending = client.start(1, b"later")
            with pytest.raises(ramway.TimedOutError):
                pending.wait(0.01)
        assert pending.wait(LONG).body == b"later"
        wait_until(lambda: client.in_flight == 0)


def test_a_client_that_is_stopped_holds_up_nobody() -> None:
    server = Server("s", capacity=4096)

    @server.method(1)
    def echo(request: Request) -> bytes:
        return request.body

    @server.stream(4)
    def count(request: Request) -> list[bytes]:
        return [bytes(500)] * 1000

    code = """
        from ramway.rpc import Client
        client = Client.connect("s", max_buffered=1 << 20)
        stream = client.stream(4, window=1000)
        stream.next()
        print("reads", flush=True)
        print(sum(1 for _ in stream), flush=True)
    """
    with serving(server), Client.connect("s") as client, Child(code) as child:
        assert child.line() == "reads"
        with stopped(child):
            for n in range(500):
                assert client.call(1, b"%d" % n, timeout=LONG).body == b"%d" % n
        assert child.line() == "999"


@KINDS
def test_a_terminated_server_drains(kind: str) -> None:
    code = """
    import signal
    signal.signal(signal.SIGTERM, lambda *_: server.shutdown(0.5))
"""
    before, serves, after = SERVER.partition('    print("serves"')
    with Child(before + code + serves + after, kind) as child:
        assert child.line() == "serves"
        with Client.connect("s") as client:
            runs = client.start(5)
            client.ping()
            assert child.line() == "began"
            child.signal(signal.SIGTERM)
            error = ended(runs.wait)
            assert error.may_have_run
        assert child.finish() == ["ended"]


def test_ctrl_c_ends_a_call_and_cancels_it() -> None:
    code = """
        from ramway.rpc import Client
        client = Client.connect("s")
        print("calls", flush=True)
        try:
            client.call(5)
        except KeyboardInterrupt:
            print("interrupted", client.call(1, b"goes on").body.decode(), flush=True)
        input()
        try:
            print("streams", flush=True)
            for _ in client.stream(4): pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    server, running = Server("s", threads=4), []

    @server.method(1)
    def echo(request: Request) -> bytes:
        return request.body

    @server.method(5, pool=True)
    def waits(request: Request) -> None:
        running.append(True)
        wait_until(lambda: request.cancelled)
        running.pop()

    @server.stream(4, pool=True)
    def never(request: Request) -> list[bytes]:
        running.append(True)
        wait_until(lambda: request.cancelled)
        running.pop()
        return []

    with serving(server), Child(code) as child:
        assert child.line() == "calls"
        wait_until(lambda: bool(running))
        child.signal(signal.SIGINT)
        assert child.line() == "interrupted goes on"
        wait_until(lambda: not running)
        child.tell()
        assert child.line() == "streams"
        wait_until(lambda: bool(running))
        child.signal(signal.SIGINT)
        assert child.finish() == ["interrupted"]


@KINDS
def test_ctrl_c_ends_a_server(kind: str) -> None:
    with served(kind) as child, Client.connect("s") as client:
        pending = client.start(5)
        client.ping()
        assert child.line() == "began"
        child.signal(signal.SIGINT)
        assert ended(pending.wait).may_have_run
        assert child.wait() != 0 and "KeyboardInterrupt" in child.stderr()


@KINDS
def test_a_storm_of_time_limits(kind: str) -> None:
    with served(kind) as child, Client.connect("s") as client:
        failed: list[CallError] = []
        for n in range(2000):
            try:
                assert client.call(1, b"%d" % n, timeout=(n % 50 + 1) / 1e6).body == b"%d" % n
            except CallError as error:
                failed.append(error)
        assert all(isinstance(error, ramway.TimedOutError) or is_late(error) for error in failed)
        assert client.call(1, b"still here", timeout=LONG).body == b"still here"
        wait_until(lambda: client.in_flight == 0)
        client.call("Stop", b"1")
        assert child.finish() == ["ended"]


def test_many_processes_call_one_server() -> None:
    code = """
        import asyncio, os, sys
        from ramway.rpc import AsyncClient, Client

        async def main():
            async with await AsyncClient.connect("s") as client:
                async def call(n):
                    body = b"%d-%d" % (os.getpid(), n)
                    assert (await client.call(1, body)).body == body
                for n in range(20):
                    await asyncio.gather(*(call(n) for n in range(50)))

        if sys.argv[1] == "loop":
            asyncio.run(main())
        else:
            with Client.connect("s") as client:
                for n in range(1000):
                    body = b"%d-%d" % (os.getpid(), n)
                    assert client.call(1, body).body == body
        print("done")
    """
    with served("loop") as server:
        with ExitStack() as stack:
            children = [stack.enter_context(Child(code, kind)) for kind in ("loop", "threads") * 2]
            for child in children:
                assert child.finish() == ["done"]
        with Client.connect("s") as client:
            assert client.peer_uid == os.geteuid()
            client.call("Stop", b"1")
        assert server.finish() == ["ended"]
