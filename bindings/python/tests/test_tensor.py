"""Tensors: arrays that cross with their type and shape."""

import array
import ctypes
import pickle
import struct
import threading
from pathlib import Path

import pytest
import ramway
from support import DEBUG, DEBUG_ENVIRONMENT, Child, run

np = pytest.importorskip("numpy")

TYPE_ID = 0xFFFF_0001
OWN = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
]
FOREIGN = [
    *("bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
    *("float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
]
SHAPES = [(), (0,), (1,), (7,), (2, 3), (5, 0, 7), (3, 1, 5, 2), (1,) * 31 + (2,)]


def dtype_of(name):
    if name in OWN:
        return np.dtype(name)
    return np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))


def some(name, shape):
    """Elements that are not all alike."""
    dtype = dtype_of(name)
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.arange(count * dtype.itemsize, dtype=np.uint64).astype(np.uint8)
    return (raw % 2 if name == "bool" else raw).view(dtype).reshape(shape)


@pytest.fixture
def pair():
    tx, rx = ramway.Ring.pair(1 << 18)
    with tx, rx:
        yield tx, rx


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", OWN + FOREIGN)
def test_an_array_crosses_with_its_type_and_shape(pair, name, shape):
    tx, rx = pair
    sent = some(name, shape)
    tx.send_tensor(sent, tag=9)
    message = rx.recv()
    assert message.is_tensor and (message.type_id, message.tag) == (TYPE_ID, 9)
    tensor = message.tensor()
    assert (tensor.dtype, tensor.shape, tensor.ndim, tensor.nbytes) == (name, shape, len(shape), sent.nbytes)
    assert tensor.message is message
    got = tensor.numpy()
    assert same(got, sent)
    assert not got.flags.writeable and got.flags.c_contiguous and got.flags.aligned
    assert got.ctypes.data % 64 == 0 or got.size == 0
    assert same(np.asarray(tensor), sent)


@pytest.mark.parametrize("name", OWN + FOREIGN)
def test_the_slot_of_a_tensor(pair, name):
    tx, rx = pair
    sent = some(name, (3, 5))
    with tx.reserve_tensor((3, 5), dtype_of(name), tag=4) as slot:
        assert (slot.dtype, slot.shape, slot.ndim, slot.size, slot.nbytes) == (name, (3, 5), 2, 15, sent.nbytes)
        assert slot.open and slot.numpy().ctypes.data % 64 == 0
        slot[...] = sent
    assert not slot.open
    message = rx.recv()
    assert message.tag == 4 and same(message.tensor().numpy(), sent)


def test_the_buffer_of_a_tensor(pair):
    tx, rx = pair
    for name in OWN:
        sent = some(name, (2, 3, 4))
        tx.send_tensor(sent)
        view = memoryview(rx.recv().tensor())
        assert (view.shape, view.strides, view.readonly, view.nbytes) == ((2, 3, 4), sent.strides, True, sent.nbytes)
        assert same(np.asarray(view), sent)
        assert bytes(view) == sent.tobytes()
        if view.format[0] != "Z":
            assert struct.calcsize(view.format) == sent.itemsize
    tx.send_tensor(np.arange(6).reshape(2, 3))
    view = memoryview(rx.recv().tensor())
    assert view[1, 2] == 5 and view.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_tensor_without_a_buffer_format(pair):
    tx, rx = pair
    tx.send_tensor(some("bfloat16", (3,)))
    tensor = rx.recv().tensor()
    with pytest.raises(BufferError, match=r"bfloat16.*numpy\(\).*DLPack"):
        memoryview(tensor)
    assert tensor.numpy().shape == (3,)


def strided():
    base = np.arange(6 * 8 * 10, dtype=np.int32).reshape(6, 8, 10)
    yield from (
        ("F", np.asfortranarray(base)),
        ("transposed", base.T),
        ("permuted", base.transpose(1, 0, 2)),
        ("permuted, inner too", base.transpose(2, 0, 1)),
        ("rows", base[::2]),
        ("columns", base[:, 1:7]),
        ("inner", base[..., 2:9]),
        ("inner steps", base[..., ::3]),
        ("backwards", base[::-1, ::-1, ::-1]),
        ("colours", base.reshape(6, -1, 4)[..., [2, 1, 0]][..., ::-1]),
        ("broadcast", np.broadcast_to(base[0], (4, 8, 10))),
        ("broadcast inside", np.broadcast_to(base[:, :, :1], (6, 8, 10))),
        ("one of each", base[:1, :, :1]),
        ("diagonal", np.einsum("iij->ij", base[:6, :6])),
        ("every other, all", base[::2, ::2, ::2]),
    )


@pytest.mark.parametrize(("what", "sent"), list(strided()), ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("name", ["int8", "int16", "int32", "float64", "complex128"])
def test_strides_cross_as_c_order(pair, what, sent, name):
    tx, rx = pair
    # Same strides in elements, another size.
    sent = np.lib.stride_tricks.as_strided(
        np.arange(-2000, 2000).astype(name)[2000:],
        sent.shape,
        [stride // 4 * np.dtype(name).itemsize for stride in sent.strides],
    )
    tx.send_tensor(sent)
    assert same(rx.recv().tensor().numpy(), np.ascontiguousarray(sent).reshape(sent.shape)), what


def test_large_strided_and_contiguous_arrays_without_the_lock():
    tx, rx = ramway.Ring.pair(64 << 20)
    sent = np.arange(3 << 20, dtype=np.float32).reshape(1024, -1)
    for case in (sent, sent.T, sent[::2, ::-1]):
        tx.send_tensor(case)
        assert np.array_equal(rx.recv().tensor().numpy(), case)


def test_another_byte_order_crosses_by_value(pair):
    tx, rx = pair
    tx.send_tensor(np.arange(5, dtype=">f8"))
    got = rx.recv().tensor().numpy()
    assert got.dtype == np.dtype("<f8") and got.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ramway.InvalidArgumentError, match="little-endian"):
        tx.reserve_tensor(3, ">f8")


def test_arrays_that_are_not_numpys(pair):
    tx, rx = pair
    for sent, dtype, shape, values in [
        (b"abc", "uint8", (3,), [97, 98, 99]),
        (bytearray(2), "uint8", (2,), [0, 0]),
        (array.array("d", [1.5, 2.5]), "float64", (2,), [1.5, 2.5]),
        (array.array("q", [-1]), "int64", (1,), [-1]),
        (memoryview(b"abcdef").cast("B", (2, 3)), "uint8", (2, 3), [[97, 98, 99], [100, 101, 102]]),
        (memoryview(b"abcdef")[::2], "uint8", (3,), [97, 99, 101]),
        (((ctypes.c_int32 * 2) * 3)((1, 2), (3, 4), (5, 6)), "int32", (3, 2), [[1, 2], [3, 4], [5, 6]]),
        (np.float32(7), "float32", (), 7.0),
        (np.bool_(True), "bool", (), True),
    ]:
        tx.send_tensor(sent)
        tensor = rx.recv().tensor()
        assert (tensor.dtype, tensor.shape, tensor.numpy().tolist()) == (dtype, shape, values)


def test_something_with_an_array_of_its_own(pair):
    tx, rx = pair

    class Picture:
        def __array__(self, dtype=None, copy=None):
            return np.eye(2, dtype=np.int8)

    tx.send_tensor(Picture())
    assert rx.recv().tensor().numpy().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (np.array(["a"]), "<U1"),
        (np.array([b"a"]), "S1"),
        (np.array([object()]), "object"),
        (np.zeros(2, "datetime64[s]"), r"view\('int64'\)"),
        (np.zeros(2, [("a", "i4")]), "send_array"),
        (np.zeros(2, np.longdouble), "128"),
        (array.array("w" if "w" in array.typecodes else "u", "a"), "format"),
        (memoryview(np.zeros(2, [("a", "i4")])), "send_array"),
        (memoryview(np.zeros(2, ">f4")), "byte order"),
        ([1, 2], "np.asarray"),
        ({}, "no array"),
        (3.5, "no array"),
        (None, "no array"),
    ],
    ids=lambda x: str(type(x).__name__),
)
def test_what_is_no_tensor(pair, sent, why):
    tx, rx = pair
    with pytest.raises(ramway.InvalidArgumentError, match=why):
        tx.send_tensor(sent)
    assert rx.try_recv() is None
    tx.send(b"goes on")
    assert bytes(rx.recv()) == b"goes on"


def test_more_dimensions_than_there_can_be(pair):
    tx, _ = pair
    with pytest.raises(ramway.InvalidArgumentError, match="33 dim"):
        tx.send_tensor(np.zeros((1,) * 33))
    with pytest.raises(ramway.InvalidArgumentError, match="33 dim"):
        tx.reserve_tensor((1,) * 33, "int8")


def test_a_tensor_that_never_fits_and_one_that_does_not_fit_now(pair):
    tx, _ = pair
    with pytest.raises(ramway.TooLargeError):
        tx.send_tensor(np.zeros(1 << 18, np.uint8))
    with pytest.raises(ramway.TooLargeError):
        tx.reserve_tensor(1 << 40, "float64")
    with pytest.raises(ramway.InvalidArgumentError, match="2\\^63"):
        tx.reserve_tensor((1 << 40, 1 << 40), "float64")
    tx.send_tensor(np.zeros(200_000, np.uint8))
    with pytest.raises(ramway.TimedOutError):
        tx.send_tensor(np.zeros(200_000, np.uint8), timeout=0)
    with pytest.raises(ramway.TimedOutError):
        tx.reserve_tensor(200_000, "uint8", timeout=0.01)


def test_a_message_that_is_no_tensor(pair):
    tx, rx = pair
    tx.send(b"x" * 80, 5)
    message = rx.recv()
    assert not message.is_tensor
    with pytest.raises(ramway.InvalidArgumentError, match="0x5"):
        message.tensor()
    assert bytes(message[:2]) == b"xx"
    with pytest.raises(ramway.InvalidArgumentError):
        tx.send(b"", TYPE_ID)


def test_names_of_element_types(pair):
    tx, rx = pair
    for name in ("float32", "f4", np.float32, np.dtype("f4"), "single"):
        slot = tx.reserve_tensor(2, name)
        assert (slot.dtype, slot.shape) == ("float32", (2,))
        slot.abort()
    for dtype in ("bfloat16", "float8_e5m2"):
        tx.reserve_tensor([2, 2], dtype).abort()
    with pytest.raises(TypeError):
        tx.reserve_tensor(2, "float31")
    for bad in ("M8[s]", "O", [("a", "i4")], "U3"):
        with pytest.raises(ramway.InvalidArgumentError):
            tx.reserve_tensor(2, bad)
    for bad in (-1, (2, -1)):
        with pytest.raises(ramway.InvalidArgumentError, match="shape"):
            tx.reserve_tensor(bad, "int8")
    with pytest.raises(TypeError):
        tx.reserve_tensor("ab", "int8")
    assert rx.try_recv() is None


# Slots.


def test_ufuncs_write_into_a_slot(pair):
    tx, rx = pair
    a, b = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    with tx.reserve_tensor((2, 3), "float64") as slot:
        assert np.add(a, b, out=slot) is slot
        assert np.multiply(slot, 2, out=slot) is slot
        assert np.matmul(np.eye(2), a, out=slot) is slot
        np.add(slot, 1, out=(slot,))
        assert np.add.reduce(slot, axis=0).tolist() == (a + 1).sum(0).tolist()
        assert np.sin(slot).shape == (2, 3)
        fraction, whole = np.modf(a, out=(np.empty((2, 3)), slot))
        assert whole is slot and fraction.sum() == 0
    assert rx.recv().tensor().numpy().tolist() == a.tolist()


def test_a_slot_is_an_array(pair):
    tx, rx = pair
    with tx.reserve_tensor((2, 2), "int32") as slot:
        array = np.asarray(slot)
        array[:] = [[1, 2], [3, 4]]
        assert np.asarray(slot, dtype="f8").tolist() == [[1, 2], [3, 4]]
        assert np.array(slot).tolist() == [[1, 2], [3, 4]]
        with pytest.raises(ValueError):
            np.asarray(slot, dtype="f8", copy=False)
        assert slot[1].tolist() == [3, 4] and len(slot) == 2
        slot[0, 0] = 9
        lent = np.from_dlpack(slot)
        assert lent.flags.writeable
        lent[1, 1] = 8
        assert slot.__dlpack_device__() == (1, 0)
        del lent, array
    assert rx.recv().tensor().numpy().tolist() == [[9, 2], [3, 8]]


def test_a_slot_without_dimensions_and_one_without_elements(pair):
    tx, rx = pair
    with tx.reserve_tensor((), "float64") as slot:
        slot[...] = 2.5
        with pytest.raises(TypeError):
            len(slot)
    with tx.reserve_tensor((0, 3), "float64") as slot:
        assert slot.numpy().shape == (0, 3)
    assert rx.recv().tensor().numpy() == 2.5
    tensor = rx.recv().tensor()
    assert tensor.shape == (0, 3) and tensor.numpy().shape == (0, 3) and len(tensor) == 0


def test_an_exception_aborts_the_slot_and_a_decision_stays(pair):
    tx, rx = pair
    with pytest.raises(KeyError):
        with tx.reserve_tensor(3, "int8") as slot:
            raise KeyError
    assert not slot.open and rx.try_recv() is None
    with tx.reserve_tensor(3, "int8") as slot:
        slot[...] = 1
        slot.tag = 77
        slot.commit()
    with tx.reserve_tensor(3, "int8") as slot:
        slot.abort()
        slot.abort()
    message = rx.recv()
    assert message.tag == 77 and message.tensor().numpy().tolist() == [1, 1, 1]
    assert rx.try_recv() is None
    for call in (slot.commit, slot.numpy, lambda: np.add(1, 1, out=slot), lambda: slot.__setitem__(0, 1)):
        with pytest.raises(ramway.DetachedError):
            call()


def test_one_slot_at_a_time(pair):
    tx, _ = pair
    slot = tx.reserve_tensor(3, "int8")
    with pytest.raises(ramway.BusyError):
        tx.reserve_tensor(3, "int8")
    with pytest.raises(ramway.BusyError):
        tx.send_tensor(b"x")
    slot.abort()
    tx.send_tensor(b"x")
    tx.reserve_tensor(3, "int8")
    # It went with its last reference.
    tx.send_tensor(b"x")


def test_an_unflushed_commit(pair):
    tx, rx = pair
    slot = tx.reserve_tensor(3, "int8")
    slot[...] = 1
    slot.commit(flush=False)
    assert rx.try_recv() is None
    tx.flush()
    assert rx.recv().tensor().numpy().tolist() == [1, 1, 1]


def test_views_that_outlive_the_commit_are_cut_off(pair):
    tx, rx = pair
    slot = tx.reserve_tensor((2, 2), "int32")
    view, lent = slot.numpy(), np.from_dlpack(slot)
    view[...] = 5
    slot.commit()
    message = rx.recv()
    view[...] = 6
    assert lent.tolist() == [[6, 6], [6, 6]]
    assert message.tensor().numpy().tolist() == [[5, 5], [5, 5]]
    slot = tx.reserve_tensor((2, 2), "int32")
    slot[...] = 1
    assert view.tolist() == [[6, 6], [6, 6]]
    slot.abort()
    tx.close()
    assert view.sum() == 24


# Lifetimes.


def views(tensor):
    yield "numpy", tensor.numpy()
    yield "asarray", np.asarray(tensor)
    yield "slice of it", tensor.numpy()[1:]
    yield "memoryview", memoryview(tensor)
    yield "dlpack", np.from_dlpack(tensor)
    yield "capsule", tensor.__dlpack__(max_version=(1, 0))


@pytest.mark.parametrize("which", range(6))
def test_a_view_keeps_its_message(pair, which):
    tx, rx = pair
    tx.send_tensor(np.arange(5))
    tensor = rx.recv().tensor()
    name, view = list(views(tensor))[which]
    for release in (tensor.release, tensor.message.release):
        with pytest.raises(BufferError):
            release()
    with tensor:
        pass
    assert not tensor.message.released
    message = tensor.message
    del tensor
    assert rx.lent > 0, name
    del view
    assert message.released and rx.lent == 0


def test_a_released_tensor_gives_no_more_views(pair):
    tx, rx = pair
    tx.send_tensor(np.arange(5))
    with rx.recv().tensor() as tensor:
        assert tensor.numpy().sum() == 10
    assert tensor.message.released
    for call in (
        tensor.numpy,
        lambda: memoryview(tensor),
        lambda: tensor.__dlpack__(max_version=(1, 0)),
        tensor.message.tensor,
    ):
        with pytest.raises(ramway.DetachedError):
            call()
    assert (tensor.dtype, tensor.shape) == ("int64", (5,))
    tensor.release()


def test_views_stay_what_they_are_while_the_ring_goes_round(pair):
    tx, rx = pair
    tx.send_tensor(np.full(1000, 7))
    kept = rx.recv().tensor().numpy()
    held = 0
    with pytest.raises(ramway.TimedOutError):
        while True:
            tx.send_tensor(np.zeros(1000), timeout=0)
            held += 1
            rx.recv().release()
    assert held > 10 and kept.tolist() == [7] * 1000
    del kept
    tx.send_tensor(np.zeros(1000), timeout=0)


def test_the_last_view_may_go_on_another_thread(pair):
    tx, rx = pair
    for _ in range(20):
        tx.send_tensor(np.arange(5))
        box = [rx.recv().tensor().numpy()]
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        assert rx.lent == 0


def test_a_tensor_is_not_written_to_nor_pickled(pair):
    tx, rx = pair
    tx.send_tensor(np.arange(5))
    tensor = rx.recv().tensor()
    with pytest.raises(ValueError):
        tensor.numpy()[0] = 1
    with pytest.raises(ValueError):
        tensor.numpy().flags.writeable = True
    with pytest.raises(TypeError):
        pickle.dumps(tensor)
    with pytest.raises(TypeError):
        pickle.dumps(tx.reserve_tensor(1, "int8"))
    assert "int64" in repr(tensor) and "[5]" in repr(tensor)


def test_conversions_of_a_tensor(pair):
    tx, rx = pair
    tx.send_tensor(np.arange(3, dtype=np.int16))
    tensor = rx.recv().tensor()
    assert np.asarray(tensor, dtype="f8").dtype == np.float64
    assert np.array(tensor, copy=True).flags.writeable
    assert tensor.__array__(copy=True).flags.owndata
    assert tensor.__array__("int16").dtype == np.int16
    with pytest.raises(ValueError):
        tensor.__array__("f8", copy=False)
    assert len(tensor) == 3


def test_two_processes(directory: Path):
    code = """
        import numpy as np, ramway
        tx = ramway.Ring.open("t").sender()
        for n in range(200):
            with tx.reserve_tensor((n % 7, 30), "float32", tag=n) as slot:
                np.multiply(np.ones((n % 7, 30), "float32"), n, out=slot)
            tx.send_tensor(np.full((2, n), n, "int64")[:, ::2], tag=n)
    """
    with ramway.Ring.create("t", capacity=1 << 16).receiver() as rx, Child(code) as child:
        for n in range(200):
            first, second = rx.recv(timeout=60), rx.recv(timeout=60)
            assert (first.tag, second.tag) == (n, n)
            assert same(first.tensor().numpy(), np.full((n % 7, 30), n, "float32"))
            assert same(second.tensor().numpy(), np.ascontiguousarray(np.full((2, n), n, "int64")[:, ::2]))
            del first, second
        child.finish()


def test_without_ml_dtypes_the_error_says_what_to_install(directory: Path):
    pytest.importorskip("ml_dtypes")
    with ramway.Ring.create("m", capacity=1 << 16).sender() as tx:
        tx.send_tensor(some("bfloat16", (3,)))
        assert run(
            """
            import sys
            sys.modules["ml_dtypes"] = None
            import ramway
            tensor = ramway.Ring.open("m").receiver().recv().tensor()
            try:
                tensor.numpy()
            except ramway.UnsupportedError as error:
                print(error)
            print(tensor.dtype, tensor.shape)
            """
        ) == ["bfloat16 needs ml_dtypes: pip install ml_dtypes", "bfloat16 (3,)"]


def test_without_numpy_tensors_go_by_buffers(directory: Path):
    assert run(
        """
        import array, sys
        sys.modules["numpy"] = None
        import ramway
        tx, rx = ramway.Ring.pair(1 << 16)
        tx.send_tensor(array.array("f", [1, 2]))
        with tx.reserve_tensor(4, "float32") as slot:
            pass
        tensor = rx.recv().tensor()
        print(memoryview(tensor).tolist())
        try:
            tensor.numpy()
        except ramway.UnsupportedError as error:
            print(error)
        """
    ) == ["[1.0, 2.0]", "this needs numpy: pip install numpy"]


def test_everything_under_the_debug_allocator(directory: Path):
    run(
        """
        import gc, numpy as np, ramway
        tx, rx = ramway.Ring.pair(1 << 16)
        kept = []
        for n in range(300):
            array = np.arange(n % 50, dtype=np.int32)
            tx.send_tensor(array[::-1])
            with tx.reserve_tensor(array.shape, "int32") as slot:
                np.add(array, n, out=slot)
                if n % 3 == 0:
                    kept.append(slot.numpy())
            for expected in (array[::-1], array + n):
                tensor = rx.recv().tensor()
                for view in (tensor.numpy(), np.from_dlpack(tensor), np.asarray(memoryview(tensor))):
                    assert view.tolist() == expected.tolist()
                if n % 7 == 0:
                    kept.append(view)
            if len(kept) > 20:
                kept.pop(0)
                kept.append([kept.pop(0)])
                kept[-1].append(kept[-1])
            if n % 50 == 0:
                gc.collect()
        """,
        options=DEBUG,
        env=DEBUG_ENVIRONMENT,
    )


def test_nothing_is_left_behind(directory: Path):
    run(
        """
        import gc, resource, sys
        import numpy as np, ramway
        from array import array
        tx, rx = ramway.Ring.pair(1 << 20)
        sent, strided, plain = np.arange(60.0).reshape(3, 4, 5), np.arange(60.0).reshape(3, 4, 5).T, array("d", [1, 2])
        def once():
            for x in (sent, strided, plain, np.float32(1)):
                tx.send_tensor(x)
                tensor = rx.recv().tensor()
                tensor.numpy(), memoryview(tensor), np.from_dlpack(tensor), np.asarray(tensor)
                tensor.__dlpack__(max_version=(1, 0)), tensor.__dlpack__(copy=True)
                tx.send_tensor(tensor)
                rx.recv().numpy()
            with tx.reserve_tensor((3, 4), "float64") as slot:
                np.add(1, 2, out=slot)
                slot.numpy(), np.from_dlpack(slot)
            rx.recv().tensor().release()
            tx.send_array(sent)
            rx.recv_array("(4,5)f8", 9)
            for call, arguments in ((tx.send_tensor, "x"), (rx.recv_array, ("O", 1)), (tx.reserve_tensor, (-1, "u1"))):
                try:
                    call(*arguments)
                except ramway.InvalidArgumentError:
                    pass
        def used():
            gc.collect()
            return sys.getallocatedblocks(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(500):
            once()
        before = used()
        for _ in range(2000):
            once()
        after = used()
        assert after[0] - before[0] < 1000, (before, after)
        assert after[1] - before[1] < 4096, (before, after)
        """
    )
