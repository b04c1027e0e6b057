"""Event loops to run a test under."""

import asyncio
import importlib.util
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

KINDS = [
    "asyncio",
    "debug",
    pytest.param("eager", marks=pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")),
    pytest.param(
        "uvloop", marks=pytest.mark.skipif(importlib.util.find_spec("uvloop") is None, reason="uvloop is not installed")
    ),
]

every_loop = pytest.mark.parametrize("kind", KINDS)


def new_loop(kind: str) -> asyncio.AbstractEventLoop:
    if kind == "uvloop":
        import uvloop

        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    else:
        loop = asyncio.new_event_loop()
    if kind == "eager" and sys.version_info >= (3, 12):
        eager: Any = asyncio.eager_task_factory
        loop.set_task_factory(eager)
    return loop


def run(kind: str, main: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in such a loop. What the loop's exception handler is told of fails the test."""
    with asyncio.Runner(debug=kind == "debug", loop_factory=lambda: new_loop(kind)) as runner:
        told: list[dict[str, Any]] = []
        runner.get_loop().set_exception_handler(lambda _loop, context: told.append(context))
        result = runner.run(main)
    assert told == [], told
    return result


async def turns(count: int = 3) -> None:
    """Lets the loop run: every task that can go on has done so afterwards."""
    for _ in range(count):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)
