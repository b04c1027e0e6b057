"""Commands and events as lines, and how long a call may wait."""

import sys
import time
from collections.abc import Callable
from typing import Literal, TypeVar

import ramway

T = TypeVar("T")


class RefusedError(Exception):
    """A command that is not understood."""


class Line:
    """A command, `word key=value key=value ...`. What it does not take out of it is refused."""

    def __init__(self, text: str) -> None:
        self.word, *fields = text.split() or [""]
        self._fields = dict(field.partition("=")[::2] for field in fields)

    def text(self, key: str, otherwise: str = "") -> str:
        return self._fields.pop(key, otherwise)

    def maybe(self, key: str) -> int | None:
        text = self._fields.pop(key, None)
        try:
            return None if text is None else int(text)
        except ValueError:
            raise RefusedError(f"{key}={text} is no number") from None

    def number(self, key: str, otherwise: int | None = None) -> int:
        value = self.maybe(key)
        value = otherwise if value is None else value
        if value is None:
            raise RefusedError(f"{key} is missing")
        return value

    def yes(self, key: str) -> bool:
        return self.text(key) == "yes"

    def wait(self) -> Literal["spin", "hybrid", "block"]:
        match self.text("wait", "hybrid"):
            case "spin" | "hybrid" | "block" as wait:
                return wait
        raise RefusedError("wait is spin, hybrid or block")

    def end(self) -> None:
        """Nothing else was said."""
        if self._fields:
            raise RefusedError(f"{self.word} does not know {', '.join(self._fields)}")


class Limits:
    """`timeout` and `poll`."""

    def __init__(self, line: Line) -> None:
        ms, us = line.number("timeout", 20000), line.maybe("poll")
        self.whole = None if ms == 0 else ms / 1000
        self.polls = us is not None
        self.call = self.whole if us is None else us / 1e6
        """The time-out of one call."""

    def wait(self, call: Callable[[], T]) -> T:
        """A call, with `poll` again and again for as long as a wait may last."""
        began = time.monotonic()
        while True:
            try:
                return call()
            except ramway.TimedOutError:
                if not self.polls or (self.whole is not None and time.monotonic() - began >= self.whole):
                    raise


def say(line: str) -> None:
    """One event, written at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def ended(error: ramway.Error, text: str = "") -> str:
    return f"end name={error.kind} number={error.code}{text}"


def ms_since(began: int) -> int:
    return (time.monotonic_ns() - began) // 1_000_000
