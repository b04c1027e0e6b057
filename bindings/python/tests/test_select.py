"""select and Select: what is ready, in which order, and what ends a wait."""

import os
import socket
import threading
import time
from typing import Any

import pytest
import ramway
from ramway import (
    Bus,
    BusyError,
    ClosedError,
    DetachedError,
    InvalidArgumentError,
    Listener,
    PeerDeadError,
    Region,
    Ring,
    Select,
    Topic,
    WaitInterruptedError,
    merge,
    select,
)
from support import LONG, Child, eventually, run, stopped


def pairs(count: int, capacity: int = 4096) -> tuple[list[ramway.Sender], list[ramway.Receiver]]:
    made = [Ring.pair(capacity) for _ in range(count)]
    return [tx for tx, _ in made], [rx for _, rx in made]


def later(seconds: float, call: Any) -> threading.Timer:
    timer = threading.Timer(seconds, call)
    timer.start()
    return timer


@pytest.mark.parametrize("count", [1, 2, 8, 9, 40])
def test_only_the_ready_ones_are_given_and_the_one_served_last_comes_last(count: int) -> None:
    senders, receivers = pairs(count)
    chooser = Select(receivers)
    assert select(receivers, 0) == [] == chooser.wait(0) == select(receivers, 0.01) and chooser.sources == receivers
    senders[-1].send(b"x")
    assert select(receivers) == [receivers[-1]] == chooser.wait()
    for tx in senders[:-1]:
        tx.send(b"x")
    seen = []
    for _ in range(4 * count + 64):
        ready = chooser.wait()
        # Of more than 8 some may be left out for a while.
        assert set(ready) == set(receivers) or (count > 8 and ready and set(ready) < set(receivers))
        seen.append(ready[0])
    # Each is the first one now and then, also the one that was not asked about first.
    assert set(seen) == set(receivers)
    if count <= 8:
        assert seen[-count:] == seen[-2 * count : -count] and len(set(seen[-count:])) == count


@pytest.mark.parametrize("count", [1, 8, 9, 140])
@pytest.mark.parametrize("by", ["function", "object"])
def test_a_message_wakes_a_thread_that_sleeps_on_many(count: int, by: str) -> None:
    senders, receivers = pairs(count)
    chooser = Select(receivers, wait="block")
    for index in (0, count - 1, count // 2):
        timer = later(0.05, lambda index=index: senders[index].send(b"%d" % index))
        ready = select(receivers) if by == "function" else chooser.wait()
        timer.join()
        assert ready == [receivers[index]] and bytes(receivers[index].recv(0)) == b"%d" % index
    assert chooser.wait(0) == []


def test_every_kind_of_source(directory: Any) -> None:
    tx, rx = Ring.pair(4096)
    full, _reader = Ring.pair(4096)
    topic = Topic.open_or_create("t", capacity=4096)
    publisher = topic.publisher()
    subscribers = [topic.subscriber(policy) for policy in ("reliable", "lossy", "latest")]  # type: ignore[arg-type]
    viewer = Topic.open("t").subscriber("latest", read_only=True)
    region, notifier = Region.create("r", 64), Region.open("r")
    listener = Listener.bind("l")
    inbox = ramway.Inbox.bind("i")
    here, there = socket.socketpair()
    read, write = os.pipe()
    while True:
        try:
            full.try_send(bytes(500))
        except ramway.FullError:
            break
    room = full.room(500)
    assert (room.sender, len(room), bool(full.room(0))) == (full, 500, True)
    sources = [rx, *subscribers, viewer, region, listener, inbox, here, read, room]
    assert select(sources, 0.01) == []

    def one(what: Any, make_ready: Any, done: Any) -> None:
        timer = later(0.03, make_ready)
        ready: list[Any] = select(sources, LONG)
        timer.join()
        assert ready == (what if isinstance(what, list) else [what])
        done()
        assert select(sources, 0) == []

    one(rx, lambda: tx.send(b"x"), rx.recv)
    connected: list[Bus] = []

    def connect(name: str) -> None:
        threading.Thread(target=lambda: connected.append(Bus.connect(name))).start()

    one(region, notifier.notify, region.try_wait)
    one(here, lambda: there.send(b"x"), lambda: here.recv(9))
    one(read, lambda: os.write(write, b"x"), lambda: os.read(read, 9))
    one(room, lambda: _reader.recv_batch(100) and None, lambda: full.send_batch([bytes(500)] * 7))
    publisher.send(b"x")
    ready = {id(source) for source in select(sources, LONG)}
    eventually("all four", lambda: {id(s) for s in select(sources, LONG)} == {id(s) for s in (*subscribers, viewer)})
    assert ready <= {id(s) for s in (*subscribers, viewer)}
    for subscriber in (*subscribers, viewer):
        subscriber.recv(0)
    connect("l")
    accepted = None
    while accepted is None:
        assert select(sources, LONG) == [listener]
        accepted = listener.try_accept()
    connect("i")
    eventually("it is connected", lambda: inbox.try_recv() is None and len(inbox.peers()) == 1)
    # A bus is waited for by its receiver.
    eventually("the bus", lambda: len(connected) == 2)
    bus = next(bus for bus in connected if bus.name == "l")
    accepted.send(b"to the bus")
    assert select([bus, *sources], LONG) == [bus] and bytes(bus.recv(0)) == b"to the bus"
    next(bus for bus in connected if bus.name == "i").send(b"to the inbox")
    assert select(sources, LONG) == [inbox]
    got = inbox.try_recv()
    assert got is not None and got[1] != ramway.Left.CLOSED
    for closes in (
        *connected,
        accepted,
        listener,
        inbox,
        region,
        notifier,
        here,
        there,
        viewer,
        publisher,
        *subscribers,
    ):
        closes.close()
    os.close(read)
    os.close(write)


def test_a_receiver_with_a_descriptor_is_waited_for_by_it() -> None:
    """Its word is armed by the descriptor: select waits for that, and is not misled by what it said before."""
    senders, receivers = pairs(3)
    for rx in receivers:
        rx.fileno()
    assert select(receivers, 0.01) == []
    for _ in range(5):
        timer = later(0.03, lambda: senders[1].send(b"x"))
        assert select(receivers) == [receivers[1]]
        timer.join()
        receivers[1].recv(0)
        assert select(receivers, 0) == []
    tx, rx = Ring.pair(4096)
    tx.fileno()
    tx.send_batch([bytes(1000)] * 4)
    assert select([tx.room(1000)], 0.01) == []
    timer = later(0.03, lambda: [m.release() for m in rx.recv_batch()])
    (ready,) = select([tx.room(1000)], LONG)
    timer.join()
    assert ready.sender is tx


def test_an_end_is_ready_however_the_stream_ended() -> None:
    senders, receivers = pairs(2)
    timer = later(0.05, senders[1].close)
    assert select(receivers) == [receivers[1]]
    timer.join()
    with pytest.raises(ClosedError):
        receivers[1].recv(0)
    # It stays ready: who has seen the end leaves it out.
    assert select(receivers, 0) == [receivers[1]]
    with Child("import ramway\ntx = ramway.Ring.open('r', timeout=60).sender()\ntx.send(b'x')\ninput()") as child:
        rx = Ring.create("r").receiver()
        assert select([receivers[0], rx], LONG) == [rx] and rx.recv_bytes(0) == b"x"
        with stopped(child):
            # A stopped process is alive.
            assert select([receivers[0], rx], 0.5) == []
        later(0.05, child.kill)
        assert select([receivers[0], rx], LONG) == [rx]
        with pytest.raises(PeerDeadError):
            rx.recv(0)


def test_messages_that_are_held_stay_held() -> None:
    tx, rx = Ring.pair(4096)
    other_tx, other = Ring.pair(4096)
    tx.send_batch([b"%d" % n * 100 for n in range(5)])
    held = [rx.recv() for _ in range(3)]
    views = [memoryview(message) for message in held]
    assert select([rx, other], 0) == [rx]
    for _ in range(2):
        rx.recv().release()
    assert select([rx, other], 0.05) == []
    later(0.02, lambda: other_tx.send(b"x")).join()
    assert select([rx, other], LONG) == [other]
    assert [bytes(view) for view in views] == [b"%d" % n * 100 for n in range(3)]
    assert rx.used > 300


def test_the_last_message_of_a_loop_is_not_in_the_senders_way() -> None:
    """Both sides would wait for ever: the sender for room, this thread for a message."""
    tx, rx = Ring.pair(4096)
    tx.send(bytes(3000))
    message = rx.recv()
    sender = threading.Thread(target=lambda: tx.send(bytes(3500)))
    sender.start()
    assert select([rx], LONG) == [rx]
    sender.join()
    assert bytes(message) == bytes(3000) and len(rx.recv(0)) == 3500


def test_what_cannot_be_waited_for_is_refused() -> None:
    tx, rx = Ring.pair(4096)
    for wrong, error, text in [
        ([tx], TypeError, r"sender\.room\(n\)"),
        ([object()], TypeError, "cannot wait for a object"),
        (["rx"], TypeError, "cannot wait for a str"),
        ([-1], InvalidArgumentError, "descriptor -1"),
        ([rx, rx], InvalidArgumentError, "0 and 1 are the same"),
        ([tx.room(1), rx, tx.room(2)], InvalidArgumentError, "0 and 2 are the same"),
        ([], InvalidArgumentError, "0 sources"),
        (None, TypeError, "iterable"),
    ]:
        with pytest.raises(error, match=text):
            select(wrong)  # type: ignore[type-var, arg-type]
    assert select([], 0) == [] == select([], 0.01)
    with pytest.raises(InvalidArgumentError, match="time-out"):
        select([rx], -1)
    with pytest.raises(InvalidArgumentError, match="wait"):
        Select([rx], wait="sleep")  # type: ignore[arg-type]
    rx.close()
    for call in (lambda: select([rx], 0), Select([rx]).wait, lambda: select([rx])):
        with pytest.raises(DetachedError, match="closed"):
            call()


def test_sources_are_in_use_while_a_thread_waits_for_them() -> None:
    senders, receivers = pairs(2)
    chooser = Select(receivers)
    thread = threading.Thread(target=chooser.wait)
    thread.start()

    def busy() -> bool:
        try:
            receivers[0].try_recv()
        except BusyError:
            return True
        return False

    eventually("the thread waits", busy)
    with pytest.raises(BusyError, match="only one at a time"):
        chooser.wait(0)
    with pytest.raises(BusyError):
        select(receivers, 0)
    # Others are not disturbed, each by its own list.
    mine = Ring.pair(4096)
    mine[0].send(b"x")
    assert select([mine[1]]) == [mine[1]]
    senders[1].send(b"x")
    thread.join()
    assert chooser.wait(0) == [receivers[1]]


def test_a_source_that_is_closed_meanwhile_ends_the_wait() -> None:
    for close in ("receiver", "region", "listener"):
        _, rx = Ring.pair(4096)
        region, listener = Region.create(f"region-{close}", 8), Listener.bind(f"listener-{close}")
        closed = {"receiver": rx, "region": region, "listener": listener}[close]
        timer = later(0.05, closed.close)  # type: ignore[attr-defined]
        began = time.monotonic()
        with pytest.raises(DetachedError, match="closed"):
            select([rx, region, listener], LONG)
        assert time.monotonic() - began < LONG / 2
        timer.join()


def test_a_waker_ends_one_wait() -> None:
    senders, receivers = pairs(2)
    chooser = Select(receivers)
    timer = later(0.05, chooser.wake)
    with pytest.raises(WaitInterruptedError):
        chooser.wait()
    timer.join()
    for _ in range(3):
        chooser.wake()
    with pytest.raises(WaitInterruptedError):
        chooser.wait(LONG)
    assert chooser.wait(0.01) == []
    # What is ready comes first.
    chooser.wake()
    senders[0].send(b"x")
    assert chooser.wait() == [receivers[0]]


def test_a_forks_child_selects_among_its_own() -> None:
    code = """
        import os, ramway
        tx, rx = ramway.Ring.pair(4096)
        chooser = ramway.Select([rx])
        tx.send(b"x")
        assert ramway.select([rx]) == [rx] == chooser.wait()
        pid = os.fork()
        if pid == 0:
            own, mine = ramway.Ring.pair(4096)
            own.send(b"y")
            assert ramway.select([mine], 10) == [mine]
            for call in (chooser.wait, rx.recv):
                try:
                    call()
                except ramway.DetachedError:
                    continue
                os._exit(1)
            # What was inherited is dead, which is what there is to know of it.
            assert ramway.select([rx], 0) in ([rx], [])
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert ramway.select([rx]) == [rx]
        print("done")
    """
    assert run(code) == ["done"]


def test_the_handler_of_a_signal_may_select_too() -> None:
    code = """
        import os, ramway, signal, threading, time
        tx, rx = ramway.Ring.pair(4096)
        own, mine = ramway.Ring.pair(4096)
        def handle(*_):
            own.send(b"y")
            assert ramway.select([mine], 10) == [mine]
            tx.send(b"x")
        signal.signal(signal.SIGUSR1, handle)
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        assert ramway.select([rx], 60) == [rx] and bytes(mine.recv(0)) == b"y"
        print("done")
    """
    assert run(code) == ["done"]


def test_many_threads_select_at_once_while_others_send() -> None:
    count, messages = 6, 300
    senders, receivers = pairs(count * 3)
    got: list[list[bytes]] = [[] for _ in range(count)]

    def read(number: int) -> None:
        mine = receivers[number * 3 : number * 3 + 3]
        while mine:
            for rx in select(mine):
                try:
                    while (message := rx.try_recv()) is not None:
                        with message:
                            got[number].append(bytes(message))
                except ClosedError:
                    mine.remove(rx)

    def write(tx: ramway.Sender) -> None:
        for n in range(messages):
            tx.send(b"%d" % n)
            if n % 50 == 0:
                time.sleep(0.001)
        tx.close()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(count)]
    threads += [threading.Thread(target=write, args=(tx,)) for tx in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for texts in got:
        assert sorted(texts) == sorted(b"%d" % n for n in range(messages) for _ in range(3))


def test_waiting_takes_no_processor_time() -> None:
    _, receivers = pairs(20)
    region = Region.create("r", 8)
    for sources in (receivers[:3], [*receivers, region]):
        began = time.process_time()
        assert select(sources, 1.0) == []
        assert time.process_time() - began < 0.3


def test_a_merge_is_a_source_too() -> None:
    senders, receivers = pairs(2)
    merged = merge(*receivers)
    _, alone = Ring.pair(4096)
    assert select([merged, alone], 0.01) == []
    timer = later(0.03, lambda: senders[1].send(b"x"))
    assert select([merged, alone]) == [merged]
    timer.join()
    assert bytes(next(merged)[1]) == b"x"
