"""JAX takes tensors where they are, and sends its own."""

import gc

import pytest
import ramway

jax = pytest.importorskip("jax")
np = pytest.importorskip("numpy")

import jax.numpy as jnp  # noqa: E402

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)


@pytest.fixture
def pair():
    tx, rx = ramway.Ring.pair(1 << 20)
    with tx, rx:
        yield tx, rx


def addresses(tensor, array):
    return np.asarray(memoryview(tensor)).ctypes.data, array.unsafe_buffer_pointer()


@pytest.mark.parametrize("name", ["int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64"])
def test_a_received_tensor_is_a_jax_array_without_a_copy(pair, name):
    tx, rx = pair
    sent = np.arange(60).astype(name).reshape(3, 4, 5)
    tx.send_tensor(sent)
    tensor = rx.recv().tensor()
    array = jax.dlpack.from_dlpack(tensor)
    assert (array.dtype, array.shape) == (sent.dtype, sent.shape)
    ours, theirs = addresses(tensor, array)
    assert ours == theirs and ours % 64 == 0
    assert np.array_equal(array, sent)
    assert np.array_equal(jnp.sum(array * 2, axis=0), (sent * 2).sum(axis=0))


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "bool"])
def test_types_that_numpy_does_not_have(pair, name):
    tx, rx = pair
    sent = jnp.asarray(np.arange(12).reshape(3, 4) % 2, dtype=name)
    tx.send_tensor(sent)
    tensor = rx.recv().tensor()
    assert (tensor.dtype, tensor.shape) == (name, (3, 4))
    array = jax.dlpack.from_dlpack(tensor)
    assert array.dtype == sent.dtype and bool(jnp.all(array == sent))
    assert tensor.numpy().dtype == sent.dtype


def test_a_jax_array_is_sent_with_its_type(pair):
    tx, rx = pair
    for sent in (
        jnp.arange(12, dtype=jnp.bfloat16).reshape(3, 4),
        jnp.float32(2.5),
        jnp.zeros((0, 3)),
        jnp.arange(6.0).reshape(2, 3).T,
        jax.jit(lambda x: x + 1)(jnp.arange(4, dtype=jnp.int8)),
    ):
        tx.send_tensor(sent)
        got = rx.recv().tensor().numpy()
        assert (got.dtype, got.shape) == (sent.dtype, sent.shape)
        assert got.tobytes() == np.asarray(sent).tobytes()


def test_types_of_jax_name_those_of_slots(pair):
    tx, rx = pair
    with tx.reserve_tensor((2, 2), jnp.bfloat16) as slot:
        slot[...] = jnp.ones((2, 2), jnp.bfloat16)
    assert rx.recv().tensor().numpy().astype("f4").tolist() == [[1, 1], [1, 1]]


def test_an_array_keeps_its_message(pair):
    tx, rx = pair
    tx.send_tensor(np.arange(1000.0))
    tensor = rx.recv().tensor()
    array = jax.dlpack.from_dlpack(tensor)
    with pytest.raises(BufferError):
        tensor.release()
    del tensor
    gc.collect()
    assert rx.lent > 8000
    assert float(array.sum()) == 499500.0
    array.block_until_ready()
    del array
    gc.collect()
    assert rx.lent == 0


def test_messages_as_bytes(pair):
    tx, rx = pair
    tx.send(b"hello")
    assert bytes(np.asarray(jax.dlpack.from_dlpack(rx.recv()))) == b"hello"
