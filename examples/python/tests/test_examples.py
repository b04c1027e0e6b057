"""Every example is run, as the separate processes that it is about."""

import re
import signal
import time
from pathlib import Path

import pytest
from conftest import CPP, EXAMPLES, LONG, RUST, Run


def figures(output: str) -> str:
    """What both sides have to agree about: the last line."""
    return output.splitlines()[-1]


@pytest.mark.parametrize("batch", [1, 1000])
def test_ticks_from_python_to_rust(batch: int) -> None:
    with (
        Run(RUST / "market", "consume", "ticks") as consumer,
        Run("ticks_send.py", "ticks", "--count", 50_500, "--batch", batch) as producer,
    ):
        sent, received = producer.output(), consumer.output()
    assert sent.startswith("sent 50500 ticks") and received.startswith("received 50500 ticks")
    assert figures(sent) == figures(received)


@pytest.mark.parametrize("program", [RUST / "waves", CPP / "waves"], ids=["rust", "cpp"])
@pytest.mark.parametrize(("first", "batch"), [("receiver", 1), ("sender", 1), ("receiver", 64)])
def test_frames_from_rust_and_cpp_to_python(program: Path, first: str, batch: int) -> None:
    commands: list[tuple[object, ...]] = [("waves.py", "waves", "--batch", batch), (program, "waves", 20_000)]
    if first == "sender":
        commands.reverse()
    with Run(*commands[0]) as one, Run(*commands[1]) as other:
        outputs = {one.output(), other.output()}
    assert len({figures(output) for output in outputs}) == 1
    assert {output.split(" in ")[0] for output in outputs} == {"sent 20000 frames", "received 20000 frames"}


def test_market_is_followed_by_a_task() -> None:
    with (
        Run("market.py", "market", "--every", 0.05) as follower,
        Run(RUST / "market", "produce", "market", 300_000, 1_000_000) as producer,
    ):
        received, sent = follower.output(), producer.output()
    assert re.search(r"^received 300000 ticks", received, re.MULTILINE)
    assert figures(received) == figures(sent)


def test_video_is_dropped_where_nobody_reads_and_the_rest_arrives() -> None:
    with Run("video.py", "produce", "cam", "--frames", 20, "--rate", 0) as producer:
        sent = producer.output()
    # Eight frames and a bit: the ring's size is a power of two.
    assert re.match(r"sent 10 frames in .* dropped 10\n", sent), sent
    with Run("video.py", "consume", "cam") as consumer:
        received = consumer.output()
    assert received.startswith("received 10 frames")
    assert figures(received).startswith("of 20 frames 10 were dropped and ")


def test_video_counts_the_same_on_both_sides() -> None:
    with (
        Run("video.py", "consume", "cam") as consumer,
        Run("video.py", "produce", "cam", "--frames", 30, "--rate", 60) as producer,
    ):
        sent, received = producer.output(), consumer.output()
    numbers = re.match(r"sent (\d+) frames in .* dropped (\d+)\n", sent)
    assert numbers is not None and int(numbers[1]) + int(numbers[2]) == 30
    assert received.startswith(f"received {numbers[1]} frames")
    assert figures(received).startswith(f"of 30 frames {numbers[2]} were dropped and ")
    # The test picture moves, though not all of it.
    share = re.search(r"(\d+\.\d) % of them moves", received)
    assert share is not None and 0 < float(share[1]) < 100


def frameworks() -> list[str]:
    from importlib.util import find_spec

    return [name for name in ("jax", "torch") if find_spec(name)]


@pytest.mark.parametrize("framework", frameworks())
def test_training_learns_the_same_from_every_feed(framework: str) -> None:
    size = ("--batches", 20, "--rows", 256, "--columns", 65)
    with Run("training.py", "--programs", CPP, "--framework", framework, *size) as run:
        feeds = run.output().splitlines()[1:]
    third = "DataLoader" if framework == "torch" else "Pipe"
    assert [feed.split()[0] for feed in feeds] == ["ramway", "Queue", third]
    losses = {float(feed.rpartition("loss ")[2]) for feed in feeds}
    # 0.69 is what guessing has.
    assert max(losses) < 0.6 and max(losses) - min(losses) < 0.002


@pytest.mark.parametrize("program", ["waves.py", "market.py", "video.py"])
def test_ctrl_c_ends_an_example_that_waits(program: str, directory: Path) -> None:
    role = ["consume"] if program == "video.py" else []
    with Run(program, *role, "quiet") as run:
        deadline = time.monotonic() + LONG
        while not (directory / "quiet").exists():
            assert time.monotonic() < deadline and run.process.poll() is None
            time.sleep(0.01)
        time.sleep(0.2)
        run.process.send_signal(signal.SIGINT)
        assert run.output(130) == ""


def test_examples_are_listed() -> None:
    listed = (EXAMPLES.parent / "README.md").read_text()
    for program in [*EXAMPLES.glob("*.py"), *(EXAMPLES.parent / "src/bin").glob("*.rs")]:
        assert f"/{program.name})" in listed, f"examples/README.md does not say what {program.name} is"
