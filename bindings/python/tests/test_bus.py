"""Buses between threads and between processes: talking, closing, dying."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
import ramway
from ramway import Bus, Listener
from support import LONG, Child, Thread, descriptors, eventually, run, stopped


def pair(name: str = "b", capacity: int = 1 << 16, **options: object) -> tuple[Bus, Bus]:
    """Both ends, in this process."""
    listening = Thread(lambda: Bus.listen(name, capacity, timeout=LONG, **options))  # type: ignore[arg-type]
    connected = Bus.connect(name)
    return listening.result(), connected


ECHO = """
    import ramway, sys
    bus = ramway.Bus.listen("echo", 1 << 16) if sys.argv[1] == "listen" else ramway.Bus.connect("echo")
    with bus:
        for message in bus:
            bus.send(message, message.type_id, message.tag)
            del message
    print("closed")
"""


@pytest.mark.parametrize("role", ["listen", "connect"])
def test_talks_to_a_process_and_both_end_cleanly(role: str, directory: Path) -> None:
    with Child(ECHO, role) as child:
        bus = Bus.connect("echo") if role == "listen" else Bus.listen("echo", 1 << 16, timeout=LONG)
        with bus:
            assert (bus.peer_uid, bus.peer_pid, bus.name) == (os.getuid(), child.pid, "echo")
            assert bus.peer_alive and not bus.closed
            # The name goes once the one peer is there.
            eventually("the name goes", lambda: os.listdir(directory) == [])
            for n in range(200):
                bus.send(b"%d" % n * 10, n, n << 40)
                with bus.recv(LONG) as message:
                    assert (bytes(message), message.type_id, message.tag) == (b"%d" % n * 10, n, n << 40)
        assert bus.closed and not bus.peer_alive
        assert child.finish() == ["closed"]


def test_every_call_of_both_ends() -> None:
    one, other = pair(align=64)
    with one, other:
        assert one.sender.align == 64 and one.sender.capacity == 1 << 16
        one.try_send(b"try")
        assert other.recv_bytes(LONG) == b"try"
        with one.reserve(10, 3, 4) as slot:
            slot[:5] = b"slot!"
            slot.commit(5)
        with one.try_reserve(2) as slot:
            slot[:] = b"ok"
        assert one.send_batch([b"a", bytearray(b"b"), memoryview(b"c")], 9) == 3
        with other.recv() as message:
            assert (bytes(message), message.type_id, message.tag) == (b"slot!", 3, 4)
        buffer = bytearray(5)
        assert other.recv_into(buffer, LONG) == 2 and buffer == b"ok\0\0\0"
        batch = other.recv_batch(10)
        assert [bytes(m) for m in batch] == [b"a", b"b", b"c"] and batch[0].type_id == 9
        del batch, message
        assert other.try_recv() is None
        with pytest.raises(ramway.TimedOutError):
            other.recv(0)
        with pytest.raises(ramway.TimedOutError):
            other.recv_bytes(timeout=0.05)
        with pytest.raises(ramway.TooLargeError):
            one.send(bytes(1 << 16))
        with pytest.raises(ramway.FullError):
            for _ in range(10):
                one.try_send(bytes(20_000))
        with pytest.raises(ramway.TimedOutError):
            one.send(bytes(20_000), timeout=0.05)


def test_two_threads_use_the_two_ends() -> None:
    one, other = pair(capacity=4096)
    count = 3000

    def echo() -> None:
        for message in other:
            with message:
                other.send(message)

    echoing = Thread(echo)
    sending = Thread(lambda: [one.send(b"%d" % n) for n in range(count)])
    for n in range(count):
        assert one.recv_bytes(LONG) == b"%d" % n
    sending.result()
    one.close()
    echoing.result()
    other.close()


def test_what_was_sent_before_the_close_is_received_then_it_ends() -> None:
    one, other = pair()
    for n in range(10):
        one.send(b"%d" % n)
    one.close()
    one.close()
    assert [bytes(m) for m in other] == [b"%d" % n for n in range(10)]
    with pytest.raises(ramway.ClosedError):
        other.recv()
    with pytest.raises(EOFError):
        other.recv()
    with pytest.raises(BrokenPipeError):
        other.send(b"x")
    assert not other.peer_alive
    for call in (lambda: one.send(b"x"), one.recv, one.try_recv, lambda: one.reserve(1), lambda: one.recv_bytes(0)):
        with pytest.raises(ramway.DetachedError):
            call()
    other.close()


def test_a_process_that_dies_is_not_one_that_closes() -> None:
    code = """
        import ramway, os, signal
        bus = ramway.Bus.connect("b")
        for n in range(1000):
            bus.send(b"%d" % n)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with Listener.bind("b", 1 << 20) as listener, Child(code) as child:
        bus = listener.accept(LONG)
        child.wait()
        # All that it had sent is there, then the death.
        for n in range(1000):
            assert bus.recv_bytes(LONG) == b"%d" % n
        with pytest.raises(ramway.PeerDeadError):
            bus.recv(LONG)
        with pytest.raises(ConnectionResetError):
            next(iter(bus))
        # A sender that has room looks for its peer only when it is asked to.
        with pytest.raises(ramway.PeerDeadError):
            while True:
                bus.send(bytes(100_000))
        assert not bus.peer_alive
        bus.close()


def test_a_blocked_call_learns_of_the_death() -> None:
    code = """
        import ramway, time
        bus = ramway.Bus.connect("b")
        print("here")
        time.sleep(1000)
    """
    for blocked in ("recv", "send"):
        with Listener.bind("b", 4096) as listener, Child(code) as child:
            bus = listener.accept(LONG)
            child.line()

            def fill(bus: Bus = bus) -> None:
                while True:
                    bus.send(bytes(1000))

            waiting = Thread(bus.recv if blocked == "recv" else fill)
            time.sleep(0.1)
            killed = time.monotonic()
            child.kill()
            with pytest.raises(ramway.PeerDeadError):
                waiting.result()
            assert time.monotonic() - killed < LONG / 2
            bus.close()


def test_a_stopped_peer_is_alive() -> None:
    with Child(ECHO, "listen") as child, Bus.connect("echo") as bus:
        bus.send(b"1")
        assert bus.recv_bytes(LONG) == b"1"
        with stopped(child):
            bus.send(b"2")
            with pytest.raises(ramway.TimedOutError):
                bus.recv(1.0)
            assert bus.peer_alive
        assert bus.recv_bytes(LONG) == b"2"
        bus.close()
        child.finish()


def test_views_of_a_bus_that_is_gone_stay_readable() -> None:
    one, other = pair()
    one.send(b"x" * 1000)
    message = other.recv(LONG)
    view = memoryview(message)
    other.close()
    one.close()
    del one, other, message
    assert bytes(view) == b"x" * 1000


def test_ends_outlive_their_bus() -> None:
    one, other = pair()
    sender, receiver = one.sender, other.receiver
    assert one.sender is sender and other.receiver is receiver
    del one, other
    sender.send(b"still")
    assert receiver.recv_bytes(LONG) == b"still"
    sender.close()
    with pytest.raises(ramway.ClosedError):
        receiver.recv(LONG)
    receiver.close()


def test_connecting_waits_for_a_listener() -> None:
    connecting = Thread(Bus.connect, "late")
    time.sleep(0.2)
    with Listener.bind("late", 4096) as listener:
        listener.accept(LONG).close()
        connecting.result().close()


def test_connecting_in_vain(directory: Path) -> None:
    for timeout in (0, 0.2):
        started = time.monotonic()
        with pytest.raises(ramway.NotFoundError, match="nobody"):
            Bus.connect("nobody", timeout=timeout)
        assert time.monotonic() - started >= timeout
    # A listener that serves nobody: it lives, so this is another error.
    with Listener.bind("deaf"):
        with pytest.raises(ramway.TimedOutError, match="deaf"):
            Bus.connect("deaf", timeout=0.2)
    with pytest.raises(ramway.TimedOutError, match="'alone'"):
        Bus.listen("alone", timeout=0.1)
    assert os.listdir(directory) == []


def test_at_most_one_connector_is_told_that_it_is_welcome() -> None:
    code = """
        import ramway
        try:
            bus = ramway.Bus.connect("one", timeout=1.0)
            print(bus.recv_bytes().decode())
        except FileNotFoundError:
            print("not found")
        except TimeoutError:
            print("timed out")
    """
    with Child(code) as first, Child(code) as second:
        with Bus.listen("one", 4096, timeout=LONG) as bus:
            bus.send(b"welcome")
            lines = sorted([first.finish(), second.finish()])
            assert lines in ([["not found"], ["welcome"]], [["timed out"], ["welcome"]])


def test_the_smallest_rings_do_not_hang() -> None:
    with Child(ECHO.replace("1 << 16", "1"), "listen") as child, Bus.connect("echo", wait="block") as bus:
        assert bus.sender.capacity == 4096
        longest = bus.sender.max_message_len
        assert longest == 4080
        # Every message fills the ring: each side waits for the other at every step.
        for n in range(200):
            bus.send(bytes([n]) * longest)
            assert bus.recv_bytes(LONG) == bytes([n]) * longest
        with pytest.raises(ramway.TooLargeError):
            bus.send(bytes(longest + 1))
        bus.close()
        child.finish()


def test_writable_views_are_asked_for() -> None:
    one, other = pair()
    with one, other:
        one.send(b"abc")
        with other.recv(LONG) as message:
            assert memoryview(message).readonly
    listening = Thread(lambda: Bus.listen("w", timeout=LONG))
    with Bus.connect("w", writable_views=True) as bus, listening.result() as peer:
        peer.send(b"abc")
        with bus.recv(LONG) as message:
            view = memoryview(message)
            assert not view.readonly
            view[0] = ord("x")
            assert bytes(message) == b"xbc"
            del view


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Bus.connect(None), TypeError),  # type: ignore[arg-type]
        (lambda: Bus.connect(b"name"), TypeError),  # type: ignore[arg-type]
        (lambda: Bus.connect(""), ramway.InvalidArgumentError),
        (lambda: Bus.connect("a/../\0"), ValueError),
        (lambda: Bus.connect("x", timeout=-1), ramway.InvalidArgumentError),
        (lambda: Bus.connect("x", timeout=float("nan")), ramway.InvalidArgumentError),
        (lambda: Bus.connect("x", 1.0), TypeError),  # type: ignore[misc]
        (lambda: Bus.connect("x", wait="soon"), ramway.InvalidArgumentError),  # type: ignore[arg-type]
        (lambda: Bus.connect("x", allow_uids=3), TypeError),  # type: ignore[arg-type]
        (lambda: Bus.listen("x", -1), (ValueError, OverflowError)),
        (lambda: Bus.listen("x", "1"), TypeError),  # type: ignore[arg-type]
        (lambda: Bus.listen("x", align=17, timeout=0), ramway.InvalidArgumentError),
        (lambda: Bus.listen("x", to_peer=0, from_peer=0, timeout=0), ramway.InvalidArgumentError),
        (lambda: Bus.listen("x", timeout=-0.5), ramway.InvalidArgumentError),
        (lambda: Bus.listen("x.sock", timeout=0), ramway.InvalidArgumentError),
        (lambda: Bus.listen("x", 1 << 60, timeout=0), ramway.Error),
        (lambda: Bus(), TypeError),
        (lambda: Bus("x"), TypeError),  # type: ignore[call-arg]
    ],
)
def test_wrong_arguments(call: object, error: type[Exception], directory: Path) -> None:
    assert callable(call)
    with pytest.raises(error):
        call()
    assert os.listdir(directory) == []


def test_a_memory_that_cannot_be_had_is_told_to_both() -> None:
    """The listener says NoSpace to its caller and to the connector."""
    with Listener.bind("big", 1 << 46) as listener:
        connecting = Thread(lambda: Bus.connect("big", timeout=5))
        with pytest.raises(ramway.NoSpaceError):
            listener.accept(LONG)
        with pytest.raises(ramway.NoSpaceError):
            connecting.result()


def test_close_while_another_thread_is_in_a_call() -> None:
    one, other = pair()
    receiving = Thread(one.recv, LONG)
    eventually("it is in the call", lambda: _busy(one))
    one.close()
    assert one.closed
    with pytest.raises(ramway.DetachedError, match="closed"):
        receiving.result()
    with pytest.raises(ramway.ClosedError):
        other.recv(LONG)
    other.close()


def _busy(bus: Bus) -> bool:
    try:
        bus.receiver.lent  # noqa: B018
    except ramway.BusyError:
        return True
    return False


def test_many_buses_leave_nothing_behind() -> None:
    def maps() -> set[str]:
        with open("/proc/self/maps") as file:
            return {line for line in file if "/memfd:" in line}

    def once() -> None:
        one, other = pair(capacity=4096)
        one.send(b"x")
        assert other.recv_bytes(LONG) == b"x"
        one.close()
        other.close()

    once()
    before = descriptors(), maps()
    for _ in range(20):
        once()
    assert descriptors() <= before[0]
    assert maps() <= before[1]


def test_a_dropped_bus_is_closed() -> None:
    one, other = pair()
    one.send(b"last")
    del one
    assert [bytes(m) for m in other] == [b"last"]
    other.close()


def test_exits_with_buses_and_views_alive() -> None:
    code = """
        import ramway, threading
        result = []
        thread = threading.Thread(target=lambda: result.append(ramway.Bus.listen("b")))
        thread.start()
        other = ramway.Bus.connect("b")
        thread.join()
        result[0].send(b"x" * 100)
        message = other.recv()
        view = memoryview(message)
        print("bye")
    """
    assert run(code) == ["bye"]


def test_the_peer_is_told_when_the_interpreter_exits() -> None:
    code = """
        import ramway, sys
        bus = ramway.Bus.connect("b")
        bus.send(b"and I am off")
        sys.exit(3)
    """
    with Listener.bind("b", 4096) as listener, Child(code) as child:
        bus = listener.accept(LONG)
        assert child.wait() == 3
        assert bus.recv_bytes(LONG) == b"and I am off"
        # At module teardown the handle is dropped, which is a close.
        with pytest.raises((ramway.ClosedError, ramway.PeerDeadError)):
            bus.recv(LONG)
        bus.close()


def test_keyboard_interrupt_ends_listening_and_connecting() -> None:
    code = """
        import ramway, sys
        print("ready", flush=True)
        try:
            if sys.argv[1] == "listen":
                ramway.Bus.listen("b")
            else:
                ramway.Bus.connect("b", timeout=None)
        except KeyboardInterrupt:
            print("interrupted")
    """
    for role in ("listen", "connect"):
        with Child(code, role) as child:
            child.line()
            time.sleep(0.3)
            child.signal(signal.SIGINT)
            assert child.finish() == ["interrupted"]


def test_connecting_to_a_silent_listener_answers_ctrl_c(directory: Path) -> None:
    import socket

    silent = socket.socket(socket.AF_UNIX)
    silent.bind(str(directory / "silent.sock"))
    silent.listen()
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        Bus.connect("silent", timeout=LONG)
    assert time.monotonic() - started < LONG / 2
    timer.join()
    silent.close()
