"""A machine of the plant in `Plant.kt`: publishes readings of 16 bytes, two float64, to a topic of its own.

    java ... PlantKt press lathe mill saw drill     # in one terminal
    python machine.py press 100000                  # in others, one for each

It waits for the first reliable subscriber. What it prints at the end is what the plant must have read.
"""

import argparse
import math
import struct
import time

import ramway


def reading(number: int) -> bytes:
    """A temperature that rises and falls, and a load that does so twice as fast."""
    return struct.pack("<dd", 60 + 40 * math.sin(number / 500), 0.5 + 0.5 * math.sin(number / 250))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("topic")
    arguments.add_argument("readings", type=int)
    arguments.add_argument("--pause", type=float, default=0.0, help="seconds between two")
    chosen = arguments.parse_args()
    topic = ramway.Topic.open_or_create(chosen.topic, capacity=1 << 20, timeout=10)
    with topic.publisher() as publisher:
        publisher.wait_for_subscribers(1, 60)
        for number in range(chosen.readings):
            publisher.send(reading(number))
            time.sleep(chosen.pause)
    print(f"{chosen.topic} sent {chosen.readings} readings")


main()
