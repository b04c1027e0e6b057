"""Where the programs are, and other processes."""

import contextlib
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
CPP = Path(os.environ["RAMWAY_EXAMPLES_CPP"])
# No test depends on being fast: this is for what has gone wrong, in seconds.
LONG = 100.0

# What a shell starts in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Run:
    """A program that does not outlive its test. What it prints can be read while it runs if it goes `into` a file."""

    def __init__(self, *command: object, stdin: int | None = None, into: Path | None = None) -> None:
        words = [str(word) for word in command]
        if words[0].endswith(".py"):
            words.insert(0, sys.executable)
        pipe = subprocess.PIPE
        self.into = into
        out = into.open("w") if into else contextlib.nullcontext(pipe)
        with out as stdout:
            self.process = subprocess.Popen(words, cwd=EXAMPLES, stdin=stdin, stdout=stdout, stderr=pipe, text=True)

    def output(self, code: int = 0) -> str:
        """What it printed, after an end with this code and no complaint."""
        out, err = self.process.communicate(timeout=LONG)
        if self.into is not None:
            out = self.into.read_text()
        assert (self.process.returncode, err) == (code, ""), f"exit {self.process.returncode}: {out}{err}"
        return out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of its own for the rings of a test, which leaves nothing in it."""
    path = Path(tempfile.mkdtemp(prefix="ramway-examples-", dir="/dev/shm"))
    monkeypatch.setenv("RAMWAY_DIR", str(path))
    yield path
    left = os.listdir(path)
    shutil.rmtree(path)
    assert left == []
