"""Market ticks of 32 bytes at a given rate, from another process to an asyncio task, beside a task that sleeps.

Received one by one (`async for`) and many at a time (`recv_array_async`), in turn. Printed for each: the rate, the CPU
time of the receiving thread as a share of the time, and by how much the task beside it, which sleeps a millisecond at a
time, was late.

    python asyncio_ticks.py [--rate 1000000] [--seconds 3] [--rounds 3] [--loop asyncio|uvloop]
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import ramway

TICK = np.dtype([("time", "<u8"), ("instrument", "<u4"), ("side", "<u4"), ("price", "<f8"), ("size", "<f8")])
# So many are written before the producer looks at the clock again.
CHUNK = 500


def pin(cpu: int) -> None:
    """To the n-th of the CPUs that this process may use, where there are several."""
    if hasattr(os, "sched_setaffinity"):
        cpus = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cpus[cpu % len(cpus)]})


def produce(rate: float, count: int) -> None:
    pin(1)
    ticks = np.zeros(CHUNK, TICK)
    with ramway.Ring.open("ticks", timeout=60).sender() as tx:
        start = time.perf_counter()
        for sent in range(0, count, CHUNK):
            while (early := start + sent / rate - time.perf_counter()) > 0:
                time.sleep(early)
            ticks["time"] = np.arange(sent, sent + CHUNK)
            tx.send_array(ticks)


async def one_by_one(rx: ramway.Receiver) -> AsyncIterator[int]:
    count = 0
    async for _ in rx:
        count += 1
        if count == CHUNK:
            yield count
            count = 0
    yield count


async def many(rx: ramway.Receiver) -> AsyncIterator[int]:
    expected = 0
    try:
        while True:
            ticks = await rx.recv_array_async(TICK, 4096)
            assert ticks["time"][0] == expected
            expected += len(ticks)
            yield len(ticks)
    except ramway.ClosedError:
        pass


async def sleeps(late: list[float]) -> None:
    while True:
        start = time.perf_counter()
        await asyncio.sleep(0.001)
        late.append(max(0.0, time.perf_counter() - start - 0.001))


async def consume(receive: Callable[[ramway.Receiver], AsyncIterator[int]], options: argparse.Namespace) -> str:
    total = int(options.rate * options.seconds) // CHUNK * CHUNK
    rx = ramway.Ring.create("ticks", capacity=1 << 21).receiver()
    command = [sys.executable, os.path.abspath(__file__), "--producer", str(total), "--rate", str(options.rate)]
    producer = subprocess.Popen(command)
    late: list[float] = []
    beside = asyncio.create_task(sleeps(late))
    ticks, start, before = 0, 0.0, 0.0
    with rx:
        async for count in receive(rx):
            if not ticks:
                start, before = time.perf_counter(), time.thread_time()
                late.clear()
            ticks += count
        elapsed, used = time.perf_counter() - start, time.thread_time() - before
    beside.cancel()
    producer.wait()
    assert ticks == total, f"{ticks} of {total}"
    late.sort()
    worst = late[int(len(late) * 0.99)]
    return (
        f"{ticks / elapsed / 1e6:5.2f} M ticks/s   CPU {100 * used / elapsed:3.0f} %"
        f"   late: p50 {statistics.median(late) * 1e3:.2f} ms, p99 {worst * 1e3:.2f} ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=float, default=1e6, help="ticks a second")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--loop", choices=("asyncio", "uvloop"), default="asyncio")
    parser.add_argument("--producer", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.producer:
        produce(options.rate, options.producer)
        return
    loop_factory: Callable[[], asyncio.AbstractEventLoop]
    if options.loop == "uvloop":
        import uvloop

        loop_factory = uvloop.new_event_loop
    else:
        loop_factory = asyncio.new_event_loop
    print(f"Python {sys.version.split()[0]}, {options.loop}, ramway {ramway.__version__}")
    print(f"{options.rate:,.0f} ticks/s offered:")
    directory = Path(tempfile.mkdtemp(prefix="ramway-ticks-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    os.environ["RAMWAY_DIR"] = str(directory)
    pin(0)
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            for _ in range(options.rounds):
                for name, receive in (("async for", one_by_one), ("recv_array_async", many)):
                    print(f"  {name:17} {runner.run(consume(receive, options))}", flush=True)
    finally:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
