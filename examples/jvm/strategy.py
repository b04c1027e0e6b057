"""Trades on the quotes of `OrderBook.java`: buys what more people want to buy than to sell, and the other way round.

    python strategy.py quotes                       # in one terminal
    java ... OrderBook.java quotes 1000000 0        # in the other

The quotes come as structured NumPy arrays, all those that are there at a time, and all is computed on whole arrays. The
result does not depend on where one array ends and the next begins.
"""

import argparse
import sys
import time

import numpy as np
import ramway

# OrderBook.java writes the same with putLong and putInt.
QUOTE = np.dtype(
    [
        ("time", "<u8"),
        ("number", "<u8"),
        ("bid", "<i8"),
        ("ask", "<i8"),
        ("bid_size", "<u4"),
        ("ask_size", "<u4"),
        ("traded", "<u4"),
        ("buyer", "<u4"),
    ]
)
DAY = np.dtype([("orders", "<u8"), ("quotes", "<u8"), ("volume", "<u8")])
SHUTDOWN = 2


class Strategy:
    """Long or short by 100, or still out of the market. Money in hundredths of the currency."""

    SIZE = 100

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.side = 0
        self.money = 0
        self.deals = 0
        self.quotes = 0
        self.volume = 0
        self.last = np.zeros(1, QUOTE)

    def take(self, quotes: np.ndarray) -> None:
        if not np.array_equal(quotes["number"], np.arange(self.quotes, self.quotes + len(quotes), dtype="u8")):
            raise SystemExit(f"quotes are missing after {self.quotes}")
        self.quotes += len(quotes)
        self.volume += int(quotes["traded"].sum(dtype="u8"))
        bids, asks = quotes["bid_size"].astype("f8"), quotes["ask_size"].astype("f8")
        imbalance = (bids - asks) / (bids + asks)
        wanted = np.where(imbalance > self.threshold, 1, np.where(imbalance < -self.threshold, -1, 0))
        # Where nothing is wanted, what was wanted last still is.
        decided = np.maximum.accumulate(np.where(wanted != 0, np.arange(len(wanted)), -1))
        sides = np.where(decided >= 0, wanted[decided], self.side)
        change = np.diff(sides, prepend=self.side) * self.SIZE
        # Buying costs the ask, selling earns the bid.
        self.money -= int((change * np.where(change > 0, quotes["ask"], quotes["bid"])).sum())
        self.deals += int(np.count_nonzero(change))
        self.side = int(sides[-1])
        self.last = quotes[-1:].copy()

    def result(self) -> str:
        """Money, and what closing the position would bring."""
        position = self.side * self.SIZE
        price = int((self.last["bid"] if position > 0 else self.last["ask"])[0])
        return f"{self.deals} deals, position {position}, profit {(self.money + position * price) / 100:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Trades on the quotes of OrderBook.java.")
    parser.add_argument("ring", help="name of the ring")
    parser.add_argument("--batch", type=int, default=4096, help="quotes an array, at most")
    parser.add_argument("--threshold", type=float, default=0.8, help="imbalance to act on, above 0 and below 1")
    arguments = parser.parse_args()

    strategy = Strategy(arguments.threshold)
    arrays, start = 0, None
    with ramway.Ring.open_or_create(arguments.ring, capacity=1 << 20, timeout=5).receiver() as rx:
        while True:
            try:
                quotes = rx.recv_array(QUOTE, arguments.batch)
            except ramway.InvalidArgumentError:
                # A message of another size stays where it is.
                break
            start = start or time.perf_counter()
            strategy.take(quotes)
            arrays += 1
        seconds = time.perf_counter() - (start or time.perf_counter())
        with rx.recv() as last:
            day = np.frombuffer(last.tobytes(), DAY)[0]
            if last.type_id != SHUTDOWN or (day["quotes"], day["volume"]) != (strategy.quotes, strategy.volume):
                sys.exit("the book's figures are others")
        # The end of the stream is received like a message: it is what releases the ring's name.
        for message in rx:
            sys.exit(f"{message} came after the end")
    print(f"{strategy.quotes} quotes in {arrays} arrays and {seconds:.2f} s, {strategy.volume} traded")
    print(strategy.result())


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
