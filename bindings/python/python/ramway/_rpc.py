"""RPC: the server, and the client for asyncio. Calls that wait are native."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from . import _aio, _ramway
from ._errors import BusyError, DetachedError, InvalidArgumentError
from ._ramway import Reply, Request, method_id

if TYPE_CHECKING:
    from typing_extensions import Buffer

_H = TypeVar("_H", bound=Callable[..., Any])


@dataclass(frozen=True)
class MethodInfo:
    """A method of a server, as ``describe`` gives it."""

    #: The number that calls name it by.
    number: int
    #: The name that its number was made from; None if it has none.
    name: str | None


def _methods(body: bytes) -> list[MethodInfo]:
    """What *describe* replied: a line for each method, its number and, after a blank, its name."""
    try:
        lines = (line.partition(" ") for line in body.decode().split("\n")[:-1])
        return [MethodInfo(int(number), name if blank else None) for number, blank, name in lines]
    except ValueError:
        raise _ramway._corrupt_description() from None


class AsyncClient:
    """Calls the methods of an RPC server of this machine, in one event loop: ``await AsyncClient.connect(name)``
    makes one.

    Any number of tasks may use it at once. Cancelling a task that waits for a call cancels the call, and the server
    is told. A method is its number, or a name, whose number is ``method_id(name)``. What has no reply is raised as a
    CallError. It is an asynchronous context manager that closes. It starts no thread, but for connecting.
    """

    def __init__(self, calls: _ramway._RpcCalls) -> None:
        """For ``connect``."""
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        # A duplicate: it leaves the loop before another descriptor can get its number.
        self._fd = os.dup(calls.descriptor())
        self._streams: weakref.WeakValueDictionary[int, AsyncStream] = weakref.WeakValueDictionary()
        self._timer: asyncio.TimerHandle | None = None
        # Not the handle's `when`: one of uvloop's that is due at once has none.
        self._timer_at = 0.0
        me = weakref.ref(self)

        def progress() -> None:
            client = me()
            if client is not None:
                client._progress()

        # Of the loop's: it does not keep the client.
        self._wake = progress
        self._loop.add_reader(self._fd, progress)
        # What came before the descriptor was watched.
        self._progress()

    @classmethod
    async def connect(
        cls,
        name: str | os.PathLike[str],
        *,
        timeout: float | None = 10.0,
        allow_uids: Sequence[int] = (),
        wait: Literal["spin", "hybrid", "block"] = "hybrid",
        max_buffered: int | None = None,
        membarrier: bool = True,
    ) -> Self:
        """Connects as ``Client.connect`` does, with its options. Cancelling it gives the attempt up."""
        options = {
            "timeout": timeout,
            "allow_uids": allow_uids,
            "wait": wait,
            "max_buffered": max_buffered,
            "membarrier": membarrier,
        }
        return cls(await _aio.connect(_ramway._RpcConnecting(name, options)))

    async def call(
        self, method: int | str, body: Buffer = b"", *, timeout: float | None = None, meta: Buffer | None = None
    ) -> Reply:
        """Sends a request and waits for its reply, for at most ``timeout`` seconds.

        Raises CallError. Where the task is cancelled the call is.
        """
        future: asyncio.Future[Reply] = self._loop.create_future()
        call = self._calls.begin(method, body, timeout, meta, future, 1)
        self._arm()
        try:
            return await future
        except asyncio.CancelledError:
            self._cancel(call)
            raise

    def start(
        self, method: int | str, body: Buffer = b"", *, timeout: float | None = None, meta: Buffer | None = None
    ) -> AsyncPending:
        """Sends a request and gives the call that is under way, to be awaited. Letting go of it cancels the call.

        Raises CallError for what keeps the call from being made.
        """
        future: asyncio.Future[Reply] = self._loop.create_future()
        call = self._calls.begin(method, body, timeout, meta, future, 1)
        self._arm()
        return AsyncPending(self, call, future)

    def stream(
        self,
        method: int | str,
        body: Buffer = b"",
        *,
        timeout: float | None = None,
        meta: Buffer | None = None,
        window: int = 16,
    ) -> AsyncStream:
        """Sends a request whose reply is a stream, for ``async for``. At most ``window`` elements are under way.

        ``timeout`` is that of the whole stream. Letting go of the stream cancels the call.
        Raises CallError for what keeps the call from being made, InvalidArgumentError for a window of 0.
        """
        call = self._calls.begin(method, body, timeout, meta, None, window)
        stream = self._streams[call] = AsyncStream(self, call)
        self._arm()
        return stream

    async def ping(self, timeout: float | None = None) -> None:
        """Waits until the server has answered: it is there and reads."""
        await self.call(_ramway._METHOD_PING, timeout=timeout)

    async def describe(self, timeout: float | None = None) -> list[MethodInfo]:
        """The server's methods, in the order of their numbers."""
        return _methods((await self.call(_ramway._METHOD_DESCRIBE, timeout=timeout)).body)

    @property
    def in_flight(self) -> int:
        """How many calls are sent and have no final reply: also cancelled ones, until the server has ended them."""
        return self._calls.in_flight

    @property
    def max_in_flight(self) -> int:
        """How many calls the server lets this client have in flight. Those beyond wait in the client, in order."""
        return self._calls.max_in_flight

    @property
    def max_request_len(self) -> int:
        """Bytes of the longest request, its metadata (rounded up to 16) and its body together."""
        return self._calls.max_request_len

    @property
    def peer_uid(self) -> int:
        """The user that the server acted as when the connection was made."""
        return self._calls.peer_uid

    @property
    def peer_pid(self) -> int | None:
        """The server's process when the connection was made; None if it has no number in this PID namespace."""
        return self._calls.peer_pid

    @property
    def name(self) -> str:
        """The name that it was connected by."""
        return self._calls.name

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._calls.closed

    def close(self) -> None:
        """Ends the connection: calls that are under way end with ClosedError. In the loop's thread only."""
        if self._leave():
            self._calls.close()
            for stream in list(self._streams.values()):
                stream._tell()

    async def __aenter__(self) -> Self:
        if self.closed:
            raise DetachedError(f"the RPC client of '{self.name}' is closed")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        # Not of one whose making failed.
        if hasattr(self, "_wake") and self._leave():
            self._calls.close()

    def __repr__(self) -> str:
        return f"<ramway.rpc.AsyncClient of '{self.name}'{' closed' if self.closed else ''}>"

    def _leave(self) -> bool:
        """Leaves the loop; False if it has left."""
        if self._fd < 0:
            return False
        if not self._loop.is_closed():
            self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._fd = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return True

    def _cancel(self, call: int) -> None:
        self._calls.cancel(call)
        if self._fd >= 0:
            self._arm()

    def _progress(self) -> None:
        for call in self._calls.progress():
            stream = self._streams.get(call)
            if stream is not None:
                stream._tell()
        self._arm()

    def _arm(self) -> None:
        """Sees to it that what is due though the descriptor is not readable is done in time."""
        due = self._calls.due_in()
        if due is None:
            return
        at = self._loop.time() + due
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_later(due, self._due)
        self._timer_at = at

    def _due(self) -> None:
        self._timer = None
        self._progress()


class AsyncPending:
    """A call that is under way, to be awaited: ``AsyncClient.start`` makes it. Letting go of it cancels the call."""

    def __init__(self, client: AsyncClient, call: int, future: asyncio.Future[Reply]) -> None:
        """For ``AsyncClient.start``."""
        self._client, self._call, self._future = client, call, future

    def __await__(self) -> Generator[Any, None, Reply]:
        """Waits for the reply. Cancelling the task that does cancels the call."""
        try:
            return (yield from self._future)
        except asyncio.CancelledError:
            self.cancel()
            raise

    def done(self) -> bool:
        """Whether the outcome is there: awaiting it does not wait."""
        return self._future.done()

    def cancel(self) -> None:
        """Cancels the call: the server is told. A task that waits for it is cancelled too."""
        if not self._future.done() or self._future.cancelled():
            self._client._cancel(self._call)
            self._future.cancel()

    def __del__(self) -> None:
        if hasattr(self, "_future") and not self._client._loop.is_closed():
            self.cancel()
            if self._future.done() and not self._future.cancelled():
                # Nobody asks: as of a call that was let go of before its outcome came.
                self._future.exception()


class AsyncStream:
    """A stream of replies for ``async for``: ``AsyncClient.stream`` makes it. Letting go of it cancels the call.

    A task that is cancelled while it waits for an element leaves the stream as it is: ``cancel`` ends it, or a block
    (``async with stream:``).
    """

    def __init__(self, client: AsyncClient, call: int) -> None:
        """For ``AsyncClient.stream``."""
        self._client = client
        self._call: int | None = call
        self._waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Reply:
        while (call := self._call) is not None:
            if self._waiter is not None:
                raise BusyError("another task waits for this stream already: one at a time may")
            try:
                element = self._client._calls.take(call)
            except BaseException:
                self._call = None
                raise
            if element is not None:
                return element
            self._waiter = self._client._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        raise StopAsyncIteration

    async def next(self) -> Reply | None:
        """The next element, waiting for it; None once the stream is complete or was cancelled. Raises CallError."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            return None

    def cancel(self) -> None:
        """Cancels the call: the server is told, and nothing more comes."""
        if self._call is not None:
            self._client._cancel(self._call)
            self._call = None
            self._tell()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cancel()

    def __del__(self) -> None:
        if getattr(self, "_call", None) is not None and not self._client._loop.is_closed():
            self.cancel()

    def _tell(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Server:
    """Serves calls of any number of clients at a name.

    Handlers are registered by decorators, ``@server.method(7)`` or ``@server.method("Store.Get")``, and
    ``@server.stream(8)`` for those whose reply is a stream. ``run()`` serves, or in an event loop ``await serve()``;
    then handlers may be coroutines and asynchronous generators. Others run on the thread that serves, one at a time,
    or with ``pool=True`` on a pool of ``threads`` threads (None: as many as there are processors, at least 2).

    ``capacity`` is the bytes of both rings of every client; ``max_clients`` how many there may be at a time,
    ``max_in_flight`` how many calls one may have in flight, ``max_bytes`` the bytes of requests and replies that are
    copied for one at a time (None: 4 times the capacity); ``align``, ``mode``, ``allow_uids``, ``handshake_timeout``
    and ``wait`` are those of ``Listener.bind``.

    Raises what ``Listener.bind`` does; InvalidArgumentError for at most 0 clients, calls or threads.
    """

    def __init__(
        self,
        name: str | os.PathLike[str],
        *,
        capacity: int = 1 << 20,
        align: int = 16,
        mode: int | None = None,
        allow_uids: Sequence[int] = (),
        handshake_timeout: float | None = 1.0,
        wait: Literal["spin", "hybrid", "block"] = "hybrid",
        max_clients: int = 128,
        max_in_flight: int = 1024,
        max_bytes: int | None = None,
        threads: int | None = None,
    ) -> None:
        options = {
            "capacity": capacity,
            "align": align,
            "mode": mode,
            "allow_uids": allow_uids,
            "handshake_timeout": handshake_timeout,
            "wait": wait,
            "max_clients": max_clients,
            "max_in_flight": max_in_flight,
            "max_bytes": max_bytes,
            "threads": threads,
        }
        self._native = _ramway._RpcServer(name, options)
        self._has_tasks = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def method(self, method: int | str, name: str | None = None, *, pool: bool = False) -> Callable[[_H], _H]:
        """A decorator: the handler of a method, which gives one reply.

        It gets a Request, and returns the reply's bytes: anything with the buffer protocol, None for none. It raises
        Fault for an error of the application; another exception is told to the caller as "HandlerFailed", with the
        text "TypeName: message". It may be a coroutine. Where the caller wants a stream, the reply is the only
        element.

        ``method`` is its number, below 0xFFFF0000, or a name, whose number is ``method_id``; with a number ``name``
        is what ``describe`` says. With ``pool`` it runs on one of the pool's threads, and may block.

        Raises AlreadyExistsError if the server has a method with this number, InvalidArgumentError.
        """
        return self._registers(method, name, pool, "method")

    def stream(self, method: int | str, name: str | None = None, *, pool: bool = False) -> Callable[[_H], _H]:
        """A decorator: the handler of a method whose reply is a stream, as ``method``.

        It is a generator or gives an iterable, or it is an asynchronous generator. The next element is asked for only
        when the caller has room for it, and the generator is closed when the call is cancelled. A caller that wants one
        reply gets "HandlerFailed".
        """
        return self._registers(method, name, pool, "stream")

    def run(self) -> None:
        """Serves until it is shut down. Answers Ctrl-C, within 100 ms. With coroutines it runs an event loop for them.

        Raises DetachedError once it was shut down or closed, and what a handler raised that is no Exception
        (KeyboardInterrupt, SystemExit).
        """
        if self._has_tasks:
            asyncio.run(self.serve())
        else:
            self._native.run()

    async def serve(self) -> None:
        """Serves in this event loop until it is shut down. Cancelling it closes the server.

        Raises as ``run``.
        """
        if self._loop is not None:
            raise BusyError(f"the RPC server '{self.name}' is served already")
        self._loop = loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        timer: asyncio.TimerHandle | None = None
        native = self._native

        def poll() -> None:
            nonlocal timer
            if timer is not None:
                timer.cancel()
                timer = None
            if done.done():
                return
            try:
                if not native.poll():
                    done.set_result(None)
                    return
                due = native.due_in()
            except BaseException as raised:
                done.set_exception(raised)
                return
            if due is not None:
                timer = loop.call_later(due, poll)

        fd = -1
        try:
            # A duplicate: it leaves the loop before another descriptor can get its number.
            fd = os.dup(native.descriptor())
            loop.add_reader(fd, poll)
            poll()
            await done
        finally:
            if fd >= 0:
                loop.remove_reader(fd)
                os.close(fd)
            if timer is not None:
                timer.cancel()
            native.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._loop = None

    def shutdown(self, limit: float = 0.0) -> None:
        """Takes no new client and no new call, waits for the running ones for up to ``limit`` seconds, and closes.

        What runs after that time is cancelled. ``run`` or ``serve`` does so, and returns then; this does not wait.
        From any thread, and from signal handlers. What is cancelled has 100 ms to end. A client all of whose calls
        are answered learns ClosedError; of the others the calls may have run (PeerDeadError).
        """
        self._native.shutdown(limit)

    def close(self) -> None:
        """Closes at once: what runs is cancelled. Not while it is served: see ``shutdown``."""
        if self._loop is not None:
            raise BusyError(f"the RPC server '{self.name}' is served: use shutdown")
        self._native.close()

    @property
    def clients(self) -> int:
        """How many clients are connected. In a handler: as of a moment ago."""
        return self._native.clients

    @property
    def name(self) -> str:
        """The name that it was made by."""
        return self._native.name

    @property
    def path(self) -> str:
        """The socket's path, which clients can be given in place of the name."""
        return self._native.path

    @property
    def closed(self) -> bool:
        """Whether it was shut down or closed."""
        return self._native.is_closed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ramway.rpc.Server '{self.name}'{' closed' if self.closed else ''}>"

    def _registers(self, method: int | str, name: str | None, pool: bool, how: str) -> Callable[[_H], _H]:
        if isinstance(method, str):
            if name is not None:
                raise InvalidArgumentError(f"name={name!r}: the method {method!r} has a name")
            number, name = method_id(method), method
        else:
            number = method

        def register(handler: _H) -> _H:
            kind, native = self._kind(handler, pool, how)
            self._native.add(number, name, kind, native)
            if kind == "deferred":
                self._has_tasks = True
            return handler

        return register

    def _kind(self, handler: Callable[..., Any], pool: bool, how: str) -> tuple[str, Callable[..., Any]]:
        """How the native server runs a handler, and what it calls."""
        if not callable(handler):
            raise TypeError(f"a handler is a function, not {type(handler).__name__}")

        def is_like(check: Callable[[Any], bool]) -> bool:
            return check(handler) or check(type(handler).__call__)

        is_coroutine, is_async = is_like(inspect.iscoroutinefunction), is_like(inspect.isasyncgenfunction)
        if how == "method" and (is_async or is_like(inspect.isgeneratorfunction)):
            raise TypeError(f"{handler!r} is a generator: register it with `stream`")
        if how == "stream" and is_coroutine:
            raise TypeError(f"{handler!r} is a coroutine: a stream is a generator or an asynchronous generator")
        if not (is_coroutine or is_async):
            return (f"pool{'_stream' if how == 'stream' else ''}" if pool else how), handler
        if pool:
            raise InvalidArgumentError(f"pool=True: {handler!r} runs in the event loop")
        answer = _answer_stream if is_async else _answer
        return "deferred", lambda call: self._begin(answer, handler, call)

    def _begin(
        self,
        answer: Callable[[Callable[..., Any], _ramway._RpcDeferred, _Changes], Coroutine[Any, Any, None]],
        handler: Callable[..., Any],
        call: _ramway._RpcDeferred,
    ) -> None:
        loop = self._loop
        if loop is None:
            raise BusyError("the server's event loop is gone")
        changes = _Changes(call)
        coroutine = answer(handler, call, changes)
        if sys.version_info >= (3, 12):
            # Its first step runs now: many handlers never wait.
            task = asyncio.Task(coroutine, loop=loop, eager_start=True)
        else:
            task = loop.create_task(coroutine)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            # One that is cancelled before its first step has not answered.
            task.add_done_callback(lambda _: call.fail(asyncio.CancelledError()))
            changes.follow(task)


class _Changes:
    """What the server says of a call that a task answers."""

    def __init__(self, call: _ramway._RpcDeferred) -> None:
        self._call = call
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None

    def follow(self, task: asyncio.Task[None]) -> None:
        """Cancels the task once nobody wants its reply any more."""
        self._task = task
        self._call.on_change(self._tell)
        self._tell()

    def _tell(self) -> None:
        if self._task is not None and self._call.cancelled:
            self._task.cancel()
        elif self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def room(self) -> bool:
        """Waits for room for another element; False: nobody wants it any more."""
        while (room := self._call.has_room()) is False:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return room is not None


async def _answer(handler: Callable[[Request], Awaitable[Any]], call: _ramway._RpcDeferred, _: _Changes) -> None:
    try:
        call.reply(await handler(call.request))
    except BaseException as raised:
        _fail(call, raised)


async def _answer_stream(handler: Callable[[Request], Any], call: _ramway._RpcDeferred, changes: _Changes) -> None:
    try:
        async with aclosing(handler(call.request)) as elements:
            while await changes.room():
                try:
                    element = await anext(elements)
                except StopAsyncIteration:
                    call.finish()
                    return
                if not call.send(element):
                    break
        raise asyncio.CancelledError
    except BaseException as raised:
        _fail(call, raised)


def _fail(call: _ramway._RpcDeferred, raised: BaseException) -> None:
    """Answers a call by an exception. What is to end the program goes on; a cancelled task is over."""
    ends = call.fail(raised)
    if ends is not None and not isinstance(ends, asyncio.CancelledError):
        raise ends
