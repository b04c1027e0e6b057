"""measure do=call, of both kinds of client, and the server that it calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any
from zlib import adler32

from line import Line, RefusedError, say
from measure import Timed, grouped, messages, now
from ramway.rpc import AsyncClient, Client, Request, Server


def bare(server: Server, kind: str) -> None:
    """Method 1 alone, and nothing that counts: a function, or with bare=async a coroutine."""
    if kind == "async":

        @server.method(1)
        async def later(request: Request) -> bytes:
            return request.body

    else:

        @server.method(1)
        def echo(request: Request) -> bytes:
            return request.body


def calls(client: Client, line: Line) -> None:
    """That of a client whose calls block."""

    def run(groups: list[list[bytes]], timed: Timed) -> None:
        call = client.call
        check, stamps = 1, [now()]
        for group in groups:
            for message in group:
                check = adler32(call(1, message).body, check)
            stamps.append(now())
        timed.check, timed.samples = check, [after - before for before, after in pairwise(stamps)]

    measure(line, run)


def awaits(client: AsyncClient, loop: Callable[[Coroutine[Any, Any, None]], None], line: Line) -> None:
    """That of a client whose calls are awaited, in the loop that *loop* has do something."""

    async def run(groups: list[list[bytes]], timed: Timed) -> None:
        call = client.call
        check, stamps = 1, [now()]
        for group in groups:
            for message in group:
                check = adler32((await call(1, message)).body, check)
            stamps.append(now())
        timed.check, timed.samples = check, [after - before for before, after in pairwise(stamps)]

    measure(line, lambda groups, timed: loop(run(groups, timed)))


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
