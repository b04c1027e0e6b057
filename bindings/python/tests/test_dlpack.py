"""DLPack, either way."""

import gc
import sys
import threading
from pathlib import Path

import pytest
import ramway
from capsules import IS_COPIED, READ_ONLY, Consumed, Producer
from support import DEBUG, DEBUG_ENVIRONMENT, run

np = pytest.importorskip("numpy")

F32, U8, I16 = (2, 32, 1), (1, 8, 1), (0, 16, 1)


def sent(array, **options):
    tx, rx = ramway.Ring.pair(1 << 16)
    tx.send_tensor(array, **options)
    return rx.recv()


def test_a_tensor_is_lent_with_its_type_shape_and_strides():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    tensor = sent(array).tensor()
    assert tensor.__dlpack_device__() == (1, 0)
    lent = Consumed(tensor.__dlpack__(max_version=(1, 0)))
    assert lent.versioned and lent.managed.major == 1
    assert lent.flags == READ_ONLY
    assert (lent.tensor.device_type, lent.tensor.device_id) == (1, 0)
    assert (lent.tensor.code, lent.tensor.bits, lent.tensor.lanes) == F32
    assert (lent.shape, lent.strides) == ([2, 3, 4], [12, 4, 1])
    assert lent.tensor.data % 64 == 0
    assert lent.bytes(96) == array.tobytes()
    lent.delete()
    tensor.release()


def test_a_message_is_lent_as_bytes():
    tx, rx = ramway.Ring.pair(1 << 16)
    tx.send(b"hello")
    message = rx.recv()
    lent = Consumed(message.__dlpack__(max_version=(1, 1)))
    assert (lent.tensor.code, lent.tensor.bits, lent.tensor.lanes) == U8
    assert (lent.shape, lent.strides, lent.bytes(5)) == ([5], [1], b"hello")
    lent.delete()
    array = np.from_dlpack(message)
    assert array.tobytes() == b"hello" and not array.flags.writeable
    assert message.__dlpack_device__() == (1, 0)


def test_a_consumer_without_versions_is_refused_a_read_only_view():
    tensor = sent(np.arange(3, dtype=np.int16)).tensor()
    for asked in ({}, {"max_version": None}, {"max_version": (0, 8)}, {"copy": False}):
        with pytest.raises(BufferError, match=r"read-only.*copy=True.*writable_views=True"):
            tensor.__dlpack__(**asked)
    lent = Consumed(tensor.__dlpack__(copy=True))
    assert not lent.versioned
    tensor.release()
    assert lent.bytes(6) == np.arange(3, dtype=np.int16).tobytes()
    lent.delete()


def test_on_a_ring_with_writable_views_it_gets_one(directory: Path):
    with ramway.Ring.create("w", capacity=1 << 16).sender() as tx:
        with ramway.Ring.open("w", writable_views=True).receiver() as rx:
            tx.send_tensor(np.arange(3, dtype=np.int16))
            message = rx.recv()
            tensor = message.tensor()
            lent = Consumed(tensor.__dlpack__())
            assert not lent.versioned
            lent.delete()
            lent = Consumed(tensor.__dlpack__(max_version=(1, 0)))
            assert lent.versioned and lent.flags == 0
            lent.delete()
            array = np.from_dlpack(tensor)
            array += 1
            assert tensor.numpy().tolist() == [1, 2, 3]
            del array, tensor, message


def test_a_copy_is_the_consumers_own():
    tensor = sent(np.arange(300_000, dtype=np.int64)[:5]).tensor()
    lent = Consumed(tensor.__dlpack__(max_version=(1, 0), copy=True))
    assert lent.flags == IS_COPIED and lent.tensor.data % 64 == 0
    tensor.release()
    assert np.frombuffer(lent.bytes(40), np.int64).tolist() == [0, 1, 2, 3, 4]
    lent.delete()


def test_a_large_copy_lets_other_threads_run():
    tx, rx = ramway.Ring.pair(8 << 20)
    array = np.arange(4 << 20, dtype=np.uint8)
    tx.send_tensor(array)
    tensor = rx.recv().tensor()
    assert np.array_equal(np.from_dlpack(tensor, copy=True), array)


@pytest.mark.parametrize("asked", [{"stream": 1}, {"dl_device": (2, 0)}, {"dl_device": (1, 1)}])
def test_streams_and_other_devices_are_refused(asked):
    tensor = sent(np.zeros(3)).tensor()
    with pytest.raises(BufferError, match="CPU"):
        tensor.__dlpack__(max_version=(1, 0), **asked)
    Consumed(tensor.__dlpack__(stream=None, max_version=(1, 0), dl_device=(1, 0), copy=False)).delete()


def test_shapes_without_elements_and_without_dimensions():
    for shape in ((), (0,), (3, 0, 2), (1, 1, 1)):
        tensor = sent(np.zeros(shape, np.float32)).tensor()
        lent = Consumed(tensor.__dlpack__(max_version=(1, 0)))
        assert lent.shape == list(shape)
        lent.delete()
        assert np.from_dlpack(tensor).shape == shape


def test_a_capsule_keeps_the_message_until_it_is_dropped():
    message = sent(np.zeros(3))
    capsule = message.__dlpack__(max_version=(1, 0))
    with pytest.raises(BufferError):
        message.release()
    del capsule
    message.release()


def test_a_consumer_keeps_the_message_past_everything_else():
    tx, rx = ramway.Ring.pair(1 << 16)
    tx.send_tensor(np.arange(1000))
    lent = Consumed(rx.recv().tensor().__dlpack__(max_version=(1, 0)))
    assert rx.lent > 8000
    rx.close()
    tx.close()
    del rx, tx
    gc.collect()
    assert np.frombuffer(lent.bytes(8000), np.int64).tolist() == list(range(1000))
    lent.delete()


def test_a_consumer_may_delete_from_any_thread():
    tx, rx = ramway.Ring.pair(1 << 16)
    for _ in range(50):
        tx.send_tensor(np.arange(100))
        lent = Consumed(rx.recv().tensor().__dlpack__(max_version=(1, 0)))
        assert rx.lent > 0
        thread = threading.Thread(target=lent.delete)
        thread.start()
        thread.join()
        assert rx.lent == 0


def test_the_end_of_the_interpreter_with_capsules_and_views_alive(directory: Path):
    # As a module's globals, in a cycle, in a thread that still runs, and taken but never deleted.
    run(
        f"""
        import sys, threading
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import numpy as np, ramway
        from capsules import Consumed
        tx, rx = ramway.Ring.pair(1 << 16)
        def tensor():
            tx.send_tensor(np.arange(5))
            return rx.recv().tensor()
        capsule = tensor().__dlpack__(max_version=(1, 0))
        array = np.from_dlpack(tensor())
        view = memoryview(tensor())
        cycle = [tensor().numpy()]
        cycle.append(cycle)
        taken = Consumed(tensor().__dlpack__(max_version=(1, 0)))
        ready = threading.Event()
        def hold(array=tensor().numpy()):
            ready.set()
            threading.Event().wait()
        threading.Thread(target=hold, daemon=True).start()
        ready.wait()
        if sys.version_info < (3, 13):
            import ramway as module
            module.kept = np.from_dlpack(tensor())
        """,
        options=DEBUG,
        env=DEBUG_ENVIRONMENT,
    )


def test_a_view_that_ends_with_the_interpreter_closes_in_good_order(directory: Path):
    # The close is put off while a view lives; the deleter runs while the interpreter shuts down.
    with ramway.Ring.create("end", capacity=1 << 16).sender() as tx:
        tx.send_tensor(np.arange(5))
        run(
            """
            import builtins, numpy as np, ramway
            rx = ramway.Ring.open("end").receiver()
            builtins.kept = np.from_dlpack(rx.recv().tensor())
            rx.close()
            """,
            options=DEBUG,
            env=DEBUG_ENVIRONMENT,
        )
        with pytest.raises(ramway.ClosedError):
            while True:
                tx.send(bytes(1 << 12))


# What others give.


def received(producer):
    tx, rx = ramway.Ring.pair(1 << 16)
    tx.send_tensor(producer)
    tensor = rx.recv().tensor()
    return tensor.dtype, tensor.shape, tensor.numpy().tolist()


@pytest.mark.parametrize("version", [None, (1, 0), (1, 7)])
def test_a_capsule_of_either_kind_is_taken_and_given_back_once(version):
    memory = np.arange(6, dtype=np.int16).tobytes()
    producer = Producer(memory, I16, (2, 3), (3, 1), version=version)
    assert received(producer) == ("int16", (2, 3), [[0, 1, 2], [3, 4, 5]])
    assert producer.deleted == 1
    assert producer.asked["max_version"][0] == 1


def test_a_producer_that_knows_no_versions():
    memory = np.arange(6, dtype=np.int16).tobytes()
    producer = Producer(memory, I16, (6,), None, version=None, old_signature=True)
    assert received(producer) == ("int16", (6,), [0, 1, 2, 3, 4, 5])
    assert producer.deleted == 1


def test_strides_offsets_and_their_absence():
    memory = np.arange(12, dtype=np.int16).tobytes()
    for shape, strides, offset, expected in [
        ((3, 4), None, 0, np.arange(12).reshape(3, 4)),
        ((4, 3), (1, 4), 0, np.arange(12).reshape(3, 4).T),
        ((2, 2), (8, 2), 2, np.arange(12)[1:].reshape(-1)[[0, 2, 8, 10]].reshape(2, 2)),
        ((3,), (-4,), 16, np.array([8, 4, 0])),
        ((2, 3), (0, 1), 0, np.array([[0, 1, 2]] * 2)),
        ((), (), 4, np.array(2)),
        ((0, 3), (3, 1), 0, np.zeros((0, 3))),
    ]:
        got = received(Producer(memory, I16, shape, strides, offset=offset))
        assert got == ("int16", shape, expected.tolist())


def test_what_is_not_on_the_cpu_is_refused_with_what_to_do():
    for device, name in (((2, 1), "CUDA"), ((10, 0), "ROCm"), ((8, 0), "Metal"), ((99, 0), "type 99")):
        producer = Producer(b"\0" * 8, F32, (2,), None, device=device)
        with pytest.raises(ramway.InvalidArgumentError, match=rf"{name}.*\.cpu\(\)"):
            received(producer)
        assert producer.deleted == 0 and not producer.asked
    liar = Producer(b"\0" * 8, F32, (2,), None, device=(2, 0), told=(1, 0))
    with pytest.raises(ramway.InvalidArgumentError, match="CUDA"):
        received(liar)
    assert liar.deleted == 1
    assert received(Producer(b"\0" * 8, F32, (2,), None, device=(3, 0)))[1] == (2,)


@pytest.mark.parametrize("dtype", [(2, 32, 4), (3, 64, 1), (0, 4, 1), (2, 128, 1), (17, 4, 1), (200, 8, 1)])
def test_elements_that_no_tensor_has(dtype):
    producer = Producer(b"\0" * 64, dtype, (2,), None)
    with pytest.raises(ramway.InvalidArgumentError, match="DLPack"):
        received(producer)
    assert producer.deleted == 1


def test_another_major_version():
    producer = Producer(b"\0" * 8, F32, (2,), None, version=(2, 0))
    with pytest.raises(BufferError, match="DLPack 2"):
        received(producer)
    assert producer.deleted == 1


def test_nonsense_instead_of_a_capsule():
    class Nonsense:
        def __init__(self, gives):
            self.gives = gives

        def __dlpack__(self, **_):
            return self.gives

        def __dlpack_device__(self):
            return (1, 0)

    tx, rx = ramway.Ring.pair(1 << 16)
    used = rx_capsule = None
    tx.send(b"x")
    used = rx.recv().__dlpack__(max_version=(1, 0))
    taken = Consumed(used)
    for gives in (None, 5, used, rx_capsule):
        with pytest.raises(BufferError, match="no capsule"):
            tx.send_tensor(Nonsense(gives))
    taken.delete()
    with pytest.raises(BufferError, match="dimension of -2"):
        tx.send_tensor(Producer(b"\0" * 8, F32, (-2,), None))
    with pytest.raises(ramway.InvalidArgumentError, match="33 dimensions"):
        tx.send_tensor(Producer(b"\0" * 8, F32, (1,) * 33, None))


def test_what_a_producer_raises_goes_through():
    class Grumpy:
        def __dlpack__(self, **_):
            raise RuntimeError("not today")

        def __dlpack_device__(self):
            return (1, 0)

    tx, _rx = ramway.Ring.pair(1 << 16)
    with pytest.raises(RuntimeError, match="not today"):
        tx.send_tensor(Grumpy())
    tx.send(b"still open for use")


def test_a_received_tensor_can_be_sent_on():
    tensor = sent(np.arange(6, dtype=np.float16).reshape(3, 2)).tensor()
    assert received(tensor) == ("float16", (3, 2), [[0, 1], [2, 3], [4, 5]])
    assert sys.getrefcount(tensor) <= 3
    tensor.release()
