"""Where a measuring process runs, and what it uses during a burst."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time
from dataclasses import dataclass

from protocol import Failure

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_MCL_CURRENT_AND_FUTURE = 3


def settle(cpu: int | None, realtime: bool) -> None:
    """Puts this process where it belongs: what it starts from now on stays there with it."""
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    if realtime:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError as cause:
            raise Failure(f"SCHED_FIFO is refused: {cause}") from cause
        if _LIBC.mlockall(_MCL_CURRENT_AND_FUTURE) != 0:
            raise Failure(f"locking memory is refused: {os.strerror(ctypes.get_errno())}")


def die_with(parent: int) -> None:
    """Asks for a signal when the parent dies, so that no polling process is left behind."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def forget_peak() -> None:
    """Sets the peak of the resident memory back, where the kernel lets it be."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as file:
        file.write(b"5")


@dataclass(frozen=True)
class Used:
    """What one process used in one burst."""

    cpu_ns: int
    peak_rss: int
    shared: int
    context_switches: int


class Usage:
    """The counters at the beginning of a burst."""

    def __init__(self) -> None:
        self._switches = _context_switches()
        self._cpu_ns = time.process_time_ns()

    def end(self) -> Used:
        """What was used since."""
        cpu_ns = time.process_time_ns() - self._cpu_ns
        switches = _context_switches() - self._switches
        with open("/proc/self/status") as file:
            kibibytes = {key: value for key, _, value in (line.partition(":") for line in file)}
        of = [int(kibibytes.get(name, "0").split()[0]) * 1024 for name in ("VmHWM", "RssShmem")]
        return Used(cpu_ns, of[0], of[1], switches)


def _context_switches() -> int:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_nvcsw + used.ru_nivcsw
