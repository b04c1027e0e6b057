"""A client of the services `orders` (Go) and `stock` (Rust): one of three programs in three languages, which the guide
(docs/guides/rpc.md) starts in three terminals."""

import argparse
import json
import sys
import time

from ramway import ClosedError, Error, PeerDeadError, TimedOutError
from ramway.rpc import CallError, Client


def buy(item: str, count: int, timeout: float) -> None:
    with Client.connect("orders", timeout=timeout) as orders:
        body = json.dumps({"item": item, "count": count}).encode()
        placed = json.loads(orders.call("Orders.Place", body, timeout=timeout).body)
        print(f"order {placed['order']}: {count} {item} for {placed['cents'] / 100:.2f}; {placed['left']} are left")


def count(last: int, timeout: float) -> None:
    """Counts shelves. It may be done twice, so a server that has gone is replaced by the next one."""
    end = time.monotonic() + timeout
    counted = 0
    while counted < last:
        left = max(end - time.monotonic(), 0)
        try:
            with Client.connect("stock", timeout=left) as stock:
                body = json.dumps({"from": counted + 1}).encode()
                for element in stock.stream("Stock.Count", body, timeout=left):
                    shelf = json.loads(element.body)
                    counted = shelf["shelf"]
                    print(f"shelf {counted}: {shelf['count']} {shelf['item']}", flush=True)
                    if counted == last:
                        break  # which cancels the call
        except TimedOutError:
            sys.exit(f"the time was over after shelf {counted}")
        except (CallError, ClosedError) as error:
            # A server that ends in order cancels what runs too long, and takes nothing new.
            if not isinstance(error, ClosedError | PeerDeadError) and error.status not in ("Cancelled", "Draining"):
                raise
            how = "died" if isinstance(error, PeerDeadError) else "closed"
            print(f"the stock has {how} after shelf {counted}; waiting for another one", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("buy", help="order something")
    command.add_argument("item")
    command.add_argument("count", type=int)
    command.add_argument("--timeout", type=float, default=10, help="seconds")
    command.set_defaults(do=buy)
    command = commands.add_parser("count", help="have the shelves counted, up to this one")
    command.add_argument("last", type=int)
    command.add_argument("--timeout", type=float, default=60, help="seconds")
    command.set_defaults(do=count)
    arguments = vars(parser.parse_args())
    try:
        arguments.pop("do")(**arguments)
    except Error as error:
        if isinstance(error, CallError) and error.status == "Application":
            sys.exit(f"error {error.code}: {error.text}")
        sys.exit(str(error))


if __name__ == "__main__":
    main()
