"""Every example is run, as the separate processes that it is about."""

import os
import re
import time
from pathlib import Path

import pytest
from conftest import ORDER_BOOK, RUST, SENSORS, STRATEGY, Run


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


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ((*ORDER_BOOK, "a/b", 10, 0), "a/b"),
        ((*ORDER_BOOK, "..", 10, 0), ".."),
        ((*ORDER_BOOK, "quotes", "ten", 0), "ten"),
        ((*SENSORS, "no such name!"), "no such name!"),
        ((*SENSORS, "sensors", "soon"), "soon"),
    ],
)
def test_wrong_arguments_are_named(command: tuple[object, ...], complaint: str) -> None:
    with Run(*command) as program:
        code, _, err = program.end()
    assert code in (1, 2) and complaint in err and "Exception in thread" not in err, err
