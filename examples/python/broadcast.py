"""One scheduler broadcasts each step's work to some workers, as in LLM serving: objects with NumPy arrays in them.

python broadcast.py                     # by a topic, then by polled shared memory; prints what waiting costs in each
python broadcast.py --how topic --workers 8 --every 0.02

An object is pickled with its arrays out of band (pickle protocol 5). By the topic each array is copied once, into the
shared log, where every worker reads it in place; a worker that waits sleeps. The other way is the usual one: a block of
multiprocessing.shared_memory and a number in it that every worker polls in a loop.
"""

import argparse
import multiprocessing
import os
import pickle
import statistics
import struct
import time
import zlib
from collections.abc import Iterator
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np
import ramway

STEP = 1
#: Arrays begin on a multiple of this many bytes.
ALIGN = 64


def pack(thing: object) -> list[Any]:
    """Pieces that in a row are `thing`: how many parts and how long each is, the pickle, then each array's bytes."""
    arrays: list[pickle.PickleBuffer] = []
    parts: list[Any] = [pickle.dumps(thing, protocol=5, buffer_callback=arrays.append)]
    parts += [array.raw() for array in arrays]
    pieces: list[Any] = [struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts))]
    end = len(pieces[0])
    for part in parts:
        pieces += [bytes(-end % ALIGN), part]
        end += -end % ALIGN + len(part)
    return pieces


def unpack(view: memoryview) -> Any:
    """The thing. Its arrays are views of `view`: nothing is copied but the pickle's few bytes."""
    (count,) = struct.unpack_from("<Q", view)
    parts, end = [], 8 * (count + 1)
    for length in struct.unpack_from(f"<{count}Q", view, 8):
        begin = end + -end % ALIGN
        end = begin + length
        parts.append(view[begin:end])
    return pickle.loads(parts[0], buffers=parts[1:])


def make_step(number: int) -> dict[str, Any]:
    """What a scheduler says each step: which requests, their tokens, and where their memory is."""
    requests = [f"request-{(number + n) % 97}" for n in range(16)]
    tokens = np.arange(number, number + 16 * 2048, dtype=np.int32).reshape(16, 2048)
    blocks = np.full((16, 64), number, np.int64)
    return {"step": number, "requests": requests, "tokens": tokens, "blocks": blocks, "sent": time.monotonic_ns()}


def digest(step: dict[str, Any], before: int) -> int:
    """A number that is the same for all who have seen the same steps."""
    named = " ".join([str(step["step"]), *step["requests"]]).encode()
    return zlib.crc32(step["blocks"], zlib.crc32(step["tokens"], zlib.crc32(named, before)))


# --- by a topic ---


def steps_of_topic(name: str) -> Iterator[dict[str, Any]]:
    """Sleeps until there is a step. The scheduler waits rather than write over what a reliable subscriber reads."""
    with ramway.Topic.open_or_create(name, capacity=4 << 20, align=ALIGN, timeout=30).subscriber() as subscriber:
        for message in subscriber:
            yield unpack(memoryview(message))


def schedule_by_topic(name: str, count: int, workers: int, every: float) -> int:
    seen = 0
    with ramway.Topic.open_or_create(name, capacity=4 << 20, align=ALIGN, timeout=30).publisher() as publisher:
        publisher.wait_for_subscribers(workers)
        for number in range(count):
            time.sleep(every)
            step = make_step(number)
            publisher.send_vectored(pack(step), STEP)
            seen = digest(step, seen)
    return seen


# --- by polled shared memory, the usual way ---

BLOCK = 1 << 20
END = -1


def numbers_of(memory: SharedMemory, workers: int) -> np.ndarray:
    """The number of the last step, then for each worker the number of the last step that it has read."""
    return np.frombuffer(memory.buf, np.int64, 1 + workers)


def steps_of_memory(name: str, index: int, workers: int) -> Iterator[dict[str, Any]]:
    memory = SharedMemory(name)
    numbers = numbers_of(memory, workers)
    last = 0
    try:
        while True:
            # This is the waiting. It lets others run, and comes back at once where nobody wants to.
            while numbers[0] == last:
                os.sched_yield()
            last = int(numbers[0])
            if last == END:
                return
            step = unpack(memory.buf[ALIGN * workers :])
            yield step
            del step
            numbers[1 + index] = last
    finally:
        del numbers
        memory.close()


def schedule_by_memory(memory: SharedMemory, count: int, workers: int, every: float) -> int:
    numbers = numbers_of(memory, workers)
    seen = 0
    for number in range(count):
        time.sleep(every)
        step = make_step(number)
        data = b"".join(pack(step))
        while (numbers[1:] != number).any():
            os.sched_yield()
        memory.buf[ALIGN * workers : ALIGN * workers + len(data)] = data
        # x86 shows stores in their order; elsewhere this needs a fence, which Python does not have.
        numbers[0] = number + 1
        seen = digest(step, seen)
    while (numbers[1:] != count).any():
        os.sched_yield()
    numbers[0] = END
    del numbers
    return seen


# --- both ---


def work(how: str, name: str, index: int, workers: int, results: Connection) -> None:
    """Reads every step, and measures what the waiting in between costs."""
    steps = steps_of_topic(name) if how == "topic" else steps_of_memory(name, index, workers)
    seen = count = 0
    delays: list[int] = []
    processor = waited = 0.0
    while True:
        began, used = time.perf_counter(), time.process_time()
        step = next(steps, None)
        if step is None:
            break
        # The first wait is for the scheduler to begin, and has the imports in it.
        if count > 0:
            processor += time.process_time() - used
            waited += time.perf_counter() - began
        delays.append(time.monotonic_ns() - step["sent"])
        assert step["step"] == count and not step["tokens"].flags.owndata
        assert how != "topic" or not step["tokens"].flags.writeable
        seen, count = digest(step, seen), count + 1
        del step
    results.send((count, seen, processor, waited, statistics.median(delays) / 1e3))


def measure(how: str, arguments: argparse.Namespace) -> None:
    workers = arguments.workers
    name = f"broadcast-{os.getpid()}"
    context = multiprocessing.get_context("spawn")
    memory = SharedMemory(name, create=True, size=BLOCK) if how == "polled" else None
    pipes = [context.Pipe(duplex=False) for _ in range(workers)]
    processes = [
        context.Process(target=work, args=(how, name, index, workers, pipes[index][1]), daemon=True)
        for index in range(workers)
    ]
    try:
        for process in processes:
            process.start()
        if memory is None:
            seen = schedule_by_topic(name, arguments.steps, workers, arguments.every)
        else:
            seen = schedule_by_memory(memory, arguments.steps, workers, arguments.every)
        results = [receiver.recv() for receiver, _ in pipes]
        for process in processes:
            process.join()
    finally:
        if memory is not None:
            memory.close()
            memory.unlink()
    right = sum(result[:2] == (arguments.steps, seen) for result in results)
    print(f"{how}: {right} of {workers} workers have read all {arguments.steps} steps, digest {seen:08x}")
    for index, (_, _, processor, waited, delay) in enumerate(results):
        print(
            f"  worker {index}: waiting took {100 * processor / waited:.1f} % of a core; "
            f"a step was read {delay:.0f} us after it was made"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Broadcasts steps to workers, and measures what their waiting costs.")
    parser.add_argument("--how", choices=["topic", "polled", "both"], default="both")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--every", type=float, default=0.01, help="seconds between two steps")
    arguments = parser.parse_args()
    for how in ["topic", "polled"] if arguments.how == "both" else [arguments.how]:
        measure(how, arguments)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
