"""wait_for_peer, and a close that is told while views stay."""

import asyncio
import os
import threading
from pathlib import Path

import numpy as np
import pytest
import ramway
from ramway import Bus, Ring
from support import LONG, Child, Thread, eventually, stopped


def test_a_peer_that_is_there_is_told_at_once() -> None:
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        assert tx.wait_for_peer() == tx.peer_epoch == 1
        assert rx.wait_for_peer(0) == rx.peer_epoch == 1
    tx, rx = Ring.pair(4096)
    assert (tx.wait_for_peer(0), rx.wait_for_peer(0)) == (1, 1)
    rx.close()
    with pytest.raises(ramway.ClosedError):
        tx.wait_for_peer()


def test_nobody_comes() -> None:
    with Ring.create("r", capacity=4096).sender() as tx:
        for timeout in (0, 0.01):
            with pytest.raises(ramway.TimedOutError, match="this sender of 'r' had no living receiver"):
                tx.wait_for_peer(timeout)
        with pytest.raises(ramway.InvalidArgumentError):
            tx.wait_for_peer(-1)


@pytest.mark.parametrize("wait", ["spin", "hybrid", "block"])
def test_a_successor_is_waited_for(wait: str) -> None:
    """After PeerDead, which repeats until somebody attaches."""
    code = """
        import os, signal, sys, ramway
        tx = ramway.Ring.open("r").sender()
        tx.send(sys.argv[1].encode())
        print("sent", flush=True)
        sys.stdin.readline()
    """
    with Ring.create("r", capacity=4096, wait=wait).receiver() as rx:  # type: ignore[arg-type]
        for n in range(1, 4):
            waiting = Thread(rx.wait_for_peer)
            with Child(code, n) as child:
                assert waiting.result() == n
                assert rx.recv_bytes(LONG) == b"%d" % n
                with stopped(child):
                    assert rx.wait_for_peer(0) == n
                child.kill()
            with pytest.raises(ramway.PeerDeadError):
                rx.recv(LONG)
            with pytest.raises(ramway.TimedOutError):
                rx.wait_for_peer(0)


def test_a_task_waits_for_a_peer() -> None:
    async def main() -> None:
        with Ring.create("r", capacity=4096).sender() as tx:
            tx.send(b"before anybody came")
            waiting = asyncio.create_task(tx.wait_for_peer_async())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            with Ring.open("r").receiver() as rx:
                assert await asyncio.wait_for(waiting, LONG) == 1
                # There is a message: no reason to wake up for it again and again.
                assert await asyncio.wait_for(rx.wait_for_peer_async(), LONG) == 1
                assert bytes(await rx.recv_async()) == b"before anybody came"
                tx.close()
                with pytest.raises(ramway.ClosedError):
                    await asyncio.wait_for(rx.recv_async(), LONG)
                waiting = asyncio.create_task(rx.wait_for_peer_async())
                await asyncio.sleep(0.05)
                with Ring.open("r").sender() as successor:
                    assert await asyncio.wait_for(waiting, LONG) == 2
                    receiving = asyncio.create_task(rx.recv_async())
                    await asyncio.sleep(0.05)
                    await successor.send_async(b"from the successor")
                    assert bytes(await asyncio.wait_for(receiving, LONG)) == b"from the successor"

    asyncio.run(main())


def test_a_task_hears_that_nobody_can_come(directory: Path) -> None:
    async def main() -> None:
        with Ring.create("r", capacity=4096).sender() as tx:
            waiting = asyncio.create_task(tx.wait_for_peer_async())
            await asyncio.sleep(0.05)
            os.unlink(directory / "r")
            with pytest.raises(ramway.ClosedError):
                await asyncio.wait_for(waiting, LONG)
            with pytest.raises(ramway.ClosedError):
                tx.wait_for_peer()

    asyncio.run(main())


def test_close_ends_the_wait_for_a_peer() -> None:
    tx = Ring.create("r", capacity=4096).sender()
    waiting = Thread(tx.wait_for_peer)

    def busy() -> bool:
        try:
            tx.used  # noqa: B018
        except ramway.BusyError:
            return True
        return False

    eventually("it waits", busy)
    tx.close()
    with pytest.raises(ramway.DetachedError):
        waiting.result()


KEPT = {
    "array": lambda message: message.numpy(),
    "memoryview": memoryview,
    "message": lambda message: message,
    "tensor": lambda message: np.from_dlpack(message),
}


@pytest.mark.parametrize("kept", KEPT)
def test_a_consumer_that_breaks_off_with_a_view_kept_lets_its_producer_go(kept: str) -> None:
    code = """
        import ramway
        with ramway.Ring.open("r").sender() as tx:
            tx.wait_for_peer()
            try:
                while True:
                    tx.send(b"\\1" * 1000)
            except ramway.ClosedError as error:
                print("closed", tx.peer_alive)
    """
    ring = Ring.create("r", capacity=8192)
    view = None
    with ring.receiver() as rx, Child(code) as child:
        for message in rx:
            view = KEPT[kept](message)
            del message
            break
        rx.close()
        assert child.line() == "closed False"
        assert child.finish() == []
        assert bytes(view) == b"\1" * 1000
        # The role is free when the last view is gone, and what was not given back is delivered again.
        with pytest.raises(ramway.BusyError):
            Ring.open("r").receiver()
        del view
        with Ring.open("r").receiver() as successor:
            assert all(bytes(message) == b"\1" * 1000 for message in successor)


def test_a_bus_that_closes_with_a_view_kept_lets_its_peer_go() -> None:
    listening = Thread(lambda: Bus.listen("b", 4096, timeout=LONG))
    with Bus.connect("b", timeout=LONG) as other, listening.result() as bus:
        other.send(bytes(1000))
        view = memoryview(bus.recv(LONG))
        bus.close()
        with pytest.raises(ramway.ClosedError):
            while True:
                other.send(bytes(1000), timeout=LONG)
        with pytest.raises(ramway.ClosedError):
            other.recv(LONG)
        assert bytes(view) == bytes(1000)


def test_the_last_view_goes_in_any_thread_after_a_close() -> None:
    for _ in range(50):
        tx, rx = Ring.pair(1 << 16)
        for n in range(8):
            tx.send(bytes([n]) * 100)
        held = [memoryview(message) for message in rx.recv_batch()]
        threads = [threading.Thread(target=view.release) for view in held] + [threading.Thread(target=rx.close)]
        del held
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with pytest.raises(ramway.ClosedError):
            tx.wait_for_peer()
