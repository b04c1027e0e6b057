"""NumPy views of messages, slots and regions, and many small messages as one array."""

import gc
import threading
import weakref
from pathlib import Path

import pytest
import ramway
from support import DEBUG, DEBUG_ENVIRONMENT, Child, Thread, run

np = pytest.importorskip("numpy")

TICK = np.dtype([("seq", "<u8"), ("price", "<f8"), ("size", "<u4"), ("side", "S1"), ("pad", "V3"), ("when", "<M8[ns]")])


def ticks(count, first=0):
    array = np.zeros(count, TICK)
    array["seq"] = np.arange(first, first + count)
    array["price"] = array["seq"] / 8
    array["side"] = b"B"
    return array


@pytest.fixture
def pair():
    tx, rx = ramway.Ring.pair(1 << 16)
    with tx, rx:
        yield tx, rx


def test_a_message_as_an_array(pair):
    tx, rx = pair
    tx.send(np.arange(12, dtype="<f4"))
    message = rx.recv()
    assert message.numpy().dtype == np.uint8 and message.numpy().shape == (48,)
    for dtype in ("f4", "<f4", "float32", np.float32, np.dtype("f4")):
        array = message.numpy(dtype)
        assert array.tolist() == list(range(12)) and not array.flags.writeable
    for shape, expected in [(12, (12,)), ((3, 4), (3, 4)), ([2, -1], (2, 6)), (-1, (12,)), ((3, 1, 4), (3, 1, 4))]:
        assert message.numpy("f4", shape).shape == expected
    assert message.numpy(dtype="f4", shape=np.array([3, 4])).shape == (3, 4)
    assert message.numpy("bfloat16" if has_ml_dtypes() else "f2").shape == (24,)
    assert np.frombuffer(message, "f4")[11] == 11 and np.asarray(message).nbytes == 48


def has_ml_dtypes():
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("dtype", "shape", "why"),
    [
        ("f8", None, "50 bytes"),
        ("f4", (3, 4), "50 bytes"),
        ("u1", (7, -1), "50 bytes"),
        ("u1", (-1, -1), "50 bytes"),
        ("u1", (0, -1), "50 bytes"),
        ("u1", (-2, -25), "50 bytes"),
        ("u1", 51, "50 bytes"),
        ("u1", (1 << 40, 1 << 40), "50 bytes"),
        ("O", None, "Python objects"),
        ("S0", None, "0 bytes"),
        ("V0", None, "0 bytes"),
        ([("a", "O")], None, "Python objects"),
    ],
)
def test_what_a_message_is_not(pair, dtype, shape, why):
    tx, rx = pair
    tx.send(bytes(50))
    message = rx.recv()
    with pytest.raises(ramway.InvalidArgumentError, match=why):
        message.numpy(dtype, shape)
    with pytest.raises(TypeError):
        message.numpy("no such type")
    message.release()
    with pytest.raises(ramway.DetachedError):
        message.numpy()


def test_an_empty_message(pair):
    tx, rx = pair
    tx.send(b"")
    message = rx.recv()
    assert message.numpy("f8").shape == (0,) and message.numpy("f8", (0, 3)).shape == (0, 3)
    assert np.from_dlpack(message).shape == (0,)


def test_structured_and_nested_dtypes(pair):
    tx, rx = pair
    tx.send(ticks(3).tobytes())
    array = rx.recv().numpy(TICK)
    assert array["seq"].tolist() == [0, 1, 2] and array[2]["price"] == 0.25
    tx.send(bytes(48))
    assert rx.recv().numpy("(2,3)f8").shape == (1, 2, 3)


def test_a_slot_as_an_array(pair):
    tx, rx = pair
    with tx.reserve(64) as slot:
        array = slot.numpy("f8", (2, 4))
        assert array.flags.writeable
        array[:] = 1
        slot.numpy("f8")[7] = 9
        assert slot.numpy("u4", 3).shape == (3,)
        with pytest.raises(ramway.InvalidArgumentError):
            slot.numpy("f8", 9)
        del array
    assert rx.recv().numpy("f8").tolist() == [1] * 7 + [9]
    with pytest.raises(ramway.DetachedError):
        slot.numpy()


def test_a_region_as_an_array(directory: Path):
    with ramway.Region.create("r", 4096) as region, ramway.Region.open("r", read_only=True) as other:
        array, seen = region.numpy("f8", (4, 4), offset=64), other.numpy("f8", 16, offset=64)
        array[3, 3] = 2.5
        assert seen[15] == 2.5 and region.numpy("f8").shape == (512,)
        assert not seen.flags.writeable and not region.numpy(writable=False).flags.writeable
        assert region.numpy(writable=True).flags.writeable
        with pytest.raises(ramway.InvalidArgumentError, match="read_only"):
            other.numpy(writable=True)
        for bad in ({"offset": 4097}, {"offset": 1, "dtype": "f8"}, {"shape": 4097}):
            with pytest.raises(ramway.InvalidArgumentError):
                region.numpy(**bad)
        assert region.numpy(offset=4096).shape == (0,)
    array[0, 0] = 1
    assert seen[0] == 1
    with pytest.raises(ramway.DetachedError):
        region.numpy()


def test_arrays_outlive_everything(directory: Path):
    tx, rx = ramway.Ring.pair(1 << 16)
    tx.send(np.arange(100))
    message = rx.recv()
    array = message.numpy("i8")[10:20]
    seen = weakref.ref(array)
    with pytest.raises(BufferError):
        message.release()
    with message:
        pass
    rx.close()
    tx.close()
    del message, rx, tx
    gc.collect()
    assert array.tolist() == list(range(10, 20))
    del array
    assert seen() is None


def test_the_end_of_the_interpreter_with_arrays_alive(directory: Path):
    run(
        """
        import gc, numpy as np, ramway
        tx, rx = ramway.Ring.pair(1 << 16)
        region = ramway.Region.create("r", 4096)
        tx.send(np.arange(5))
        kept = [rx.recv().numpy("i8"), tx.reserve(8).numpy(), region.numpy("f8")]
        kept.append(kept)
        np.kept = kept
        array = region.numpy()
        rx.close()
        del rx, region
        gc.collect()
        gc.freeze()
        """,
        options=DEBUG,
        env=DEBUG_ENVIRONMENT,
    )


# Many small messages.


def test_rows_are_messages_and_messages_rows(pair):
    tx, rx = pair
    sent = ticks(500)
    assert tx.send_array(sent, 7) == 500
    first = rx.recv()
    assert first.type_id == 7 and first.numpy(TICK)[0] == sent[0]
    first.release()
    got = rx.recv_array(TICK, 100)
    assert got.dtype == TICK and np.array_equal(got, sent[1:101])
    assert got.flags.writeable and got.flags.owndata
    assert np.array_equal(rx.recv_array(TICK, 1000), sent[101:])
    assert rx.lent == 0 and rx.used == 0
    with pytest.raises(ramway.TimedOutError):
        rx.recv_array(TICK, 1, timeout=0)
    with pytest.raises(ramway.TimedOutError):
        rx.recv_array(TICK, 1, timeout=0.01)


@pytest.mark.parametrize("size", [1, 3, 8, 15, 16, 17, 32, 40, 64, 65, 200])
def test_rows_of_any_size(pair, size):
    tx, rx = pair
    sent = np.arange(50 * size, dtype=np.uint32).astype(np.uint8).reshape(50, size)
    assert tx.send_array(sent) == 50
    got = rx.recv_array(f"V{size}", 100)
    assert got.tobytes() == sent.tobytes() and len(got) == 50


def test_rows_of_several_elements_and_rows_that_are_not_contiguous(pair):
    tx, rx = pair
    sent = np.arange(24.0).reshape(4, 2, 3)
    assert tx.send_array(sent) == 4
    assert rx.recv_array("(2,3)f8", 10).tolist() == sent.tolist()
    assert tx.send_array(np.arange(24.0).reshape(6, 4).T[::-1]) == 4
    assert rx.recv_array("6f8", 10).tolist() == np.arange(24.0).reshape(6, 4).T[::-1].tolist()
    assert tx.send_array(np.arange(10)[::3]) == 4
    assert rx.recv_array("i8", 10).tolist() == [0, 3, 6, 9]
    assert tx.send_array([1.5, 2.5]) == 2
    assert rx.recv_array(float, 10).tolist() == [1.5, 2.5]
    assert tx.send_array(np.zeros((0, 4))) == 0
    assert tx.send_array(np.zeros((3, 0))) == 3
    assert [len(message) for message in rx.recv_batch(9)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("array", "why"),
    [(np.float64(3), "without dimensions"), (np.array([object()]), "objects"), (np.zeros(2, "V0"), "0 bytes")],
)
def test_what_has_no_rows(pair, array, why):
    tx, rx = pair
    with pytest.raises(ramway.InvalidArgumentError, match=why):
        tx.send_array(array)
    with pytest.raises(ramway.InvalidArgumentError, match="0xffff0000"):
        tx.send_array(np.zeros(3), 0xFFFF_0000)
    with pytest.raises(ramway.TooLargeError):
        tx.send_array(np.zeros((2, 1 << 16)))
    assert rx.try_recv() is None


def test_it_ends_before_a_message_of_another_length(pair):
    tx, rx = pair
    tx.send_array(np.arange(3))
    tx.send(b"odd")
    tx.send_array(np.arange(2))
    assert rx.recv_array("i8", 100).tolist() == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(ramway.InvalidArgumentError, match=r"3 bytes.*int64 has 8"):
            rx.recv_array("i8", 100)
    assert rx.recv_bytes() == b"odd"
    assert rx.recv_array("i8", 1).tolist() == [0]
    assert rx.recv_array("i8", 100).tolist() == [1]
    assert rx.used == 0


@pytest.mark.parametrize(("dtype", "max", "why"), [("i8", 0, "max=0"), ("O", 1, "objects"), ("V0", 1, "0 bytes")])
def test_arguments_that_cannot_be_right(pair, dtype, max, why):
    tx, rx = pair
    tx.send(bytes(8))
    with pytest.raises(ramway.InvalidArgumentError, match=why):
        rx.recv_array(dtype, max)
    for bad in (-1, 1.5, None):
        with pytest.raises((ramway.InvalidArgumentError, TypeError), match="max"):
            rx.recv_array("i8", bad)
    assert rx.recv_array("i8", 1 << 62).tolist() == [0]


def test_messages_that_are_held_stay_where_they_are(pair):
    tx, rx = pair
    tx.send_array(np.arange(10))
    held = rx.recv()
    assert rx.recv_array("i8", 4).tolist() == [1, 2, 3, 4]
    between = rx.recv()
    assert rx.recv_array("i8", 100).tolist() == [6, 7, 8, 9]
    assert rx.lent == 10 * 32
    between.release()
    assert (rx.lent, held.numpy("i8")[0]) == (10 * 32, 0)
    held.release()
    assert rx.lent == 0


def test_the_end_comes_after_the_last_array(pair):
    tx, rx = pair
    tx.send_array(np.arange(5))
    tx.close()
    assert len(rx.recv_array("i8", 2)) == 2
    assert len(rx.recv_array("i8", 9)) == 3
    with pytest.raises(ramway.ClosedError):
        rx.recv_array("i8", 1)


def test_an_array_much_larger_than_the_ring(pair):
    tx, rx = pair
    sent = ticks(200_000)
    sender = Thread(tx.send_array, sent)
    got = []
    while sum(map(len, got)) < len(sent):
        got.append(rx.recv_array(TICK, 10_000, timeout=60))
    assert sender.result() == 200_000
    assert np.array_equal(np.concatenate(got), sent)


def test_a_receiver_that_goes_while_an_array_is_sent():
    tx, rx = ramway.Ring.pair(1 << 16)
    sender = Thread(tx.send_array, ticks(100_000))
    assert len(rx.recv_array(TICK, 1)) == 1
    rx.close()
    # The first rows were sent: the error is the next call's.
    assert 1 <= sender.result() < 100_000
    with pytest.raises(ramway.ClosedError):
        tx.send_array(ticks(100_000))


def test_the_handles_are_busy_meanwhile_and_other_threads_run(pair):
    tx, rx = pair
    waiting = threading.Event()

    def wait():
        waiting.set()
        return rx.recv_array("i8", 5)

    receiver = Thread(wait)
    waiting.wait()
    while True:
        try:
            rx.try_recv()
        except ramway.BusyError:
            break
    tx.send_array(np.arange(5))
    assert receiver.result().tolist()[0] == 0


def test_two_processes(directory: Path):
    code = """
        import numpy as np, ramway
        tx = ramway.Ring.open("a").sender()
        array = np.zeros(40_000, [("seq", "u8"), ("values", "f8", 3)])
        array["seq"] = np.arange(40_000)
        for _ in range(5):
            assert tx.send_array(array, 3) == 40_000
        tx.send(b"end", 4)
        tx.close()
    """
    dtype = np.dtype([("seq", "u8"), ("values", "f8", 3)])
    with ramway.Ring.create("a", capacity=1 << 18).receiver() as rx, Child(code) as child:
        count = 0
        while True:
            try:
                array = rx.recv_array(dtype, 3000, timeout=60)
            except ramway.InvalidArgumentError:
                break
            assert np.array_equal(array["seq"], np.arange(count, count + len(array)) % 40_000)
            count += len(array)
        assert count == 200_000
        assert rx.recv_bytes() == b"end"
        with pytest.raises(ramway.ClosedError):
            rx.recv(timeout=60)
        child.finish()


def test_a_bus_has_them_too(directory: Path):
    code = """
        import ramway
        with ramway.Bus.connect("b") as bus:
            bus.send_tensor(bus.recv().tensor(), tag=5)
            bus.send_array(bus.recv_array("i8", 3))
            with bus.reserve_tensor(2, "float32") as slot:
                slot[...] = 4
            bus.recv()
    """
    with Child(code) as child, ramway.Bus.listen("b", timeout=60) as bus:
        bus.send_tensor(np.eye(3))
        bus.send_array(np.arange(3))
        message = bus.recv(timeout=60)
        assert message.tag == 5 and message.tensor().numpy().tolist() == np.eye(3).tolist()
        got = 0
        while got < 3:
            got += len(bus.recv_array("i8", 3, timeout=60))
        assert bus.recv(timeout=60).tensor().numpy().tolist() == [4, 4]
        bus.send(b"")
        child.finish()


def test_arrays_under_the_debug_allocator(directory: Path):
    run(
        """
        import numpy as np, ramway
        tx, rx = ramway.Ring.pair(1 << 20)
        kept = []
        for n in range(1, 200):
            rows = np.arange(n * 5, dtype="u2").reshape(n, 5)
            assert tx.send_array(rows) == n
            if n % 10 == 0:
                tx.send(b"x")
            got = rx.recv_array("5u2", n + 5)
            assert got.tolist() == rows.tolist()
            if n % 10 == 0:
                kept.append(rx.recv().numpy())
                if len(kept) > 3:
                    del kept[0]
        """,
        options=DEBUG,
        env=DEBUG_ENVIRONMENT,
    )


def test_an_array_that_takes_long_is_interrupted_at_once(directory: Path):
    # The receiver keeps up, so that the sender never waits.
    code = """
        import numpy as np, ramway, signal, time
        def stop(*_):
            raise RuntimeError
        signal.signal(signal.SIGALRM, stop)
        tx = ramway.Ring.open("a").sender()
        array = np.zeros(1 << 28, "u1")
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        try:
            tx.send_array(array)
        except RuntimeError:
            print("stopped")
    """
    with ramway.Ring.create("a", capacity=1 << 20).receiver() as rx, Child(code) as child:
        with pytest.raises(ramway.ClosedError):
            while True:
                rx.recv_array("u1", 1 << 20, timeout=60)
        assert child.finish() == ["stopped"]
