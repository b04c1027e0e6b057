"""Frames of 256 samples (float32) as NumPy arrays, from Rust or C++.

python waves.py waves                   # in one terminal
waves waves 2000000                     # in the other: examples/src/bin/waves.rs or examples/cpp/waves.cpp
"""

import argparse
import time

import numpy as np
import ramway

SAMPLES = 256
FRAME, SHUTDOWN = 1, 2


def main() -> None:
    parser = argparse.ArgumentParser(description="Receives the frames of `waves`.")
    parser.add_argument("ring", help="name of the ring")
    arguments = parser.parse_args()

    ring = ramway.Ring.open_or_create(arguments.ring, capacity=1 << 20, align=64, timeout=5)
    count, said, energy, start, seconds = 0, None, 0.0, 0.0, 0.0
    with ring.receiver() as rx:
        # Ends when the sender has closed.
        for message in rx:
            if message.type_id == SHUTDOWN:
                said = message.tag
                seconds = time.perf_counter() - start
                continue
            if message.tag != count:
                raise SystemExit(f"frame {message.tag} came after {count} others")
            # A view of the shared memory: the frame's place in the ring is the sender's again when both have gone.
            samples = message.numpy(np.float32)
            energy += float(samples[0]) ** 2
            if count == 0:
                start = time.perf_counter()
                assert samples.shape == (SAMPLES,), samples.shape
            count += 1
    if said != count:
        raise SystemExit(f"{count} frames came, and the sender said {said}")
    print(f"received {count} frames in {seconds:.2f} s: {count / seconds / 1e6:.2f} million a second")
    print(f"energy of the first samples: {energy:.1f}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
