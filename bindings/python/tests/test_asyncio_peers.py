"""Tasks that wait for other processes: rings, buses, listeners, regions; death, idleness."""

import asyncio
import os
import threading
import time
import warnings
from pathlib import Path

import pytest
import ramway
from loops import every_loop, run, turns
from ramway import BusyError, DetachedError, NotFoundError, PeerDeadError, Receiver, Region, Ring, Sender
from support import LONG, Child


@every_loop
def test_receives_from_another_process(kind: str, directory: Path) -> None:
    send = """
        import ramway, sys, time
        with ramway.Ring.open("ticks", timeout=60).sender() as tx:
            for n in range(20_000):
                tx.send(n.to_bytes(8, "little"), tag=n)
                if n % 1000 == 0:
                    time.sleep(0.002)
    """
    rx = Ring.create("ticks", capacity=1 << 16).receiver()

    async def main() -> None:
        expected = 0
        async with asyncio.timeout(LONG):
            async for message in rx:
                assert int.from_bytes(message, "little") == message.tag == expected
                expected += 1
        assert expected == 20_000

    with Child(send) as child:
        run(kind, main())
        child.finish()


@every_loop
@pytest.mark.parametrize("by", ["ring", "bus"])
def test_a_peer_that_is_killed_ends_the_wait(kind: str, by: str) -> None:
    peer = """
        import ramway, sys, time
        if sys.argv[1] == "ring":
            end = ramway.Ring.open("dies", timeout=60).sender()
        else:
            end = ramway.Bus.connect("dies")
        end.send(b"last words")
        sys.stdin.readline()
    """

    async def main(rx: Receiver, child: Child) -> None:
        stream = aiter(rx)
        assert bytes(await anext(stream)) == b"last words"
        waiting = asyncio.ensure_future(anext(stream))
        await turns()
        killed = time.monotonic()
        child.kill()
        with pytest.raises(PeerDeadError):
            async with asyncio.timeout(LONG):
                await waiting
        # Within 200 ms where the machine has the time.
        assert time.monotonic() - killed < 10

    if by == "ring":
        rx = Ring.create("dies").receiver()
        with Child(peer, by) as child:
            run(kind, main(rx, child))
    else:
        with ramway.Listener.bind("dies") as listener, Child(peer, by) as child, listener.accept(LONG) as bus:
            run(kind, main(bus.receiver, child))


@every_loop
def test_a_sender_learns_that_the_receiver_died(kind: str) -> None:
    peer = """
        import ramway, sys
        with ramway.Bus.connect("dies") as bus:
            sys.stdin.readline()
    """

    async def main(tx: Sender, child: Child) -> None:
        async def fill() -> None:
            while True:
                await tx.send_async(bytes(1000))

        filling = asyncio.create_task(fill())
        await turns()
        child.kill()
        with pytest.raises(PeerDeadError):
            async with asyncio.timeout(LONG):
                await filling

    with ramway.Listener.bind("dies", 4096) as listener, Child(peer) as child, listener.accept(LONG) as bus:
        run(kind, main(bus.sender, child))


@every_loop
def test_both_sides_of_a_bus_in_one_loop(kind: str) -> None:
    async def serve(listener: ramway.Listener) -> int:
        served = 0
        async for bus in listener:
            with bus:
                async for message in bus:
                    await bus.send_async(bytes(message)[::-1], message.type_id)
            served += 1
        return served

    async def ask(text: bytes) -> bytes:
        with await ramway.Bus.connect_async("echo") as bus:
            await bus.send_async(text)
            return bytes(await bus.recv_async())

    async def main() -> None:
        listener = ramway.Listener.bind("echo")
        serving = asyncio.create_task(serve(listener))
        await turns()
        with pytest.raises(BusyError):
            await listener.accept_async()
        for n in range(5):
            assert await asyncio.wait_for(ask(b"ask %d" % n), LONG) == (b"ask %d" % n)[::-1]
        answers = await asyncio.gather(*(ask(b"%03d" % n) for n in range(20)))
        assert answers == [(b"%03d" % n)[::-1] for n in range(20)]
        listener.close()
        assert await serving == 25
        with pytest.raises(DetachedError):
            await listener.accept_async()

    run(kind, main())


@every_loop
def test_connecting_can_be_given_up(kind: str) -> None:
    async def main() -> None:
        with pytest.raises(NotFoundError):
            await ramway.Bus.connect_async("nobody", timeout=0.01)
        threads = threading.active_count()
        connecting = asyncio.ensure_future(ramway.Bus.connect_async("nobody", timeout=None))
        await turns()
        before = time.monotonic()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connecting, 0.01)
        assert time.monotonic() - before < 10
        async with asyncio.timeout(LONG):
            while threading.active_count() > threads:
                await asyncio.sleep(0.01)

    run(kind, main())


@every_loop
def test_notifications_of_a_region(kind: str) -> None:
    notify = """
        import ramway, sys
        region = ramway.Region.open("shared", timeout=60)
        for n in range(3):
            sys.stdin.readline()
            region[0] = n
            region.notify()
        sys.stdin.readline()
    """

    async def main(region: Region, child: Child) -> None:
        for n in range(3):
            waiting = asyncio.ensure_future(region.wait_async())
            await turns()
            assert not waiting.done()
            with pytest.raises(BusyError):
                await region.wait_async()
            child.tell()
            assert await asyncio.wait_for(waiting, LONG) is None  # type: ignore[func-returns-value]
            assert region[0] == n
        waiting = asyncio.ensure_future(region.wait_async())
        await turns()
        region.close()
        with pytest.raises(DetachedError):
            await waiting
        child.tell()

    region = Region.create("shared", 4096)
    with Child(notify) as child:
        run(kind, main(region, child))
        child.finish()


@pytest.mark.skipif(
    os.environ.get("RAMWAY_READINESS") == "thread", reason="this is about descriptors that need no thread"
)
@every_loop
def test_waiting_receivers_cost_neither_threads_nor_cpu(kind: str) -> None:
    count = 200

    async def main() -> None:
        threads = len(os.listdir("/proc/self/task"))
        rings = [Ring.open_or_create(f"r{n}", capacity=4096) for n in range(count // 2)]
        ends = [(ring.sender(), ring.receiver()) for ring in rings] + [Ring.pair(4096) for _ in range(count // 2)]
        waiting = [asyncio.ensure_future(rx.recv_async()) for _, rx in ends]
        await turns()
        # One that looks whether the peers of named rings live; one that io_uring's kernel side may show.
        assert len(os.listdir("/proc/self/task")) <= threads + 2
        before = time.process_time()
        await asyncio.sleep(2)
        used = time.process_time() - before
        assert used < 0.2, f"{used} s of 2"
        for n, (tx, _) in enumerate(ends):
            tx.send(b"%d" % n)
        assert [bytes(m) for m in await asyncio.gather(*waiting)] == [b"%d" % n for n in range(count)]

    run(kind, main())


def test_a_forks_child_leaves_the_parents_loop_alone(directory: Path) -> None:
    async def main() -> None:
        tx, rx = Ring.create("f").sender(), Ring.open("f").receiver()
        waiting = asyncio.ensure_future(rx.recv_async())
        await turns()
        with warnings.catch_warnings():
            # Of the thread that looks whether peers live: the child does not need it.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                rx.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        for n in range(3):
            await turns()
            assert not waiting.done()
            tx.send(b"%d" % n)
            assert bytes(await asyncio.wait_for(waiting, LONG)) == b"%d" % n
            waiting = asyncio.ensure_future(rx.recv_async())
        waiting.cancel()

    run("asyncio", main())
