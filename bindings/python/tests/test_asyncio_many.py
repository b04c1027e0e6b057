"""Tasks that wait for many handles: one io_uring tells an event loop of all of them."""

import asyncio
import gc
import os
import threading

import pytest
import ramway
from loops import every_loop, new_loop, run, turns
from ramway import Receiver, Ring, Sender
from support import LONG, Child


def urings() -> int:
    """The io_urings of this process."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[io_uring]"
        except FileNotFoundError:
            pass
    return count


@pytest.fixture(params=["", "thread"])
def method(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How handles wait: as the system can, and without io_uring."""
    method: str = request.param
    monkeypatch.setenv("RAMWAY_READINESS", method)
    return method


def pairs(count: int) -> list[tuple[Sender, Receiver]]:
    return [Ring.pair(4096) for _ in range(count)]


@every_loop
def test_all_tasks_of_a_loop_wait_by_one_io_uring(kind: str) -> None:
    rings = pairs(50)
    gc.collect()
    before = urings()

    async def main() -> None:
        tasks = [asyncio.create_task(take(rx)) for _, rx in rings]
        await turns()
        # None where the kernel has none that can wait for a ring.
        assert urings() - before in (0, 1)
        for n, (tx, _) in enumerate(rings):
            tx.send(b"%d" % n)
        assert await asyncio.gather(*tasks) == [b"%d" % n for n in range(50)]

    async def take(rx: Receiver) -> bytes:
        return bytes(await rx.recv_async())

    run(kind, main())
    gc.collect()
    rings.clear()
    gc.collect()
    assert urings() == before, "it goes with the loop and the handles"


def test_more_are_woken_at_once_than_an_io_uring_has_room_for() -> None:
    rings = pairs(5000)

    async def take(rx: Receiver) -> bytes:
        return await rx.recv_bytes_async() + await rx.recv_bytes_async()

    async def main() -> None:
        tasks = [asyncio.create_task(take(rx)) for _, rx in rings]
        await turns()
        for part in (b"a", b"b"):
            for tx, _ in rings:
                tx.send(part)
            await turns()
        assert await asyncio.gather(*tasks) == [b"ab"] * len(rings)

    asyncio.run(main())


@every_loop
def test_a_descriptor_that_is_asked_for_meanwhile(kind: str, method: str) -> None:
    tx, rx = Ring.pair(4096)

    async def main() -> None:
        first = asyncio.ensure_future(rx.recv_bytes_async())
        await turns()
        assert rx.fileno() >= 0
        await turns()
        assert not first.done()
        tx.send(b"1")
        assert await first == b"1"
        again = asyncio.ensure_future(rx.recv_bytes_async())
        await turns()
        tx.send(b"2")
        assert await again == b"2"

    run(kind, main())


@every_loop
def test_blocking_calls_and_selects_between_waits(kind: str, method: str) -> None:
    tx, rx = Ring.pair(4096)

    async def main() -> None:
        for n in range(3):
            waiting = asyncio.ensure_future(rx.recv_bytes_async())
            await turns()
            tx.send(b"%d" % n)
            assert await waiting == b"%d" % n
            # Sent after it has begun to wait, as a rule.
            with pytest.raises(ramway.TimedOutError):
                rx.recv(timeout=0.01)
            sending = threading.Timer(0.01, tx.send, (b"blocking",))
            sending.start()
            assert rx.recv_bytes(timeout=LONG) == b"blocking"
            sending.join()
            sending = threading.Timer(0.01, tx.send, (b"selected",))
            sending.start()
            assert ramway.select([rx], timeout=LONG) == [rx]
            assert rx.recv_bytes(timeout=0) == b"selected"
            sending.join()

    run(kind, main())


@every_loop
def test_a_wait_that_was_cancelled_leaves_the_next_one_whole(kind: str, method: str) -> None:
    rings = pairs(20)

    async def main() -> None:
        for _ in range(3):
            tasks = [asyncio.ensure_future(rx.recv_bytes_async()) for _, rx in rings]
            await turns()
            for task in tasks[::2]:
                task.cancel()
            for tx, _ in rings:
                tx.send(b"x")
            done = await asyncio.gather(*tasks, return_exceptions=True)
            for (_, rx), result in zip(rings, done, strict=True):
                assert result == b"x" or isinstance(result, asyncio.CancelledError)
                if result != b"x":
                    assert await rx.recv_bytes_async() == b"x"

    run(kind, main())


@pytest.mark.parametrize("kind", ["asyncio", "debug"])
def test_what_stops_the_loop_loses_no_wake_up_of_others(kind: str, method: str) -> None:
    rings = pairs(10)
    loop = new_loop(kind)

    async def stop(rx: Receiver) -> None:
        await rx.recv_async()
        raise SystemExit(3)

    async def take(rx: Receiver) -> bytes:
        return await rx.recv_bytes_async()

    stopping = [loop.create_task(stop(rx)) for _, rx in rings[:5]]
    taking = [loop.create_task(take(rx)) for _, rx in rings[5:]]
    loop.run_until_complete(turns())
    for tx, _ in rings:
        tx.send(b"x")
    for _ in stopping:
        with pytest.raises(SystemExit):
            loop.run_until_complete(asyncio.wait(taking))
            loop.run_until_complete(asyncio.wait(stopping))
    assert loop.run_until_complete(asyncio.gather(*taking)) == [b"x"] * 5
    for task in stopping:
        assert isinstance(task.exception(), SystemExit)
    loop.close()


def test_loops_one_after_another_and_side_by_side(method: str) -> None:
    tx, rx = Ring.pair(4096)

    async def one(value: bytes) -> None:
        waiting = asyncio.ensure_future(rx.recv_bytes_async())
        await turns()
        tx.send(value)
        assert await waiting == value

    for n in range(3):
        asyncio.run(one(b"%d" % n))

    async def talk(own: list[tuple[Sender, Receiver]]) -> None:
        for n in range(200):
            for sender, _ in own:
                sender.send(b"%d" % n)
            for _, receiver in own:
                assert await receiver.recv_bytes_async() == b"%d" % n
            await asyncio.sleep(0)

    failed: list[BaseException] = []

    def work() -> None:
        try:
            asyncio.run(talk(pairs(5)))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


def test_a_handle_that_changes_its_loop_while_both_run() -> None:
    tx, rx = Ring.pair(4096)
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()

    async def take() -> bytes:
        return await rx.recv_bytes_async()

    async def main() -> None:
        for n in range(20):
            here = asyncio.ensure_future(take())
            await turns(1)
            tx.send(b"%d" % n)
            assert await here == b"%d" % n
            there = asyncio.run_coroutine_threadsafe(take(), other)
            tx.send(b"there %d" % n)
            assert await asyncio.wrap_future(there) == b"there %d" % n

    try:
        asyncio.run(main())
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()


@every_loop
def test_the_deaths_of_many_peers_are_told(kind: str, method: str) -> None:
    count = 40
    rings = [Ring.create(f"ring{n}", capacity=4096).receiver() for n in range(count)]
    child = Child(
        """
        import sys, ramway
        senders = [ramway.Ring.open(f"ring{n}", timeout=60).sender() for n in range(int(sys.argv[1]))]
        for sender in senders:
            sender.send(b"hello")
        print("sent", flush=True)
        sys.stdin.readline()
        """,
        count,
    )
    assert child.line() == "sent"

    async def take(rx: Receiver) -> bytes:
        return await rx.recv_bytes_async()

    async def main() -> None:
        assert await asyncio.gather(*map(take, rings)) == [b"hello"] * count
        waiting = [asyncio.ensure_future(take(rx)) for rx in rings]
        await turns()
        child.kill()
        async with asyncio.timeout(LONG):
            ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(end) for end in ends] == [ramway.PeerDeadError] * count

    run(kind, main())
    for rx in rings:
        rx.close()


def test_a_fork_s_child_has_loops_of_its_own() -> None:
    tx, rx = Ring.pair(4096)

    async def one(sender: Sender, receiver: Receiver) -> None:
        waiting = asyncio.ensure_future(receiver.recv_bytes_async())
        await turns(1)
        sender.send(b"x")
        assert await waiting == b"x"

    asyncio.run(one(tx, rx))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            asyncio.run(one(*Ring.pair(4096)))
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
    asyncio.run(one(tx, rx))
