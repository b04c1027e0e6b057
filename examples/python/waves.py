"""Frames of 256 samples (float32) as NumPy arrays, from Rust or C++.

python waves.py waves                   # in one terminal
waves waves 2000000                     # in the other: examples/src/bin/waves.rs or examples/cpp/waves.cpp
"""

import argparse
import time

import numpy as np
import ramway

FRAME = np.dtype((np.float32, 256))
SHUTDOWN = 2


class Meter:
    """What was received, to be compared with what the sender says in its last message."""

    def __init__(self) -> None:
        self.frames, self.energy, self.start = 0, 0.0, time.perf_counter()

    def end(self, last: ramway.Message) -> None:
        seconds = time.perf_counter() - self.start
        if (last.type_id, last.tag) != (SHUTDOWN, self.frames):
            raise SystemExit(f"{self.frames} frames came before {last}")
        print(f"received {self.frames} frames in {seconds:.2f} s: {self.frames / seconds / 1e6:.2f} million a second")
        print(f"energy of the first samples: {self.energy:.1f}")


def one_by_one(rx: ramway.Receiver) -> None:
    """Each frame is a view of the shared memory, and its place the sender's again when the view has gone."""
    meter = None
    for message in rx:
        meter = meter or Meter()
        if message.type_id == SHUTDOWN:
            meter.end(message)
            continue
        samples = message.numpy(np.float32)
        meter.energy += float(samples[0]) ** 2
        meter.frames += 1


def in_batches(rx: ramway.Receiver, batch: int) -> None:
    """All frames that are there as the rows of one array, which is a copy."""
    meter = None
    try:
        while True:
            frames = rx.recv_array(FRAME, batch)
            meter = meter or Meter()
            meter.energy += float(np.sum(np.square(frames[:, 0], dtype="f8")))
            meter.frames += len(frames)
    except ramway.InvalidArgumentError:
        # A message of another size stays where it is.
        (meter or Meter()).end(rx.recv())
    for message in rx:
        raise SystemExit(f"{message} came after the end")


def main() -> None:
    parser = argparse.ArgumentParser(description="Receives the frames of `waves`.")
    parser.add_argument("ring", help="name of the ring")
    parser.add_argument("--batch", type=int, default=1, help="at most so many frames in one array")
    arguments = parser.parse_args()

    ring = ramway.Ring.open_or_create(arguments.ring, capacity=1 << 20, align=64, timeout=5)
    # Either goes on until the sender has closed: that, too, is received.
    with ring.receiver() as rx:
        if arguments.batch > 1:
            in_batches(rx, arguments.batch)
        else:
            one_by_one(rx)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
