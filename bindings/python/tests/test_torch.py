"""PyTorch takes tensors where they are, and sends its own."""

import gc
import signal
import warnings
from pathlib import Path

import pytest
import ramway
from support import Child

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

NAMES = [
    *("int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64", "bfloat16"),
    *("complex64", "complex128", "bool"),
]


@pytest.fixture
def pair():
    tx, rx = ramway.Ring.pair(1 << 20)
    with tx, rx:
        yield tx, rx


@pytest.mark.parametrize("name", NAMES)
def test_a_tensor_crosses_both_ways_without_a_copy_at_the_receiver(pair, name):
    tx, rx = pair
    sent = (torch.arange(60) % 2 if name == "bool" else torch.arange(60)).reshape(3, 4, 5).to(getattr(torch, name))
    tx.send_tensor(sent)
    tensor = rx.recv().tensor()
    assert (tensor.dtype, tensor.shape) == (name, (3, 4, 5))
    got = torch.from_dlpack(tensor)
    assert (got.dtype, got.shape, got.device.type) == (sent.dtype, sent.shape, "cpu")
    assert torch.equal(got, sent)
    assert got.data_ptr() % 64 == 0
    assert got.data_ptr() - np.frombuffer(tensor.message, "u1").ctypes.data == len(tensor.message) - tensor.nbytes


def test_strided_and_special_tensors(pair):
    tx, rx = pair
    base = torch.arange(60.0).reshape(3, 4, 5)
    for sent in (
        base.permute(2, 0, 1),
        base[:, ::2],
        torch.tensor(2.5),
        base[:0],
        base.expand(2, 3, 4, 5),
    ):
        tx.send_tensor(sent)
        assert torch.equal(torch.from_dlpack(rx.recv().tensor()), sent)
    with pytest.raises((BufferError, RuntimeError), match="grad"):
        tx.send_tensor(torch.zeros(3, requires_grad=True))
    tx.send_tensor(torch.zeros(3, requires_grad=True).detach())
    assert rx.recv().tensor().shape == (3,)


def test_a_slot_is_written_by_torch(pair):
    tx, rx = pair
    for dtype in (torch.float32, torch.bfloat16):
        with tx.reserve_tensor((2, 3), dtype) as slot:
            out = torch.from_dlpack(slot)
            torch.add(torch.ones(2, 3, dtype=dtype), 1, out=out)
            del out
        assert torch.from_dlpack(rx.recv().tensor()).tolist() == [[2, 2, 2], [2, 2, 2]]


def test_a_tensor_of_torchs_keeps_its_message(pair):
    tx, rx = pair
    tx.send_tensor(torch.arange(1000))
    tensor = rx.recv().tensor()
    view = torch.from_dlpack(tensor)[500:]
    with pytest.raises(BufferError):
        tensor.release()
    del tensor
    gc.collect()
    assert rx.lent > 8000 and view[0] == 500
    del view
    gc.collect()
    assert rx.lent == 0


def test_a_ring_with_writable_views_is_computed_on_in_place(directory: Path):
    with ramway.Ring.create("w", capacity=1 << 16).sender() as tx:
        with ramway.Ring.open("w", writable_views=True).receiver() as rx:
            tx.send_tensor(torch.arange(4.0))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                view = torch.from_dlpack(rx.recv().tensor())
            view += 1
            assert view.tolist() == [1, 2, 3, 4]
            del view


def test_a_copy(pair):
    tx, rx = pair
    tx.send_tensor(torch.arange(4.0))
    tensor = rx.recv().tensor()
    copy = torch.from_dlpack(tensor.__dlpack__(copy=True))
    tensor.release()
    copy += 1
    assert copy.tolist() == [1, 2, 3, 4]


def test_writing_in_place_to_a_read_only_tensor_ends_the_process(directory: Path):
    # As the documentation says: PyTorch does not look at the read-only flag. Should it begin to, mend that too.
    code = """
        import resource, torch, ramway
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        tx, rx = ramway.Ring.pair(1 << 16)
        tx.send_tensor(torch.arange(4.0))
        tensor = torch.from_dlpack(rx.recv().tensor())
        assert torch.equal(tensor + 1, torch.arange(1.0, 5.0))
        tensor += 1
    """
    with Child(code) as child:
        assert child.wait() == -signal.SIGSEGV
