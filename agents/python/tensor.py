"""tensors: every element type and some shapes, as NumPy arrays."""

import zlib
from typing import Any

import ml_dtypes
import numpy as np
import ramway
from common import Args, BadMessage, Messages, attached, close, ended, receiving, say, sending
from numpy.typing import NDArray

TYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
    *("bfloat16", "complex64", "complex128", "bool", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)
SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (2, 3), (5, 0, 7), (3, 1, 5, 2), (257,), (*([1] * 31), 2))


def made(seq: int) -> tuple[NDArray[Any], str, int] | None:
    """Tensor number `seq`, its elements' name and its tag; None where that is an ordinary message."""
    if seq % 24 == 23:
        return None
    name = TYPES[seq % 24]
    shape = SHAPES[seq // 24 % 8]
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    values = 2 if name == "bool" else 256
    data = bytes((seq + i) % values for i in range(int(np.prod(shape, dtype=int)) * dtype.itemsize))
    return np.frombuffer(data, dtype).reshape(shape), name, tag_of(seq, data)


def tag_of(seq: int, data: bytes) -> int:
    return zlib.crc32(data) << 32 | seq & 0xFFFFFFFF


def aligned(seq: int, array: NDArray[Any]) -> None:
    off = array.ctypes.data % 64
    if off:
        raise BadMessage(seq, f"the elements begin {off} bytes after a multiple of 64")


def send(tx: ramway.Sender, args: Args, messages: Messages, seq: int) -> None:
    tensor = made(seq)
    if tensor is None:
        type_id, tag, data = messages.make(seq)
        tx.send(data, type_id, tag, timeout=args.limit)
        return
    array, name, tag = tensor
    if args.how != "reserve":
        tx.send_tensor(array, tag, timeout=args.limit)
        return
    with tx.reserve_tensor(array.shape, name, tag, timeout=args.limit) as slot:
        aligned(seq, slot.numpy())
        slot[...] = array


def check(seq: int, messages: Messages, message: ramway.Message) -> None:
    expected = made(seq)
    if expected is None:
        try:
            other = message.tensor()
        except ramway.InvalidArgumentError:
            messages.check(seq, message, message)
            return
        raise BadMessage(seq, f"an ordinary message as a tensor is {other}")
    wanted, name, tag = expected
    tensor = message.tensor()
    if (tensor.dtype, tensor.shape) != (name, wanted.shape):
        raise BadMessage(seq, f"{tensor} instead of {name} {wanted.shape}")
    array = tensor.numpy()
    if (array.dtype, array.shape) != (wanted.dtype, wanted.shape):
        raise BadMessage(seq, f"an array of {array.dtype}, {array.shape}")
    data = array.tobytes()
    # The tag of the bytes that came, so that each of them is read.
    if data != wanted.tobytes() or tag_of(seq, data) != message.tag or message.tag != tag:
        raise BadMessage(seq, f"other bytes, or the tag {message.tag:#x}")
    aligned(seq, array)


def tensors(args: Args) -> None:
    messages = Messages(32, 32)
    if args.role == "producer":
        tx = sending(args)
        attached(tx)
        for seq in range(args.count):
            send(tx, args, messages, seq)
        say(f"sent count={args.count} next={args.count}")
        close(tx)
        return
    rx = receiving(args)
    attached(rx)
    received = 0
    try:
        while True:
            with rx.recv(args.limit) as message:
                check(received, messages, message)
            received += 1
    except ramway.Error as error:
        say(ended(error, f" received={received}"))
    close(rx)
