"""gRPC's Python package: a unary call for each request over a Unix socket, whose body is bytes on both sides: no
Protocol Buffers, which would cost more. `grpc.aio` in an event loop on both sides, with a coroutine as the handler; and
the calls that block, with the one thread that such a server needs. The defaults otherwise."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from zlib import adler32

import ends
import grpc
import grpc.aio
from protocol import Burst, Setup, about

METHOD = "/bench.Answers/Ask"


def path(setup: Setup) -> str:
    """The server's socket."""
    return f"{setup.directory}/grpc.sock"


def address(setup: Setup) -> str:
    """Where a client finds the server, once it listens: after an attempt in vain gRPC waits for a second."""
    while not os.path.exists(path(setup)):
        time.sleep(0.001)
    return f"unix:{path(setup)}"


def handlers(handler: Callable[..., Any]) -> Any:
    """One method, of bytes."""
    _, service, method = METHOD.split("/")
    return grpc.method_handlers_generic_handler(service, {method: grpc.unary_unary_rpc_method_handler(handler)})


class Answered:
    """Tells a thread when a given number of calls has been answered."""

    def __init__(self) -> None:
        self._left, self._done = 0, threading.Event()

    def expect(self, count: int) -> None:
        """Before any of them comes."""
        self._done.clear()
        self._left = count

    def one(self) -> None:
        """In the one thread that answers."""
        self._left -= 1
        if self._left == 0:
            self._done.set()

    def wait(self) -> None:
        """Until all were."""
        self._done.wait()


class Serving(ends.End):
    """The answering side, in threads of its own."""

    def __init__(self, answered: Answered, stop: Callable[[], None]) -> None:
        self._answered, self._stop = answered, stop

    def serve(self, count: int) -> Callable[[], None]:
        self._answered.expect(count)
        return self._answered.wait

    def close(self) -> None:
        self._stop()


class Blocking(ends.End):
    """The calling side: calls that block."""

    def __init__(self, setup: Setup) -> None:
        self._channel = grpc.insecure_channel(address(setup))
        grpc.channel_ready_future(self._channel).result(timeout=20)
        self._call = self._channel.unary_unary(METHOD)

    def calls(self, groups: list[list[bytes]]) -> list[int]:
        call, check, stamps = self._call, ends.BEGIN, [ends.now()]
        for group in groups:
            for message in group:
                check = adler32(call(message), check)
            stamps.append(ends.now())
        return [*stamps, check]

    def close(self) -> None:
        self._channel.close()


class Awaiting(ends.End):
    """The calling side in an event loop, which runs while it measures."""

    def __init__(self, setup: Setup) -> None:
        self._loop = asyncio.new_event_loop()
        self._channel, self._call = self._loop.run_until_complete(self._connect(setup))

    async def _connect(self, setup: Setup) -> tuple[Any, Any]:
        channel = grpc.aio.insecure_channel(address(setup))
        await asyncio.wait_for(channel.channel_ready(), 20)
        return channel, channel.unary_unary(METHOD)

    def calls(self, groups: list[list[bytes]]) -> list[int]:
        return self._loop.run_until_complete(self._all(groups))

    async def _all(self, groups: list[list[bytes]]) -> list[int]:
        call, check, stamps = self._call, ends.BEGIN, [ends.now()]
        for group in groups:
            for message in group:
                check = adler32(await call(message), check)
            stamps.append(ends.now())
        return [*stamps, check]

    def close(self) -> None:
        self._loop.run_until_complete(self._channel.close())
        self._loop.close()


def serve(setup: Setup) -> ends.End:
    """A server whose handlers run in one thread."""
    answered = Answered()

    def answer(request: bytes, _: grpc.ServicerContext) -> bytes:
        answered.one()
        return request

    server = grpc.server(ThreadPoolExecutor(max_workers=1), handlers=(handlers(answer),))
    server.add_insecure_port(f"unix:{path(setup)}")
    server.start()
    return Serving(answered, lambda: server.stop(None).wait())


def serve_async(setup: Setup) -> ends.End:
    """A server whose handler is a coroutine, in an event loop of its own thread."""
    answered, loop = Answered(), asyncio.new_event_loop()
    ready, ending = threading.Event(), asyncio.Event()

    async def answer(request: bytes, _: grpc.aio.ServicerContext) -> bytes:
        answered.one()
        return request

    async def run() -> None:
        server = grpc.aio.server(handlers=(handlers(answer),))
        server.add_insecure_port(f"unix:{path(setup)}")
        await server.start()
        ready.set()
        await ending.wait()
        await server.stop(None)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    ready.wait()

    def stop() -> None:
        loop.call_soon_threadsafe(ending.set)
        thread.join()

    return Serving(answered, stop)


class Grpc(ends.Mechanism):
    """One kind of both sides."""

    def __init__(
        self, name: str, what: str, call: Callable[[Setup], ends.End], answer: Callable[[Setup], ends.End]
    ) -> None:
        self._name, self._what, self._call, self._answer = name, what, call, answer

    def about(self) -> dict[str, Any]:
        return about(self._name, "peer", True, f"gRPC on a Unix socket, {self._what}; bytes", grpc.__version__)

    def can(self, burst: Burst) -> bool:
        # A reply is what was sent.
        return (burst.test, burst.mode, burst.size, burst.batch) == ("call", "block", 32, 1)

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        return None, lambda: self._call(setup)

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        return self._answer(setup)


MECHANISMS = [
    Grpc("grpc-aio-python", "grpc.aio on both sides", Awaiting, serve_async),
    Grpc("grpc-python", "calls that block, a handler in the server's one thread", Blocking, serve),
]
