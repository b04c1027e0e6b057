"""Where the programs are, and other processes."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

EXAMPLES = Path(__file__).parents[1]
# test.sh builds them and says where.
RUST = Path(os.environ["RAMWAY_EXAMPLES_RUST"])
LIBRARIES = os.environ["RAMWAY_EXAMPLES_LIBRARIES"] + "/*"
JAVA = (os.environ["RAMWAY_EXAMPLES_JAVA"], "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "-cp")
ORDER_BOOK = (*JAVA, LIBRARIES, "OrderBook.java")
SENSORS = (*JAVA, os.environ["RAMWAY_EXAMPLES_CLASSES"] + ":" + LIBRARIES, "SensorsKt")
PLANT = (*SENSORS[:-1], "PlantKt")
MACHINE = (sys.executable, "machine.py")
STRATEGY = (sys.executable, "strategy.py")
# No test depends on being fast: this is for what has gone wrong, in seconds.
LONG = 100.0

# What a shell starts in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Run:
    """A program that does not outlive its test."""

    def __init__(self, *command: object) -> None:
        words = [str(word) for word in command]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, cwd=EXAMPLES, stdout=pipe, stderr=pipe, text=True)

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip()

    def end(self) -> tuple[int, str, str]:
        """Its exit status, what it printed, and what it complained about."""
        out, err = self.process.communicate(timeout=LONG)
        return self.process.returncode, out, err

    def output(self) -> str:
        """What it printed, after an end without a complaint."""
        code, out, err = self.end()
        assert (code, err) == (0, ""), f"exit {code}: {out}{err}"
        return out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of its own for the rings of a test."""
    path = Path(tempfile.mkdtemp(prefix="ramway-examples-", dir="/dev/shm"))
    monkeypatch.setenv("RAMWAY_DIR", str(path))
    yield path
    shutil.rmtree(path)
