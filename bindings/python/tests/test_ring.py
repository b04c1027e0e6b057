"""Rings: sending, receiving, and how long a message lives."""

import gc
import selectors
import struct
import threading
import time
import weakref
from pathlib import Path

import pytest
import ramway
from support import LONG, eventually

PAGE = 4096


def pair(capacity: int = PAGE) -> tuple[ramway.Sender, ramway.Receiver]:
    return ramway.Ring.pair(capacity)


def named(name: str = "ring", **options: int) -> tuple[ramway.Sender, ramway.Receiver]:
    return ramway.Ring.create(name, **options).sender(), ramway.Ring.open(name).receiver()


def test_a_message_has_bytes_a_type_and_a_tag() -> None:
    tx, rx = named()
    tx.send(b"hello", 7, 9)
    msg = rx.recv()
    assert (bytes(msg), len(msg), msg.type_id, msg.tag) == (b"hello", 5, 7, 9)
    assert msg == b"hello" and msg != b"hallo" and msg[0] == ord("h") and bytes(msg[1:3]) == b"el"
    assert memoryview(msg).readonly and struct.unpack_from("<H", msg, 1) == (0x6C65,)
    with pytest.raises(TypeError):
        hash(msg)
    assert "5 bytes" in repr(msg)


@pytest.mark.parametrize(
    "data", [b"\1\2\3\4", bytearray(b"\1\2\3\4"), memoryview(b"\1\2\3\4"), memoryview(b"\1\2\3\4").cast("I")]
)
def test_whatever_has_a_buffer_is_sent(data: bytes) -> None:
    tx, rx = pair()
    tx.send(data)
    assert rx.recv() == b"\1\2\3\4"


def test_what_has_none_is_not() -> None:
    tx, rx = pair()
    for wrong in ("text", 1, None, [1]):
        with pytest.raises(TypeError):
            tx.send(wrong)  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        tx.send(memoryview(b"abcdef")[::2])
    assert rx.try_recv() is None


def test_a_message_of_no_bytes_is_a_message() -> None:
    tx, rx = pair()
    tx.send(b"")
    tx.send(b"x")
    assert [bytes(rx.recv()), bytes(rx.recv())] == [b"", b"x"]


def test_nothing_there() -> None:
    tx, rx = pair()
    assert rx.try_recv() is None
    with pytest.raises(ramway.TimedOutError):
        rx.recv(timeout=0)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        rx.recv(timeout=0.05)
    assert time.monotonic() - started >= 0.05
    del tx


def test_iteration_ends_when_the_sender_closes() -> None:
    tx, rx = pair()
    for number in range(20):
        tx.send(struct.pack("<Q", number))
    tx.close()
    assert [struct.unpack("<Q", msg)[0] for msg in rx] == list(range(20))
    with pytest.raises(EOFError):
        rx.recv()
    with pytest.raises(ramway.ClosedError):
        rx.try_recv()
    assert list(rx) == []


def test_an_abandoned_sender_is_a_dead_one() -> None:
    tx, rx = named()
    tx.send(b"last")
    tx.abandon()
    messages = iter(rx)
    assert bytes(next(messages)) == b"last"
    with pytest.raises(ConnectionResetError):
        next(messages)


def test_full() -> None:
    tx, rx = pair()
    sent = 0
    with pytest.raises(ramway.FullError) as full:
        while True:
            tx.try_send(bytes(100))
            sent += 1
    assert isinstance(full.value, BlockingIOError) and full.value.kind == "Full" and sent == PAGE // 128
    with pytest.raises(TimeoutError):
        tx.send(bytes(100), timeout=0.02)
    with pytest.raises(TimeoutError):
        tx.reserve(100, timeout=0)
    del rx


def test_too_large_says_what_fits() -> None:
    tx, _rx = pair()
    assert tx.max_message_len == PAGE - 16
    with pytest.raises(ramway.TooLargeError, match="at most 4080"):
        tx.send(bytes(PAGE))
    with pytest.raises(ValueError):
        tx.reserve(1 << 62)
    tx.send(bytes(PAGE - 16))


def test_a_batch_is_what_is_there() -> None:
    tx, rx = pair(1 << 16)
    assert tx.send_batch([bytes([i]) for i in range(10)], type_id=3) == 10
    batch = rx.recv_batch(4)
    assert [bytes(msg) for msg in batch] == [b"\0", b"\1", b"\2", b"\3"] and batch[0].type_id == 3
    assert len(rx.recv_batch(100)) == 6
    with pytest.raises(ramway.TimedOutError):
        rx.recv_batch(1, timeout=0.01)
    with pytest.raises(ramway.InvalidArgumentError):
        rx.recv_batch(0)


def test_a_batch_that_fails_has_sent_what_came_before() -> None:
    tx, rx = pair()
    with pytest.raises(TypeError):
        tx.send_batch([b"a", b"b", 3])  # type: ignore[list-item]
    assert [bytes(msg) for msg in rx.recv_batch(10)] == [b"a", b"b"]


def test_copies() -> None:
    tx, rx = pair()
    tx.send(b"first")
    tx.send(b"second")
    assert rx.recv_bytes() == b"first" and rx.lent == 0
    short, long = bytearray(3), bytearray(10)
    for refused in (rx.recv_into, rx.try_recv_into):
        with pytest.raises(ramway.TooLargeError, match="6 bytes .* buffer of 3"):
            refused(short)
    assert rx.recv_into(long) == 6 and long == b"second\0\0\0\0"
    with pytest.raises(TimeoutError):
        rx.recv_into(long, timeout=0)
    with pytest.raises(BufferError):
        rx.recv_into(b"read-only")


def test_a_message_is_given_back_when_it_is_dropped() -> None:
    tx, rx = pair()
    tx.send(b"a")
    msg = rx.recv()
    assert rx.lent == tx.used == 32
    del msg
    assert rx.lent == tx.used == 0


def test_messages_are_given_back_in_order() -> None:
    tx, rx = pair()
    for data in (b"a", b"b", b"c", b"d"):
        tx.send(data)
    a, b, c, d = (rx.recv() for _ in range(4))
    b.release()
    del c
    assert rx.lent == 4 * 32, "the oldest one still holds"
    a.release()
    assert rx.lent == 32 and d == b"d"
    d.release()
    d.release()
    assert rx.lent == 0 and d.released
    for use in (lambda: bytes(d), lambda: d[0], lambda: len(d), d.tobytes, lambda: memoryview(d)):
        with pytest.raises(ramway.DetachedError, match="released"):
            use()


def test_a_full_ring_of_held_messages_is_an_error_and_not_a_hang() -> None:
    tx, rx = pair()

    def send() -> None:
        for _ in range(100):
            tx.send(bytes(112), timeout=LONG)

    thread = threading.Thread(target=send)
    thread.start()
    held = []
    with pytest.raises(ramway.BusyError, match="32 messages .4096 of 4096 bytes"):
        while True:
            held.append(rx.recv(timeout=LONG))
    left = 100 - len(held)
    held.clear()
    for _ in range(left):
        rx.recv(timeout=LONG)
    thread.join()


def test_messages_dropped_by_another_thread_let_a_waiting_receive_go_on() -> None:
    tx, rx = pair()
    for _ in range(32):
        tx.send(bytes(112))
    held = [rx.recv() for _ in range(32)]
    got: list[bytes] = []
    receiver = threading.Thread(target=lambda: got.append(rx.recv_bytes(timeout=LONG)))
    receiver.start()
    time.sleep(0.02)
    held.clear()
    tx.send(b"after", timeout=LONG)
    receiver.join()
    assert got == [b"after"]


def test_a_put_off_wake_up_is_not_forgotten_while_messages_are_held() -> None:
    tx, rx = pair()
    for _ in range(32):
        tx.send(bytes(112))
    held = [rx.recv() for _ in range(32)]
    sender = threading.Thread(target=lambda: [tx.send(b"x", timeout=LONG) for _ in range(10)])
    sender.start()
    time.sleep(0.02)
    held.pop(0)
    assert rx.recv(timeout=LONG) == b"x", "less than a quarter is free, and the rest is held"
    held.clear()
    for _ in range(9):
        rx.recv(timeout=LONG)
    sender.join()


def test_closing_with_messages_alive_keeps_the_role_until_they_go() -> None:
    tx, rx = named()
    tx.send(b"kept")
    msg = rx.recv()
    view = memoryview(msg)
    rx.close()
    rx.close()
    assert rx.closed and bytes(view) == b"kept"
    with pytest.raises(ramway.DetachedError):
        rx.recv()
    with pytest.raises(ramway.BusyError):
        ramway.Ring.open("ring").receiver()
    del msg, view
    ramway.Ring.open("ring").receiver().close()
    tx.close()


def test_a_received_and_held_message_is_received_again_after_a_close() -> None:
    tx, rx = named()
    tx.send(b"put back")
    with pytest.raises(ramway.TooLargeError):
        rx.recv_into(bytearray(1))
    rx.close()
    assert ramway.Ring.open("ring").receiver().recv() == b"put back"
    del tx


def test_handles_are_freed() -> None:
    class Canary:
        pass

    tx, rx = pair()
    tx.send(b"x")
    canary = Canary()
    holder = [canary, rx.recv(), rx, tx]
    alive = weakref.ref(canary)
    del holder, canary, tx, rx
    gc.collect()
    assert alive() is None


def test_options() -> None:
    ring = ramway.Ring.create(Path("options"), capacity=10_000, align=64, wait="block", mode=0o640)
    tx = ring.sender()
    assert (tx.capacity, tx.align, tx.wait, tx.name, tx.epoch, tx.peer_epoch) == (16384, 64, "block", "options", 1, 0)
    tx.wait = "spin"
    assert tx.wait == "spin" and not tx.peer_alive and tx.last_tag is None
    tx.send(b"x", tag=5)
    assert tx.last_tag == 5
    rx = ramway.Ring.open("options").receiver()
    assert tx.peer_alive and rx.peer_alive and rx.epoch == 1 and rx.align == 64 and rx.capacity == 16384
    with pytest.raises(ramway.InvalidArgumentError, match="spin"):
        rx.wait = "nap"  # type: ignore[assignment]
    with pytest.raises(ramway.InvalidArgumentError, match="16384"):
        ramway.Ring.open_or_create("options", capacity=1 << 20).sender()
    with pytest.raises(TypeError, match="capacty"):
        ramway.Ring.create("x", capacty=1)  # type: ignore[call-arg]


def test_writable_views() -> None:
    ring = ramway.Ring.open_or_create("ring", writable_views=True)
    tx, rx = ring.sender(), ring.receiver()
    tx.send(b"abc")
    msg = rx.recv()
    view = memoryview(msg)
    view[0] = ord("X")
    assert bytes(msg) == b"Xbc"


def test_one_sender_and_one_receiver() -> None:
    tx, rx = named()
    with pytest.raises(ramway.BusyError):
        ramway.Ring.open("ring").sender()
    with pytest.raises(ramway.BusyError):
        ramway.Ring.open("ring").receiver()
    tx.close()
    assert list(rx) == []
    rx.close()
    with pytest.raises(FileNotFoundError):
        ramway.Ring.open("ring").sender()


def test_the_descriptor_stays_known_after_the_end_of_the_stream() -> None:
    """For those who take it out of their loop then."""
    for ending in ("close", "abandon"):
        with ramway.Ring.create("ring", capacity=4096).receiver() as rx:
            tx = ramway.Ring.open("ring").sender()
            ends, fds = (tx, rx), (tx.fileno(), rx.fileno())
            with selectors.DefaultSelector() as selector:
                selector.register(rx, selectors.EVENT_READ)
                getattr(tx, ending)()
                with pytest.raises((ramway.ClosedError, ramway.PeerDeadError)):
                    # Readable at first, until a look has found nothing, and then when there is the end.
                    while rx.try_recv() is None:
                        assert selector.select(LONG)
                assert rx.fileno() == fds[1]
                selector.unregister(rx)
        for end in ends:
            with pytest.raises(ramway.DetachedError):
                end.fileno()


def test_a_handle_serves_one_thread_at_a_time() -> None:
    tx, rx = pair()
    thread = threading.Thread(target=lambda: rx.recv(timeout=LONG))
    thread.start()

    def busy() -> bool:
        try:
            return rx.try_recv() is not None
        except ramway.BusyError:
            return True

    eventually("the other thread is in its call", busy)
    with pytest.raises(ramway.BusyError, match="another thread"):
        rx.recv()
    tx.send(b"go")
    thread.join()
    rx.close()
