"""How a handle ends: by an exception, under a thread that waits, with views that stay."""

import asyncio
import gc
from collections.abc import Callable

import pytest
import ramway
from ramway import Bus, Ring
from support import LONG, Child, Thread, eventually, run, sleeps


def test_an_exception_in_a_senders_block_abandons() -> None:
    ring = Ring.open_or_create("r", capacity=4096)
    with ring.receiver() as rx:
        with pytest.raises(ZeroDivisionError), ring.sender() as tx:
            tx.send(b"the first half")
            1 / 0
        assert tx.closed
        assert rx.recv_bytes(LONG) == b"the first half"
        with pytest.raises(ramway.PeerDeadError):
            rx.recv(LONG)


def test_an_exception_in_a_senders_block_with_an_open_slot_abandons() -> None:
    ring = Ring.open_or_create("r", capacity=4096)
    with ring.receiver() as rx:
        with pytest.raises(KeyError), ring.sender() as tx:
            tx.send(b"whole")
            slot = tx.reserve(10)
            view = memoryview(slot)
            raise KeyError
        assert not slot.open and len(view) == 10
        assert rx.recv_bytes(LONG) == b"whole"
        with pytest.raises(ramway.PeerDeadError):
            rx.recv(LONG)


def test_the_end_of_a_senders_block_is_the_end_of_the_stream() -> None:
    ring = Ring.open_or_create("r", capacity=4096)
    with ring.receiver() as rx:
        with ring.sender() as tx:
            tx.send(b"all")
        assert [bytes(msg) for msg in rx] == [b"all"]


def test_an_exception_in_a_bus_block_abandons() -> None:
    listening = Thread(Bus.listen, "b", 4096)
    other = Bus.connect("b", timeout=LONG)
    with pytest.raises(ZeroDivisionError), listening.result() as bus:
        bus.send(b"the first half")
        1 / 0
    assert bus.closed
    assert other.recv_bytes(LONG) == b"the first half"
    with pytest.raises(ramway.PeerDeadError):
        other.recv(LONG)
    other.close()


WAITS: list[tuple[str, Callable[[ramway.Receiver], object]]] = [
    ("recv", lambda rx: rx.recv()),
    ("recv with a time-out", lambda rx: rx.recv(LONG)),
    ("recv_bytes", lambda rx: rx.recv_bytes()),
    ("recv_batch", lambda rx: rx.recv_batch()),
    ("recv_array", lambda rx: rx.recv_array("u1")),
    ("recv_into", lambda rx: rx.recv_into(bytearray(9))),
    ("a loop", list),
]


def _busy(look: Callable[[], object]) -> bool:
    try:
        look()
    except ramway.BusyError:
        return True
    return False


@pytest.mark.parametrize("wait", ["spin", "hybrid", "block"])
@pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in WAITS])
def test_close_ends_the_wait_of_another_thread(call: Callable[[ramway.Receiver], object], wait: str) -> None:
    ring = Ring.open_or_create("r", capacity=4096, wait=wait)  # type: ignore[arg-type]
    with ring.sender() as tx:
        rx = ring.receiver()
        waiting = Thread(call, rx)
        eventually("it waits", lambda: _busy(lambda: rx.lent))
        rx.close()
        with pytest.raises(ramway.DetachedError, match="receiver of 'r' is closed"):
            waiting.result()
        # The role is free as soon as the thread has left.
        with ring.receiver() as successor:
            tx.send(b"x")
            assert successor.recv_bytes(LONG) == b"x"


@pytest.mark.parametrize("how", ["close", "abandon", "with"])
def test_close_ends_the_wait_for_room_of_another_thread(how: str) -> None:
    ring = Ring.open_or_create("r", capacity=4096)
    with ring.receiver() as rx:
        tx = ring.sender()
        tx.send(bytes(4000))
        waiting = Thread(tx.send, bytes(4000))
        eventually("it waits", lambda: _busy(lambda: tx.used))
        if how == "with":
            with tx:
                pass
        else:
            getattr(tx, how)()
        with pytest.raises(ramway.DetachedError, match="sender of 'r' is closed"):
            waiting.result()
        assert len(rx.recv_bytes(LONG)) == 4000
        with pytest.raises(ramway.PeerDeadError if how == "abandon" else ramway.ClosedError):
            rx.recv(LONG)


def test_close_of_a_bus_ends_the_waits_of_both_its_ends() -> None:
    listening = Thread(Bus.listen, "b", 4096)
    other = Bus.connect("b", timeout=LONG)
    bus = listening.result()
    bus.send(bytes(4000))
    receiving, sending = Thread(bus.recv), Thread(bus.send, bytes(4000))
    eventually("both wait", lambda: _busy(lambda: bus.receiver.lent) and _busy(lambda: bus.sender.used))
    bus.close()
    for thread in (receiving, sending):
        with pytest.raises(ramway.DetachedError):
            thread.result()
    assert len(other.recv_bytes(LONG)) == 4000
    with pytest.raises(ramway.ClosedError):
        other.recv(LONG)
    other.close()


def test_close_from_another_thread_ends_the_wait_of_a_task() -> None:
    one, other = Ring.open_or_create("one", capacity=4096), Ring.open_or_create("other", capacity=4096)
    tx, rx = one.sender(), other.receiver()
    tx.send(bytes(4000))

    async def main() -> None:
        receiving = asyncio.create_task(rx.recv_async())
        sending = asyncio.create_task(tx.send_async(bytes(4000)))
        await asyncio.sleep(0.05)
        closing = Thread(lambda: (rx.close(), tx.close()))
        for task in (receiving, sending):
            with pytest.raises(ramway.DetachedError):
                await asyncio.wait_for(task, LONG)
        closing.result()

    asyncio.run(main())


def test_a_sleeping_thread_is_woken_by_close() -> None:
    """Not by the round that it would look again after."""
    code = """
        import sys, threading, ramway
        rx = ramway.Ring.create("r", capacity=4096, wait="block").receiver()
        def wait():
            try:
                rx.recv()
            except ramway.DetachedError:
                print("detached", flush=True)
        thread = threading.Thread(target=wait)
        thread.start()
        print(thread.native_id, flush=True)
        sys.stdin.readline()
        rx.close()
        thread.join()
    """
    with Child(code) as child:
        thread = int(child.line())
        eventually("it sleeps", lambda: sleeps(child.pid, thread))
        child.tell()
        assert child.line() == "detached"
        assert child.finish() == []


def test_threads_that_close_and_threads_that_wait_in_any_order() -> None:
    for _ in range(300):
        tx, rx = Ring.pair(4096)
        tx.send(bytes(4000))
        threads = [Thread(tx.send, bytes(4000)), Thread(rx.recv_batch), Thread(rx.close), Thread(tx.close)]
        for thread in threads:
            try:
                thread.result()
            except (ramway.DetachedError, ramway.ClosedError, ramway.BusyError):
                pass
        assert rx.closed and tx.closed


def test_the_ring_is_gone_when_a_thread_that_waited_has_left() -> None:
    printed = run("""
        import os, threading, time, ramway
        def maps():
            with open("/proc/self/maps") as file:
                return sum(line.split()[4] == inode for line in file)
        rx = ramway.Ring.create("r", capacity=4096).receiver()
        inode = str(os.stat(os.environ["RAMWAY_DIR"] + "/r").st_ino)
        assert maps() > 0
        def wait():
            try:
                rx.recv()
            except ramway.DetachedError:
                pass
        thread = threading.Thread(target=wait)
        thread.start()
        while True:
            try:
                rx.lent
            except ramway.BusyError:
                break
        rx.close()
        thread.join()
        print(maps(), os.listdir(os.environ["RAMWAY_DIR"]))
    """)
    assert printed == ["0 []"]
    gc.collect()
