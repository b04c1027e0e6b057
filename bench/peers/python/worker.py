"""The two processes of a pair: what each does from its beginning to its end."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

import crew
import ends
import usage
from protocol import VARIABLE, VERSION, Burst, Failure, Setup, outcome


@dataclass(frozen=True)
class Half:
    """What the following process did in a burst."""

    samples: list[int]
    ended: int
    used: usage.Used


def mechanisms(module: str) -> Sequence[ends.Mechanism | crew.Mechanism]:
    """Those of `peer_MODULE.py`."""
    of: Sequence[ends.Mechanism | crew.Mechanism] = importlib.import_module(f"peer_{module}").MECHANISMS
    return of


def find(module: str, name: str) -> ends.Mechanism | crew.Mechanism:
    """The one of this name."""
    for mechanism in mechanisms(module):
        if mechanism.about()["name"] == name:
            return mechanism
    raise Failure(f"no mechanism here is called {name}")


def pair_of(module: str, name: str) -> ends.Mechanism:
    """The one of this name, which is between two processes."""
    mechanism = find(module, name)
    if isinstance(mechanism, crew.Mechanism):
        raise Failure(f"{name} is between many processes")
    return mechanism


def answer(words: dict[str, Any] | list[Any]) -> None:
    """A line of the protocol."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Pair:
    """The leading process's end, and the following process."""

    def __init__(self, module: str, name: str, setup: Setup, burst: Burst) -> None:
        # Before anything is opened: threads that the mechanism starts stay where their process is.
        usage.settle(setup.cpus[0], setup.realtime)
        ticket, finish = pair_of(module, name).prepare(setup, burst)
        # A fresh interpreter: what a fork would bring along is no part of what a library does.
        context = multiprocessing.get_context("spawn")
        self.control, theirs = context.Pipe()
        arguments = (os.getpid(), module, name, setup, burst, ticket, theirs)
        self.follower = context.Process(target=follow, args=arguments, daemon=True)
        self.follower.start()
        theirs.close()
        self.ending = False
        threading.Thread(target=self._watch, daemon=True).start()
        self._turns = ends.Turns(setup)
        self.end = finish()
        self._heard()
        self.pids = [os.getpid(), self.follower.pid]

    def _watch(self) -> None:
        # A leading process may be polling a word that nobody will ever write again.
        wait([self.follower.sentinel])
        if not self.ending:
            # It says itself why, on standard error.
            os.write(1, b'{"failed": "the second process died"}\n')
            os._exit(1)

    def _heard(self) -> Any:
        heard = self.control.recv()
        if isinstance(heard, str):
            raise Failure(heard)
        return heard

    def burst(self, words: dict[str, Any]) -> dict[str, Any]:
        """Does it; gives the outcome."""
        burst = Burst.read(words)
        run, verify = ends.lead(self.end, burst, self._turns)
        usage.forget_peak()
        self.control.send(burst)
        self._heard()
        used, began = usage.Usage(), ends.now()
        samples = run()
        ended = ends.now()
        uses = used.end()
        half: Half = self._heard()
        verify()
        both = {name: [value, getattr(half.used, name)] for name, value in vars(uses).items()}
        return outcome(max(ended, half.ended) - began, burst.count, samples + half.samples, both)

    def stop(self) -> None:
        """Ends the following process in an orderly way."""
        self.ending = True
        self.control.send(None)
        self.follower.join()
        self.end.close()
        if self.follower.exitcode != 0:
            raise Failure(f"the second process ended with {self.follower.exitcode}")


def follow(parent: int, module: str, name: str, setup: Setup, burst: Burst, ticket: Any, control: Connection) -> None:
    """The whole of the following process."""
    usage.die_with(parent)
    try:
        usage.settle(setup.cpus[1], setup.realtime)
        end = pair_of(module, name).join(setup, burst, ticket)
        turns = ends.Turns(setup)
        control.send(None)
        while (told := control.recv()) is not None:
            control.send(half(end, told, turns, control))
        end.close()
    except Exception as cause:
        control.send(str(cause) or type(cause).__name__)
        raise


def half(end: ends.End, burst: Burst, turns: ends.Turns, control: Connection) -> Half:
    """The following process's half of a burst."""
    run, verify = ends.follow(end, burst, turns)
    usage.forget_peak()
    control.send(None)
    used = usage.Usage()
    samples = run()
    done = Half(samples, ends.now(), used.end())
    verify()
    return done


def lead(module: str, order: dict[str, Any]) -> None:
    """The whole of the leading process."""
    if order["protocol"] != VERSION:
        raise Failure(f"speaks version {VERSION} of the protocol, not {order['protocol']}")
    setup, burst = Setup.read(order["setup"]), Burst.read(order["burst"])
    mechanism = find(module, order["mechanism"])
    if not mechanism.can(burst):
        answer({"cannot": None})
        return
    pair: ends.Pair | Pair | crew.Crew
    if isinstance(mechanism, crew.Mechanism):
        pair = crew.Crew(module, mechanism, setup, burst)
    else:
        pair = mechanism.pair(setup, burst) or Pair(module, order["mechanism"], setup, burst)
    answer({"ready": {"pids": pair.pids}})
    for line in sys.stdin:
        told = json.loads(line)
        if "quit" in told:
            break
        answer({"outcome": pair.burst(told["burst"])})
    pair.stop()


def main() -> int:
    """Gives the exit status."""
    order = os.environ.get(VARIABLE)
    if order is None or len(sys.argv) != 2:
        print("a worker of `ramway bench`, which starts it", file=sys.stderr)
        return 2
    told = json.loads(order)
    if "list" in told:
        answer([mechanism.about() for mechanism in mechanisms(sys.argv[1])])
        return 0
    try:
        lead(sys.argv[1], told["lead"])
    except Exception as cause:
        answer({"failed": str(cause) or type(cause).__name__})
        raise
    return 0
