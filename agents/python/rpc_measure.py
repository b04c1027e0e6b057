"""measure do=call, of both kinds of client, and the server that it calls."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from itertools import pairwise
from zlib import adler32

from line import Line, RefusedError, say
from look import OPEN_TIMEOUT
from measure import Timed, grouped, messages, now
from ramway.rpc import AsyncClient, Client, Request, Server


def bare(server: Server, asynchronous: bool) -> None:
    """Method 1 alone, and nothing that counts; a coroutine, if that is asked for."""
    if asynchronous:

        @server.method(1)
        async def later(request: Request) -> bytes:
            return request.body

        return

    @server.method(1)
    def echo(request: Request) -> bytes:
        return request.body


def calls(client: Client, groups: list[list[bytes]], timed: Timed) -> None:
    call = client.call
    check, stamps = 1, [now()]
    for group in groups:
        for message in group:
            check = adler32(call(1, message).body, check)
        stamps.append(now())
    timed.check, timed.samples = check, [after - before for before, after in pairwise(stamps)]


async def awaits(client: AsyncClient, groups: list[list[bytes]], timed: Timed) -> None:
    call = client.call
    check, stamps = 1, [now()]
    for group in groups:
        for message in group:
            check = adler32((await call(1, message)).body, check)
        stamps.append(now())
    timed.check, timed.samples = check, [after - before for before, after in pairwise(stamps)]


def measure(line: Line, run: Callable[[list[list[bytes]], Timed], None]) -> None:
    what, size, count, group = line.text("do"), line.number("size"), line.number("count"), line.number("group", 1)
    line.end()
    if what != "call":
        raise RefusedError(f"do={what}, with a client open")
    groups, timed = grouped(messages(size, count), group), Timed()
    say("ready")
    sys.stdin.readline()
    began = now()
    run(groups, timed)
    ended = now()
    samples = ",".join(map(str, timed.samples))
    say(f"measured began_ns={began} ended_ns={ended} adler32={timed.check} samples={samples}")


def measure_calls(client: Client, line: Line) -> None:
    """That of a client whose calls block."""
    measure(line, lambda groups, timed: calls(client, groups, timed))


class Awaiting:
    """A client in an event loop, which runs while it measures."""

    def __init__(self, name: str, line: Line) -> None:
        wait, timeout = line.wait(), line.number("timeout", int(1000 * OPEN_TIMEOUT)) / 1000
        line.end()
        self.loop = asyncio.new_event_loop()
        self.client = self.loop.run_until_complete(AsyncClient.connect(name, timeout=timeout, wait=wait))
        limit = self.client.max_in_flight
        say(f"attached pid={os.getpid()} peer_pid={self.client.peer_pid or 0} max_in_flight={limit}")

    def obey(self, line: Line) -> None:
        if line.word != "measure":
            raise RefusedError(f"{line.word} is no command of a client with how=async")
        measure(
            line, lambda groups, timed: self.loop.run_until_complete(awaits(self.client, groups, timed))
        )

    def close(self) -> None:
        self.client.close()
        self.loop.close()
