"""The forms of a call: tried, in pieces, many at once, awaited; each also on a bus."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import ramway
from ramway import Bus, Listener, Region, Ring
from support import LONG, Thread


@pytest.fixture(params=["ring", "bus"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[ramway.Sender | Bus, ramway.Receiver | Bus]]:
    """What sends and what receives, with a ring of a page between them."""
    if request.param == "ring":
        with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
            yield tx, rx
    else:
        listening = Thread(lambda: Bus.listen("b", 4096, timeout=LONG))
        with Bus.connect("b", timeout=LONG) as one, listening.result() as other:
            yield one, other


Ends = tuple[ramway.Sender | Bus, ramway.Receiver | Bus]


def test_pieces_are_one_message(ends: Ends) -> None:
    tx, rx = ends
    tx.send_vectored([b"one ", bytearray(b"two "), memoryview(b"three")], 7, 8)
    tx.try_send_vectored((piece for piece in (b"", b"x")), tag=9)
    tx.send_vectored([])
    first = rx.recv(LONG)
    assert (bytes(first), first.type_id, first.tag) == (b"one two three", 7, 8)
    assert [bytes(message) for message in rx.recv_batch()] == [b"x", b""]
    with pytest.raises(ramway.TooLargeError):
        tx.send_vectored([bytes(4000), bytes(4000)])
    with pytest.raises(TypeError):
        tx.send_vectored([b"x", "text"])  # type: ignore[list-item]
    with pytest.raises(ramway.TimedOutError):
        rx.recv(0)


def test_a_batch_has_a_type_a_tag_and_a_time_out(ends: Ends) -> None:
    tx, rx = ends
    assert tx.send_batch([b"a", b"b"], 3, 4, timeout=LONG) == 2
    assert [(m.type_id, m.tag, bytes(m)) for m in rx.recv_batch()] == [(3, 4, b"a"), (3, 4, b"b")]
    # The time-out ends it with what was sent; with nothing sent it is raised.
    assert tx.send_batch([bytes(1000)] * 9, timeout=0.01) == 4
    with pytest.raises(ramway.TimedOutError):
        tx.send_batch([bytes(1000)], timeout=0)
    assert tx.send_batch([]) == 0
    assert [len(m) for m in rx.recv_batch()] == [1000] * 4
    # So does any other error of Ramway's, and the next call meets it.
    assert tx.send_batch([b"fine", bytes(5000), b"never"]) == 1
    with pytest.raises(ramway.TooLargeError):
        tx.send_batch([bytes(5000), b"never"])
    with pytest.raises(TypeError):
        tx.send_batch([b"fine too", "text"])  # type: ignore[list-item]

    def broken() -> Iterator[bytes]:
        yield b"before"
        raise KeyError

    with pytest.raises(KeyError):
        tx.send_batch(broken())
    assert [bytes(m) for m in rx.recv_batch()] == [b"fine", b"fine too", b"before"]


def test_rows_have_a_tag_and_a_time_out(ends: Ends) -> None:
    tx, rx = ends
    assert tx.send_array(np.arange(3), 5, 6, timeout=LONG) == 3
    assert [(m.type_id, m.tag) for m in rx.recv_batch()] == [(5, 6)] * 3
    assert tx.send_array(np.zeros((9, 1000), "u1"), timeout=0.01) == 4
    with pytest.raises(ramway.TimedOutError):
        tx.send_array(np.zeros((9, 1000), "u1"), timeout=0)
    assert rx.recv_array("V1000").shape == (4,)


def test_what_does_not_wait(ends: Ends) -> None:
    tx, rx = ends
    assert rx.try_recv() is None and rx.try_recv_batch() == [] and rx.try_recv_into(bytearray(1)) is None
    tx.try_send_tensor(np.arange(6, dtype="i4"), 3)
    with tx.try_reserve_tensor((2, 3), "f8", 4) as slot:
        slot[...] = 1.5
    first, second = rx.try_recv_batch()
    assert (first.tag, first.tensor().numpy().tolist()) == (3, list(range(6)))
    assert (second.tag, second.tensor().numpy().sum()) == (4, 9)
    del first, second
    tx.send(bytes(4000))
    for call in (
        lambda: tx.try_send_tensor(np.zeros(9)),
        lambda: tx.try_reserve_tensor(9, "f8"),
        lambda: tx.try_send_vectored([bytes(500)]),
    ):
        with pytest.raises(ramway.FullError):
            call()
    buffer = bytearray(4096)
    assert rx.try_recv_into(buffer) == 4000
    for bad in (rx.recv_batch, rx.try_recv_batch):
        with pytest.raises(ramway.InvalidArgumentError, match="max=0"):
            bad(0)


def test_every_call_that_waits_has_an_async_sibling(ends: Ends) -> None:
    tx, rx = ends

    async def main() -> None:
        async def send() -> None:
            # Each of them has to wait for room now and then.
            for n in range(40):
                await tx.send_async(bytes(1000), 1, n)
                await tx.send_vectored_async([bytes(500), bytes(500)], 1, n)
                assert await tx.send_batch_async([bytes(1000)] * 7, 1, n) == 7
                assert await tx.send_array_async(np.zeros((9, 1000), "u1"), 1, n) == 9
                await tx.send_tensor_async(np.full(100, n), n)
                with await tx.reserve_tensor_async(100, "i8", n) as slot:
                    slot[...] = n
                with await tx.reserve_async(1000, 1, n):
                    pass

        sending = asyncio.create_task(send())
        buffer = bytearray(1000)
        for n in range(40):
            for _ in range(9):
                assert len(await rx.recv_bytes_async()) == 1000
            for _ in range(9):
                assert await rx.recv_into_async(buffer) == 1000
            for _ in range(2):
                message = await rx.recv_async()
                assert message.tag == n and message.tensor().numpy().tolist() == [n] * 100
                message.release()
            assert len(await rx.recv_array_async("V1000", 1)) == 1
        await sending

    asyncio.run(asyncio.wait_for(main(), LONG))


def test_an_awaited_batch_ends_as_one_that_waits() -> None:
    tx, rx = Ring.pair(4096)

    async def main() -> None:
        assert await tx.send_batch_async([b"fine", bytes(5000)]) == 1
        with pytest.raises(ramway.TooLargeError):
            await tx.send_batch_async([bytes(5000)])
        with pytest.raises(ramway.InvalidArgumentError):
            await tx.send_array_async(np.float64(3))  # type: ignore[arg-type]
        rx.close()
        with pytest.raises(ramway.ClosedError):
            await tx.send_batch_async([bytes(3000)] * 3)

    asyncio.run(main())


def test_a_task_listens_for_one_peer(directory: Path) -> None:
    async def main() -> None:
        listening = asyncio.create_task(Bus.listen_async("b", 4096, to_peer=8192, wait="block"))
        with await Bus.connect_async("b", timeout=LONG) as other, await asyncio.wait_for(listening, LONG) as bus:
            assert (bus.sender.capacity, bus.receiver.capacity, bus.sender.wait) == (8192, 4096, "block")
            await other.send_async(b"x")
            assert await bus.recv_bytes_async() == b"x"
        with pytest.raises(asyncio.TimeoutError):
            async with asyncio.timeout(0.05):
                await Bus.listen_async("nobody")
        with pytest.raises(TypeError, match="nonsense"):
            await Bus.listen_async("b", nonsense=1)  # type: ignore[call-arg]

    asyncio.run(main())
    assert list(directory.iterdir()) == []


def test_a_listener_is_asked_without_waiting() -> None:
    with Listener.bind("l", 4096) as listener:
        assert listener.try_accept() is None
        connecting = Thread(lambda: Bus.connect("l", timeout=LONG))
        while (bus := listener.try_accept()) is None:
            pass
        with bus, connecting.result() as other:
            bus.send(b"x")
            assert other.recv_bytes(LONG) == b"x"
    with pytest.raises(ramway.DetachedError):
        listener.try_accept()
    with pytest.raises(TypeError):
        Listener("l")  # type: ignore[call-arg]


def test_a_region_counts_its_notifications() -> None:
    with Region.create("g", 8) as region:
        count = region.notifications
        assert region.wait_since(count, 0) is None
        region.notify()
        second = region.wait_since(count)
        assert second == region.notifications != count
        waiting = Thread(region.wait_since, second)
        region.notify()
        third = waiting.result()
        assert third == region.notifications not in (count, second)
        waiting = Thread(region.wait_since, third)
        region.close()
        with pytest.raises(ramway.DetachedError):
            waiting.result()


def test_the_longest_message_is_the_same_on_both_sides(ends: Ends) -> None:
    tx, rx = ends
    sender = tx.sender if isinstance(tx, Bus) else tx
    receiver = rx.receiver if isinstance(rx, Bus) else rx
    assert sender.max_message_len == receiver.max_message_len == 4096 - 16


def test_a_bus_has_a_descriptor() -> None:
    listening = Thread(lambda: Bus.listen("b", 4096, timeout=LONG))
    with Bus.connect("b", timeout=LONG) as one, listening.result() as other:
        assert one.fileno() == one.receiver.fileno() != other.fileno()
        one.flush()
        one.abandon()
        with pytest.raises(ramway.PeerDeadError):
            other.recv(LONG)
