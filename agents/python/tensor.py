"""tensor, and a tensor that is taken: as NumPy arrays."""

from math import prod

import ml_dtypes
import numpy as np
import ramway
from line import Line, ended, say
from message import BadMessage

TYPES = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"),
    *("bfloat16", "complex64", "complex128", "bool", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"),
    *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
)


def send(tx: ramway.Sender, line: Line) -> None:
    name, tag, in_place = TYPES[line.number("type")], line.number("tag"), line.yes("reserve")
    shape = tuple(int(dim) for dim in line.text("shape").split("x") if dim)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    array = np.frombuffer(bytes.fromhex(line.text("data")), dtype).reshape(shape)
    line.end()
    offset = 0
    try:
        if in_place:
            with tx.reserve_tensor(shape, name, tag) as slot:
                offset = slot.numpy().ctypes.data % 64
                slot[...] = array
        else:
            tx.send_tensor(array, tag)
    except ramway.Error as error:
        say(ended(error))
        return
    say(f"sent offset={offset}")


def describe(message: ramway.Message) -> str | None:
    """The event; None for an ordinary message."""
    try:
        tensor = message.tensor()
    except ramway.InvalidArgumentError:
        return None
    array = tensor.numpy()
    expected = np.dtype(getattr(ml_dtypes, tensor.dtype, tensor.dtype))
    if (array.dtype, array.shape) != (expected, tensor.shape) or array.size != prod(tensor.shape):
        raise BadMessage(message.tag & 0xFFFFFFFF, f"an array of {array.dtype}, {array.shape} for {tensor}")
    shape = "x".join(map(str, tensor.shape))
    offset, data = array.ctypes.data % 64, array.tobytes().hex()
    return f"tensor type={TYPES.index(tensor.dtype)} shape={shape} tag={message.tag} offset={offset} data={data}"
