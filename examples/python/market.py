"""A task that follows a market at a million ticks a second, and another that reports meanwhile.

    python market.py ticks                  # in one terminal
    market produce ticks 10000000 1000000   # in the other: examples/src/bin/market.rs

A tick is a message of 32 bytes. `recv_array_async` gives all those that have come as one structured array.
"""

import argparse
import asyncio
import time

import numpy as np
import ramway

# examples/src/bin/market.rs has the same as #[repr(C)] structs.
TICK = np.dtype([("time", "<u8"), ("price", "<i8"), ("number", "<u8"), ("symbol", "<u4"), ("quantity", "<u4")])
TOTAL = np.dtype([("money", "<i8"), ("quantity", "<u8")])
SHUTDOWN = 2
SYMBOLS = 16


class Market:
    """Volume-weighted mean prices, in 1/10000 of the currency."""

    def __init__(self) -> None:
        self.totals = np.zeros(SYMBOLS, TOTAL)
        self.ticks = 0
        self.arrays = 0

    def add(self, ticks: np.ndarray) -> None:
        if not np.array_equal(ticks["number"], np.arange(self.ticks, self.ticks + len(ticks), dtype="u8")):
            raise ValueError(f"ticks are missing after {self.ticks}")
        self.ticks += len(ticks)
        self.arrays += 1
        money = ticks["price"] * ticks["quantity"]
        # The sums of one array stay below 2^53, so that bincount's doubles are exact.
        self.totals["money"] += np.bincount(ticks["symbol"], money, SYMBOLS).astype("i8")
        self.totals["quantity"] += np.bincount(ticks["symbol"], ticks["quantity"], SYMBOLS).astype("u8")

    def means(self) -> str:
        means = self.totals["money"] / np.maximum(self.totals["quantity"], 1) / 1e4
        return " ".join(f"{mean:.2f}" for mean in means)


async def follow(rx: ramway.Receiver, market: Market) -> None:
    """Until the sender's last message, whose figures must be those of the ticks that came."""
    while True:
        try:
            market.add(await rx.recv_array_async(TICK, 4096))
        except ramway.InvalidArgumentError:
            # A message of another size stays where it is.
            break
    with await rx.recv_async() as last:
        theirs = np.frombuffer(last.tobytes(), TOTAL)
        if (last.type_id, last.tag) != (SHUTDOWN, market.ticks) or not np.array_equal(theirs, market.totals):
            raise SystemExit("the sender's figures are others")
    # The end of the stream is received like a message: it is what releases the ring's name.
    async for message in rx:
        raise SystemExit(f"{message} came after the end")


async def report(market: Market, every: float) -> None:
    while True:
        await asyncio.sleep(every)
        print(f"{market.ticks} ticks, {market.means()}", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description="Follows the ticks of `market produce`.")
    parser.add_argument("ring", help="name of the ring")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two reports")
    arguments = parser.parse_args()

    market = Market()
    with ramway.Ring.open_or_create(arguments.ring, capacity=8 << 20, timeout=5).receiver() as rx:
        # Until the first tick is there nothing is measured.
        market.add(await rx.recv_array_async(TICK, 1))
        start, used = time.perf_counter(), time.process_time()
        reporter = asyncio.create_task(report(market, arguments.every))
        await follow(rx, market)
        seconds, used = time.perf_counter() - start, time.process_time() - used
        reporter.cancel()
    rate = market.ticks / seconds / 1e6
    print(f"received {market.ticks} ticks in {seconds:.2f} s: {rate:.2f} million a second")
    print(f"{market.ticks / market.arrays:.0f} ticks an array, {100 * used / seconds:.0f} % of a processor")
    print(f"mean prices by volume: {market.means()}")


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        raise SystemExit(130) from None
