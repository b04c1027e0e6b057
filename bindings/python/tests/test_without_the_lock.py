"""Large copies are made without the interpreter lock: another thread runs meanwhile."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
import ramway
from support import FREE_THREADED, LONG

pytestmark = pytest.mark.skipif(FREE_THREADED, reason="this interpreter has no lock to give up")

SIZE = 4 << 20
BUFFER = bytearray(SIZE)


@pytest.fixture(autouse=True)
def nobody_else_switches() -> Iterator[None]:
    """A thread that has the lock keeps it until it gives it up itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    yield
    sys.setswitchinterval(before)


class Other:
    """A thread that wants to run."""

    def __init__(self) -> None:
        self.ran = False
        self.go = threading.Lock()
        self.go.acquire()
        self.thread = threading.Thread(target=self.run, daemon=True)
        # It is given the lock for as long as it takes to get to its own waiting.
        self.thread.start()
        time.sleep(0.05)
        self.go.release()

    def run(self) -> None:
        with self.go:
            self.ran = True


def rings() -> tuple[ramway.Sender, ramway.Receiver]:
    return ramway.Ring.pair(4 * SIZE)


def filled(tx: ramway.Sender, n: int = SIZE) -> None:
    """A message that nobody copied."""
    tx.reserve(n).commit()


def receive_bytes() -> Callable[[], object]:
    tx, rx = rings()

    def step() -> None:
        filled(tx)
        rx.recv_bytes()

    return step


def receive_into() -> Callable[[], object]:
    tx, rx = rings()
    buffer = bytearray(SIZE)

    def step() -> None:
        filled(tx)
        rx.recv_into(buffer)

    return step


def topics(policy: Literal["lossy", "latest"]) -> tuple[ramway.Publisher, ramway.Subscriber]:
    topic = ramway.Topic.open_or_create("t", capacity=4 * SIZE)
    return topic.publisher(), topic.subscriber(policy)


def receive_a_copy(receive: Callable[[ramway.Subscriber], object]) -> Callable[[], object]:
    publisher, subscriber = topics("lossy")

    def step() -> None:
        filled(publisher)
        receive(subscriber)

    return step


def newest() -> Callable[[], object]:
    publisher, subscriber = topics("latest")
    filled(publisher)

    def step() -> None:
        assert subscriber.latest() is not None and publisher.seq

    return step


def publish() -> Callable[[], object]:
    publisher, _subscriber = topics("lossy")
    data = bytes(SIZE)

    def step() -> None:
        publisher.send(data)
        assert _subscriber.policy

    return step


def message_copies(copy: Callable[[ramway.Message], bytes]) -> Callable[[], object]:
    tx, rx = rings()
    filled(tx)
    message = rx.recv()
    return lambda: copy(message)


def send(sending: Callable[[ramway.Sender, bytes], object]) -> Callable[[], object]:
    tx, rx = rings()
    data = bytes(SIZE)

    def step() -> None:
        sending(tx, data)
        rx.recv().release()

    return step


def slots() -> Callable[[], object]:
    tx, _rx = rings()
    slot, data = tx.reserve(SIZE), bytes(SIZE)

    def step() -> None:
        slot[:] = data
        assert tx.capacity and _rx.capacity

    return step


def commit_with_a_view() -> Callable[[], object]:
    tx, rx = rings()

    def step() -> None:
        slot = tx.reserve(SIZE)
        view = memoryview(slot)
        slot.commit()
        assert len(view) == SIZE
        rx.recv().release()

    return step


def regions() -> Callable[[], object]:
    region, data = ramway.Region.create("g", SIZE), bytes(SIZE)

    def step() -> None:
        region[:] = data

    return step


COPIES: dict[str, Callable[[], Callable[[], object]]] = {
    "recv_bytes": receive_bytes,
    "recv_into": receive_into,
    "bytes(msg)": lambda: message_copies(bytes),
    "msg.tobytes()": lambda: message_copies(lambda message: message.tobytes()),
    "send": lambda: send(lambda tx, data: tx.send(data)),
    "send_vectored": lambda: send(lambda tx, data: tx.send_vectored([data])),
    "send_batch": lambda: send(lambda tx, data: tx.send_batch([data])),
    "slot[:] = data": slots,
    "commit with a live view": commit_with_a_view,
    "region[:] = data": regions,
    "recv of a copy": lambda: receive_a_copy(lambda subscriber: subscriber.recv()),
    "recv_bytes of a copy": lambda: receive_a_copy(lambda subscriber: subscriber.recv_bytes()),
    "recv_into of a copy": lambda: receive_a_copy(lambda subscriber: subscriber.recv_into(BUFFER)),
    "latest": newest,
    "send to a topic": publish,
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in COPIES.items()])
def test_another_thread_runs_during_a_copy(make: Callable[[], Callable[[], object]]) -> None:
    step = make()
    other = Other()
    deadline = time.monotonic() + LONG
    while not other.ran:
        step()
        assert time.monotonic() < deadline, "the copies never gave the interpreter lock up"
    other.thread.join()


def test_small_copies_keep_the_lock() -> None:
    """And the steps above give it up for nothing else."""
    tx, rx = ramway.Ring.pair(1 << 20)
    slot_bytes, buffer = bytes(60_000), bytearray(60_000)
    publisher, copies = topics("lossy")
    other = Other()
    for _ in range(1000):
        filled(tx, 60_000)
        rx.recv_bytes()
        filled(tx, 60_000)
        rx.recv_into(buffer)
        tx.send(slot_bytes)
        with rx.recv() as message:
            bytes(message)
        slot = tx.reserve(60_000)
        slot[:] = slot_bytes
        slot.commit()
        rx.recv().release()
        publisher.send(slot_bytes)
        assert copies.try_recv() is not None
        publisher.send(slot_bytes)
        copies.recv_bytes()
        assert copies.latest() is not None
    assert not other.ran
    sys.setswitchinterval(0.005)
    other.thread.join(LONG)
    assert other.ran


def test_what_is_copied_arrives_whole() -> None:
    tx, rx = rings()
    data = bytes(range(256)) * (SIZE // 256)
    region = ramway.Region.create("g", 2 * SIZE)
    region[SIZE:] = data
    assert bytes(region[SIZE:]) == data and bytes(region[:SIZE]) == bytes(SIZE)
    with tx.reserve(SIZE) as slot:
        slot[:] = memoryview(data)
    tx.send_vectored([data[: SIZE // 2], b"", memoryview(data)[SIZE // 2 :]], 1, 2)
    with rx.recv() as message:
        assert bytes(message) == message.tobytes() == data
    with rx.recv() as message:
        assert bytes(message) == data and (message.type_id, message.tag) == (1, 2)
    with tx.reserve(SIZE) as slot:
        for wrong in (data[1:], memoryview(data).cast("I")):
            with pytest.raises(ValueError):
                slot[:] = wrong
        slot[::2] = data[: SIZE // 2]
        slot.abort()


def end_of(begun: threading.Event, message: ramway.Message, rx: ramway.Receiver | None) -> None:
    begun.wait()
    if rx is not None:
        rx.close()
        return
    while not message.released:
        try:
            message.release()
        except BufferError:
            pass


def test_a_message_that_is_being_copied_stays() -> None:
    """Another thread releases it, or closes the receiver, meanwhile."""
    sys.setswitchinterval(1e-6)
    data = b"\1" * SIZE
    for ending in ("release", "close"):
        for _ in range(20):
            tx, rx = rings()
            tx.send(data)
            message = rx.recv()
            begun = threading.Event()

            thread = threading.Thread(target=end_of, args=(begun, message, rx if ending == "close" else None))
            thread.start()
            begun.set()
            try:
                assert bytes(message) == data
            except ramway.DetachedError:
                assert ending == "release"
            thread.join()
            del message, thread
