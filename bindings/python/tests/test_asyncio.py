"""Tasks that wait for rings: in one process, under every event loop."""

import asyncio
import gc
import os
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ramway
from loops import every_loop, new_loop, run, turns
from ramway import (
    BusyError,
    ClosedError,
    DetachedError,
    InvalidArgumentError,
    Listener,
    Receiver,
    Region,
    Ring,
    Sender,
    TooLargeError,
)
from support import LONG


@pytest.fixture
def ring() -> tuple[Sender, Receiver]:
    return Ring.pair(1 << 16)


@every_loop
def test_messages_arrive_in_order_and_the_end_ends_the_loop(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def send() -> None:
        for n in range(500):
            tx.send(b"%d" % n)
            if n % 7 == 0:
                await asyncio.sleep(0)
            if n % 100 == 0:
                await asyncio.sleep(0.002)
        tx.close()

    async def main() -> None:
        sending = asyncio.create_task(send())
        got = [bytes(message) async for message in rx]
        assert got == [b"%d" % n for n in range(500)]
        await sending
        with pytest.raises(ClosedError):
            await rx.recv_async()
        with pytest.raises(StopAsyncIteration):
            await anext(aiter(rx))
        with pytest.raises(StopAsyncIteration):
            await rx.__anext__()

    run(kind, main())


@every_loop
def test_batches_and_arrays(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def main() -> None:
        with pytest.raises(InvalidArgumentError):
            await rx.recv_batch_async(0)
        batch = asyncio.ensure_future(rx.recv_batch_async(10))
        await turns()
        assert not batch.done()
        tx.send_batch([b"a", b"b"])
        assert [bytes(message) for message in await batch] == [b"a", b"b"]
        del batch

        array = asyncio.ensure_future(rx.recv_array_async("<u4", 3))
        await turns()
        tx.send_array(np.arange(5, dtype="<u4"))
        assert (await array).tolist() == [0, 1, 2]
        assert (await rx.recv_array_async("<u4", 3)).tolist() == [3, 4]
        # What does not fit stays for the next one.
        tx.send(b"123")
        with pytest.raises(InvalidArgumentError):
            await rx.recv_array_async("<u4", 3)
        assert bytes(await rx.recv_async()) == b"123"

    run(kind, main())


@every_loop
def test_sending_waits_for_room(kind: str) -> None:
    tx, rx = Ring.pair(4096)

    async def send() -> None:
        for n in range(2000):
            await tx.send_async(bytes([n % 256]) * 100, n, n + 1)
        async with asyncio.timeout(LONG):
            with await tx.reserve_async(4000, 7) as slot:
                slot[:3] = b"end"
                slot.commit(3)

    async def main() -> None:
        sending = asyncio.create_task(send())
        for n in range(2000):
            with await rx.recv_async() as message:
                assert (message.type_id, message.tag, message.tobytes()) == (n, n + 1, bytes([n % 256]) * 100)
        with await rx.recv_async() as message:
            assert bytes(message) == b"end"
        await sending
        with pytest.raises(TooLargeError):
            await tx.send_async(bytes(5000))
        # One that is given up has sent nothing.
        for size in (4000, 40):
            tx.send(bytes(size))
        waiting = asyncio.ensure_future(tx.send_async(b"never", 9))
        await turns()
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert [len(rx.recv_bytes()) for _ in range(2)] == [4000, 40]
        await turns()
        assert rx.try_recv() is None

    run(kind, main())


def collected(make: Callable[[], Any]) -> None:
    make()
    gc.collect()


@every_loop
def test_what_is_never_awaited_takes_nothing_and_warns(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def main() -> None:
        tx.send(b"stays")
        with Region.create("g", 8) as region, Listener.bind("l", 4096) as listener:
            makes: list[Callable[[], Any]] = [
                rx.recv_async,
                rx.__anext__,
                rx.recv_batch_async,
                lambda: rx.recv_array_async("u1", 3),
                rx.recv_bytes_async,
                lambda: rx.recv_into_async(bytearray(9)),
                lambda: tx.send_async(b"no"),
                lambda: tx.send_vectored_async([b"n", b"o"]),
                lambda: tx.send_batch_async([b"no"]),
                lambda: tx.send_array_async(np.zeros(1)),
                lambda: tx.send_tensor_async(np.zeros(1)),
                lambda: tx.reserve_async(1),
                lambda: tx.reserve_tensor_async(1, "u1"),
                region.wait_async,
                listener.accept_async,
                lambda: ramway.Bus.connect_async("l"),
                lambda: ramway.Bus.listen_async("x"),
                tx.wait_for_peer_async,
                rx.wait_for_peer_async,
            ]
            for make in makes:
                with pytest.warns(RuntimeWarning, match="was never awaited"):
                    collected(make)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    make().close()
                    gc.collect()
        assert bytes(await rx.recv_async()) == b"stays"
        assert rx.try_recv() is None

    run(kind, main())


def test_an_awaitable_is_driven_as_a_coroutine_is(ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def main() -> None:
        tx.send(b"one")
        once = rx.recv_async()
        assert "message" in repr(once)
        with pytest.raises(StopIteration) as stop:
            once.send(None)
        assert bytes(stop.value.value) == b"one"
        del stop
        with pytest.raises(RuntimeError, match="awaited already"):
            once.send(None)
        for exception in (KeyError("k"), KeyError):
            thrown = rx.recv_async()
            with pytest.raises(KeyError):
                thrown.throw(exception)
            with pytest.raises(RuntimeError):
                await thrown
        with pytest.raises(TypeError):
            rx.recv_async().throw("no exception")  # type: ignore[call-overload]
        # Every way to make a task of it.
        tx.send_batch([b"x"] * 4)
        await asyncio.create_task(rx.recv_async())
        await asyncio.wait_for(rx.recv_async(), LONG)
        await asyncio.gather(rx.recv_async())
        done, _ = await asyncio.wait([asyncio.ensure_future(rx.recv_async())])
        assert bytes(done.pop().result()) == b"x"

    asyncio.run(main())


def test_there_is_no_waiting_outside_of_a_loop(ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring
    with pytest.raises(RuntimeError, match="no running event loop"):
        rx.recv_async().send(None)
    tx.send(b"x")
    with pytest.raises(StopIteration):
        rx.recv_async().send(None)


@every_loop
def test_a_cancelled_wait_takes_no_message(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def main() -> None:
        received = 0
        reasons: set[tuple[object, ...]] = set()
        for n in range(300):
            task = asyncio.ensure_future(rx.recv_async())
            await asyncio.sleep(0)
            # The message and the cancellation come in either order, together or in rounds of their own.
            if n % 2:
                tx.send(b"%d" % n)
            if n % 3 == 0:
                await asyncio.sleep(0)
            task.cancel("enough")
            if n % 2 == 0:
                tx.send(b"%d" % n)
            try:
                message = await task
            except asyncio.CancelledError as cancelled:
                reasons.add(cancelled.args)
                message = await rx.recv_async()
            assert bytes(message) == b"%d" % n
            received += 1
        assert received == 300
        assert reasons == {("enough",)}
        assert rx.try_recv() is None

    run(kind, main())


@every_loop
def test_time_outs_end_a_wait(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def main() -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await rx.recv_async()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(rx.recv_async(), 0.01)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    async for _ in rx:
                        pytest.fail("nothing was sent")
        tx.send(b"x")
        async with asyncio.timeout(LONG):
            assert bytes(await rx.recv_async()) == b"x"

    run(kind, main())


@every_loop
def test_one_task_at_a_time_may_wait(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def main() -> None:
        first = asyncio.ensure_future(rx.recv_async())
        await turns()
        for other in (rx.recv_async, rx.__anext__, lambda: rx.recv_batch_async(2), lambda: anext(aiter(rx))):
            with pytest.raises(BusyError, match="another task"):
                await other()
        # Also when there is a message that the first one has not yet seen.
        tx.send(b"first's")
        with pytest.raises(BusyError, match="another task"):
            await rx.recv_async()
        assert bytes(await first) == b"first's"
        # Once the first one is done, or has gone, others may.
        first = asyncio.ensure_future(rx.recv_async())
        await turns()
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.ensure_future(rx.recv_async())
        await turns()
        tx.send(b"second's")
        assert bytes(await second) == b"second's"

    run(kind, main())


@every_loop
def test_a_handle_may_go_from_loop_to_loop(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def wait_and_receive(text: bytes) -> None:
        waiting = asyncio.ensure_future(rx.recv_async())
        await turns()
        tx.send(text)
        assert bytes(await waiting) == text

    async def leave_a_task_waiting() -> None:
        asyncio.ensure_future(rx.recv_async())  # noqa: RUF006
        await turns()

    for n in range(3):
        run(kind, wait_and_receive(b"%d" % n))
        run(kind, leave_a_task_waiting())
    # One that was closed with the task still waiting.
    loop = new_loop(kind)
    waiting = loop.create_task(rx.recv_async())
    loop.run_until_complete(turns())
    loop.close()
    run(kind, wait_and_receive(b"after"))
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]
    # One that is not closed while the other one uses the handle, and is used again.
    loops = [new_loop(kind), new_loop("asyncio")]
    for n in range(6):
        loops[n % 2].run_until_complete(wait_and_receive(b"%d" % n))
    for loop in loops:
        loop.close()


@every_loop
def test_closing_the_handle_tells_the_task_that_waits(kind: str, ring: tuple[Sender, Receiver]) -> None:
    _tx, rx = ring

    async def main() -> None:
        waiting = asyncio.ensure_future(rx.recv_async())
        await turns()
        rx.close()
        with pytest.raises(DetachedError):
            await waiting
        with pytest.raises(DetachedError):
            await rx.recv_async()
        # From another thread, which the loop is not told of by anything else.
        for _ in range(10):
            _keep, other = Ring.pair(4096)
            waiting = asyncio.ensure_future(anext(aiter(other)))
            await turns(1)
            thread = threading.Thread(target=other.close)
            thread.start()
            with pytest.raises(DetachedError):
                async with asyncio.timeout(LONG):
                    await waiting
            thread.join()

    run(kind, main())


@every_loop
def test_a_number_that_was_a_handles_descriptor_is_free_for_others(kind: str) -> None:
    seen: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for by in ("close", "del", "thread"):
            tx, rx = Ring.pair(4096)
            waiting = asyncio.ensure_future(rx.recv_async())
            await turns()
            tx.send(b"x")
            await waiting
            del waiting
            # It is still registered, for the next wait.
            open_before = len(os.listdir("/proc/self/fd"))
            if by == "close":
                rx.close()
            elif by == "thread":
                thread = threading.Thread(target=rx.close)
                thread.start()
                thread.join()
            del tx, rx
            gc.collect()
            await turns()
            assert len(os.listdir("/proc/self/fd")) < open_before
            pipes = [os.pipe() for _ in range(8)]
            seen.clear()
            for reader, writer in pipes:
                loop.add_reader(reader, lambda fd: seen.append(len(os.read(fd, 10))), reader)
                os.write(writer, b"abc")
            await turns()
            assert seen == [3] * 8
            for reader, writer in pipes:
                loop.remove_reader(reader)
                os.close(reader)
                os.close(writer)

    run(kind, main())


@every_loop
def test_a_full_receiver_lets_other_tasks_run(kind: str) -> None:
    tx, rx = Ring.pair(1 << 20)
    ticks = 0
    tick = np.zeros(12_800, dtype="<u8")

    async def ticking() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def main() -> None:
        nonlocal ticks
        other = asyncio.create_task(ticking())
        await asyncio.sleep(0)

        async def by_recv() -> None:
            for _ in range(12_800):
                await rx.recv_async()

        async def by_iteration() -> None:
            left = 12_800
            async for _ in rx:
                left -= 1
                if left == 0:
                    break

        async def by_batch() -> None:
            left = 12_800
            while left:
                left -= len(await rx.recv_batch_async(64))

        async def by_array() -> None:
            left = 12_800
            while left:
                left -= len(await rx.recv_array_async("<u8", 64))

        for receive in (by_recv, by_iteration, by_batch, by_array):
            tx.send_array(tick)
            ticks = 0
            await receive()
            assert ticks >= 90, receive.__name__
        ticks = 0
        for _ in range(12_800):
            await tx.send_async(b"12345678")
            rx.recv_bytes()
        assert ticks >= 90
        other.cancel()

    run(kind, main())


@every_loop
def test_a_readable_receiver_that_nobody_awaits_costs_nothing(kind: str, ring: tuple[Sender, Receiver]) -> None:
    tx, rx = ring

    async def main() -> None:
        waiting = asyncio.ensure_future(rx.recv_async())
        await turns()
        tx.send(b"x")
        await waiting
        tx.send_batch([b"y"] * 3)
        before = time.thread_time()
        await asyncio.sleep(1)
        assert time.thread_time() - before < 0.25
        assert [bytes(await rx.recv_async()) for _ in range(3)] == [b"y"] * 3
        waiting = asyncio.ensure_future(rx.recv_async())
        await turns()
        tx.send(b"z")
        assert bytes(await waiting) == b"z"

    run(kind, main())


@every_loop
def test_a_task_that_is_destroyed_while_it_waits_leaves_the_receiver_to_others(
    kind: str, ring: tuple[Sender, Receiver]
) -> None:
    tx, rx = ring

    async def main() -> None:
        async def wait() -> bytes:
            return bytes(await rx.recv_async())

        coroutine = wait()
        future = coroutine.send(None)
        assert asyncio.isfuture(future) and not future.done()
        future._asyncio_future_blocking = False
        del coroutine, future
        gc.collect()
        waiting = asyncio.ensure_future(wait())
        await turns()
        tx.send(b"x")
        assert await waiting == b"x"

    run(kind, main())


def test_a_loop_that_is_left_with_a_waiting_task_can_be_collected() -> None:
    tx, rx = Ring.pair(4096)
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    waiting = loop.create_task(rx.recv_async())
    loop.run_until_complete(asyncio.sleep(0.01))
    assert not waiting.done()
    loop.close()
    del waiting, loop, rx
    gc.collect()
    # The receiver went with them, so that there is nobody to send to any more.
    with pytest.raises(ClosedError):
        for _ in range(1000):
            tx.try_send(b"x")
