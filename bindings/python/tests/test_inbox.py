"""Inbox and Outbox: many processes at one end."""

import asyncio
import contextlib
import os
import threading
import time
from collections import Counter

import pytest
import ramway
from loops import every_loop, run
from ramway import (
    Bus,
    BusyError,
    ClosedError,
    DetachedError,
    FullError,
    Inbox,
    InvalidArgumentError,
    Left,
    Message,
    Outbox,
    Peer,
    TimedOutError,
    TooLargeError,
    WaitInterruptedError,
)
from support import LONG, Child, eventually, stopped
from support import run as run_child

PRODUCER = """
    import ramway, sys
    name, count, end = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    bus = ramway.Bus.connect(name)
    print("connected", flush=True)
    for n in range(count):
        bus.send(b"%d" % n, n % 1000, n)
    print("sent", flush=True)
    if end == "close":
        bus.close()
    elif end == "stay":
        sys.stdin.readline()
"""

WORKER = """
    import ramway, sys
    bus = ramway.Bus.connect(sys.argv[1])
    print("connected", flush=True)
    for message in bus:
        print(bytes(message).decode(), flush=True)
        if sys.argv[2] == "stick":
            sys.stdin.readline()
        message.release()
"""


def text(message: Message | Left) -> bytes:
    assert isinstance(message, Message)
    with message:
        return bytes(message)


def test_each_producers_messages_come_in_order_and_then_how_it_went() -> None:
    with Inbox.bind("i") as inbox:
        ends = ("close", "close", "exit", "stay")
        children = [Child(PRODUCER, "i", 3000, end) for end in ends]
        pids = {child.pid: end for child, end in zip(children, ends, strict=True)}
        got: Counter[int] = Counter()
        left: dict[int, Left] = {}
        ids = set()
        for peer, message in inbox:
            assert isinstance(peer, Peer) and peer.pid in pids and peer.uid == os.geteuid()
            ids.add(peer.id)
            if isinstance(message, Left):
                left[peer.pid] = message
                assert got[peer.pid] == 3000 and peer not in inbox.peers()
            else:
                n = got[peer.pid]
                assert (message.tag, message.type_id, bytes(message)) == (n, n % 1000, b"%d" % n)
                got[peer.pid] += 1
                if pids[peer.pid] == "stay" and got[peer.pid] == 3000:
                    next(child for child in children if child.pid == peer.pid).kill()
            if len(left) == len(ends):
                inbox.close()
        assert ids == {1, 2, 3, 4} and inbox.peers() == [] and inbox.closed
        # One that only exits has not said that it closes: its bus closes when the interpreter goes, or it is a death.
        assert {pids[pid]: how for pid, how in left.items() if pids[pid] != "exit"} == {
            "close": Left.CLOSED,
            "stay": Left.DIED,
        }
        with pytest.raises(ClosedError, match="every producer has gone"):
            inbox.recv()
    for child in children:
        child.__exit__()


@every_loop
def test_a_task_iterates_and_cancelling_loses_nothing(kind: str) -> None:
    async def main() -> list[bytes]:
        with Inbox.bind("i") as inbox:

            async def produce(number: int) -> None:
                bus = await Bus.connect_async("i")
                for n in range(100):
                    await bus.send_async(b"%d %d" % (number, n))
                    await asyncio.sleep(0.0003 if n % 7 else 0)
                bus.close()

            tasks = [asyncio.create_task(produce(number)) for number in range(3)]
            got, left = [], 0
            while left < 3:
                try:
                    async with asyncio.timeout(0.001):
                        async for _, message in inbox:
                            if isinstance(message, Left):
                                assert message is Left.CLOSED
                                left += 1
                            else:
                                got.append(bytes(message))
                            if left == 3:
                                inbox.close()
                except TimeoutError:
                    pass
            await asyncio.gather(*tasks)
            assert [pair async for pair in inbox] == []
            with pytest.raises(ClosedError):
                await inbox.recv_async()
            return got

    got = run(kind, main())
    assert sorted(got) == sorted(b"%d %d" % (number, n) for number in range(3) for n in range(100))
    for number in range(3):
        mine = [int(message.split()[1]) for message in got if message.startswith(b"%d " % number)]
        assert mine == list(range(100))


@every_loop
def test_a_task_is_told_of_a_death(kind: str) -> None:
    async def main() -> None:
        inbox = Inbox.bind("i")
        with Child(PRODUCER, "i", 2, "stay") as child:
            for n in range(2):
                peer, message = await asyncio.wait_for(inbox.recv_async(), LONG)
                assert text(message) == b"%d" % n and peer.pid == child.pid
            waiting = asyncio.ensure_future(inbox.recv_async())
            await asyncio.sleep(0.02)
            with pytest.raises(BusyError, match="another task"):
                await inbox.recv_async()
            child.kill()
            assert await asyncio.wait_for(waiting, LONG) == (peer, Left.DIED)
        # Somebody else takes its place.
        async with asyncio.timeout(LONG):
            connected, (other, message) = await asyncio.gather(_greet("i"), inbox.recv_async())
        assert other.id == peer.id + 1 and text(message) == b"hello"
        connected.close()
        assert await inbox.recv_async() == (other, Left.CLOSED)

    run(kind, main())


async def _greet(name: str) -> Bus:
    bus = await Bus.connect_async(name)
    bus.send(b"hello")
    return bus


def test_a_producer_that_is_stopped_holds_up_nobody_and_is_alive() -> None:
    with Inbox.bind("i") as inbox, Child(PRODUCER, "i", 1, "stay") as child:
        peer, message = inbox.recv(LONG)
        assert (peer.pid, text(message)) == (child.pid, b"0")
        with stopped(child), Child(PRODUCER, "i", 20000, "close") as other:
            count = 0
            while True:
                peer, message = inbox.recv(LONG)
                if isinstance(message, Left):
                    assert (peer.pid, message) == (other.pid, Left.CLOSED)
                    break
                count += 1
                message.release()
            assert count == 20000
            with pytest.raises(TimedOutError, match="no message"):
                inbox.recv(0.4)
            assert [peer.pid for peer in inbox.peers()] == [child.pid]
        child.tell()
        _, how = inbox.recv(LONG)
        assert how in (Left.CLOSED, Left.DIED)


def test_one_producer_too_many_is_refused_until_a_place_is_free() -> None:
    with Inbox.bind("i", max_peers=2) as inbox:
        buses: list[Bus] = []

        def connect() -> None:
            buses.append(Bus.connect("i"))

        for count in (1, 2):
            thread = threading.Thread(target=connect)
            thread.start()
            eventually("it is connected", lambda count=count: inbox.try_recv() is None and len(inbox.peers()) == count)
            thread.join()
        raised: list[Exception] = []

        def refused() -> None:
            try:
                Bus.connect("i", timeout=LONG)
            except BusyError as busy:
                raised.append(busy)

        thread = threading.Thread(target=refused)
        thread.start()
        eventually("it is refused", lambda: inbox.try_recv() is None and bool(raised))
        thread.join()
        assert "Busy" in str(raised[0])
        buses[0].close()
        peer, how = inbox.recv(LONG)
        assert (peer.id, how) == (1, Left.CLOSED)
        thread = threading.Thread(target=connect)
        thread.start()
        eventually("the place is free", lambda: inbox.try_recv() is None and len(inbox.peers()) == 2)
        thread.join()
        for bus in buses[1:]:
            bus.close()


def test_messages_are_views_of_their_own_ring_alone() -> None:
    with Inbox.bind("i", capacity=4096) as inbox:
        buses: list[Bus] = []
        threads = [threading.Thread(target=lambda: buses.append(Bus.connect("i"))) for _ in range(2)]
        for thread in threads:
            thread.start()
        eventually("both are connected", lambda: inbox.try_recv() is None and len(inbox.peers()) == 2)
        for thread in threads:
            thread.join()
        buses[0].send(b"a" * 3000)
        _, message = inbox.recv(LONG)
        assert isinstance(message, Message)
        view = memoryview(message)
        assert view.readonly
        # Its own producer waits, the other one does not.
        with pytest.raises(FullError):
            buses[0].try_send(bytes(3000))
        buses[1].send(b"b" * 3000)
        _, other = inbox.recv(LONG)
        assert text(other) == b"b" * 3000
        buses[0].close()
        _, how = inbox.recv(LONG)
        assert how is Left.CLOSED
        # Views outlive the producer and its departure.
        assert bytes(view) == b"a" * 3000
        del view, message
        # What a loop's variable still names is moved out of the sender's way while the inbox waits.
        buses[1].send(b"c" * 3000)
        _, message = inbox.recv(LONG)
        sender = threading.Thread(target=lambda: buses[1].send(b"d" * 3000))
        sender.start()
        _, last = inbox.recv(LONG)
        sender.join()
        assert text(message) == b"c" * 3000 and text(last) == b"d" * 3000
        buses[1].close()


def test_close_gives_what_was_sent_and_refuses_what_comes() -> None:
    inbox = Inbox.bind("i")
    with Child(PRODUCER, "i", 3, "stay") as child:
        _, first = inbox.recv(LONG)
        assert text(first) == b"0"
        assert [child.line(), child.line()] == ["connected", "sent"]
        inbox.close()
        with pytest.raises(ramway.NotFoundError):
            Bus.connect("i", timeout=0)
        assert [text(inbox.recv(LONG)[1]) for _ in range(2)] == [b"1", b"2"]
        child.tell()
        _, how = inbox.recv(LONG)
        assert isinstance(how, Left)
        assert list(inbox) == []
    with Inbox.bind("j") as inbox:
        bus: list[Bus] = []
        thread = threading.Thread(target=lambda: bus.append(Bus.connect("j")))
        thread.start()
        eventually("it is connected", lambda: inbox.try_recv() is None and len(inbox.peers()) == 1)
        thread.join()
        inbox.close()
        with pytest.raises(ClosedError):
            bus[0].send(b"x")
        bus[0].close()


def test_a_thread_that_waits_is_ended_by_close() -> None:
    inbox = Inbox.bind("i")
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.extend(inbox))
    thread.start()
    time.sleep(0.05)
    inbox.close()
    thread.join(LONG)
    assert not thread.is_alive() and got == []
    with inbox:
        pass
    for call in (inbox.recv, inbox.try_recv, inbox.fileno):
        with pytest.raises(DetachedError, match="closed"):
            call()


def test_close_by_another_thread_tells_the_producers_of_a_thread_that_waits() -> None:
    inbox = Inbox.bind("i")
    got: list[object] = []
    thread = threading.Thread(target=lambda: got.extend(how for _, how in inbox))
    thread.start()
    bus = Bus.connect("i")
    time.sleep(0.05)
    inbox.close()
    with pytest.raises(ClosedError):
        for _ in range(10_000):
            bus.send(b"x", timeout=LONG)
            time.sleep(0.001)
    bus.close()
    thread.join(LONG)
    assert not thread.is_alive() and got[-1] is Left.CLOSED


def test_options_of_both_are_checked() -> None:
    for of in (Inbox, Outbox):
        with pytest.raises(InvalidArgumentError, match="max_peers=0"):
            of.bind("x", max_peers=0)
        with pytest.raises(InvalidArgumentError, match="max_peers=-1"):
            of.bind("x", max_peers=-1)
        with pytest.raises(TypeError, match="unexpected"):
            of.bind("x", peers=3)  # type: ignore[call-arg]
        with of.bind("x", 4096, align=64, mode=0o600, allow_uids=[1], handshake_timeout=2.0, wait="block") as one:
            assert one.name == "x" and "/x" in one.path and not one.closed
            with pytest.raises(ramway.AlreadyExistsError):
                of.bind("x")
            with pytest.raises(TypeError, match="pickled"):
                one.__reduce__()
            assert "'x'" in repr(one)
    with pytest.raises(InvalidArgumentError, match="prefetch"):
        Outbox.bind("x", prefetch=0)


def test_workers_compete_and_each_message_is_done_once() -> None:
    with Outbox.bind("o") as outbox, Child(WORKER, "o", "work") as one, Child(WORKER, "o", "work") as other:
        eventually("both are there", lambda: _poke(outbox) and len(outbox.workers()) == 2)
        assert {peer.pid for peer, _ in outbox.workers()} == {one.pid, other.pid}
        assert [one.line(), other.line()] == ["connected"] * 2
        for n in range(200):
            outbox.send(b"%d" % n, 7, n, timeout=LONG)
        outbox.drain(LONG)
        assert outbox.outstanding == 0 and outbox.take_undelivered() is None
        outbox.close()
        done = [[int(line) for line in child.finish()] for child in (one, other)]
        assert sorted(done[0] + done[1]) == list(range(200)) and all(mine == sorted(mine) for mine in done)
        assert min(map(len, done)) > 0
    with pytest.raises(DetachedError, match="closed"):
        outbox.send(b"x")


def _has(outbox: Outbox) -> list[int | None]:
    """The workers that have something."""
    return [peer.pid for peer, has in outbox.workers() if has]


def _poke(outbox: Outbox) -> bool:
    """Lets the outbox take new workers: that happens inside its calls."""
    with contextlib.suppress(TimedOutError):
        outbox.drain(0.01)
    return True


def test_what_a_killed_worker_had_is_done_by_another_one() -> None:
    with Outbox.bind("o") as outbox, Child(WORKER, "o", "stick") as stuck:
        outbox.send(b"42", timeout=LONG)
        assert stuck.line() == "connected" and stuck.line() == "42"
        assert outbox.outstanding == 1
        with pytest.raises(TimedOutError, match="no worker"):
            outbox.send(b"43", timeout=0.2)
        with pytest.raises(FullError):
            outbox.try_send(b"43")
        with pytest.raises(TimedOutError, match="not all"):
            outbox.drain(0.1)
        with stopped(stuck), pytest.raises(TimedOutError):
            # A stopped worker is alive: what it has stays its own.
            outbox.drain(0.5)
        stuck.kill()
        with Child(WORKER, "o", "work") as other:
            outbox.send(b"43", timeout=LONG)
            outbox.drain(LONG)
            outbox.close()
            # In which order depends on what is seen first: the death of one, or that the other is free.
            connected, *done = other.finish()
            assert (connected, sorted(done)) == ("connected", ["42", "43"])


def test_a_message_that_kills_its_workers_is_taken_out() -> None:
    with Outbox.bind("o", max_deliveries=2) as outbox:
        for delivery in range(2):
            with Child(WORKER, "o", "stick") as child:
                if delivery == 0:
                    outbox.send(b"poison", 3, 4, timeout=LONG)
                else:
                    eventually("it is given again", lambda pid=child.pid: _poke(outbox) and _has(outbox) == [pid])
                assert child.line() == "connected" and child.line() == "poison"
        outbox.drain(LONG)
        found = outbox.take_undelivered()
        assert found == ramway.Undelivered(type_id=3, tag=4, deliveries=2, data=b"poison")
        assert outbox.take_undelivered() is None


@every_loop
def test_a_task_gives_and_drains(kind: str) -> None:
    async def main() -> None:
        outbox = Outbox.bind("o", prefetch=2)
        got: list[bytes] = []

        async def work() -> None:
            async with asyncio.timeout(LONG):
                bus = await Bus.connect_async("o")
                async for message in bus:
                    await asyncio.sleep(0.001)
                    with message:
                        got.append(bytes(message))

        waiting = asyncio.ensure_future(outbox.send_async(b"first"))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.sleep(0)
        tasks = [asyncio.create_task(work()) for _ in range(2)]
        for n in range(50):
            await asyncio.wait_for(outbox.send_async(b"%d" % n, 1, n), LONG)
        await asyncio.wait_for(outbox.drain_async(), LONG)
        # What was cancelled was not sent.
        assert sorted(map(int, got)) == list(range(50))
        with pytest.raises(TooLargeError):
            await outbox.send_async(bytes(1 << 22))
        outbox.close()
        await asyncio.gather(*tasks)

    run(kind, main())


def test_an_outbox_is_used_by_one_thread_at_a_time_and_woken_by_any() -> None:
    outbox = Outbox.bind("o")
    raised: list[Exception] = []

    def send() -> None:
        try:
            outbox.send(b"x")
        except WaitInterruptedError as woken:
            raised.append(woken)

    thread = threading.Thread(target=send)
    thread.start()

    def busy() -> bool:
        try:
            outbox.workers()
        except BusyError:
            return True
        return False

    eventually("the thread waits", busy)
    outbox.wake()
    thread.join(LONG)
    assert not thread.is_alive() and len(raised) == 1
    outbox.close()


def test_a_forks_child_uses_neither() -> None:
    code = """
        import os, ramway
        inbox, outbox = ramway.Inbox.bind("i"), ramway.Outbox.bind("o")
        pid = os.fork()
        if pid == 0:
            for call in (lambda: inbox.recv(1), lambda: outbox.send(b"x", timeout=1)):
                try:
                    call()
                except (ramway.DetachedError, ramway.TimedOutError):
                    continue
                os._exit(1)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        inbox.close(), outbox.close()
        print("done")
    """
    assert run_child(code) == ["done"]
