"""docs/api/python.txt: the spelling of every call, option and default here."""

import inspect
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import ramway.rpc

API = Path(__file__).resolve().parents[3] / "docs" / "api"
if not API.exists():
    pytest.skip("the package's sources alone have no docs/api", allow_module_level=True)

MAIN = ("Ring", "Sender", "Receiver", "Message", "Slot", "Bus", "Listener", "Region")
MAIN += ("Topic", "Publisher", "Subscriber", "TopicMessage")
MAIN += ("Room", "Select", "Merge", "Inbox", "Outbox")
MAIN += ("rpc.Client", "rpc.AsyncClient", "rpc.Pending", "rpc.AsyncPending", "rpc.Stream", "rpc.AsyncStream")
MAIN += ("rpc.Reply", "rpc.Request", "rpc.Server")
OPENERS = ("Ring.create", "Ring.open", "Ring.open_or_create", "Ring.unnamed", "Ring.from_fd", "Listener.bind")
OPENERS += ("Bus.listen", "Bus.connect", "Region.create", "Region.open", "Region.open_or_create")
OPENERS += ("rpc.Client.connect", "rpc.AsyncClient.connect", "rpc.Server")
OPENERS += ("Topic.create", "Topic.open", "Topic.open_or_create", "Topic.publisher", "Topic.subscriber")
# Options that mean in a region what they mean in a ring, and a listening bus's time-out, which is its accept's.
SAME = re.compile(r"Region\.\w+\(\w+\)|Bus\.listen\(timeout\)|.*\((name|size|fd|self)\)")


def lines(name: str) -> list[str]:
    return [line for line in (API / name).read_text().splitlines() if line and not line.startswith("#")]


@cache
def calls() -> dict[str, str]:
    return dict(line.split(" | ", 1) for line in lines("calls.txt"))


@cache
def spellings() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines("python.txt"):
        name, _, what = line.partition(" = ")
        if name in calls():
            found[name] = [] if what.startswith("-- ") else what.split(", ")
            assert what.split("-- ")[-1], f"{name}: no reason"
    return found


def only_here() -> list[str]:
    text = (API / "python.txt").read_text().partition("\n## Only here\n")[2]
    return [line.partition(" = ")[0] for line in text.splitlines() if line]


def resolve(spelling: str) -> tuple[object, str | None]:
    """What a spelling names, and the argument."""
    path, _, argument = spelling.rstrip(")").partition("(")
    found: object = ramway
    for part in path.split("."):
        # Before 3.12 the buffer protocol cannot be seen from Python (PEP 688).
        if part == "__buffer__" and sys.version_info < (3, 12):
            continue
        found = getattr(found, part)
    return found, argument or None


def parameters(call: object) -> dict[str, inspect.Parameter]:
    assert callable(call)
    return dict(inspect.signature(call).parameters)


def test_every_call_is_spelled_in_the_same_order() -> None:
    assert list(spellings()) == list(calls())


def test_every_name_exists() -> None:
    for spelling in [one for several in spellings().values() for one in several] + only_here():
        found, argument = resolve(spelling)
        assert argument is None or argument in parameters(found), spelling


def test_every_public_name_of_the_main_types_is_spelled() -> None:
    spelled = {one for several in spellings().values() for one in several} | set(only_here())
    missing = [
        f"{name}.{attribute}"
        for name in MAIN
        for attribute in vars(resolve(name)[0])
        if not attribute.startswith("_") and f"{name}.{attribute}" not in spelled
    ]
    options = [f"{opener}({option})" for opener in OPENERS for option in parameters(resolve(opener)[0])]
    missing += [option for option in options if option not in spelled and not SAME.fullmatch(option)]
    functions = [name for name in ramway.__all__ if inspect.isfunction(getattr(ramway, name))]
    assert missing + [name for name in functions if name not in spelled] == []


# As the table writes defaults. None stands for what the core says.
VALUES: dict[str, tuple[object, ...]] = {
    "no": (False,),
    "yes": (True,),
    "none": (None, ()),
    "0": (0.0,),
    "1": (1,),
    "3": (3,),
    "16": (16, None),
    "32": (32, None),
    "by policy": (None,),
    "never": (None,),
    "128": (128,),
    "1024": (1024,),
    "4 x the ring's capacity": (None,),
    "4 x capacity": (None,),
    "1 s": (1.0,),
    "10 s": (10.0,),
    "0600": (0o600, None),
    "1 MiB": (1 << 20, None),
    "`capacity`": (None,),
}


def test_defaults_are_those_of_the_table() -> None:
    seen = 0
    for name, what in calls().items():
        stated = re.search(r"default ([^;,]+)|`(\w+)` \(default\)|has a default it is (\d+)", what)
        if stated is None:
            continue
        default, mode, count = stated.groups()
        values = VALUES[default] if default and default != "`hybrid`" else (mode or int(count or 0) or "hybrid",)
        for spelling in spellings()[name]:
            found, argument = resolve(spelling)
            argument = argument or {"recv.batch": "max", "bus.connect": "timeout"}.get(name)
            parameter = parameters(found).get(argument or "") if callable(found) else None
            if parameter is None or spelling == "Ring.pair(capacity)":
                continue
            assert parameter.default in values, (spelling, parameter.default, values)
            seen += 1
    assert seen > 60


def test_defaults_that_only_the_core_says() -> None:
    with ramway.Ring.create("r").sender() as tx:
        assert (tx.capacity, tx.align, tx.wait) == (1 << 20, 16, "hybrid")
