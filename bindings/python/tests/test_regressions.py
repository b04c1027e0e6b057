"""One test for each defect that was found after the fact."""

import asyncio
import gc
import signal
import sys
import time
import weakref

import numpy as np
import pytest
import ramway
from ramway import Message, Ring
from support import DEBUG, DEBUG_ENVIRONMENT, LONG, Thread, run


def test_a_release_owed_from_a_wait_is_not_done_after_a_later_one() -> None:
    tx, rx = Ring.pair(1 << 16)
    tx.send(b"first")
    first = rx.recv()
    waiting = Thread(rx.recv)
    time.sleep(0.05)
    del first  # The handle is in use: this one is owed.
    tx.send(b"second")
    second: Message = waiting.result()
    second.release()
    assert (rx.lent, rx.used) == (0, 0)


def test_what_is_given_back_during_a_wait_is_room_as_soon_as_it_ends() -> None:
    tx, rx = Ring.pair(4096)
    tx.send(bytes(1500))
    first = rx.recv()
    waiting = Thread(rx.recv)
    time.sleep(0.05)
    del first
    tx.send(bytes(1500))
    second: Message = waiting.result()
    tx.try_send(bytes(1500))
    assert len(second) == 1500


def test_a_message_that_comes_between_two_rounds_is_not_lost() -> None:
    tx, rx = Ring.pair(4096)
    tx.send(b"held")
    held = rx.recv()
    sending: list[Thread] = []

    def send() -> None:
        for i in range(20):
            tx.send(b"%02d" % i + bytes(500))

    def handler(*_: object) -> None:
        # Fills the ring, and sleeps for want of room while the receive is between two rounds.
        sending.append(Thread(send))
        time.sleep(0.3)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        message = rx.recv()
        del held
        got = [bytes(message[:2])]
        del message
        got += [rx.recv_bytes()[:2] for _ in range(19)]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert got == [b"%02d" % i for i in range(20)]
    sending[0].result()


def test_what_is_owed_when_the_receiver_is_closed_is_not_received_again() -> None:
    ring = Ring.create("r", capacity=1 << 16)
    tx = ring.sender()
    rx = Ring.open("r").receiver()
    tx.send(b"first")
    first = rx.recv()

    def wait() -> None:
        with pytest.raises(ramway.ClosedError):
            rx.recv()

    waiting = Thread(wait)
    time.sleep(0.05)
    del first
    tx.close()
    waiting.result()
    rx.close()
    # The name stays only for what nobody has given back.
    with pytest.raises(ramway.NotFoundError):
        Ring.open("r").receiver()


def test_a_receiver_that_ends_while_an_exception_is_on_its_way() -> None:
    # Its destructor leaves the loop, which calls into Python: the interpreter crashed.
    printed = run(
        """
        import asyncio, ramway

        async def main():
            tx, rx = ramway.Ring.pair(4096)
            try:
                await asyncio.wait_for(rx.recv_async(), 0.01)
            except TimeoutError:
                pass
            held = [rx]
            del rx
            def fail():
                raise KeyError("the one")
            try:
                [held.pop(), fail()]
            except KeyError as error:
                print(error.args[0], error.__context__)

        asyncio.run(main())
        """,
        options=DEBUG,
        env=DEBUG_ENVIRONMENT,
    )
    assert printed == ["the one None"]


def test_an_array_that_lies_about_its_dtype_is_not_read_beyond_its_end() -> None:
    class Liar(np.ndarray):
        @property
        def dtype(self) -> np.dtype[np.complex128]:
            return np.dtype(np.complex128)

    tx, rx = Ring.pair(4096)
    with pytest.raises(BufferError):
        tx.send_tensor(np.zeros(10, np.uint8).view(Liar))
    assert rx.try_recv() is None


def test_a_task_that_holds_a_message_is_collected_with_its_loop() -> None:
    class Marked:
        pass

    def leave() -> "weakref.ref[Marked]":
        loop = asyncio.new_event_loop()
        tx, rx = Ring.pair(4096)
        tx.send(b"held")
        marked = Marked()

        async def wait() -> None:
            held = (await rx.recv_async(), tx, marked)
            await rx.recv_async()
            del held

        async def main() -> None:
            loop.call_exception_handler = lambda context: None  # type: ignore[method-assign]
            waiting = asyncio.create_task(wait())
            await asyncio.wait([waiting], timeout=0.05)

        loop.run_until_complete(main())
        loop.close()
        return weakref.ref(marked)

    left = leave()
    gc.collect()
    assert left() is None


def test_another_interpreter_is_refused() -> None:
    interpreters = pytest.importorskip("_xxsubinterpreters" if sys.version_info < (3, 13) else "_interpreters")
    for options in [{"isolated": True}, {"isolated": False}] if sys.version_info < (3, 13) else [{}]:
        other = interpreters.create(**options)
        try:
            code = """
try:
    import ramway
except ImportError:
    pass
else:
    raise AssertionError("imported")
"""
            assert interpreters.run_string(other, code) is None
        finally:
            interpreters.destroy(other)


def test_a_message_that_there_is_no_memory_for_stays() -> None:
    run(
        """
        import ramway, resource

        tx, rx = ramway.Ring.pair(1 << 28)
        # Without a copy, whose memory would still be there.
        tx.reserve(1 << 27).commit()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 26), before[1]))
        for _ in range(2):
            try:
                rx.recv_bytes()
            except MemoryError:
                pass
            else:
                raise AssertionError("memory there was")
        resource.setrlimit(resource.RLIMIT_AS, before)
        assert rx.lent == 0
        assert rx.recv_bytes() == bytes(1 << 27)
        """,
        # A free-threaded interpreter's allocator has a gigabyte of addresses in reserve.
        env={"MIMALLOC_ARENA_RESERVE": "0"},
    )


def test_a_fork_while_another_thread_is_in_a_call() -> None:
    run(
        """
        import os, threading, time, ramway

        tx, rx = ramway.Ring.pair(4096)
        received = []
        waiting = threading.Thread(target=lambda: received.append(rx.recv_bytes()))
        waiting.start()
        time.sleep(0.1)
        child = os.fork()
        if child == 0:
            try:
                rx.try_recv()
            except ramway.DetachedError:
                rx.close()
                os._exit(0 if rx.closed else 2)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        tx.send(b"for the parent")
        waiting.join()
        assert received == [b"for the parent"]
        """,
        options=("-W", "ignore::DeprecationWarning"),
    )


def test_handles_take_weak_references() -> None:
    tx, rx = Ring.pair(4096)
    region = ramway.Region.create("region", 64)
    references = [weakref.ref(handle) for handle in (tx, rx, region)]
    del tx, rx, region
    gc.collect()
    assert [reference() for reference in references] == [None, None, None]


def test_a_task_that_holds_the_whole_ring_is_told_so() -> None:
    async def receive(rx: ramway.Receiver) -> None:
        held = []
        async with asyncio.timeout(LONG):
            while True:
                held.append(memoryview(await rx.recv_async()))

    tx, rx = Ring.pair(4096)
    sender = Thread(lambda: [tx.send(bytes(1000), timeout=LONG) for _ in range(8)])
    with pytest.raises(ramway.BusyError, match="neither side"):
        asyncio.run(receive(rx))
    gc.collect()
    while sender.is_alive():
        rx.try_recv()
    sender.result()
