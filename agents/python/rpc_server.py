"""A server of RPC with the agents' methods, in an event loop of its own thread, and its commands."""

import asyncio
import os
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

from line import Line, RefusedError, say
from ramway.rpc import Fault, Request, Server

SUM = "Agent.Sum"
"""The method that is registered by name."""

PATTERN = bytes(range(256))


def pattern(first: int, size: int) -> bytes:
    """The bytes that begin with this one."""
    first %= 256
    return (PATTERN * ((first + size) // 256 + 1))[first : first + size]


def words(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *(value & 0xFFFFFFFF for value in values))


def read(body: bytes, count: int) -> tuple[int, ...]:
    """Words of a body, which has just that many."""
    if len(body) != 4 * count:
        raise Fault(0, "the request is no request of this method")
    return struct.unpack(f"<{count}I", body)


class Serving:
    """A server at work."""

    def __init__(self, name: str, line: Line) -> None:
        wait, capacity, align = line.wait(), line.number("capacity", 65536), line.number("align", 16)
        bare = line.text("bare")
        limits = {key: line.maybe(key) for key in ("max_clients", "max_in_flight", "max_bytes")}
        line.end()
        given: dict[str, Any] = {key: value for key, value in limits.items() if value is not None}
        self.server = Server(name, capacity=capacity, align=align, wait=wait, **given)
        self.began = self.ended = self.cancelled = self.elements = 0
        # Of the loop's.
        self.gate = asyncio.Event()
        self.loop = asyncio.new_event_loop()
        self.failure: BaseException | None = None
        # As a program without a loop would have it.
        self.blocks = bare == "yes"
        if bare:
            # Here, for what it imports.
            import rpc_measure

            rpc_measure.bare(self.server, bare)
        else:
            self.methods()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        say(f"attached pid={os.getpid()} capacity={capacity}")

    def serve(self) -> None:
        try:
            if self.blocks:
                self.server.run()
            else:
                self.loop.run_until_complete(self.server.serve())
        except BaseException as failure:
            self.failure = failure
        finally:
            self.loop.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        """A handler that runs."""
        self.began += 1
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise
        finally:
            self.ended += 1

    def methods(self) -> None:
        server, running = self.server, self.running

        @server.method(1)
        def echo(request: Request) -> bytes:
            with running():
                request.reply_meta = request.meta
                return request.body

        @server.method(2)
        def long(request: Request) -> bytes:
            with running():
                return pattern(*read(request.body, 2))

        @server.method(3)
        def refuse(request: Request) -> None:
            with running():
                (code,) = read(request.body[:4], 1)
                raise Fault(code, request.body[4:].decode(errors="replace"))

        @server.stream(4)
        async def count(request: Request) -> AsyncIterator[bytes]:
            with running():
                count, size, code, seq = read(request.body, 4)
                for k in range(count):
                    self.elements += 1
                    yield pattern(seq + k, size)
                if code:
                    raise Fault(code, f"after {count}")

        @server.method(5)
        async def gated(request: Request) -> bytes:
            with running():
                await self.gate.wait()
                request.reply_meta = request.meta
                return request.body

        @server.method(6)
        def fail(request: Request) -> None:
            with running():
                raise RuntimeError("method 6")

        @server.method(7)
        def who(request: Request) -> bytes:
            with running():
                left = request.remaining
                # Of microseconds: what is left is not a float's.
                ms = 0 if left is None else -(-round(left * 1e6) // 1000)
                return words(request.peer_pid or 0, ms)

        @server.method(SUM)
        def checksum(request: Request) -> bytes:
            with running():
                return words(zlib.crc32(request.body))

    def obey(self, line: Line) -> None:
        match line.word:
            case "served":
                line.end()
                clients, began, ended = self.server.clients, self.began, self.ended
                say(
                    f"served began={began} running={began - ended} cancelled={self.cancelled} "
                    f"elements={self.elements} clients={clients}"
                )
            case "gate":
                line.end()
                self.loop.call_soon_threadsafe(self.gate.set)
                say("opened")
            case "shutdown":
                limit = line.number("limit") / 1000
                line.end()
                self.server.shutdown(limit)
                say("draining")
            case "join":
                line.end()
                self.thread.join()
                if self.failure is not None:
                    raise self.failure
                say("ended")
            case _:
                raise RefusedError(f"{line.word} is no command of a server")

    def close(self) -> None:
        self.server.shutdown(0)
        self.thread.join()
