"""The worker by which `ramway bench` measures other ways between Python processes, as that starts it: what arrives,
never how fast. Ramway itself is measured by `agents/python`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
WORKER = ROOT / "bench" / "peers" / "python"

if not WORKER.is_dir():
    pytest.skip("the benchmark is not here", allow_module_level=True)
pytest.importorskip("numpy")


def burst(test: str, mode: str, size: int, count: int, batch: int = 1, group: int = 1) -> dict[str, Any]:
    return {
        "test": test,
        "mode": mode,
        "size": size,
        "smallest": size,
        "count": count,
        "group": group,
        "batch": batch,
        "gap_ns": 0,
        "work_ns": 0,
    }


def environment(order: dict[str, Any]) -> dict[str, str]:
    return os.environ | {"RAMWAY_BENCH_WORKER": json.dumps(order)}


class Worker:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def says(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the worker ended with {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def asked(self, words: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()


@contextmanager
def worker(directory: Path, module: str, mechanism: str, first: dict[str, Any], protocol: int = 1) -> Iterator[Worker]:
    setup = {
        "directory": str(directory),
        "disk": str(directory),
        "capacity": 1 << 20,
        "largest": first["size"],
        "cpus": [None, None],
        "realtime": False,
    }
    order = {"protocol": protocol, "mechanism": mechanism, "setup": setup, "burst": first, "ps_per_tick": 1.0}
    told = environment({"lead": order})
    command = [sys.executable, str(WORKER), module]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=told, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Worker(process)
        finally:
            process.kill()


def listed(module: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(WORKER), module]
    told = environment({"list": None})
    done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=60, check=True)
    abouts: list[dict[str, Any]] = json.loads(done.stdout)
    return abouts


def check(outcome: dict[str, Any], of: dict[str, Any], samples: bool, sides: int = 2) -> None:
    assert outcome["operations"] == of["count"]
    assert outcome["elapsed_ps"] > 0
    assert bool(outcome["samples_ps"]) == samples
    assert all(ps > 0 for ps in outcome["samples_ps"])
    for name in ("cpu_ns", "peak_rss", "shared", "context_switches"):
        assert len(outcome[name]) == 2
    assert all(bytes_ > 0 for bytes_ in outcome["peak_rss"][2 - sides :])


@pytest.mark.parametrize("module", ["list", "multiprocessing"])
def test_it_says_what_it_has(module: str) -> None:
    for about in listed(module):
        assert about["name"].endswith("-python")
        assert about["kind"] in ("ramway", "kernel", "by-hand", "peer")
        assert isinstance(about["copied"], bool) and about["what"].startswith("Python 3.")


@pytest.mark.parametrize(
    ("module", "mechanism", "of"),
    [
        ("multiprocessing", "pipe-python", burst("rtt", "block", 32, 20)),
        ("multiprocessing", "pipe-python", burst("one-way", "each", 32, 500)),
        ("multiprocessing", "queue-python", burst("rtt", "block", 32, 20)),
        ("multiprocessing", "queue-python", burst("one-way", "each", 32, 500)),
        ("multiprocessing", "shared-memory-python", burst("view", "spin", 8192, 3)),
        ("list", "list-python", burst("one-way", "each", 32, 5000)),
        ("list", "list-python", burst("one-way", "batch", 32, 5000, batch=1024)),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value['test']}-{value['mode']}-{value['size']}",
)
def test_a_burst_arrives(directory: Path, module: str, mechanism: str, of: dict[str, Any]) -> None:
    with worker(directory, module, mechanism, of) as pair:
        assert len(pair.says()["ready"]["pids"]) == (1 if module == "list" else 2)
        for _ in range(2):
            pair.asked({"burst": of})
            check(pair.says()["outcome"], of, of["test"] != "one-way", sides=1 if module == "list" else 2)
        pair.asked({"quit": None})
        assert pair.process.wait(60) == 0


def test_what_it_cannot_is_no_row(directory: Path) -> None:
    with worker(directory, "multiprocessing", "pipe-python", burst("rtt", "spin", 32, 10)) as pair:
        assert pair.says() == {"cannot": None}
        assert pair.process.wait(60) == 0


def test_another_version_is_refused(directory: Path) -> None:
    with worker(directory, "multiprocessing", "pipe-python", burst("rtt", "block", 32, 10), protocol=2) as pair:
        assert "version 1" in pair.says()["failed"]
        assert pair.process.wait(60) == 1


def test_the_death_of_the_second_process_is_said(directory: Path) -> None:
    of = burst("one-way", "each", 32, 10)
    with worker(directory, "multiprocessing", "pipe-python", of) as pair:
        _leading, following = pair.says()["ready"]["pids"]
        os.kill(following, 9)
        assert pair.says() == {"failed": "the second process died"}
        assert pair.process.wait(60) == 1


def test_nothing_is_left_behind(directory: Path) -> None:
    of = burst("rtt", "block", 32, 10, group=10)
    with worker(directory, "multiprocessing", "pipe-python", of) as pair:
        pids = pair.says()["ready"]["pids"]
        # As when the run is interrupted: nobody says quit.
        assert pair.process.stdin is not None
        pair.process.stdin.close()
        assert pair.process.wait(60) == 0
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
