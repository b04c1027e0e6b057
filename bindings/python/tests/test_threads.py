"""Handles, messages, slots and views that threads share: with the interpreter lock, and on an interpreter without it.

What one thread at a time may use raises BusyError to a second one. What any thread may do (release, close, drop) makes
no other thread's call fail.
"""

import asyncio
import gc
import queue
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import pytest
import ramway
from support import FREE_THREADED, LONG, Thread, eventually, run

T = TypeVar("T")


@pytest.fixture(params=["ring", "topic"])
def ends(request: pytest.FixtureRequest) -> Callable[[int], tuple[ramway.Sender, ramway.Receiver]]:
    def made(capacity: int) -> tuple[ramway.Sender, ramway.Receiver]:
        if request.param == "ring":
            return ramway.Ring.pair(capacity)
        topic = ramway.Topic.open_or_create(f"t{random.getrandbits(40)}", capacity=capacity)
        return topic.publisher(), topic.subscriber()

    return made


@contextmanager
def together(*targets: Callable[[], Any]) -> Iterator[list[Thread]]:
    """Starts the targets at once; at the end all must have come to a good end."""
    barrier = threading.Barrier(len(targets))

    def begin(target: Callable[[], Any]) -> Any:
        barrier.wait(LONG)
        return target()

    threads = [Thread(begin, target) for target in targets]
    yield threads
    # What one raises is why others are still at it.
    ends = time.monotonic() + LONG
    while any(thread.is_alive() for thread in threads) and time.monotonic() < ends:
        for thread in threads:
            if not thread.is_alive():
                thread.result()
        time.sleep(0.002)
    for thread in sorted(threads, key=Thread.is_alive):
        thread.result(timeout=0)


def expect(raised: Exception, *texts: str) -> None:
    assert any(text in str(raised) for text in texts), str(raised)


def alone(call: Callable[[], T]) -> T:
    """The call's result, once no other thread is in one."""
    while True:
        try:
            return call()
        except ramway.BusyError as busy:
            expect(busy, "another thread is in a call")


def test_the_lock_stays_off() -> None:
    if not FREE_THREADED:
        pytest.skip("this interpreter has a lock")
    lines = run("import sys, ramway; print(sys._is_gil_enabled())", options=("-W", "error"))
    assert lines == ["False"]


def test_two_threads_on_one_receiver(ends: Callable[[int], tuple[ramway.Sender, ramway.Receiver]]) -> None:
    count, (tx, rx) = 5000, ends(1 << 16)
    got: list[list[int]] = [[], [], []]
    over = threading.Event()

    def receive(mine: list[int], one: Callable[[], int | None]) -> None:
        while True:
            done = over.is_set()
            try:
                tag = alone(one)
            except ramway.TimedOutError:
                tag = None
            if tag is not None:
                mine.append(tag)
            elif done:
                return

    def by_message() -> int | None:
        message = rx.try_recv()
        return None if message is None else message.tag

    def by_bytes() -> int | None:
        return int.from_bytes(rx.recv_bytes(timeout=0.001), "little")

    buffer = bytearray(8)

    def by_buffer() -> int | None:
        return None if rx.try_recv_into(buffer) is None else int.from_bytes(buffer, "little")

    def send() -> None:
        for tag in range(1, count + 1):
            tx.send(tag.to_bytes(8, "little"), tag=tag)
        over.set()

    with together(
        lambda: receive(got[0], by_message), lambda: receive(got[1], by_bytes), lambda: receive(got[2], by_buffer), send
    ):
        pass
    assert sorted(got[0] + got[1] + got[2]) == list(range(1, count + 1))
    assert all(mine == sorted(mine) for mine in got)


def test_two_threads_on_one_sender(ends: Callable[[int], tuple[ramway.Sender, ramway.Receiver]]) -> None:
    count, (tx, rx) = 3000, ends(1 << 16)

    def plain(tag: int) -> None:
        tx.send(b"abcdefgh", tag=tag)

    def by_slot(tag: int) -> None:
        slot = tx.reserve(8, tag=tag)
        with alone(lambda: memoryview(slot)) as view:
            view[:] = b"abcdefgh"
        alone(slot.commit)

    def send(first: int, one: Callable[[int], None]) -> None:
        for tag in range(first, first + count):
            while True:
                try:
                    one(tag)
                    break
                except ramway.BusyError as busy:
                    expect(busy, "another thread is in a call", "a slot of this sender is open")

    tags: list[int] = []

    def receive() -> None:
        while len(tags) < 2 * count:
            with rx.recv(timeout=LONG) as message:
                assert bytes(message) == b"abcdefgh"
                tags.append(message.tag)

    with together(lambda: send(0, plain), lambda: send(count, by_slot), receive):
        pass
    assert [tag for tag in tags if tag < count] == list(range(count))
    assert [tag for tag in tags if tag >= count] == list(range(count, 2 * count))


def test_a_ring_for_each_thread() -> None:
    def both(seed: int) -> None:
        tx, rx = ramway.Ring.pair(1 << 14)
        for number in range(2000):
            data = (seed * 100_000 + number).to_bytes(8, "little")
            tx.send(data)
            assert bytes(rx.recv()) == data

    with together(*(lambda seed=seed: both(seed) for seed in range(4))):
        pass


def test_messages_are_released_in_other_threads(
    ends: Callable[[int], tuple[ramway.Sender, ramway.Receiver]],
) -> None:
    count, (tx, rx) = 4000, ends(1 << 16)
    # Few enough that the sender seldom waits for these alone.
    held = threading.BoundedSemaphore(8)
    messages: queue.SimpleQueue[tuple[int, ramway.Message] | None] = queue.SimpleQueue()

    def send() -> None:
        for number in range(count):
            tx.send(number.to_bytes(4, "little") * 64)

    def next_one() -> ramway.Message:
        while True:
            try:
                return rx.recv(timeout=LONG)
            except ramway.BusyError as busy:
                # The oldest one is with a thread that is not run. Never for those who release: they are in no call.
                expect(busy, "are still held here")

    def receive() -> None:
        for number in range(count):
            held.acquire()
            messages.put((number, next_one()))
        for _ in range(2):
            messages.put(None)

    def release(how: int) -> None:
        while (found := messages.get(timeout=LONG)) is not None:
            number, message = found
            del found
            expected = number.to_bytes(4, "little") * 64
            match (number + how) % 4:
                case 0:
                    assert bytes(message) == expected
                    message.release()
                case 1:
                    view = memoryview(message)
                    del message
                    assert view == expected
                    del view
                case 2:
                    with message:
                        array = message.numpy("u4")
                    assert (array == number).all()
                    del array, message
                case _:
                    assert message.tobytes() == expected
                    del message
            held.release()

    with together(send, receive, lambda: release(0), lambda: release(1)):
        pass
    assert rx.lent == 0


def test_arrays_outlive_the_message_the_receiver_and_the_thread() -> None:
    tx, rx = ramway.Ring.pair(1 << 16)
    arrays: list[Any] = []

    def receive() -> None:
        for _ in range(20):
            with rx.recv(timeout=LONG) as message:
                arrays.append(message.numpy("u4"))
        rx.close()

    for number in range(20):
        tx.send(np.full(100, number, "u4"))
    Thread(receive).result()

    def read(mine: list[Any]) -> None:
        while mine:
            array = mine.pop()
            assert (array == array[0]).all() and array[0] in range(20)

    parts = [arrays[:10], arrays[10:]]
    arrays.clear()
    with together(lambda: read(parts[0]), lambda: read(parts[1])):
        pass
    with pytest.raises(ramway.ClosedError):
        for _ in range(1000):
            tx.send(bytes(1000), timeout=LONG)


def test_a_message_that_is_moved_while_others_look_at_it() -> None:
    for number in range(1, 60):
        tx, rx = ramway.Ring.pair(1 << 12)
        expected = bytes([number]) * 2200
        tx.send(expected)
        message = rx.recv()
        go_on = threading.Event()

        def look(message: ramway.Message = message, expected: bytes = expected, over: threading.Event = go_on) -> None:
            while not over.is_set():
                assert bytes(message) == expected
                with memoryview(message) as view:
                    assert view == expected

        def send(tx: ramway.Sender = tx, over: threading.Event = go_on) -> None:
            # It fits only where the first message was.
            try:
                tx.send(bytes(2200), timeout=LONG)
            finally:
                over.set()

        def receive(rx: ramway.Receiver = rx) -> None:
            while True:
                try:
                    assert bytes(rx.recv(timeout=LONG)) == bytes(2200)
                    return
                except ramway.BusyError as busy:
                    # A view kept it from being moved.
                    expect(busy, "are still held here")

        with together(look, send, receive):
            pass
        assert bytes(message) == expected


@pytest.mark.parametrize("end", ["receiver", "sender"])
def test_close_while_another_thread_waits(end: str) -> None:
    for number in range(40):
        tx, rx = ramway.Ring.pair(1 << 12)
        if end == "sender":
            tx.send(bytes(4000))
        handle: ramway.Sender | ramway.Receiver = rx if end == "receiver" else tx

        def wait(tx: ramway.Sender = tx, rx: ramway.Receiver = rx) -> None:
            with pytest.raises(ramway.DetachedError):
                if end == "receiver":
                    rx.recv(timeout=LONG)
                else:
                    tx.send(bytes(4000), timeout=LONG)

        def close(handle: ramway.Sender | ramway.Receiver = handle, number: int = number) -> None:
            if number % 2:
                threading.Event().wait(number / 2000)
            handle.close()

        with together(wait, close, close):
            pass
        assert handle.closed


def test_what_is_closed_in_one_call_is_free_for_the_next_handle() -> None:
    """However closing meets calls and releases of other threads, the role is given up when all have left."""
    ring = ramway.Ring.open_or_create("r", capacity=1 << 14, persistent=True, timeout=LONG)
    for number in range(80):
        tx, rx = ring.sender(), ring.receiver()
        tx.send_batch([b"x" * 100] * 20)
        messages = rx.recv_batch(8)

        def call(rx: ramway.Receiver = rx) -> None:
            # The sender may be the first to close.
            with pytest.raises((ramway.DetachedError, ramway.ClosedError)):
                while True:
                    rx.try_recv()

        def release(messages: list[ramway.Message] = messages) -> None:
            while messages:
                messages.pop()

        def send(tx: ramway.Sender = tx) -> None:
            with pytest.raises((ramway.DetachedError, ramway.ClosedError)):
                while True:
                    try:
                        tx.try_send(b"y")
                    except ramway.FullError:
                        pass

        def close(handle: ramway.Sender | ramway.Receiver, number: int = number) -> None:
            for _ in range(number % 8):
                pass
            handle.close()

        with together(call, release, send, lambda rx=rx: close(rx), lambda tx=tx: close(tx)):
            pass
        del messages
        # At once, though the handles that were closed still exist.
        with ring.sender(), ring.receiver() as next_rx:
            while next_rx.try_recv() is not None:
                pass
        assert tx.closed and rx.closed


def test_one_slot_two_commits() -> None:
    tx, rx = ramway.Ring.pair(1 << 14)
    for number in range(300):
        slot = tx.reserve(8)
        slot[:] = number.to_bytes(8, "little")

        def commit(slot: ramway.Slot = slot) -> bool:
            try:
                alone(slot.commit)
                return True
            except ramway.DetachedError as ended:
                expect(ended, "committed or aborted")
                return False

        with together(commit, commit) as threads:
            pass
        assert sorted(thread.result() for thread in threads) == [False, True]
        assert rx.recv_bytes() == number.to_bytes(8, "little")
        assert rx.try_recv() is None


def test_a_view_that_is_begun_while_the_slot_is_committed_does_not_lead_into_the_ring() -> None:
    tx, rx = ramway.Ring.pair(1 << 14)
    for _ in range(100):
        slot = tx.reserve(64)
        slot[:] = bytes(64)
        over = threading.Event()

        def write(slot: ramway.Slot = slot, over: threading.Event = over) -> None:
            value = 0
            while not over.is_set():
                try:
                    view = memoryview(slot)
                except (ramway.DetachedError, ramway.BusyError):
                    continue
                while not over.is_set() and value < 5000:
                    value += 1
                    view[:] = bytes([value % 256]) * 64

        def commit(slot: ramway.Slot = slot, over: threading.Event = over) -> None:
            try:
                alone(slot.commit)
                message = rx.recv(timeout=LONG)
                first = bytes(message)
                for _ in range(50):
                    assert bytes(message) == first
                message.release()
            finally:
                over.set()

        with together(write, commit):
            pass


def test_a_slot_that_goes_in_another_thread_is_in_nobodys_way() -> None:
    tx, rx = ramway.Ring.pair(1 << 14)
    for _ in range(200):
        slots = [tx.reserve(100)]

        def drop(slots: list[ramway.Slot] = slots) -> None:
            slots.clear()

        def look() -> None:
            for _ in range(20):
                alone(lambda: tx.used)

        with together(drop, look):
            pass
        tx.send(b"after it")
        assert rx.recv_bytes() == b"after it"


def test_a_slot_that_goes_while_a_thread_waits_in_a_call_is_in_nobodys_way() -> None:
    tx = ramway.Ring.create("r", capacity=1 << 14).sender()
    slot: ramway.Slot | None = tx.reserve(100)
    waiting = Thread(lambda: tx.wait_for_peer(timeout=LONG))

    def is_in_a_call() -> bool:
        try:
            return bool(tx.used) and False
        except ramway.BusyError:
            return True

    eventually("the thread waits", is_in_a_call)
    del slot
    rx = ramway.Ring.open("r").receiver()
    waiting.result()
    tx.send(b"after it")
    assert rx.recv_bytes() == b"after it"


def test_handles_go_in_other_threads() -> None:
    things: queue.SimpleQueue[Any] = queue.SimpleQueue()
    references: list[weakref.ref[Any]] = []

    def make() -> None:
        for number in range(100):
            tx, rx = (
                ramway.Ring.open_or_create(f"r{number}").sender(),
                ramway.Ring.open_or_create(f"r{number}").receiver(),
            )
            region = ramway.Region.create(f"g{number}", 64)
            tx.send_tensor(np.arange(10))
            tensor = rx.recv().tensor()
            references.extend(weakref.ref(thing) for thing in (tx, rx, region))
            for thing in (tx, tensor.numpy(), rx, memoryview(region), tensor, region, tx.reserve(10), iter(rx)):
                things.put(thing)
        things.put(None)
        things.put(None)

    def drop() -> None:
        while things.get(timeout=LONG) is not None:
            pass

    with together(make, drop, drop):
        pass
    gc.collect()
    assert [reference() for reference in references] == [None] * 300
    assert not any(segment.in_use for segment in ramway.ls())


def test_one_capsule_has_one_taker() -> None:
    class Producer:
        def __init__(self) -> None:
            self.capsule = np.arange(1000).__dlpack__(max_version=(1, 0))

        def __dlpack__(self, **_: object) -> object:
            return self.capsule

    senders = [ramway.Ring.pair(1 << 16) for _ in range(2)]
    for _ in range(100):
        producer = Producer()

        def take(tx: ramway.Sender, producer: Producer = producer) -> bool:
            try:
                tx.send_tensor(producer)
                return True
            except BufferError:
                return False

        with together(*(lambda tx=tx: take(tx) for tx, _ in senders)) as threads:
            pass
        assert sorted(thread.result() for thread in threads) == [False, True]
        for _, rx in senders:
            rx.try_recv()


def test_an_inbox_that_two_threads_receive_from_tells_each_thing_once() -> None:
    producers, each = 8, 50
    with ramway.Inbox.bind("in") as inbox:
        found: list[tuple[int, Any]] = []

        def produce() -> None:
            with ramway.Bus.connect("in") as bus:
                for number in range(each):
                    bus.send(b"", tag=number)

        def receive() -> None:
            while sum(not isinstance(what, int) for _, what in list(found)) < producers:
                try:
                    pair = inbox.recv(timeout=0.02)
                except ramway.TimedOutError:
                    continue
                except ramway.BusyError:
                    continue
                peer, what = pair
                found.append((peer.id, what.tag if isinstance(what, ramway.Message) else what))

        with together(receive, receive, *[produce] * producers):
            pass
        assert sorted(peer for peer, what in found if what is ramway.Left.CLOSED) == list(range(1, producers + 1))
        messages = sorted((peer, what) for peer, what in found if isinstance(what, int))
        assert messages == [(peer, number) for peer in range(1, producers + 1) for number in range(each)]


def test_loops_of_two_threads_wait_for_one_receiver() -> None:
    """One of them may; a second one is told, or comes later. Neither is forgotten."""
    for _ in range(40):
        tx, rx = ramway.Ring.pair(1 << 14)
        over: list[str] = []

        def wait(rx: ramway.Receiver = rx, over: list[str] = over) -> None:
            async def receive() -> None:
                try:
                    await rx.recv_async()
                    over.append("received")
                except ramway.BusyError:
                    over.append("busy")

            asyncio.run(receive())

        def send(tx: ramway.Sender = tx, over: list[str] = over) -> None:
            while len(over) < 2:
                try:
                    tx.send(b"x", timeout=0.01)
                except ramway.TimedOutError:
                    pass

        with together(wait, wait, send):
            pass
        assert "received" in over


def test_close_meets_a_task_that_begins_to_wait() -> None:
    for number in range(60):
        _tx, rx = ramway.Ring.pair(1 << 14)

        def wait(rx: ramway.Receiver = rx) -> None:
            async def receive() -> None:
                with pytest.raises(ramway.DetachedError):
                    await asyncio.wait_for(rx.recv_async(), LONG)

            asyncio.run(receive())

        def close(rx: ramway.Receiver = rx, number: int = number) -> None:
            threading.Event().wait(number % 20 / 10000)
            rx.close()

        with together(wait, close):
            pass


def test_a_region_is_for_any_thread() -> None:
    with ramway.Region.create("g", 1 << 12) as region:
        over = threading.Event()

        def notify() -> None:
            while not over.is_set():
                region.notify()
                region[:8] = b"abcdefgh"

        def wait() -> None:
            for _ in range(300):
                assert region.wait(timeout=LONG)

        def look() -> None:
            for _ in range(300):
                assert len(bytes(memoryview(region))) == 1 << 12
                assert region.numpy("u1").nbytes == 1 << 12

        def all_of_it() -> None:
            try:
                with together(wait, look, look):
                    pass
            finally:
                over.set()

        with together(notify, all_of_it):
            pass
        views = [memoryview(region) for _ in range(20)]
        with together(region.close, views.clear):
            pass
        assert region.closed
