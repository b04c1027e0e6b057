"""A thousand tasks that wait, each for a receiver of its own; then messages to all of them.

Beside asyncio's Unix-socket streams, in one run: the kinds take turns, round by round. First, for each kind, the CPU
time (user and system, all threads) that the process uses while all of its tasks wait. Then the rate at which messages
to all are received, from the request to the last of them, with a sender that is another process, on another CPU.

    python asyncio_idle.py [--receivers 1000] [--rounds 30] [--burst 1] [--size 32] [--idle 5] [--loop asyncio|uvloop]
                           [--fences]
"""

import argparse
import asyncio
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import ramway

KINDS = ("unix stream", "bus", "named ring")
CAPACITY = 1 << 16


def descriptors(receivers: int) -> int:
    """Has the limit of open descriptors raised; gives for how many receivers of each kind that is enough."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # The most that one of each kind has open in one process, and some for everything else.
    return receivers if hard == resource.RLIM_INFINITY else min(receivers, (hard - 100) // 10)


def pin(cpu: int) -> None:
    """To the n-th of the CPUs that this process may use, where there are several."""
    if hasattr(os, "sched_setaffinity"):
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpus[cpu % len(cpus)]})


def produce(receivers: int, burst: int, size: int) -> None:
    """The other process: sends `burst` messages to each receiver of a kind whenever it reads the kind's name."""
    descriptors(receivers)
    pin(1)
    payload = bytes(size)
    streams = []
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("streams")
        listening.listen(receivers)
        print("listening", flush=True)
        rings = [ramway.Ring.open(f"ring{n}", timeout=60).sender() for n in range(receivers)]
        buses = [ramway.Bus.connect("buses", timeout=60) for _ in range(receivers)]
        for _ in range(receivers):
            streams.append(listening.accept()[0])
    sends: dict[str, Sequence[Callable[[bytes], Any]]] = {
        "named ring": [ring.send for ring in rings],
        "bus": [bus.sender.send for bus in buses],
        "unix stream": [stream.sendall for stream in streams],
    }
    print("ready", flush=True)
    for line in sys.stdin:
        for send in sends[line.strip()]:
            for _ in range(burst):
                send(payload)


class Arrivals:
    """Counts what all tasks have received, up to what is expected."""

    def __init__(self) -> None:
        self.left = 0
        self.all_here = asyncio.Event()

    def expect(self, messages: int) -> None:
        self.left = messages
        self.all_here.clear()

    def one(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.all_here.set()


async def take_all(messages: AsyncIterator[object], arrivals: Arrivals) -> None:
    async for _ in messages:
        arrivals.one()


async def take_stream(reader: asyncio.StreamReader, size: int, arrivals: Arrivals) -> None:
    while True:
        await reader.readexactly(size)
        arrivals.one()


def cpu_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure(options: argparse.Namespace, producer: "subprocess.Popen[str]") -> None:
    assert producer.stdin is not None and producer.stdout is not None
    count, arrivals = options.receivers, Arrivals()
    by = not options.fences
    rings = [ramway.Ring.create(f"ring{n}", capacity=CAPACITY, membarrier=by).receiver() for n in range(count)]
    with ramway.Listener.bind("buses", to_peer=0, from_peer=CAPACITY, membarrier=by) as listener:
        assert producer.stdout.readline() == "listening\n"
        buses = [listener.accept(60) for _ in range(count)]
    streams = [await asyncio.open_unix_connection("streams") for _ in range(count)]
    assert producer.stdout.readline() == "ready\n"

    tasks = []
    waits = {
        "named ring": lambda: [take_all(aiter(ring), arrivals) for ring in rings],
        "bus": lambda: [take_all(aiter(bus), arrivals) for bus in buses],
        "unix stream": lambda: [take_stream(reader, options.size, arrivals) for reader, _ in streams],
    }
    print(f"{count} idle tasks of each kind, CPU time of the process over {options.idle:g} s:")
    for kind in KINDS:
        own = [asyncio.create_task(wait) for wait in waits[kind]()]
        await asyncio.sleep(1)
        before = cpu_time()
        await asyncio.sleep(options.idle)
        print(f"  {kind:12} {100 * (cpu_time() - before) / options.idle:5.2f} %")
        # So that the next figure is that kind's own; what looks after the peers of named rings stays, so they are last.
        for task in own:
            task.cancel()
        await asyncio.wait(own)
    for kind in KINDS:
        tasks += [asyncio.create_task(wait) for wait in waits[kind]()]
    await asyncio.sleep(1)

    rates: dict[str, list[float]] = {kind: [] for kind in KINDS}
    costs: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for turn in range(options.rounds + 3):
        for kind in KINDS:
            arrivals.expect(count * options.burst)
            start, before = time.perf_counter(), time.thread_time()
            producer.stdin.write(kind + "\n")
            producer.stdin.flush()
            await arrivals.all_here.wait()
            rate = count * options.burst / (time.perf_counter() - start)
            # The first rounds touch the memory.
            if turn >= 3:
                rates[kind].append(rate)
                costs[kind].append((time.thread_time() - before) / (count * options.burst) * 1e6)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for _, writer in streams:
        writer.close()

    each = "a message" if options.burst == 1 else f"{options.burst} messages"
    print(
        f"{each} of {options.size} bytes to each, {options.rounds} rounds of every kind in turn, messages per second:"
    )
    for kind in KINDS:
        ratios = [rate / stream for rate, stream in zip(rates[kind], rates["unix stream"], strict=True)]
        median = statistics.median(rates[kind])
        print(
            f"  {kind:12} median {median:9,.0f}  min {min(rates[kind]):9,.0f}"
            f"   × unix stream: median {statistics.median(ratios):.2f}  min {min(ratios):.2f}"
            f"   CPU µs a message: median {statistics.median(costs[kind]):.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receivers", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--burst", type=int, default=1, help="messages to each receiver in a round")
    parser.add_argument("--size", type=int, default=32, help="bytes of a message")
    parser.add_argument("--idle", type=float, default=5.0, help="seconds")
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--fences", action="store_true", help="membarrier=False: a fence for each message instead")
    parser.add_argument("--producer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.producer:
        produce(options.receivers, options.burst, options.size)
        return
    enough = descriptors(options.receivers)
    if enough < options.receivers:
        print(f"{enough} receivers instead of {options.receivers}: the limit of open descriptors allows no more")
        options.receivers = enough
    loop_factory: Callable[[], asyncio.AbstractEventLoop]
    if options.loop == "uvloop":
        import uvloop

        loop_factory = uvloop.new_event_loop
    else:
        loop_factory = asyncio.new_event_loop
    print(f"Python {sys.version.split()[0]}, {options.loop}, ramway {ramway.__version__}")
    directory = Path(tempfile.mkdtemp(prefix="ramway-idle-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    os.environ["RAMWAY_DIR"] = str(directory)
    command = [sys.executable, os.path.abspath(__file__), "--producer"]
    for name in ("receivers", "burst", "size"):
        command += [f"--{name}", str(getattr(options, name))]
    # There, so that the path of the streams' socket is short.
    os.chdir(directory)
    producer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        pin(0)
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(measure(options, producer))
    finally:
        assert producer.stdin is not None
        producer.stdin.close()
        producer.wait()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
