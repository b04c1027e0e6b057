"""Room for a tensor that is computed where it is sent from."""

from __future__ import annotations

import math
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from . import _ramway

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import DTypeLike, NDArray

__all__ = ["TensorSlot"]


class TensorSlot:
    """Reserved room for a tensor, in C order, on a multiple of 64 bytes: what `Sender.reserve_tensor` gives.

    NumPy writes into it in place, without a copy on this side::

        with tx.reserve_tensor((1080, 1920, 3), "uint8") as slot:
            np.multiply(frame, 2, out=slot.numpy())  # or: slot[...] = frame

    A slot itself may stand where a ufunc writes (``out=slot``) too, which type checkers do not know.

    Without a commit the end of the block commits; an exception inside aborts. Until then the memory holds whatever an
    earlier message left there. A view that is still alive at the commit keeps a private copy of the elements, which
    costs that copy and a few page faults.
    """

    __slots__ = ("__weakref__", "_array", "_offset", "_slot", "dtype", "nbytes", "shape")

    #: The elements' type, by NumPy's or ml_dtypes' name.
    dtype: str
    #: The dimensions, the outermost first.
    shape: tuple[int, ...]
    #: Bytes of all elements.
    nbytes: int

    def __init__(self, slot: _ramway.Slot, shape: tuple[int, ...], dtype: str, offset: int, nbytes: int) -> None:
        self._slot = slot
        self._offset = offset
        # The view that the methods here write through; dropped before a commit, which then copies nothing for it.
        self._array: NDArray[Any] | None = None
        self.shape = shape
        self.dtype = dtype
        self.nbytes = nbytes

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def open(self) -> bool:
        """Whether it was neither committed nor aborted."""
        return self._slot.open

    @property
    def tag(self) -> int:
        """The message's tag. May be set."""
        return self._slot.tag

    @tag.setter
    def tag(self, tag: int) -> None:
        self._slot.tag = tag

    def numpy(self) -> NDArray[Any]:
        """A writable NumPy array of the elements. Raises DetachedError after the commit, UnsupportedError for
        bfloat16 and the float8s without the package ml_dtypes."""
        return _ramway._slot_array(self._slot, self.shape, self.dtype, self._offset)

    def commit(self, *, flush: bool = True) -> None:
        """Sends the tensor: visible at once, or with flush=False at the next flush, send or commit."""
        self._array = None
        _ramway._commit_tensor(self._slot, self._offset + self.nbytes, flush)

    def abort(self) -> None:
        """Gives the room back; nothing is sent. Does nothing after a commit or abort."""
        self._array = None
        self._slot.abort()

    def _view(self) -> NDArray[Any]:
        if self._array is None or not self._slot.open:
            self._array = self.numpy()
        return self._array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"{self.dtype} as {dtype}: not without a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Lets a slot stand where a ufunc reads or writes an array: np.add(a, b, out=slot)."""
        out = kwargs.get("out", ())
        if out:
            kwargs["out"] = tuple(x._view() if isinstance(x, TensorSlot) else x for x in out)
        result = getattr(ufunc, method)(*(x._view() if isinstance(x, TensorSlot) else x for x in inputs), **kwargs)
        # What was written into a slot is that slot, not one more view of it.
        if isinstance(result, tuple) and len(result) == len(out):
            return tuple(y if isinstance(y, TensorSlot) else x for x, y in zip(result, out, strict=True))
        if len(out) == 1 and isinstance(out[0], TensorSlot) and result is kwargs["out"][0]:
            return out[0]
        return result

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A writable DLPack capsule: torch.from_dlpack(slot).copy_(tensor)."""
        return _ramway._slot_dlpack(
            self._slot,
            self.shape,
            self.dtype,
            self._offset,
            stream=stream,
            max_version=max_version,
            dl_device=dl_device,
            copy=copy,
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __getitem__(self, key: Any) -> Any:
        return self.numpy()[key]

    def __setitem__(self, key: int | slice | EllipsisType | tuple[Any, ...] | NDArray[Any], value: Any) -> None:
        self._view()[key] = value

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.open:
            self._array = None
        elif kind is None:
            self.commit()
        else:
            self.abort()

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a TensorSlot cannot be pickled")

    def __repr__(self) -> str:
        closed = "" if self.open else ", closed"
        return f"<ramway.TensorSlot of {self.dtype}, shape {self.shape}{closed}>"
