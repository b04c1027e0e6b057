"""Every example is run, as the separate processes that it is about."""

import os
import re
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from conftest import MACHINE, ORDER_BOOK, PLANT, RUST, SENSORS, STRATEGY, Run


def trade(*, batch: int = 4096, first: str = "strategy", orders: int = 60_000) -> tuple[str, str]:
    """What the book and the strategy say after a day."""
    commands: list[tuple[object, ...]] = [(*STRATEGY, "quotes", "--batch", batch), (*ORDER_BOOK, "quotes", orders, 0)]
    if first == "book":
        commands.reverse()
    with Run(*commands[0]) as one, Run(*commands[1]) as other:
        outputs = [one.output(), other.output()]
    if first != "book":
        outputs.reverse()
    return outputs[0], outputs[1]


def test_a_strategy_in_python_trades_on_a_book_in_java(directory: Path) -> None:
    book, strategy = trade()
    sent = re.search(r"^(\d+) quotes, (\d+) traded", book, re.MULTILINE)
    received = re.search(r"^(\d+) quotes in \d+ arrays .* (\d+) traded$", strategy, re.MULTILINE)
    assert sent and received and sent.groups() == received.groups(), f"{book}{strategy}"
    assert int(sent[1]) > 30_000 and int(sent[2]) > 100_000
    assert re.search(r"^\d{2,} deals, position -?100, profit -?\d+\.\d\d$", strategy, re.MULTILINE), strategy
    # Both have closed, and nothing is undelivered: the last one out has removed the name.
    assert os.listdir(directory) == []


def test_the_result_depends_neither_on_batches_nor_on_who_is_first() -> None:
    result = {trade(batch=batch, first=first)[1].splitlines()[-1] for batch, first in ((4096, "book"), (7, "strategy"))}
    assert len(result) == 1, result


def test_a_book_that_was_killed_is_no_end_of_the_day() -> None:
    with Run(*STRATEGY, "quotes") as strategy:
        with Run(*ORDER_BOOK, "quotes", 10_000_000, 20_000) as book:
            assert book.line() == "open"
            time.sleep(1)
        code, _, err = strategy.end()
    assert code != 0 and "PeerDead" in err, err


def test_a_flow_takes_frames_from_rust_apart(directory: Path) -> None:
    with Run(*SENSORS, "sensors") as flow, Run(RUST / "sensors", "sensors", 60_000, 40_000) as card:
        sent, received = card.output(), flow.output()
    knocks = re.search(r"(\d+) knocks", sent)
    assert knocks and received.splitlines()[-1] == f"{knocks[1]} knocks in 60000 frames", received
    for name, count in (("vibration", 20_000), ("temperature", 20_000), ("current", 20_000)):
        assert re.search(rf"^{name} .*: {count} frames, mean ", received, re.MULTILINE), received
    assert re.search(r"^a knock of \d+\.\d g at ", received, re.MULTILINE), received
    assert os.listdir(directory) == []


def test_a_flow_that_nothing_comes_through_ends_when_its_time_is_over(directory: Path) -> None:
    began = time.monotonic()
    with Run(*SENSORS, "sensors", 1.5) as flow:
        assert "the time is over" in flow.output()
    assert time.monotonic() - began >= 1.5
    assert os.listdir(directory) == []


def test_a_card_that_was_killed_fails_the_flow() -> None:
    with Run(*SENSORS, "sensors") as flow:
        with Run(RUST / "sensors", "sensors", 10_000_000, 10_000):
            time.sleep(3)
        code, _, err = flow.end()
    assert code == 1 and "died" in err, err


MACHINES = ("press", "lathe", "mill", "saw", "drill")


def test_a_flow_merges_five_topics(directory: Path) -> None:
    counts = dict(zip(MACHINES, (20_000, 10_000, 5000, 2000, 1000), strict=True))
    with Run(*PLANT, *MACHINES) as plant, ExitStack() as stack:
        machines = [stack.enter_context(Run(*MACHINE, name, count)) for name, count in counts.items()]
        sent = [machine.output() for machine in machines]
        received = plant.output()
    assert sent == [f"{name} sent {count} readings\n" for name, count in counts.items()]
    lines = received.splitlines()
    for name, count in counts.items():
        assert f"{name} has closed" in lines, received
        assert any(line.startswith(f"{name}: {count} readings, 0 lost, ") for line in lines), received
    assert re.search(r"^press: 9\d\.\d °C at reading \d+$", received, re.MULTILINE), received
    assert lines[-1] == "38000 readings of 5 machines", received
    assert os.listdir(directory) == []


def test_a_machine_that_is_slow_or_killed_stops_no_other() -> None:
    with Run(*PLANT, "press", "lathe") as plant, Run(*MACHINE, "press", 10_000_000, "--pause", 0.01) as press:
        with Run(*MACHINE, "lathe", 5000) as lathe:
            assert lathe.output() == "lathe sent 5000 readings\n"
        # The press is far from its end.
        while (line := plant.line()) != "lathe has closed":
            assert not line.startswith("press "), line
        press.process.kill()
        code, out, _ = plant.end()
    assert code == 1 and "press failed: " in out and "died" in out, out
    assert "lathe: 5000 readings, 0 lost, " in out, out


def test_a_merged_flow_that_nothing_comes_through_ends_when_its_time_is_over(directory: Path) -> None:
    with Run(*PLANT, *MACHINES, "--within", 1.5) as plant:
        assert "the time is over" in plant.output()
    assert os.listdir(directory) == []


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ((*ORDER_BOOK, "a/b", 10, 0), "a/b"),
        ((*ORDER_BOOK, "..", 10, 0), ".."),
        ((*ORDER_BOOK, "quotes", "ten", 0), "ten"),
        ((*SENSORS, "no such name!"), "no such name!"),
        ((*SENSORS, "sensors", "soon"), "soon"),
        ((*PLANT, "press", "--within", "soon"), "soon"),
    ],
)
def test_wrong_arguments_are_named(command: tuple[object, ...], complaint: str) -> None:
    with Run(*command) as program:
        code, _, err = program.end()
    assert code in (1, 2) and complaint in err and "Exception in thread" not in err, err
