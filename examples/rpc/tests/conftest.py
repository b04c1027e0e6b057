"""Other processes, and what the guides say about them."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

ROOT = Path(__file__).parents[3]
GUIDES = ROOT / "docs" / "guides"
# No test depends on being fast: this is for what has gone wrong, in seconds.
LONG = 200.0

# What a shell starts in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Terminal:
    """A command of a shell, with all that it starts. It does not outlive its test."""

    def __init__(self, command: str, directory: Path = ROOT) -> None:
        self.command = command
        self.lines: list[str] = []
        # The words of the guides: `python3` is the one that has the package.
        environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.process = subprocess.Popen(
            command,
            shell=True,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.said = threading.Condition()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self.said:
                self.lines.append(line.rstrip("\n"))
                self.said.notify_all()

    def says(self, pattern: str) -> None:
        """Waits for a line."""

        def found() -> bool:
            return any(re.match(pattern, line) for line in self.lines) or not self.reader.is_alive()

        with self.said:
            while not found():
                assert self.said.wait(LONG), f"{self.command}: waits for {pattern!r}: {self.lines}"
        assert any(re.match(pattern, line) for line in self.lines), f"{self.command}: {self.lines}"

    def signal(self, number: int) -> None:
        """To all of its processes, as the terminal does for Ctrl-C."""
        os.killpg(self.process.pid, number)

    def output(self, code: int | None = 0) -> str:
        """All that it printed, after an end with this code; None is any."""
        ended = self.process.wait(LONG)
        self.reader.join(LONG)
        text = "\n".join(self.lines)
        assert code is None or ended == code, f"{self.command}: exit {ended}: {text}"
        return text

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.signal(signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.reader.join(LONG)


def section(page: Path, title: str) -> str:
    """What stands below a heading, up to the next one that is not below it."""
    text = page.read_text()
    found = re.search(rf"^(##+) {re.escape(title)}\n", text, re.MULTILINE)
    assert found is not None, f"{page} has no section {title!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{2,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of its own for the names of a test."""
    path = Path(tempfile.mkdtemp(prefix="ramway-examples-", dir="/dev/shm"))
    monkeypatch.setenv("RAMWAY_DIR", str(path))
    yield path
    shutil.rmtree(path)
