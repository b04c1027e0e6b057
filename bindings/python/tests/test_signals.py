"""Blocking calls answer signals at once, let other threads run, and are used by one thread at a time."""

import signal
import time
from types import FrameType

import pytest
import ramway
from ramway import Bus, Listener, Region, Ring
from support import LONG, Child, Thread, eventually

# A process that is removing the segment has its lock: what would make a new one waits for it.
REMOVING = """
    import fcntl, os, struct
    ramway.Region.create("r", 8, persistent=True).close()
    removing = os.open(ramway.ls()[0].path, os.O_RDWR)
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    fcntl.fcntl(removing, fcntl.F_OFD_SETLK, lock)
"""

# What blocks, with its set-up: {wait} is the policy. A ring's other end is attached but silent.
BLOCKING = {
    "recv": """
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        call = handle.recv
    """,
    "recv_with_timeout": """
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        call = lambda: handle.recv(timeout=1000.0)
    """,
    "recv_bytes": """
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        call = handle.recv_bytes
    """,
    "recv_batch": """
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        call = lambda: handle.recv_batch(5)
    """,
    "recv_into": """
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        call = lambda: handle.recv_into(bytearray(9))
    """,
    # NumPy does not survive a Ctrl-C in the middle of its first import.
    "recv_array": """
        import numpy
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        call = lambda: handle.recv_array("u1", 5)
    """,
    "iteration": """
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        call = lambda: list(handle)
    """,
    "recv_after_fileno": """
        tx = ramway.Ring.create("r", capacity=4096).sender()
        handle = ramway.Ring.open("r", wait={wait!r}).receiver()
        handle.fileno()
        call = handle.recv
    """,
    "send": """
        handle = ramway.Ring.create("r", capacity=4096, wait={wait!r}).sender()
        rx = ramway.Ring.open("r").receiver()
        handle.send(bytes(4000))
        call = lambda: handle.send(bytes(4000))
    """,
    "send_batch": """
        handle = ramway.Ring.create("r", capacity=4096, wait={wait!r}).sender()
        rx = ramway.Ring.open("r").receiver()
        call = lambda: handle.send_batch([bytes(4000)] * 2)
    """,
    "reserve": """
        handle = ramway.Ring.create("r", capacity=4096, wait={wait!r}).sender()
        rx = ramway.Ring.open("r").receiver()
        handle.send(bytes(4000))
        call = lambda: handle.reserve(4000)
    """,
    "region_wait": """
        handle = ramway.Region.create("r", 8, wait={wait!r})
        call = handle.wait
    """,
    "region_create": REMOVING
    + """
        call = lambda: ramway.Region.create("r", 8, timeout=1000.0, wait={wait!r})
    """,
    "region_open_or_create": REMOVING
    + """
        call = lambda: ramway.Region.open_or_create("r", 8, timeout=1000.0, wait={wait!r})
    """,
    "region_open": """
        call = lambda: ramway.Region.open("r", timeout=1000.0, wait={wait!r})
    """,
    "accept": """
        handle = ramway.Listener.bind("r", wait={wait!r})
        call = handle.accept
    """,
    "ring_open": """
        call = lambda: ramway.Ring.open("r", timeout=1000.0, wait={wait!r}).receiver()
    """,
    "topic_recv": """
        publisher = ramway.Topic.create("r", capacity=4096).publisher()
        handle = ramway.Topic.open("r").subscriber(wait={wait!r})
        call = handle.recv
    """,
    "topic_recv_of_a_copy": """
        publisher = ramway.Topic.create("r", capacity=4096).publisher()
        handle = ramway.Topic.open("r").subscriber("lossy", wait={wait!r})
        call = lambda: list(handle)
    """,
    "topic_read_only": """
        publisher = ramway.Topic.create("r", capacity=4096).publisher()
        handle = ramway.Topic.open("r").subscriber("lossy", read_only=True, wait={wait!r})
        call = lambda: handle.recv_into(bytearray(9))
    """,
    "topic_latest": """
        publisher = ramway.Topic.create("r", capacity=4096).publisher()
        handle = ramway.Topic.open("r").subscriber("latest", wait={wait!r})
        call = lambda: handle.latest(None)
    """,
    "topic_wait_newer": """
        publisher = ramway.Topic.create("r", capacity=4096).publisher()
        handle = ramway.Topic.open("r").subscriber("latest", wait={wait!r})
        publisher.send(b"old")
        handle.latest()
        call = handle.wait_newer
    """,
    "topic_send": """
        handle = ramway.Topic.create("r", capacity=4096).publisher(wait={wait!r})
        subscriber = ramway.Topic.open("r").subscriber()
        handle.send_batch([bytes(2000)] * 2)
        call = lambda: handle.send(bytes(2000))
    """,
    "topic_wait_for_subscribers": """
        handle = ramway.Topic.create("r", capacity=4096).publisher(wait={wait!r})
        call = lambda: handle.wait_for_subscribers(1)
    """,
    "select": """
        handles = [ramway.Ring.pair(4096) for _ in range(3)]
        call = lambda: ramway.select([receiver for _, receiver in handles])
    """,
    "select_by_descriptors": """
        handles = [ramway.Ring.pair(4096) for _ in range(20)] + [ramway.Listener.bind("r")]
        call = ramway.Select([handle[1] if type(handle) is tuple else handle for handle in handles], wait={wait!r}).wait
    """,
    "merge": """
        handles = [ramway.Ring.pair(4096) for _ in range(3)]
        merged = ramway.merge(*[receiver for _, receiver in handles])
        call = lambda: next(merged)
    """,
    "inbox_recv": """
        inbox = ramway.Inbox.bind("r", wait={wait!r})
        call = inbox.recv
    """,
    "outbox_send": """
        outbox = ramway.Outbox.bind("r", wait={wait!r})
        call = lambda: outbox.send(b"x")
    """,
    "topic_open": """
        call = lambda: ramway.Topic.open("r", timeout=1000.0).subscriber(wait={wait!r})
    """,
    "topic_publisher_taken": """
        holder = ramway.Topic.create("r").publisher()
        call = lambda: ramway.Topic.open("r", timeout=1000.0).publisher(wait={wait!r})
    """,
}

CHILD = """
import ramway, time
{setup}
print("ready", flush=True)
try:
    call()
except KeyboardInterrupt:
    print("interrupted")
    # The handle goes on as if nothing had been.
    for attempt in range(2):
        try:
            call()
        except KeyboardInterrupt:
            print("again")
            break
"""


def _indent(code: str) -> str:
    return "\n".join(line.strip() for line in code.strip().splitlines())


@pytest.mark.parametrize("wait", ["spin", "hybrid", "block"])
@pytest.mark.parametrize("call", BLOCKING)
def test_ctrl_c_ends_it_at_once(call: str, wait: str) -> None:
    with Child(CHILD.format(setup=_indent(BLOCKING[call].format(wait=wait)))) as child:
        assert child.line() == "ready"
        for word in ("interrupted", "again"):
            time.sleep(0.15)
            sent = time.monotonic()
            child.signal(signal.SIGINT)
            assert child.line() == word
            assert time.monotonic() - sent < 5.0
        child.wait()


def test_a_handler_that_returns_does_not_end_the_wait() -> None:
    code = """
        import ramway, signal
        signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
        rx = ramway.Ring.open("r").receiver()
        print("ready", flush=True)
        print(bytes(rx.recv()))
    """
    with Ring.create("r").sender() as tx, Child(code) as child:
        assert child.line() == "ready"
        for _ in range(3):
            time.sleep(0.05)
            child.signal(signal.SIGUSR1)
            assert child.line() == "handled"
        tx.send(b"at last")
        assert child.finish() == ["b'at last'"]


def test_signals_do_not_prolong_a_time_out() -> None:
    handled = 0

    def handler(_number: int, _frame: FrameType | None) -> None:
        nonlocal handled
        handled += 1

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with Ring.create("r").sender(), Ring.open("r").receiver() as rx, Region.create("g", 8) as region:
            for call in (rx.recv, region.wait):
                started = time.monotonic()
                if call is rx.recv:
                    with pytest.raises(ramway.TimedOutError):
                        rx.recv(0.5)
                else:
                    assert not region.wait(0.5)
                taken = time.monotonic() - started
                assert 0.5 <= taken < LONG / 2
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert handled >= 2


def test_an_exception_of_a_handler_loses_nothing() -> None:
    class Stop(Exception):
        pass

    def handler(_number: int, _frame: FrameType | None) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
            receives = (rx.recv, rx.recv_bytes, lambda: rx.recv_into(bytearray(9)), lambda: next(rx))
            for n in range(40):
                with pytest.raises(Stop):
                    signal.setitimer(signal.ITIMER_REAL, 0.002)
                    receives[n % len(receives)]()
                tx.send(b"%d" % n)
                assert rx.recv_bytes(LONG) == b"%d" % n
            tx.send(bytes(4000))
            sends = (
                lambda: tx.send(b"never sent" * 100),
                lambda: tx.reserve(1000),
                lambda: tx.send_batch([bytes(999)]),
            )
            for n in range(40):
                with pytest.raises(Stop):
                    signal.setitimer(signal.ITIMER_REAL, 0.002)
                    sends[n % len(sends)]()
            assert rx.recv_bytes(LONG) == bytes(4000) and rx.try_recv() is None
            tx.send(b"sent")
            assert rx.recv_bytes(LONG) == b"sent"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("wait", ["spin", "hybrid", "block"])
def test_other_threads_run_while_one_is_blocked(wait: str) -> None:
    """Each call blocks until this thread, which needs the interpreter lock for that, has counted and lets it go on."""
    count = 0

    def work() -> None:
        nonlocal count
        deadline = time.monotonic() + 0.05
        while time.monotonic() < deadline or count < 1000:
            count += 1

    with Ring.create("a", capacity=4096, wait=wait).sender() as tx:  # type: ignore[arg-type]
        with Ring.open("a", wait=wait).receiver() as rx:  # type: ignore[arg-type]
            blocked = Thread(rx.recv_bytes)
            work()
            tx.send(b"go")
            assert blocked.result() == b"go"

            tx.send(bytes(4000))
            blocked = Thread(tx.send, bytes(4000))
            work()
            assert blocked.is_alive()
            rx.recv_bytes()
            blocked.result()

    with Region.create("b", 8, wait=wait) as region:  # type: ignore[arg-type]
        blocked = Thread(region.wait)
        work()
        region.notify()
        assert blocked.result() is True

    with Listener.bind("c", 4096, wait=wait) as listener:  # type: ignore[arg-type]
        blocked = Thread(listener.accept)
        work()
        Bus.connect("c").close()
        blocked.result().close()

    blocked = Thread(lambda: Bus.connect("d"))
    work()
    Bus.listen("d", 4096, timeout=LONG).close()
    blocked.result().close()
    assert count >= 5000


def test_a_handle_is_used_by_one_thread_at_a_time() -> None:
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        receiving = Thread(rx.recv_bytes)
        eventually("the receiver is in use", lambda: _busy(lambda: rx.lent))
        for call in (rx.recv, rx.try_recv, rx.recv_bytes, lambda: rx.recv_batch(2), rx.fileno):
            with pytest.raises(ramway.BusyError, match="thread"):
                call()
        with pytest.raises(BlockingIOError):
            rx.try_recv()
        tx.send(b"1")
        assert receiving.result() == b"1"

        tx.send(bytes(4000))
        sending = Thread(tx.send, bytes(4000))
        eventually("the sender is in use", lambda: _busy(lambda: tx.used))
        for call in (lambda: tx.send(b""), lambda: tx.try_send(b""), lambda: tx.reserve(1), tx.flush):
            with pytest.raises(ramway.BusyError, match="thread"):
                call()
        rx.recv_bytes()
        sending.result()
        rx.recv_bytes()


def _busy(look: object) -> bool:
    assert callable(look)
    try:
        look()
    except ramway.BusyError:
        return True
    return False


def test_threads_that_take_turns_may_share_a_handle() -> None:
    """No lock of the program's own: a thread that meets Busy tries again. Nothing is lost, doubled or torn."""
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        each, senders = 300, 4
        received: list[bytes] = []

        def send(mine: int) -> None:
            for n in range(each):
                while True:
                    try:
                        tx.try_send(b"%d:%d" % (mine, n))
                        break
                    except (ramway.BusyError, ramway.FullError):
                        time.sleep(0)

        def receive() -> None:
            while len(received) < each * senders:
                try:
                    message = rx.try_recv()
                except ramway.BusyError:
                    continue
                if message is None:
                    time.sleep(0)
                    continue
                received.append(bytes(message))
                del message

        threads = [Thread(send, mine) for mine in range(senders)] + [Thread(receive) for _ in range(2)]
        for thread in threads:
            thread.result()
        assert sorted(received) == sorted(b"%d:%d" % (a, n) for a in range(senders) for n in range(each))


def test_messages_may_be_let_go_of_by_any_thread() -> None:
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        for _ in range(20):
            for n in range(8):
                tx.send(bytes([n]) * 300)
            messages = [rx.recv() for _ in range(8)]
            views = [memoryview(message) for message in messages]

            def let_go(views: list[memoryview], messages: list[ramway.Message], start: int) -> None:
                for index in range(start, 8, 2):
                    assert bytes(views[index]) == bytes([index]) * 300
                    views[index].release()
                    messages[index].release()

            threads = [Thread(let_go, views, messages, start) for start in (0, 1)]
            for thread in threads:
                thread.result()
            assert rx.lent == 0 and tx.used == 0


def test_a_message_let_go_of_while_another_thread_receives() -> None:
    """The sender waits for room that another thread of the receiver's holds: giving it back is enough."""
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        tx.send(bytes(3000))
        held = rx.recv()
        receiving = Thread(rx.recv_bytes)
        eventually("the receiver is in use", lambda: _busy(lambda: rx.lent))
        held.release()
        tx.send(bytes(4000), timeout=LONG)
        assert receiving.result() == bytes(4000)


def test_holding_everything_is_told_not_hung_on() -> None:
    code = """
        import ramway
        tx = ramway.Ring.open("r").sender()
        for n in range(10):
            tx.send(bytes([n]) * 1000)
        print("sent")
    """
    with Ring.create("r", capacity=4096).receiver() as rx, Child(code) as child:
        held = []
        with pytest.raises(ramway.BusyError, match="held"):
            while True:
                held.append(rx.recv(LONG))
        assert [bytes(m)[:1] for m in held] == [bytes([n]) for n in range(len(held))]
        count = len(held)
        held.clear()
        for n in range(count, 10):
            assert rx.recv_bytes(LONG) == bytes([n]) * 1000
        assert child.finish() == ["sent"]
