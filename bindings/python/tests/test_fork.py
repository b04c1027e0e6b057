"""A fork's child and what it inherits."""

import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import ramway
from ramway import Bus, Listener, Region, Ring
from support import DEBUG, DEBUG_ENVIRONMENT, LONG, Thread, run


def in_child(body: Callable[[], None]) -> None:
    """Runs `body` in a fork of this process, which must end well."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        except BaseException as error:
            sys.stderr.write(f"in the child: {type(error).__name__}: {error}\n")
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def detached(call: Callable[[], object]) -> None:
    with pytest.raises(ramway.DetachedError):
        call()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inherited_handles_are_detached_and_views_stay_readable() -> None:
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        tx.send(b"before the fork", 3, 4)
        message = rx.recv()
        view = memoryview(message)

        def body() -> None:
            for call in (
                lambda: tx.send(b"x"),
                lambda: tx.try_send(b"x"),
                lambda: tx.reserve(1),
                lambda: tx.send_batch([b"x"]),
                tx.flush,
                tx.fileno,
                rx.recv,
                lambda: rx.recv(0),
                rx.try_recv,
                rx.recv_bytes,
                lambda: rx.recv_batch(2),
                lambda: next(rx),
                rx.fileno,
            ):
                detached(call)
            assert not tx.peer_alive and not rx.peer_alive
            assert bytes(view) == b"before the fork" and bytes(message) == b"before the fork"
            assert (message.type_id, message.tag) == (3, 4)

        in_child(body)
        # The child's end has disturbed nothing.
        assert tx.peer_alive and rx.peer_alive and bytes(view) == b"before the fork"
        view.release()
        message.release()
        tx.send(b"after")
        assert rx.recv_bytes(LONG) == b"after"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("way", ["drop", "close", "exit"])
def test_the_childs_end_does_not_disturb_the_parent(way: str, directory: Path) -> None:
    tx, rx = Ring.create("r", capacity=4096).sender(), Ring.open("r").receiver()
    region, listener = Region.create("g", 4096), Listener.bind("l", 4096)
    connecting = Thread(Bus.connect, "l")
    bus, peer = listener.accept(LONG), connecting.result()
    tx.send(b"held")
    message = rx.recv()
    slot = tx.reserve(10)
    view, shared, open_slot = memoryview(message), memoryview(region), memoryview(slot)
    open_slot[:] = b"0123456789"

    # What the child drops and closes stays the parent's.
    kept = [tx, rx, region, listener, bus, peer, message, slot, view, shared, open_slot]

    def body() -> None:
        nonlocal tx, rx, region, listener, bus, peer, message, slot, view, shared, open_slot
        assert bytes(view) == b"held" and bytes(shared[:3]) == bytes(3)
        if way == "close":
            for handle in (tx, rx, region, listener, bus, peer):
                try:
                    handle.close()  # type: ignore[attr-defined]
                except ramway.DetachedError:
                    pass
        if way != "exit":
            kept.clear()
            del tx, rx, region, listener, bus, peer, message, slot, view, shared, open_slot
            gc.collect()

    in_child(body)
    assert sorted(os.listdir(directory)) == ["g", "l", "l.sock", "r"]
    assert bytes(view) == b"held"
    view.release()
    message.release()
    slot.commit(4)
    assert bytes(open_slot) == b"0123456789"
    assert rx.recv_bytes(LONG) == b"0123"
    tx.send(b"more")
    assert rx.recv_bytes(LONG) == b"more"
    region.notify()
    assert region.wait(0)
    bus.send(b"still")
    assert peer.recv_bytes(LONG) == b"still" and bus.peer_alive
    again = Thread(Bus.connect, "l")
    listener.accept(LONG).close()
    again.result().close()
    # The receiver has everything before the sender ends: nothing undelivered keeps the name.
    for handle in (region, listener, bus, peer, tx):
        handle.close()
    with pytest.raises(ramway.ClosedError):
        rx.recv(LONG)
    rx.close()
    del shared, kept[:]
    gc.collect()
    assert os.listdir(directory) == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_regions_listeners_and_buses_are_detached_too() -> None:
    region, listener = Region.create("g", 4096), Listener.bind("l", 4096)
    region[:4] = b"here"
    shared = memoryview(region)
    connecting = Thread(Bus.connect, "l")
    bus, peer = listener.accept(LONG), connecting.result()

    def body() -> None:
        calls = [region.notify, region.wait, lambda: region.wait(0), region.try_wait, region.fileno]
        calls += [lambda: memoryview(region), lambda: region[0]]
        calls += [listener.accept, lambda: listener.accept(0)]
        calls += [bus.recv, lambda: bus.send(b"x"), peer.try_recv, lambda: peer.reserve(1)]
        for call in calls:
            detached(call)
        assert bytes(shared[:4]) == b"here"
        # What the parent writes later is seen too: it is the same memory.
        os.write(looked, b"x")
        deadline = time.monotonic() + LONG
        while shared[0] != ord("t"):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert not bus.peer_alive and not peer.peer_alive

    until_looked, looked = os.pipe()

    def write() -> None:
        os.read(until_looked, 1)
        region[:5] = b"there"

    writing = Thread(write)
    in_child(body)
    writing.result()
    os.close(until_looked)
    os.close(looked)
    assert bus.peer_alive and peer.peer_alive
    for handle in (region, listener, bus, peer):
        handle.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_opens_handles_of_its_own() -> None:
    with Ring.create("there", capacity=4096).sender() as tx, Ring.open_or_create("back").receiver() as rx:
        ring = Ring.open("there")

        def body() -> None:
            with ring.receiver() as mine, Ring.open("back").sender() as back:
                for message in mine:
                    back.send(bytes(message) * 2)
                    del message

        tx.send(b"ab")
        tx.send(b"cd")
        tx.close()
        in_child(body)
        assert [bytes(m) for m in rx] == [b"abab", b"cdcd"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_other_threads_are_in_calls() -> None:
    with (
        Ring.create("r", capacity=4096).sender() as tx,
        Ring.open("r").receiver() as rx,
        Region.create("g", 8) as region,
    ):
        receiving, waiting = Thread(rx.recv_bytes), Thread(region.wait)
        time.sleep(0.05)

        def body() -> None:
            # The threads that were in these calls do not exist here.
            with pytest.raises(ramway.Error):
                rx.recv(0)
            detached(region.try_wait)
            detached(lambda: tx.send(b"x"))
            with Ring.create("mine").sender() as mine, Ring.open("mine").receiver() as theirs:
                mine.send(b"works")
                assert theirs.recv_bytes() == b"works"

        in_child(body)
        assert receiving.is_alive() and waiting.is_alive()
        tx.send(b"go")
        region.notify()
        assert receiving.result() == b"go" and waiting.result() is True


@pytest.mark.parametrize("debug", [False, True])
def test_a_whole_interpreter_that_forks_and_exits_is_silent(debug: bool) -> None:
    code = """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import ramway
        tx = ramway.Ring.create("r", capacity=4096).sender()
        rx = ramway.Ring.open("r").receiver()
        region = ramway.Region.create("g", 100)
        listener = ramway.Listener.bind("l")
        rx.fileno(), region.fileno()
        tx.send(b"x" * 1000)
        message = rx.recv()
        views = [memoryview(message), memoryview(region)]
        pid = os.fork()
        if pid == 0:
            sys.exit(7)     # the whole way down: modules, objects, threads
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
        del views, message
        tx.send(b"after")
        print(bytes(rx.recv()).decode())
    """
    options, env = (DEBUG, DEBUG_ENVIRONMENT) if debug else ((), {})
    assert run(code, options=options, env=env) == ["after"]


def test_a_child_may_leave_its_parents_with_blocks() -> None:
    code = """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        import ramway
        with ramway.Ring.create("r").sender() as tx, ramway.Ring.open("r").receiver() as rx:
            with ramway.Region.create("g", 8) as region, ramway.Listener.bind("l") as listener:
                tx.send(b"x")
                with rx.recv() as message, tx.reserve(5) as slot:
                    pid = os.fork()
                    if pid == 0:
                        slot.abort()
                        sys.exit(7)
                    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
                    slot[:] = b"after"
                with rx.recv() as message:
                    print(bytes(message).decode(), tx.peer_alive)
    """
    assert run(code) == ["after True"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_topics_ends_are_the_parents_and_copies_are_whoevers() -> None:
    topic = ramway.Topic.open_or_create("t", capacity=4096)
    publisher, subscriber, lossy = topic.publisher(), topic.subscriber(), topic.subscriber("lossy")
    publisher.send(b"before the fork")
    message, own = subscriber.recv(), lossy.recv(LONG)
    view = memoryview(message)

    def body() -> None:
        for call in (
            lambda: publisher.send(b"x"),
            lambda: publisher.wait_for_subscribers(0),
            lambda: publisher.skip_seq(1),
            publisher.fileno,
            subscriber.recv,
            subscriber.try_recv,
            subscriber.latest,
            subscriber.skip_to_newest,
            lossy.recv,
            lossy.try_recv,
            lambda: lossy.recv_batch(2),
            lossy.recv_bytes,
            lossy.latest,
            lambda: next(lossy),
        ):
            detached(call)
        assert bytes(view) == bytes(own) == b"before the fork" and (own.seq, message.seq) == (1, 1)
        memoryview(own)[:6] = b"AFTER "
        assert bytes(own) == b"AFTER  the fork"
        # A process of its own opens its own.
        with topic.subscriber("lossy", history=1) as mine:
            assert mine.recv_bytes(LONG) == b"before the fork"

    in_child(body)
    assert bytes(view) == bytes(own) == b"before the fork"
    assert [info.alive for info in publisher.subscribers()] == [True, True]
    view.release()
    message.release()
    publisher.send(b"after")
    assert subscriber.recv_bytes(LONG) == lossy.recv_bytes(LONG) == b"after"
