"""Other processes, and waiting for things."""

import os
import queue
import signal
import subprocess
import sys
import sysconfig
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Self

# No test depends on being fast: this is for what has gone wrong, in seconds.
LONG = 60.0

# Whether this interpreter has no lock.
FREE_THREADED = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))

# The interpreter at its most suspicious.
DEBUG = ("-X", "dev", "-W", "error::ResourceWarning")
DEBUG_ENVIRONMENT = {"PYTHONMALLOC": "debug"}


class Child:
    """Another Python process that runs `code`, with `sys.argv[1:]` = `arguments`."""

    def __init__(
        self, code: str, *arguments: object, options: Sequence[str] = (), env: dict[str, str] | None = None
    ) -> None:
        command = [sys.executable, *options, "-c", textwrap.dedent(code), *map(str, arguments)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            # Lines are read as they come.
            env=os.environ | {"PYTHONUNBUFFERED": "1"} | (env or {}),
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.errors: list[str] = []
        out, err = self.process.stdout, self.process.stderr
        assert out is not None and err is not None
        self.readers = [
            threading.Thread(target=self._read, args=(out, self.lines.put), daemon=True),
            threading.Thread(target=self._read, args=(err, self.errors.append), daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def _read(self, stream: IO[str], take: Callable[[str], object]) -> None:
        for line in stream:
            take(line.rstrip("\n"))
        if take == self.lines.put:
            self.lines.put(None)

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self, timeout: float = LONG) -> str:
        """The next line of its output."""
        line = self.lines.get(timeout=timeout)
        assert line is not None, f"it ended ({self.process.wait()}): {self.stderr()}"
        return line

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stderr(self) -> str:
        self.readers[1].join(LONG)
        return "\n".join(self.errors)

    def wait(self, timeout: float = LONG) -> int:
        return self.process.wait(timeout)

    def finish(self, timeout: float = LONG) -> list[str]:
        """Waits for a good and silent end; gives the rest of its output."""
        code = self.wait(timeout)
        assert (code, self.stderr()) == (0, ""), f"exit {code}: {self.stderr()}"
        rest = []
        while (line := self.lines.get(timeout=LONG)) is not None:
            rest.append(line)
        return rest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(LONG)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass


def run(code: str, *arguments: object, options: Sequence[str] = (), env: dict[str, str] | None = None) -> list[str]:
    """Runs `code` to a good and silent end; gives its output."""
    with Child(code, *arguments, options=options, env=env) as child:
        return child.finish()


def eventually(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not holds():
        assert time.monotonic() < deadline, f"this never came: {what}"
        time.sleep(0.005)


def descriptors() -> set[tuple[str, str]]:
    """Those that are open, by number and what they are.

    An earlier test's may be closed at any time, by the collector of cycles: what leaves none open has
    `descriptors() <= before`.
    """
    open_now = set()
    for number in os.listdir("/proc/self/fd"):
        # The one of the listing itself is closed again.
        with suppress(FileNotFoundError):
            open_now.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return open_now


class Thread(threading.Thread):
    """A thread whose result, or exception, `result` gives."""

    def __init__(self, target: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(daemon=True)
        self._call = lambda: target(*arguments)
        self._result: Any = None
        self._raised: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._result = self._call()
        except BaseException as raised:
            self._raised = raised

    def result(self, timeout: float = LONG) -> Any:
        self.join(timeout)
        assert not self.is_alive(), "the thread is still at it"
        if self._raised is not None:
            raise self._raised
        return self._result


@contextmanager
def stopped(child: Child) -> Iterator[None]:
    """The process is stopped, not dead, meanwhile."""
    child.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        child.signal(signal.SIGCONT)


def sleeps(pid: int, thread: int | None = None) -> bool:
    """Whether a process (its main thread) sleeps in the kernel."""
    with open(f"/proc/{pid}/task/{thread or pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] == "S"
