"""pyzmq: a PUSH and a PULL socket each way over `ipc://`, one I/O thread in each process, which runs on the processor
of its process; `send` and `recv` of bytes, by its documentation the fast way for small messages. They sleep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ends
import zmq
from peer_multiprocessing import Calls
from protocol import Burst, Setup, about


class Sockets(Calls):
    """Both sockets of a side."""

    def __init__(self, setup: Setup, leads: bool) -> None:
        self._context = zmq.Context(1)
        self._tx, self._rx = self._context.socket(zmq.PUSH), self._context.socket(zmq.PULL)
        room = min(max(setup.capacity // setup.largest, 2), 1 << 20)
        for socket in (self._tx, self._rx):
            socket.set_hwm(room)
            socket.linger = 0
        there, back = (f"ipc://{setup.directory}/{name}" for name in ("there", "back"))
        if leads:
            self._tx.bind(there)
            self._rx.bind(back)
        else:
            self._rx.connect(there)
            self._tx.connect(back)
        super().__init__(self._tx.send, self._rx.recv)

    def close(self) -> None:
        self._context.destroy()


class Zmq(ends.Mechanism):
    """ZeroMQ by its Python binding."""

    def about(self) -> dict[str, Any]:
        what = f"ZeroMQ (libzmq {zmq.zmq_version()}): PUSH and PULL over ipc://, an I/O thread each"
        return about("zmq-python", "peer", True, what, zmq.__version__)

    def can(self, burst: Burst) -> bool:
        return (burst.test, burst.mode) in (("rtt", "block"), ("one-way", "each"))

    def prepare(self, setup: Setup, burst: Burst) -> tuple[Any, Callable[[], ends.End]]:
        end = Sockets(setup, True)
        return None, lambda: end

    def join(self, setup: Setup, burst: Burst, ticket: Any) -> ends.End:
        return Sockets(setup, False)


MECHANISMS = [Zmq()]
