"""Ramway between Python processes, beside what `multiprocessing` has: a topic, its newest value, an inbox. The calls
are those of the package's README."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import crew
import ramway
from protocol import Burst, Failure, Setup, about

if TYPE_CHECKING:
    from collections.abc import Buffer


class Sender(crew.Part):
    """`send` of a publisher or of a bus."""

    def __init__(self, tx: Any) -> None:
        self._tx = tx

    def begin(self, readers: int) -> None:
        if isinstance(self._tx, ramway.Publisher):
            self._tx.wait_for_subscribers(readers)

    def send(self, messages: Iterable[bytes]) -> None:
        send = self._tx.send
        for message in messages:
            send(message)


class Writer(Sender):
    """Of values: nobody that a publisher could wait for reads them."""

    def begin(self, readers: int) -> None:
        pass


class Subscriber(crew.Part):
    """`for message in subscriber`, or `latest`."""

    def __init__(self, rx: ramway.Subscriber) -> None:
        self._rx = rx

    def receive(self, count: int) -> Iterable[Buffer]:
        return islice(self._rx, count)

    def newest(self) -> Buffer:
        message = self._rx.latest()
        if message is None:
            raise Failure("there is no value")
        return message


class Consumer(crew.Part):
    """`recv` of an inbox."""

    def __init__(self, inbox: Any) -> None:
        self._inbox = inbox

    def receive(self, count: int) -> Iterator[Buffer]:
        recv = self._inbox.recv
        for _ in repeat(None, count):
            _who, message = recv()
            yield message

    def close(self) -> None:
        self._inbox.close()


class Topic(crew.Mechanism):
    """A topic: `reliable` subscribers, or a `latest` one."""

    def __init__(self, name: str, test: str, what: str) -> None:
        self._name, self._test, self._what = name, test, what

    def about(self) -> dict[str, Any]:
        return about(self._name, "ramway", False, self._what, ramway.__version__)

    def can(self, burst: Burst) -> bool:
        return burst.test == self._test

    def _topic(self, setup: Setup) -> ramway.Topic:
        return ramway.Topic.open_or_create(f"{setup.directory}/topic", capacity=setup.capacity, prefault=True)

    def sender(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        publisher = self._topic(setup).publisher()
        return Sender(publisher) if burst.test == "readers" else Writer(publisher)

    def receiver(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        return Subscriber(self._topic(setup).subscriber("reliable" if burst.test == "readers" else "latest"))


class Inbox(crew.Mechanism):
    """Buses to an inbox."""

    def about(self) -> dict[str, Any]:
        return about("inbox-python", "ramway", False, "ramway.Inbox: recv, a bus for each producer", ramway.__version__)

    def can(self, burst: Burst) -> bool:
        return burst.test == "producers"

    def sender(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        return Sender(ramway.Bus.connect(f"{setup.directory}/inbox", timeout=20))

    def receiver(self, setup: Setup, burst: Burst, shared: Any, index: int) -> crew.Part:
        inbox = ramway.Inbox.bind(f"{setup.directory}/inbox", setup.capacity)
        # It takes producers in while it receives.
        while len(inbox.peers()) < burst.threads:
            with contextlib.suppress(ramway.TimedOutError):
                inbox.recv(0.001)
        return Consumer(inbox)


MECHANISMS = [
    Topic("topic-python", "readers", "ramway.Topic: send, for message in a reliable subscriber"),
    Topic("topic-latest-python", "latest", "ramway.Topic: latest of a latest subscriber"),
    Inbox(),
]
