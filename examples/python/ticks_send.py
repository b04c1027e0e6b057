"""Market ticks of 32 bytes, from Python to Rust.

market consume ticks                    # examples/src/bin/market.rs, in one terminal
python ticks_send.py ticks              # in the other; either may be first
"""

import argparse
import time

import numpy as np
import ramway

# examples/src/bin/market.rs has the same as a #[repr(C)] struct.
TICK_DTYPE = np.dtype([("time", "<u8"), ("price", "<i8"), ("number", "<u8"), ("symbol", "<u4"), ("quantity", "<u4")])
TOTAL_DTYPE = np.dtype([("money", "<i8"), ("quantity", "<u8")])
TICK, SHUTDOWN = 1, 2
SYMBOLS = 16


def make_ticks(count: int) -> np.ndarray:
    """Prices that walk at random, in 1/10000 of the currency."""
    random = np.random.default_rng(5)
    ticks = np.zeros(count, TICK_DTYPE)
    ticks["time"] = np.arange(count) * 1000
    ticks["number"] = np.arange(count)
    ticks["symbol"] = random.integers(0, SYMBOLS, count)
    ticks["quantity"] = random.integers(1, 500, count)
    for symbol in range(SYMBOLS):
        of_symbol = ticks["symbol"] == symbol
        steps = random.integers(-100, 101, np.count_nonzero(of_symbol))
        ticks["price"][of_symbol] = np.maximum(100_0000 * (symbol + 1) + np.cumsum(steps), 1)
    return ticks


def make_totals(ticks: np.ndarray) -> np.ndarray:
    """What was traded of each symbol: money and quantity."""
    totals = np.zeros(SYMBOLS, TOTAL_DTYPE)
    np.add.at(totals["money"], ticks["symbol"], ticks["price"] * ticks["quantity"])
    np.add.at(totals["quantity"], ticks["symbol"], ticks["quantity"])
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description="Sends market ticks to `market consume`.")
    parser.add_argument("ring", help="name of the ring")
    parser.add_argument("--count", type=int, default=2_000_000, help="ticks to send")
    parser.add_argument("--batch", type=int, default=1, help="ticks per call: more than one go as one array")
    arguments = parser.parse_args()

    ticks = make_ticks(arguments.count)
    totals = make_totals(ticks)
    with ramway.Ring.open_or_create(arguments.ring, capacity=8 << 20, timeout=5).sender() as tx:
        start = time.perf_counter()
        if arguments.batch > 1:
            for first in range(0, len(ticks), arguments.batch):
                tx.send_array(ticks[first : first + arguments.batch], TICK)
        else:
            for tick in ticks:
                tx.send(tick, TICK)
        seconds = time.perf_counter() - start
        # The last message says what was sent; leaving the block closes the ring, which the receiver is told after it.
        tx.send(totals, SHUTDOWN, len(ticks))
    print(f"sent {len(ticks)} ticks in {seconds:.2f} s: {len(ticks) / seconds / 1e6:.2f} million a second")
    means = totals["money"] / np.maximum(totals["quantity"], 1) / 1e4
    print("mean prices by volume:", *(f"{mean:.2f}" for mean in means))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
