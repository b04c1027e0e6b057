"""A training loop fed by a C++ process, and the same batches by the usual ways: how many samples a second each gives.

    python training.py --programs DIRECTORY     # where `make -C examples/cpp` put its programs

The samples are made by the same C++ code each time: by a process that writes them into a ring where the trainer reads
them, by a Python worker that puts them into a multiprocessing.Queue, and by a worker of PyTorch's DataLoader (without
PyTorch the loop is JAX's, and in place of the DataLoader stands a worker at a multiprocessing.Pipe).
"""

import argparse
import ctypes
import importlib.util
import multiprocessing
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import ramway

Plan = tuple[Path, int, int, int]  # where the programs are, batches, rows, columns


def make_batches(plan: Plan) -> Iterator[np.ndarray]:
    """What a Python worker does."""
    programs, batches, rows, columns = plan
    library = ctypes.CDLL(str(programs / "libfeatures.so"))
    library.make_batch.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
    for number in range(batches):
        batch = np.empty((rows, columns), np.float32)
        library.make_batch(number, batch.ctypes.data, rows, columns)
        yield batch


def into_queue(queue: Any, plan: Plan) -> None:
    for batch in make_batches(plan):
        queue.put(batch)
    queue.put(None)


def into_pipe(end: Any, plan: Plan) -> None:
    for batch in make_batches(plan):
        end.send(batch)
    end.send(None)


def by_ring(plan: Plan) -> Iterator[Any]:
    name = f"training-{os.getpid()}"
    program = [str(plan[0] / "feature_producer"), name, *map(str, plan[1:])]
    room = 4 * (plan[2] * plan[3] * 4 + 128)
    with ramway.Ring.create(name, capacity=room).receiver() as rx, subprocess.Popen(program) as producer:
        for message in rx:
            yield message.tensor()
        assert producer.wait() == 0


def by_queue(plan: Plan) -> Iterator[Any]:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue(maxsize=4)
    worker = context.Process(target=into_queue, args=(queue, plan), daemon=True)
    worker.start()
    while (batch := queue.get()) is not None:
        yield batch
    worker.join()


def by_pipe(plan: Plan) -> Iterator[Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    worker = context.Process(target=into_pipe, args=(theirs, plan), daemon=True)
    worker.start()
    while (batch := ours.recv()) is not None:
        yield batch
    worker.join()


def by_loader(plan: Plan) -> Iterator[Any]:
    from training_torch import loader

    yield from loader(make_batches, plan)


def jax_trainer(features: int) -> Any:
    """Logistic regression: a step that is little work for its data. Gives a function from a batch to its loss."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(weights: Any, batch: Any) -> Any:
        def loss_of(weights: Any) -> Any:
            score = batch[:, 1:] @ weights
            return jnp.mean(jnp.logaddexp(0, score) - batch[:, 0] * score)

        loss, gradient = jax.value_and_grad(loss_of)(weights)
        return weights - 3 * gradient, loss

    weights: Any = jnp.zeros(features)

    def train(batch: Any) -> float:
        nonlocal weights
        # A tensor of the ring is taken as it lies there; JAX gives it back when nothing computes with it any more.
        taken = jnp.asarray(batch) if isinstance(batch, np.ndarray) else jnp.from_dlpack(batch)
        weights, loss = step(weights, taken)
        return float(loss)

    return train


def main() -> None:
    parser = argparse.ArgumentParser(description="The same training by several feeds.")
    parser.add_argument("--programs", type=Path, required=True, help="where feature_producer and libfeatures.so are")
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--rows", type=int, default=4096, help="samples a batch")
    parser.add_argument("--columns", type=int, default=257, help="a label and an even number of features")
    parser.add_argument("--framework", choices=["torch", "jax"])
    arguments = parser.parse_args()
    torch = importlib.util.find_spec("torch") is not None
    framework = arguments.framework or ("torch" if torch else "jax")
    if framework == "torch":
        from training_torch import torch_trainer as trainer
    else:
        trainer = jax_trainer
    plan = (arguments.programs, arguments.batches, arguments.rows, arguments.columns)
    third = ("DataLoader", by_loader) if framework == "torch" else ("Pipe", by_pipe)
    print(f"{framework}, {arguments.batches} batches of {arguments.rows} samples of {4 * arguments.columns} bytes")
    for name, source in (("ramway", by_ring), ("Queue", by_queue), third):
        train = trainer(arguments.columns - 1)
        feed = source(plan)
        # The first batch pays for processes that start and code that is compiled.
        loss = train(next(feed))
        start = began = time.perf_counter()
        waited = 0.0
        for batch in feed:
            waited += time.perf_counter() - began
            loss = train(batch)
            began = time.perf_counter()
        seconds = time.perf_counter() - start
        rate = (arguments.batches - 1) * arguments.rows / seconds
        print(
            f"{name:10} {rate:10,.0f} samples/s, {100 * waited / seconds:3.0f} % waiting, loss {loss:.4f}", flush=True
        )


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
