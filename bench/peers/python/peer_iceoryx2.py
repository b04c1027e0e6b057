"""iceoryx2: a publish-subscribe service each way of a structure of 64-bit words, loaned, filled, sent and read in place
at `payload_ptr`, which is faster than `write_payload` and takes a tenth of the time of `payload().contents`, the
examples' ways. No overflow, and a publisher that waits for room: nothing may be lost. Both sides poll."""

from __future__ import annotations

import contextlib
import ctypes
import os
import zlib
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import repeat
from typing import Any

import ends
import iceoryx2 as iox2  # type: ignore[import-untyped]
from protocol import Burst, Setup, about

_BUFFERED_MAX = 4096
_PREFIX = "ramway_bench_python_"


def _message(size: int) -> type[ctypes.Structure]:
    return type("Message", (ctypes.Structure,), {"_fields_": [("words", ctypes.c_uint64 * (size // 8))]})


class Ports(ends.End):
    """A publisher and a subscriber."""

    def __init__(self, setup: Setup, prefix: str, sends_on: str, receives_on: str) -> None:
        iox2.set_log_level(iox2.LogLevel.Error)
        config = iox2.config.default()
        # Names of this pair's own: nothing is shared with, or left to, another run.
        config.global_cfg.prefix = iox2.FileName.new(prefix)
        config.global_cfg.root_path = iox2.Path.new(setup.directory)
        self._size, self._prefix, self._bytes = setup.largest, prefix, ctypes.c_char * setup.largest
        buffered = min(max(setup.capacity // setup.largest, 2), _BUFFERED_MAX)
        builder = iox2.NodeBuilder.new().config(config).signal_handling_mode(iox2.SignalHandlingMode.Disabled)
        self._node = builder.create(iox2.ServiceType.Ipc)

        def service(name: str) -> Any:
            of = self._node.service_builder(iox2.ServiceName.new(name)).publish_subscribe(_message(setup.largest))
            of = of.max_publishers(1).max_subscribers(1).max_nodes(2).history_size(0).enable_safe_overflow(False)
            return of.subscriber_max_buffer_size(buffered).subscriber_max_borrowed_samples(2).open_or_create()

        self._rx = service(receives_on).subscriber_builder().buffer_size(buffered).create()
        waits = iox2.BackpressureStrategy.RetryUntilDelivered
        self._tx = service(sends_on).publisher_builder().max_loaned_samples(1).backpressure_strategy(waits).create()

    def _send_each(self, of: Iterable[bytes]) -> None:
        loan, memmove, size = self._tx.loan_uninit, ctypes.memmove, self._size
        for message in of:
            sample = loan()
            memmove(sample.payload_ptr, message, size)
            sample.assume_init().send()

    def ping(self, groups: list[list[bytes]]) -> list[int]:
        loan, receive, memmove, at = self._tx.loan_uninit, self._rx.receive, ctypes.memmove, self._bytes.from_address
        size, adler32, now = self._size, zlib.adler32, ends.now
        check, stamps = ends.BEGIN, [now()]
        for group in groups:
            for message in group:
                loaned = loan()
                memmove(loaned.payload_ptr, message, size)
                loaned.assume_init().send()
                while (sample := receive()) is None:
                    pass
                check = adler32(at(sample.payload_ptr), check)
            stamps.append(now())
        return [*stamps, check]

    def echo(self, answers: Iterable[bytes]) -> int:
        loan, receive, memmove, at = self._tx.loan_uninit, self._rx.receive, ctypes.memmove, self._bytes.from_address
        size, adler32, check = self._size, zlib.adler32, ends.BEGIN
        for answer in answers:
            while (sample := receive()) is None:
                pass
            check = adler32(at(sample.payload_ptr), check)
            loaned = loan()
            memmove(loaned.payload_ptr, answer, size)
            loaned.assume_init().send()
        return check

    def send(self, groups: list[Any]) -> None:
        for group in groups:
            self._send_each(group)

    def receive(self, burst: Burst) -> int:
        receive, at, adler32, check = self._rx.receive, self._bytes.from_address, zlib.adler32, ends.BEGIN
        for _ in repeat(None, burst.count):
            while (sample := receive()) is None:
                pass
            check = adler32(at(sample.payload_ptr), check)
        return check

    def close(self) -> None:
        del self._tx, self._rx, self._node
        # A file that all nodes of a prefix share is never removed.
        for entry in os.scandir("/dev/shm"):
            if entry.name.startswith(self._prefix):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(entry.path)


class Iceoryx2(ends.Mechanism):
    """Publish-subscribe by its Python binding."""

    def about(self) -> dict[str, Any]:
        what = "iceoryx2 publish-subscribe, written and read in place (payload_ptr), without overflow"
        return about("iceoryx2-python", "peer", False, what, version("iceoryx2"))

    def can(self, burst: Burst) -> bool:
        return (burst.test, burst.mode) in (("rtt", "spin"), ("one-way", "each"))

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        prefix = f"{_PREFIX}{os.getpid()}_"
        end = Ports(setup, prefix, "there", "back")
        return prefix, lambda: end

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        return Ports(setup, ticket, "back", "there")


MECHANISMS = [Iceoryx2()]
