"""Arrays and tensors over a topic: in place where the publisher waits, else memory of their own."""

import gc
import pickle
import struct
from typing import Any

import numpy as np
import pytest
import ramway
from numpy.typing import NDArray
from ramway import InvalidArgumentError, LaggedError, Publisher, Subscriber, TimedOutError, Topic
from support import LONG, Child, Thread
from test_topic import POLICIES, joined

WAYS = [*POLICIES, "ejectable"]


def ends(way: str, capacity: int = 1 << 20, align: int = 32) -> tuple[Publisher, Subscriber]:
    topic = Topic.create("t", capacity=capacity, align=align, may_eject=way == "ejectable")
    return topic.publisher(), joined(way)


def address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_crosses_as_it_is_and_aligned(way: str) -> None:
    publisher, subscriber = ends(way)
    kept = []
    for n in range(40):
        publisher.send(bytes(n))  # so that the next message begins anywhere
        subscriber.recv(LONG).release()
        array = np.arange(n, n + 24, dtype="float32").reshape(2, 3, 4)
        publisher.send_tensor(array, tag=n)
        message = subscriber.recv(LONG)
        got = message.tensor().numpy()
        assert message.is_tensor and (message.tag, message.lost) == (n, 0)
        assert np.array_equal(got, array) and address(got) % 64 == 0
        assert got.flags.writeable == (way != "reliable")
        kept.append((got, array))
    subscriber.close()
    publisher.close()
    del message, got, publisher, subscriber
    gc.collect()
    assert all(np.array_equal(got, array) for got, array in kept)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("align", [32, 64, 4096])
def test_an_array_is_as_aligned_as_the_topic(way: str, align: int) -> None:
    publisher, subscriber = ends(way, align=align)
    for n in range(1, 30):
        publisher.send(b"x" * n)
        message = subscriber.recv(LONG)
        array = message.numpy()
        assert address(array) % align == 0 and array.tobytes() == b"x" * n
        newest = subscriber.latest()
        assert newest is not None and address(newest.numpy()) % align == 0


def test_an_array_of_a_copy_is_the_callers() -> None:
    publisher, subscriber = ends("lossy", capacity=4096)
    publisher.send(np.arange(4, dtype="i8"))
    array = subscriber.recv(LONG).numpy("i8")
    array += 1
    for _ in range(100):
        publisher.send(bytes(500))
    subscriber.close()
    gc.collect()
    assert array.tolist() == [1, 2, 3, 4]
    torn = np.from_dlpack(joined("latest").latest(LONG))  # type: ignore[arg-type]
    assert torn.flags.writeable and torn.tobytes() == bytes(500)


@pytest.mark.parametrize("way", WAYS)
def test_many_messages_as_one_array(way: str) -> None:
    publisher, subscriber = ends(way)
    with pytest.raises(TimedOutError):
        subscriber.recv_array("<u4", 5, 0.001)
    waiting = Thread(subscriber.recv_array, "<u4", 5, LONG)
    assert publisher.send_array(np.array([7], "<u4")) == 1
    assert waiting.result().tolist() == [7]
    publisher.send_array(np.arange(100, dtype="<u4"))
    if way == "latest":
        assert subscriber.recv_array("<u4").tolist() == [99]
    else:
        assert subscriber.recv_array("<u4", 30).tolist() == list(range(30))
        publisher.send(b"another length")
        assert subscriber.recv_array("<u4").tolist() == list(range(30, 100))
    publisher.send(b"another length")
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="14 bytes, and an element of uint32 has 4: it stays"):
            subscriber.recv_array("<u4")
    assert bytes(subscriber.recv(LONG)) == b"another length"
    # The newest message alone was read: the others before it are lost to this subscriber.
    assert subscriber.lost == (99 if way == "latest" else 0)
    large = np.arange(100_000, dtype="<u8").reshape(1000, 100)
    row = np.dtype((np.void, 800))
    sending = Thread(publisher.send_array, large)
    if way in ("reliable", "ejectable"):
        subscriber.recv_bytes(LONG)
        got = []
        while sum(map(len, got)) < 1000:
            got.append(subscriber.recv_array(row, 64, LONG))
        assert np.concatenate(got).tobytes() == large.tobytes()
    assert sending.result() == 1000


def test_an_ejection_is_told_after_the_rows_before_it() -> None:
    publisher = Topic.create("t", capacity=4096).publisher(eject_after=0.02)
    subscriber = joined("ejectable")
    for n in range(300):
        publisher.send(n.to_bytes(8, "little"), timeout=LONG)
    with pytest.raises(LaggedError) as raised:
        subscriber.recv_array("<u8", 10)
    got = subscriber.recv_array("<u8", 1000).tolist()
    assert got == list(range(raised.value.lost, 300))


def publish(publisher: Publisher, thing: object) -> None:
    """As README.md has it."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    sizes = struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts))
    pieces = [sizes]
    for part in parts:
        pieces += [bytes(-sum(map(len, pieces)) % 64), part]
    publisher.send_vectored(pieces)


def taken(message: ramway.Message) -> Any:
    view = memoryview(message)
    (count,) = struct.unpack_from("<Q", view)
    sizes = struct.unpack_from(f"<{count}Q", view, 8)
    parts, at = [], 8 * (count + 1)
    for size in sizes:
        at += -at % 64
        parts.append(view[at : at + size])
        at += size
    return pickle.loads(parts[0], buffers=parts[1:])


@pytest.mark.parametrize("way", WAYS)
def test_large_arrays_are_pickled_out_of_band(way: str) -> None:
    publisher, subscriber = ends(way, capacity=1 << 22)
    thing = {"step": 3, "weights": [np.arange(100_000.0), np.ones((3, 5), "float32")], "mask": np.array([True, False])}
    publish(publisher, thing)
    got = taken(subscriber.recv(LONG))
    assert got["step"] == 3 and got["mask"].tolist() == [True, False]
    for one, other in zip(got["weights"], thing["weights"], strict=True):  # type: ignore[call-overload]
        assert np.array_equal(one, other) and address(one) % 32 == 0
        assert one.flags.writeable == (way != "reliable")
    lent = subscriber.lent
    assert (lent > 800_000) == (way == "reliable")
    del got, one
    gc.collect()
    assert subscriber.lent == 0


def test_workers_share_one_broadcast() -> None:
    """One process publishes pickled arrays; four read all of them in place."""
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        from test_topic_arrays import taken
        import ramway
        total = 0.0
        with ramway.Topic.open("t", timeout=60).subscriber() as subscriber:
            print("here", flush=True)
            for message in subscriber:
                total += float(taken(message)["batch"].sum())
        print(total)
    """
    publisher = Topic.create("t", capacity=1 << 22).publisher()
    here = __file__.rpartition("/")[0]
    workers = [Child(code, here) for _ in range(4)]
    try:
        publisher.wait_for_subscribers(4, LONG)
        for n in range(50):
            publish(publisher, {"step": n, "batch": np.full(10_000, float(n))})
        publisher.close()
        expected = [str(float(sum(range(50)) * 10_000))]
        for worker in workers:
            assert worker.finish()[-1:] == expected
    finally:
        for worker in workers:
            worker.__exit__()
