"""DLPack by hand (ctypes): a consumer that looks at capsules, and a producer of whatever capsule a test wants."""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

api = ctypes.pythonapi
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

READ_ONLY, IS_COPIED = 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


# Called with the interpreter lock given up, as a consumer in C++ would.
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


class Legacy(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Consumed:
    """A tensor that was taken out of its capsule, until `delete`."""

    def __init__(self, capsule: object) -> None:
        name = api.PyCapsule_GetName(capsule)
        self.versioned = name == b"dltensor_versioned"
        assert self.versioned or name == b"dltensor", name
        self.address = api.PyCapsule_GetPointer(capsule, name)
        api.PyCapsule_SetName(capsule, b"used_" + name)
        kind = Versioned if self.versioned else Legacy
        self.managed: Any = kind.from_address(self.address)
        self.tensor = self.managed.tensor
        self.flags = self.managed.flags if self.versioned else 0

    @property
    def shape(self) -> list[int]:
        return self.tensor.shape[: self.tensor.ndim]

    @property
    def strides(self) -> list[int]:
        return self.tensor.strides[: self.tensor.ndim]

    def bytes(self, n: int) -> bytes:
        return ctypes.string_at(self.tensor.data + self.tensor.byte_offset, n)

    def delete(self) -> None:
        self.managed.deleter(self.address)


class Producer:
    """Something with `__dlpack__`. `memory` are the elements' bytes, the first one at `offset`."""

    def __init__(
        self,
        memory: bytes,
        dtype: tuple[int, int, int],
        shape: Sequence[int],
        strides: Sequence[int] | None,
        *,
        offset: int = 0,
        device: tuple[int, int] = (1, 0),
        version: tuple[int, int] | None = (1, 0),
        told: tuple[int, int] | None = None,
        old_signature: bool = False,
    ) -> None:
        self.buffer = ctypes.create_string_buffer(memory, len(memory))
        self.shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(1, len(strides)))(*strides)
        self.deleted = 0
        self.asked: dict[str, Any] = {}
        self._told = told or device
        self._deleter = Deleter(self._delete)
        tensor = Tensor(ctypes.addressof(self.buffer), *device, len(shape), *dtype, self.shape, self.strides, offset)
        self.managed: Any = (
            Legacy(tensor, None, self._deleter)
            if version is None
            else Versioned(*version, None, self._deleter, 0, tensor)
        )
        self.__dlpack__: Callable[..., object] = self._old if old_signature else self._new

    def _delete(self, _: int) -> None:
        self.deleted += 1

    def _new(self, *, stream: None = None, max_version: tuple[int, int] | None = None) -> object:
        self.asked = {"stream": stream, "max_version": max_version}
        name = b"dltensor" if isinstance(self.managed, Legacy) else b"dltensor_versioned"
        return api.PyCapsule_New(ctypes.addressof(self.managed), name, None)

    def _old(self, stream: None = None) -> object:
        return self._new(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._told
