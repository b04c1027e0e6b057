"""Ramway by its Python binding: two named rings. One by one: `send` and `recv`, and a `for` loop over a receiver.
Together: `send_array` and `recv_array`. The same from a sender in Rust, and tensors of any size as views."""

from __future__ import annotations

import json
import os
import subprocess
import zlib
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Literal

import ends
import numpy as np
import ramway
import usage
from numpy.typing import NDArray
from protocol import PROGRAM, VARIABLE, VERSION, Burst, Failure, Setup, about, outcome

TICK = np.dtype([("time", "<u8"), ("price", "<f8"), ("volume", "<u8"), ("id", "<u8")])
"""What 32 bytes are to a program that receives them as an array."""


def _record(size: int) -> np.dtype[Any]:
    return TICK if size == TICK.itemsize else np.dtype([("words", "<u8", (size // 8,))])


def _policy(mode: str) -> Literal["spin", "hybrid", "block"]:
    return "hybrid" if mode == "hybrid" else "block" if mode == "block" else "spin"


class Rings(ends.End):
    """One ring to send on, one to receive from. Their pages are there from the beginning."""

    def __init__(self, setup: Setup, leads: bool) -> None:
        self.there, self.back = f"{setup.directory}/there", f"{setup.directory}/back"
        if leads:
            self._tx = ramway.Ring.create(self.there, capacity=setup.capacity, prefault=True).sender()
            self._rx = ramway.Ring.create(self.back, capacity=setup.capacity, prefault=True).receiver()
        else:
            self._rx = ramway.Ring.open(self.there, prefault=True).receiver()
            self._tx = ramway.Ring.open(self.back, prefault=True).sender()

    def wait_like(self, mode: str) -> None:
        self._tx.wait = self._rx.wait = _policy(mode)

    def ping(self, groups: list[list[bytes]]) -> list[int]:
        return ends.ping(self._tx.send, self._rx.recv, groups)

    def echo(self, answers: Iterable[bytes]) -> int:
        return ends.echo(self._tx.send, self._rx.recv, answers)

    def parcels(self, burst: Burst) -> list[Any]:
        if burst.mode != "batch":
            return super().parcels(burst)
        pool = np.frombuffer(b"".join(ends.pool(burst.size)), dtype=_record(burst.size))
        whole = np.resize(pool, burst.count)
        return [whole[at : at + burst.batch] for at in range(0, burst.count, burst.batch)]

    def send(self, groups: list[Any]) -> None:
        if isinstance(groups[0], list):
            for group in groups:
                ends.send_each(self._tx.send, group)
        else:
            for group in groups:
                self._tx.send_array(group)

    def receive(self, burst: Burst) -> int:
        return receive(self._rx, burst)

    def show(self, size: int, n: int) -> None:
        # Only what is looked at: writing 800 MiB empties the caches that both processors share.
        with self._tx.reserve_tensor((size // 4,), "float32") as slot:
            array = slot.numpy()
            array[:: 1 + len(array) // 256] = array[-1] = n
            del array

    def look(self, size: int, n: int, wait: Callable[[], None]) -> tuple[int, NDArray[Any]]:
        now, try_recv = ends.now, self._rx.try_recv
        while True:
            began = now()
            if (message := try_recv()) is not None:
                break
        array = message.tensor().numpy()
        first = array[0]
        taken = now() - began
        if first != n or array.shape != (size // 4,):
            raise Failure("the array received is not the array sent")
        return taken, array

    def close(self) -> None:
        self._tx.close()
        self._rx.close()


def receive(rx: ramway.Receiver, burst: Burst) -> int:
    """Reads a stream as `for message in rx` or as arrays."""
    if burst.mode != "batch":
        return ends.read_each(islice(rx, burst.count))
    record, recv_array, left, check = _record(burst.size), rx.recv_array, burst.count, ends.BEGIN
    while left > 0:
        array = recv_array(record, min(left, burst.batch))
        check = zlib.adler32(array, check)
        left -= len(array)
    return check


class Ring(ends.Mechanism):
    """Python on both sides."""

    def about(self) -> dict[str, Any]:
        what = "two named rings: send and recv, for message in rx; together: send_array, recv_array"
        return about("ring-python", "ramway", False, what)

    def can(self, burst: Burst) -> bool:
        return burst.test in ("rtt", "one-way", "view") and burst.smallest == burst.size

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        end = Rings(setup, True)
        return None, lambda: end

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        return Rings(setup, False)


class Receiving:
    """A receiver here, and a sender in Rust: the program that started this one has it (`bench/src/sender.rs`)."""

    def __init__(self, setup: Setup, burst: Burst) -> None:
        usage.settle(setup.cpus[1], setup.realtime)
        name = f"{setup.directory}/there"
        self._rx = ramway.Ring.create(name, capacity=setup.capacity, prefault=True).receiver()
        self._rx.wait = "spin"
        program = os.environ.get(PROGRAM)
        if program is None:
            raise Failure(f"{PROGRAM} does not say which program sends")
        order = {"protocol": VERSION, "ring": name, "cpu": setup.cpus[0], "realtime": setup.realtime}
        self._sender = subprocess.Popen(
            json.loads(program),
            env=os.environ | {VARIABLE: json.dumps({"send": order})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pids = [self._sender.pid, os.getpid()]

    def burst(self, words: dict[str, Any]) -> dict[str, Any]:
        """Does it; gives the outcome."""
        burst = Burst.read(words)
        assert self._sender.stdin is not None and self._sender.stdout is not None
        usage.forget_peak()
        self._sender.stdin.write(json.dumps({"burst": words}) + "\n")
        used = usage.Usage()
        self._sender.stdin.flush()
        check = receive(self._rx, burst)
        ended = ends.now()
        uses = used.end()
        # What a test's executable prints besides is none of its own words.
        said = next((line for line in self._sender.stdout if line.startswith("{")), None)
        if said is None:
            raise Failure(f"the sender ended with {self._sender.wait()}")
        ends.verify(check, burst.size, burst.count)
        sent = json.loads(said)["sent"]
        both = {name: [sent[name], value] for name, value in vars(uses).items()}
        return outcome((ended - sent["began_ns"]), burst.count, [], both)

    def stop(self) -> None:
        """Ends the sender in an orderly way."""
        self._sender.communicate('{"quit": null}\n')
        self._rx.close()
        if self._sender.returncode != 0:
            raise Failure(f"the sender ended with {self._sender.returncode}")


class FromRust(ends.Mechanism):
    """Rust on one side."""

    def about(self) -> dict[str, Any]:
        what = "from a sender in Rust: for message in rx; together: recv_array"
        return about("ring-rust-python", "ramway", False, what)

    def can(self, burst: Burst) -> bool:
        return burst.test == "one-way" and burst.smallest == burst.size

    def pair(self, setup: Setup, burst: Burst) -> ends.Pair:
        return Receiving(setup, burst)


MECHANISMS = [Ring(), FromRust()]
