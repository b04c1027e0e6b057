"""What a loop's variable still names is not in the sender's way.

It is moved out of the ring while the next message is waited for, unless somebody has a view of it.
"""

import asyncio
import gc
from collections.abc import Callable

import numpy as np
import pytest
import ramway
from ramway import Receiver, Ring
from support import LONG, Child

CAPACITY = 1 << 16
# Fits only where nothing else is.
LENGTH = CAPACITY * 9 // 10
COUNT = 30

SENDER = """
    import ramway, sys
    with ramway.Ring.open("r").sender() as tx:
        for n in range(int(sys.argv[2])):
            tx.send(bytes([n]) * int(sys.argv[1]), n, n)
"""


def by_for(rx: Receiver) -> list[tuple[int, int, bytes]]:
    seen = []
    for message in rx:
        seen.append((message.tag, len(message), bytes(message[-3:])))
    return seen


def by_recv(rx: Receiver) -> list[tuple[int, int, bytes]]:
    seen = []
    while True:
        try:
            message = rx.recv(LONG)
        except ramway.ClosedError:
            return seen
        seen.append((message.tag, len(message), bytes(message[-3:])))


def by_try_recv(rx: Receiver) -> list[tuple[int, int, bytes]]:
    seen = []
    message = None
    while True:
        try:
            found = rx.try_recv()
        except ramway.ClosedError:
            return seen
        if found is not None:
            message = found
            del found
            seen.append((message.tag, len(message), bytes(message[-3:])))


def by_batch(rx: Receiver) -> list[tuple[int, int, bytes]]:
    seen = []
    while True:
        try:
            batch = rx.recv_batch(10)
        except ramway.ClosedError:
            return seen
        for message in batch:
            seen.append((message.tag, len(message), bytes(message[-3:])))


def by_async_for(rx: Receiver) -> list[tuple[int, int, bytes]]:
    async def receive() -> list[tuple[int, int, bytes]]:
        seen = []
        async for message in rx:
            seen.append((message.tag, len(message), bytes(message[-3:])))
        return seen

    return asyncio.run(receive())


def by_recv_async(rx: Receiver) -> list[tuple[int, int, bytes]]:
    async def receive() -> list[tuple[int, int, bytes]]:
        seen = []
        while True:
            try:
                message = await rx.recv_async()
            except ramway.ClosedError:
                return seen
            seen.append((message.tag, len(message), bytes(message[-3:])))

    return asyncio.run(receive())


@pytest.mark.parametrize("share", [90, 40, 3])
@pytest.mark.parametrize("receive", [by_for, by_recv, by_try_recv, by_batch, by_async_for, by_recv_async])
def test_a_loop_does_not_stand_in_its_own_way(
    receive: Callable[[Receiver], list[tuple[int, int, bytes]]], share: int
) -> None:
    length = CAPACITY * share // 100
    with Ring.create("r", capacity=CAPACITY).receiver() as rx, Child(SENDER, length, COUNT) as child:
        assert receive(rx) == [(n, length, bytes([n]) * 3) for n in range(COUNT)]
        child.finish()
        gc.collect()
        assert rx.lent == 0


def test_a_small_message_and_then_one_that_needs_the_whole_ring() -> None:
    code = """
        import ramway
        with ramway.Ring.open("r").sender() as tx:
            for n in range(20):
                tx.send(bytes(100 if n % 2 else tx.max_message_len), n, n)
    """
    for receive in (by_for, by_recv, by_try_recv, by_batch, by_async_for):
        with Ring.create("r", capacity=4096).receiver() as rx, Child(code) as child:
            assert [tag for tag, _, _ in receive(rx)] == list(range(20))
            child.finish()


def test_a_moved_message_is_the_same_message() -> None:
    tx, rx = Ring.create("r", capacity=1 << 16, align=4096).sender(), Ring.open("r").receiver()
    values = np.arange(5000, dtype="f8")
    tx.send(values, 3, 4)
    message = rx.recv()
    address = np.frombuffer(message, "u1").ctypes.data
    with pytest.raises(ramway.TimedOutError):
        rx.recv(0)
    assert rx.lent == 0 and tx.used == 0 and not message.released
    assert (message.type_id, message.tag, len(message)) == (3, 4, values.nbytes)
    moved = np.frombuffer(message, "f8")
    assert moved.ctypes.data != address and moved.ctypes.data % 4096 == address % 4096
    # The ring is the sender's again, and reaches it no more.
    for _ in range(5):
        tx.send(b"\xff" * 60_000)
        rx.recv_bytes()
    assert (moved == values).all() and message.tobytes() == values.tobytes() and message == values.tobytes()
    with pytest.raises(BufferError):
        message.release()
    tx.close()
    rx.close()
    del rx, tx
    gc.collect()
    assert (moved == values).all()
    del moved
    message.release()
    assert message.released
    with pytest.raises(ramway.DetachedError):
        memoryview(message)


def test_a_moved_tensor_stays_aligned() -> None:
    tx, rx = Ring.pair(1 << 16)
    for n in range(1, 6):
        array = np.arange(10_000, dtype="f4").reshape(2, 5000) * n
        tx.send_tensor(array)
        tensor = rx.recv().tensor()
        assert rx.lent > 0 and rx.try_recv() is None and rx.lent == 0
        tx.try_send(b"\xff" * 60_000)
        view = tensor.numpy()
        assert view.ctypes.data % 64 == 0 and (view == array).all() and (np.from_dlpack(tensor) == array).all()
        assert rx.recv_bytes() == b"\xff" * 60_000
        del view, tensor


def test_what_has_a_view_is_not_moved() -> None:
    with Ring.create("r", capacity=CAPACITY).receiver() as rx, Child(SENDER, LENGTH, 3) as child:
        message = rx.recv(LONG)
        view = memoryview(message)
        with pytest.raises(ramway.BusyError, match="held"):
            rx.recv(LONG)
        assert bytes(view[:3]) == bytes(3) and rx.lent > 0
        view.release()
        assert rx.recv(LONG).tag == 1
        assert rx.recv(LONG).tag == 2
        child.finish()


def test_what_was_put_aside_is_not_moved() -> None:
    """A program that keeps messages wants them again should it be killed: it is told, and they stay in the ring."""
    with Ring.create("r", capacity=CAPACITY).receiver() as rx, Child(SENDER, CAPACITY // 5, 10) as child:
        kept = []
        with pytest.raises(ramway.BusyError, match="held"):
            while True:
                kept.append(rx.recv(LONG))
        assert len(kept) >= 2 and rx.lent > CAPACITY // 2
        assert [message.tag for message in kept] == list(range(len(kept)))
        count = len(kept)
        kept.clear()
        assert [rx.recv(LONG).tag for _ in range(10 - count)] == list(range(count, 10))
        child.finish()
