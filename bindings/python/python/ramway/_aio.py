"""The part of asyncio support that is not native."""

import asyncio
import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from ._errors import Error, FullError
from ._ramway import Listener, Message

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from ._ramway import Bus, Receiver, Sender


class Messages:
    """What `async for` iterates over. Awaiting only where there is nothing, and now and then to let others run."""

    __slots__ = ("_next_or_wait",)

    def __init__(self, receiver: "Receiver") -> None:
        self._next_or_wait = receiver._next_or_wait

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        found = self._next_or_wait()
        if type(found) is Message or isinstance(found, Message):
            return found
        return await found


async def send_batch(sender: "Sender", messages: "Iterable[Buffer]", type_id: int, tag: int) -> int:
    """`Sender.send_batch_async`. What goes out before there is no room is published together."""
    sent = 0
    try:
        for message in messages:
            try:
                sender._try_put(message, type_id, tag)
            except FullError:
                # It has published what went before.
                await sender.send_async(message, type_id, tag)
            sent += 1
    except Error:
        if sent == 0:
            raise
    finally:
        if not sender.closed:
            sender.flush()
    return sent


async def send_array(sender: "Sender", array: "NDArray[Any]", type_id: int, tag: int) -> int:
    """`Sender.send_array_async`."""
    import numpy as np

    array = np.asarray(array)
    if array.ndim == 0:
        return sender._try_send_rows(array, 0, type_id, tag)  # raises what send_array raises
    array = np.ascontiguousarray(array)
    sent = 0
    try:
        while sent < len(array):
            try:
                sent += sender._try_send_rows(array, sent, type_id, tag)
            except FullError:
                # Room for one row: it is given back, and the row sent into it with those after it.
                slot = await sender.reserve_async(array[sent : sent + 1].nbytes, type_id, tag)
                slot.abort()
    except Error:
        if sent == 0:
            raise
    return sent


async def listen(name: "str | os.PathLike[str]", capacity: int, options: dict[str, Any]) -> "Bus":
    """`Bus.listen_async`."""
    with Listener._bind_one(name, capacity, **options) as listener:
        return await listener.accept_async()


class _Closes(Protocol):
    def close(self) -> None: ...


_C = TypeVar("_C", bound=_Closes)
_C_co = TypeVar("_C_co", bound=_Closes, covariant=True)


class _Attempt(Protocol[_C_co]):
    def run(self) -> _C_co: ...
    def give_up(self) -> None: ...


async def connect(attempt: _Attempt[_C]) -> _C:
    """Runs one attempt to connect. A cancelled one is given up at once; its thread ends within 100 ms."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_C] = loop.create_future()

    def deliver(bus: _C | None, error: BaseException | None) -> None:
        if done.cancelled():
            # Nobody will ever use it: the listener is to learn that now, not when it is collected.
            if bus is not None:
                bus.close()
        elif bus is not None:
            done.set_result(bus)
        elif error is not None:
            done.set_exception(error)

    def work() -> None:
        bus, error = None, None
        try:
            bus = attempt.run()
        except BaseException as caught:
            error = caught
        try:
            loop.call_soon_threadsafe(deliver, bus, error)
        except RuntimeError:
            # The loop was closed meanwhile.
            if bus is not None:
                bus.close()

    # Not the loop's executor: that may be full of other work, and asyncio.run waits for it. Not a daemon: the
    # interpreter would go while it is in native code.
    threading.Thread(target=work, name="ramway-connect").start()
    try:
        return await done
    finally:
        attempt.give_up()
