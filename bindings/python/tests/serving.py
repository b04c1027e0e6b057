"""RPC servers for tests."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ramway import TimedOutError
from ramway.rpc import CallError, Client, Fault, Request, Server
from support import LONG, Thread, eventually


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Serves in a thread meanwhile."""
    thread = Thread(server.run)
    try:
        yield server
    finally:
        server.shutdown(0)
        thread.result()


def wait_until(holds: Callable[[], bool]) -> None:
    """Waits for something that is bound to come."""
    eventually("what the test waits for", holds)


def is_late(error: CallError) -> bool:
    """Whether a time limit ended a call that ran: by the client's clock, or a moment before by the server's."""
    return error.may_have_run and (isinstance(error, TimedOutError) or error.status == "Cancelled")


class Store:
    """A server `s` with a method of each kind."""

    def __init__(self, **options: Any) -> None:
        self.gate = threading.Event()
        self.begun = threading.Semaphore(0)
        self.yielded = 0
        self.closed = threading.Event()
        self.server = Server("s", **options)

        @self.server.method(1)
        def echo(request: Request) -> bytes:
            request.reply_meta = request.meta
            return request.body

        @self.server.method("Store.Refuse")
        def refuse(request: Request) -> None:
            raise Fault(int(request.body), "not today")

        @self.server.method(3)
        def fail(request: Request) -> None:
            raise ValueError("not a number")

        @self.server.stream(4)
        def count(request: Request) -> Iterator[bytes]:
            try:
                for n in range(int(request.body)):
                    self.yielded = n + 1
                    yield b"%d" % n
            finally:
                self.closed.set()

        @self.server.method(5, pool=True)
        def gated(request: Request) -> bytes:
            self.begun.release()
            while not (self.gate.wait(0.001) or request.cancelled):
                pass
            return request.body

        @self.server.method(6)
        def nothing(request: Request) -> None:
            pass

    def wait_begun(self, count: int = 1) -> None:
        for _ in range(count):
            assert self.begun.acquire(timeout=LONG)


@contextmanager
def store(**options: Any) -> Iterator[tuple[Store, Client]]:
    """A store that serves in a thread, and a client of it."""
    store = Store(**options)
    with serving(store.server), Client.connect("s", timeout=LONG) as client:
        yield store, client
        store.gate.set()
