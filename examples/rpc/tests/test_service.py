"""The three terminals of the guide: its commands, to the letter, and what it says that they print."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import GUIDES, ROOT, Terminal, blocks, section

SECTION = section(GUIDES / "rpc.md", "A service in three languages")
COMMANDS, KILLED = (
    [line for line in block.splitlines() if not line.startswith("#")] for block in blocks(SECTION, "sh")
)
PRINTED, AFTER_THE_KILL = blocks(SECTION, "text")
STOCK, ORDERS, *SHOP = COMMANDS
SHELVES = re.compile(r"shelf (\d+): \d+ (?:apple|pear|plum)$", re.MULTILINE)


def matches(page: str, printed: str) -> bool:
    """Whether it is what the page says: `…` is any number of lines, and how far a count came depends on the machine."""
    lines = [re.escape(line) for line in page.splitlines()]
    lines = [re.sub(r"after\\ shelf\\ \d+", r"after\\ shelf\\ \\d+", line) for line in lines]
    lines = [re.sub(r"^shelf\\ 13:.*", r"shelf\\ .*", line) if "13" in line else line for line in lines]
    pattern = "\n".join(lines).replace("\n…\n", "\n(?:.*\n)*")
    return re.fullmatch(pattern, printed) is not None


def start(command: str) -> Terminal:
    terminal = Terminal(command)
    terminal.says("serving at ")
    return terminal


@pytest.fixture
def stock(directory: Path) -> Iterator[Terminal]:
    with start(STOCK) as terminal:
        yield terminal


@pytest.fixture
def orders(stock: Terminal) -> Iterator[Terminal]:
    with start(ORDERS) as terminal:
        yield terminal


def shop(*commands: str) -> str:
    """Without regard to how they end: a refused order is not a success."""
    printed = []
    for command in commands:
        with Terminal(command) as terminal:
            printed.append(terminal.output(code=None))
    return "\n".join(printed)


def test_the_program_in_go_is_as_gofmt_and_vet_want_it() -> None:
    for command in ("gofmt -l .", "go vet ."):
        with Terminal(command, ROOT / "examples" / "rpc" / "orders") as go:
            assert go.output() == ""


def test_the_three_terminals(stock: Terminal, orders: Terminal, directory: Path) -> None:
    printed = shop(*SHOP)
    assert matches(PRINTED, printed), printed
    # The last one was cut off by its time, somewhere.
    counted = [int(shelf) for shelf in SHELVES.findall(printed)]
    assert counted == [1, 2, 3, 4, 5, *range(1, len(counted) - 4)]
    for terminal in (orders, stock):
        terminal.signal(signal.SIGINT)
        terminal.says("closed")
        terminal.output(code=None)
    assert list(directory.iterdir()) == []


def test_a_stock_that_is_killed_in_the_middle_of_a_stream(stock: Terminal, orders: Terminal) -> None:
    (command,) = KILLED
    buy = SHOP[0]
    assert shop(buy) == PRINTED.splitlines()[0]
    with Terminal(command) as counting:
        counting.says("shelf 3: ")
        stock.signal(signal.SIGKILL)
        stock.output(code=None)
        counting.says("the stock has died after shelf ")
        with start(STOCK):
            printed = counting.output()
            assert matches(AFTER_THE_KILL, printed), printed
            # None is missing, and none is there twice.
            assert [int(shelf) for shelf in SHELVES.findall(printed)] == [*range(1, 31)]
            # The orders have found the new stock, in which nothing was taken yet.
            assert shop(buy) == PRINTED.splitlines()[0].replace("order 1", "order 2")


def test_an_order_whose_stock_is_killed_is_told_so(stock: Terminal, orders: Terminal) -> None:
    # Stopped, it is alive and answers nothing.
    stock.signal(signal.SIGSTOP)
    with Terminal(f"{SHOP[0]} --timeout 100") as buying:
        with pytest.raises(subprocess.TimeoutExpired):
            buying.process.wait(1)
        stock.signal(signal.SIGKILL)
        # Or it had not asked the stock yet, which is not there any more.
        assert re.match("error 503: the stock (has died|cannot be reached)", buying.output(code=1))


def test_the_shell_s_commands(stock: Terminal) -> None:
    in_a_shell = section(GUIDES / "rpc.md", "In a shell")
    (commands,), (printed,) = blocks(in_a_shell, "sh"), blocks(in_a_shell, "text")
    with Terminal(f"PATH={os.environ['RAMWAY_EXAMPLES_RUST']}:$PATH; set -e\n{commands}kill $!; wait") as shell:
        assert [line for line in shell.output(code=None).splitlines() if "serving at" not in line] == [
            *printed.splitlines(),
            "ramway: interrupted",
        ]


def test_without_a_stock_an_order_ends_at_its_time_limit(stock: Terminal, orders: Terminal) -> None:
    stock.signal(signal.SIGKILL)
    stock.output(code=None)
    printed = shop(f"{SHOP[0]} --timeout 1")
    # Whoever's clock was first.
    assert re.search("deadline|in time|timed out|the stock cannot be reached", printed), printed


def test_a_stock_that_is_told_to_end_lets_a_stream_go_on_for_a_while(stock: Terminal) -> None:
    with Terminal(SHOP[-1].replace("--timeout 1", "--timeout 100")) as counting:
        counting.says("shelf 3: ")
        stock.signal(signal.SIGTERM)
        stock.says("closed")
        stock.output(code=None)
        # It waits 100 ms for what it has cancelled, as long as a shelf takes: then it leaves as if it had died.
        counting.says("the stock has (closed|died) after shelf ")
        with start(STOCK):
            last = max(int(shelf) for shelf in SHELVES.findall("\n".join(counting.lines)))
            counting.says(f"shelf {last + 1}: ")
