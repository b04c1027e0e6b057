"""The broadcast to four workers: what they read, and what their waiting costs."""

import re

import pytest
from conftest import Run


def shares(output: str) -> list[float]:
    """What the waiting of each worker took, in hundredths of a core."""
    return [float(share) for share in re.findall(r"waiting took (\d+\.\d) % of a core", output)]


@pytest.mark.parametrize("how", ["topic", "polled"])
def test_every_worker_reads_every_step(how: str) -> None:
    with Run("broadcast.py", "--how", how, "--workers", 4, "--steps", 40, "--every", 0.02) as run:
        output = run.output()
    # The digest is over each array and each word, at the scheduler and at each worker.
    assert re.match(rf"{how}: 4 of 4 workers have read all 40 steps, digest [0-9a-f]{{8}}\n", output), output
    assert len(shares(output)) == 4


def test_a_worker_that_waits_sleeps() -> None:
    with Run("broadcast.py", "--how", "topic", "--workers", 4, "--steps", 20, "--every", 0.1) as run:
        output = run.output()
    # Some 0.2 % on an idle machine: a busy one may make the instructions slower, and does not make them more.
    assert max(shares(output)) < 10, output
