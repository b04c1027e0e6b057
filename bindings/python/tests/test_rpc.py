"""RPC with calls that wait: one process, several threads."""

import array
import gc
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import ramway
from ramway import rpc
from ramway.rpc import CallError, Client, Fault, MethodInfo, Pending, Reply, Request, Server, method_id
from serving import Store, is_late, serving, store, wait_until
from support import LONG, Thread


def test_a_reply_is_the_handlers_bytes_and_metadata() -> None:
    with store() as (_, client):
        reply = client.call(1, b"body", meta=b"trace")
        assert (reply.body, reply.meta) == (b"body", b"trace")
        assert reply.body is reply.body and bytes(reply) == b"body"
        assert memoryview(reply).readonly and np.frombuffer(reply, "u1").tolist() == list(b"body")
        empty = client.call(6)
        assert (empty.body, empty.meta, memoryview(empty).nbytes) == (b"", b"", 0)
        for body in (bytearray(b"abcd"), memoryview(b"abcd"), array.array("B", b"abcd"), np.frombuffer(b"abcd", "u1")):
            assert client.call(1, body, meta=body).body == b"abcd"
        large = os.urandom(500_000)
        assert client.call(1, large, timeout=LONG).body == large
        with pytest.raises(TypeError):
            client.call(1, "text")  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            client.call(1.5)  # type: ignore[arg-type]
        with pytest.raises(ramway.InvalidArgumentError, match="method=-1"):
            client.call(-1)


def test_a_client_and_a_server_say_what_they_are() -> None:
    with store(max_in_flight=7) as (kept, client):
        assert client.max_in_flight == 7 and client.in_flight == 0
        assert (client.peer_pid, client.peer_uid) == (os.getpid(), os.geteuid())
        assert (client.name, client.closed, client.max_request_len) == ("s", False, (1 << 20) - 32)
        client.ping()
        client.ping(timeout=LONG)
        refuse = MethodInfo(method_id("Store.Refuse"), "Store.Refuse")
        assert client.describe() == [*(MethodInfo(n, None) for n in (1, 3, 4, 5, 6)), refuse]
        server = kept.server
        assert (server.name, server.clients, server.closed) == ("s", 1, False) and server.path.endswith("/s.sock")
        assert repr(client) == "<ramway.rpc.Client of 's'>" and repr(server) == "<ramway.rpc.Server 's'>"
    assert client.closed and server.closed and server.clients == 0


def test_method_ids_are_those_of_every_language() -> None:
    assert (method_id(""), method_id("Store.Get")) == (0x811C9DC5, 0xBADEBBDC)


def test_a_handler_knows_its_call() -> None:
    server = Server("s")
    seen: list[tuple[object, ...]] = []

    @server.method(9)
    def look(request: Request) -> None:
        seen.append((request.method, request.body, request.meta, request.peer_uid, request.peer_pid, request.is_stream))
        assert request.peer.pid == request.peer_pid and request.peer.id == 1
        assert not request.cancelled and request.reply_meta is None
        remaining = request.remaining
        seen.append((remaining if remaining is None else 0 < remaining <= LONG,))

    with serving(server), Client.connect("s") as client:
        client.call(9)
        client.call(9, b"b", meta=b"m", timeout=LONG)
        assert [reply.body for reply in client.stream(9)] == [b""]
    here = (os.geteuid(), os.getpid())
    assert seen == [
        (9, b"", b"", *here, False),
        (None,),
        (9, b"b", b"m", *here, False),
        (True,),
        (9, b"", b"", *here, True),
        (None,),
    ]


def test_every_way_to_fail_has_its_status() -> None:
    with store(capacity=4096, max_bytes=100_000) as (kept, client):

        @kept.server.method(20)
        def returns_text(request: Request) -> str:
            return "text"

        @kept.server.method(21)
        def returns_too_much(request: Request) -> bytes:
            return bytes(5000)

        @kept.server.stream(22)
        def yields_text(request: Request) -> Iterator[object]:
            yield b"fine"
            yield 7

        with pytest.raises(CallError, match="error 9: not today") as refused:
            client.call("Store.Refuse", b"9")
        error = refused.value
        assert (error.status, error.code, error.text, error.may_have_run) == ("Application", 9, "not today", True)
        assert isinstance(error, ramway.Error) and error.kind == ""
        with pytest.raises(CallError) as failed:
            client.call(3)
        assert (failed.value.status, failed.value.text) == ("HandlerFailed", "ValueError: not a number")
        assert failed.value.code == 0
        with pytest.raises(CallError) as missing:
            client.call(99)
        assert (missing.value.status, missing.value.may_have_run) == ("NoSuchMethod", False)
        with pytest.raises(CallError, match="TypeError: the handler returned str: expected bytes"):
            client.call(20)
        with pytest.raises(CallError) as too_large:
            client.call(21)
        assert too_large.value.status == "ReplyTooLarge"
        stream = client.stream(22)
        assert stream.next() is not None
        with pytest.raises(CallError, match="TypeError: the handler yielded int"):
            stream.next()
        assert stream.next() is None and list(stream) == []
        with pytest.raises(CallError) as no_stream:
            client.call(4, b"3")
        assert no_stream.value.status == "HandlerFailed"
        for method in (b"5000", bytes(4096)):
            with pytest.raises(ramway.TooLargeError) as request:
                client.call(1, bytes(4096), meta=method)
            assert isinstance(request.value, CallError) and not request.value.may_have_run
        assert client.call(1, b"still here").body == b"still here"


def test_an_error_is_pickled_with_what_it_says() -> None:
    with store() as (_, client):
        for call in (lambda: client.call("Store.Refuse", b"9"), lambda: client.call(6, timeout=0)):
            with pytest.raises(CallError) as failed:
                call()
            copy = pickle.loads(pickle.dumps(failed.value))
            assert type(copy) is type(failed.value) and vars(copy) == vars(failed.value)
            assert str(copy) == str(failed.value)
    for handle in (client, Server("t")):
        with pytest.raises(TypeError):
            pickle.dumps(handle)


def test_a_fault_needs_a_number_of_32_bits() -> None:
    assert str(Fault(7, "why")) == "error 7: why" and Fault(7).text == ""
    for code in (-1, 1 << 32):
        with pytest.raises(ramway.InvalidArgumentError):
            Fault(code)


def test_calls_under_way_are_waited_for_in_any_order() -> None:
    with store() as (kept, client):
        gated = client.start(5, b"last")
        first, second = client.start(1, b"one"), client.start(1, b"two")
        assert (second.wait().body, first.wait(LONG).body) == (b"two", b"one")
        with pytest.raises(ramway.InvalidArgumentError):
            first.wait()
        assert gated.try_wait() is None and client.in_flight == 1
        with pytest.raises(ramway.TimedOutError) as late:
            gated.wait(0.01)
        assert not isinstance(late.value, CallError)
        kept.gate.set()
        assert gated.wait().body == b"last" and client.in_flight == 0
        assert repr(gated) == "<ramway.rpc.Pending of 's' that is over>"


def test_letting_go_of_a_call_cancels_it() -> None:
    with store(threads=4) as (kept, client):
        calls: list[Pending] = [client.start(5) for _ in range(2)]
        stream = client.stream(4, b"1000000")
        assert stream.next() is not None
        kept.wait_begun(2)
        calls[0].cancel()
        with pytest.raises(ramway.InvalidArgumentError):
            calls[0].wait()
        del calls[1]
        stream.cancel()
        assert stream.next() is None
        assert kept.closed.wait(LONG)
        # The gate is shut: they end because they were cancelled.
        wait_until(lambda: client.in_flight == 0)


def test_a_time_limit_ends_a_call_on_both_sides() -> None:
    with store() as (kept, client):
        limit, begun = 0.01, False
        # A busy machine may need more than the first limits to begin it: then it is not run.
        while not begun:
            limit *= 2
            assert limit < LONG
            with pytest.raises(CallError) as late:
                client.call(5, timeout=limit)
            # Its handler sees that, and ends.
            wait_until(lambda: client.in_flight == 0)
            begun = kept.begun.acquire(blocking=False)
        assert is_late(late.value)
        with pytest.raises(ramway.TimedOutError) as never:
            client.call(6, timeout=0)
        assert isinstance(never.value, CallError) and isinstance(never.value, TimeoutError)
        assert (never.value.status, never.value.kind, never.value.may_have_run) == (None, "TimedOut", False)
        # A call that is waited for by nobody is timed out all the same.
        pending = client.start(5, timeout=0.02)
        with pytest.raises(CallError):
            pending.wait()
        with pytest.raises(ramway.InvalidArgumentError):
            client.call(6, timeout=-1)


def test_a_slow_reader_stops_its_stream_and_nothing_else() -> None:
    with store() as (kept, client):
        stream = client.stream(4, b"1000", window=4)
        first = stream.next()
        assert first is not None and first.body == b"0"
        for n in range(50):
            assert client.call(1, b"%d" % n).body == b"%d" % n
        # The window, what was taken of it, and one that waits for credit.
        assert kept.yielded <= 4 + 2 + 1
        assert [reply.body for reply in stream] == [b"%d" % n for n in range(1, 1000)]
        assert kept.yielded == 1000 and kept.closed.is_set()
        with pytest.raises(ramway.InvalidArgumentError):
            client.stream(4, b"1", window=0)
        with pytest.raises(ramway.InvalidArgumentError):
            client.stream(4, b"1", window=-1)
        empty = client.stream(4, b"0")
        assert empty.next(LONG) is None and empty.try_next() is None


def test_a_stream_has_nothing_yet() -> None:
    server, gate = Server("s"), threading.Event()

    @server.stream(4, pool=True)
    def later(request: Request) -> Iterator[bytes]:
        assert gate.wait(LONG)
        yield b"there"
        yield b"again"

    with serving(server), Client.connect("s") as client:
        stream = client.stream(4)
        with pytest.raises(ramway.EmptyError):
            stream.try_next()
        with pytest.raises(ramway.TimedOutError) as late:
            stream.next(0.01)
        assert not isinstance(late.value, CallError)
        gate.set()
        assert [(reply.body, reply.meta) for reply in stream] == [(b"there", b""), (b"again", b"")]


def test_what_is_not_taken_is_bounded() -> None:
    with store() as (_, _), Client.connect("s", max_buffered=1000) as client:
        calls = [client.start(1, bytes(400)) for _ in range(4)]
        client.ping()
        outcomes: list[object] = []
        for call in calls:
            try:
                outcomes.append(len(call.wait().body))
            except CallError as error:
                outcomes.append((error.kind, error.may_have_run))
        assert outcomes == [400, 400, ("TooLarge", True), ("TooLarge", True)]


def test_many_threads_call_at_once() -> None:
    with store(threads=3) as (kept, client):
        waits = Thread(lambda: client.call(5, b"gated").body)
        kept.wait_begun()

        def call(seed: int) -> int:
            for n in range(300):
                body = b"%d-%d" % (seed, n)
                if n % 3 == 0:
                    assert client.start(1, body).wait(LONG).body == body
                elif n % 50 == 1:
                    assert len(list(client.stream(4, b"20", window=2))) == 20
                else:
                    assert client.call(1, body, timeout=LONG).body == body
            return seed

        threads = [Thread(lambda seed=seed: call(seed)) for seed in range(8)]  # type: ignore[misc]
        assert [thread.result() for thread in threads] == list(range(8))
        kept.gate.set()
        assert waits.result() == b"gated"


def test_a_thread_whose_reply_has_come_has_another_one_wait_for_all() -> None:
    with store(threads=8, max_in_flight=64) as (kept, client):
        # All wait; whoever receives for the others has its reply first or last, as it comes.
        threads = [Thread(lambda n=n: client.call(5, b"%d" % n).body) for n in range(4)]  # type: ignore[misc]
        kept.wait_begun(4)
        late = [Thread(lambda: client.call(5, timeout=0.01)) for _ in range(4)]
        for thread in late:
            with pytest.raises(CallError) as ended:
                thread.result()
            # A busy machine may not begin it in time.
            assert isinstance(ended.value, ramway.TimedOutError) or is_late(ended.value)
        kept.gate.set()
        assert [thread.result() for thread in threads] == [b"0", b"1", b"2", b"3"]


def test_closing_ends_the_calls_of_other_threads() -> None:
    with store(threads=4) as (kept, client):
        threads = [Thread(lambda: client.call(5)) for _ in range(3)]
        kept.wait_begun(3)
        pending, stream = client.start(5), client.stream(5)
        client.close()
        for thread in threads:
            with pytest.raises(ramway.ClosedError) as closed:
                thread.result()
            assert isinstance(closed.value, CallError) and closed.value.may_have_run
        with pytest.raises(ramway.ClosedError):
            pending.wait()
        with pytest.raises(ramway.ClosedError):
            stream.next()
        with pytest.raises(ramway.DetachedError) as refused:
            client.call(1)
        assert isinstance(refused.value, CallError) and not refused.value.may_have_run
        with pytest.raises(ramway.DetachedError):
            client.__enter__()
        client.close()
        wait_until(lambda: kept.server.clients == 0)


def test_ten_thousand_calls_wait_their_turn() -> None:
    with store(max_in_flight=100) as (_, client):
        calls = [client.start(1, b"%d" % n) for n in range(10_000)]
        assert client.in_flight <= 100
        for n in reversed(range(10_000)):
            assert calls[n].wait(LONG).body == b"%d" % n
        calls = [client.start(1) for _ in range(10_000)]
        calls.clear()
        wait_until(lambda: client.in_flight == 0)


def test_a_server_that_drains_answers_what_runs() -> None:
    kept = Store(threads=2)
    serves = Thread(kept.server.run)
    with Client.connect("s") as client:
        runs = client.start(5, b"done")
        kept.wait_begun()
        kept.server.shutdown(LONG)

        def refused() -> bool:
            try:
                client.call(1)
            except CallError as error:
                return (error.status, error.may_have_run) == ("Draining", False)
            return False

        wait_until(refused)
        assert [method.number for method in client.describe()][:2] == [1, 3]
        with pytest.raises(ramway.Error):
            Client.connect("s", timeout=0)
        kept.gate.set()
        assert runs.wait().body == b"done"
        serves.result()
        with pytest.raises(ramway.ClosedError) as closed:
            client.call(1)
        assert isinstance(closed.value, CallError) and not closed.value.may_have_run
    with pytest.raises(ramway.DetachedError):
        kept.server.run()
    with pytest.raises(ramway.DetachedError):
        kept.server.method(70)(print)


def test_a_shutdown_that_does_not_wait_cancels() -> None:
    kept = Store(threads=2)
    serves = Thread(kept.server.run)
    with Client.connect("s") as client:
        runs = client.start(5)
        kept.wait_begun()
        kept.server.shutdown()
        serves.result()
        with pytest.raises(CallError) as ended:
            runs.wait()
        assert ended.value.may_have_run


def test_only_rpc_speaks_rpc() -> None:
    with store(max_clients=1):
        with pytest.raises(ramway.AbiMismatchError):
            ramway.Bus.connect("s", timeout=LONG)
        # Once it is sure that no place gets free.
        with pytest.raises(ramway.BusyError):
            Client.connect("s", timeout=1)
    with ramway.Listener.bind("plain") as listener:
        accepts = Thread(lambda: listener.accept(0.5))
        with pytest.raises(ramway.AbiMismatchError):
            Client.connect("plain", timeout=LONG)
        with pytest.raises(ramway.TimedOutError):
            accepts.result()
    with pytest.raises(ramway.NotFoundError):
        Client.connect("nobody", timeout=0.01)
    with pytest.raises(TypeError):
        Client.connect("nobody", timeouts=1)  # type: ignore[call-arg]


def test_what_cannot_be_registered() -> None:
    server = Server("s")
    server.method(7, "Seven")(lambda request: None)
    with pytest.raises(ramway.AlreadyExistsError):
        server.method(7)(lambda request: None)
    with pytest.raises(ramway.InvalidArgumentError):
        server.method(0xFFFF0000)(lambda request: None)
    with pytest.raises(ramway.InvalidArgumentError):
        server.method("a\nb")(lambda request: None)
    with pytest.raises(ramway.InvalidArgumentError):
        server.method("a", "b")(lambda request: None)

    async def coroutine(request: Request) -> None: ...

    def generator(request: Request) -> Iterator[bytes]:
        yield b""

    with pytest.raises(TypeError, match="stream"):
        server.method(8)(generator)
    with pytest.raises(TypeError, match="generator"):
        server.stream(8)(coroutine)
    with pytest.raises(ramway.InvalidArgumentError, match="pool"):
        server.method(8, pool=True)(coroutine)
    with pytest.raises(TypeError, match="function"):
        server.method(8)(7)  # type: ignore[type-var]
    for options in ({"max_clients": 0}, {"max_in_flight": 0}, {"threads": 0}, {"capacity": 0}):
        with pytest.raises(ramway.InvalidArgumentError):
            Server("other", **options)  # type: ignore[arg-type]
    with pytest.raises(ramway.AlreadyExistsError):
        Server("s")
    with serving(server), Client.connect("s") as client:
        assert client.describe() == [MethodInfo(7, "Seven")]


def test_what_ends_the_program_ends_run() -> None:
    server = Server("s")

    @server.method(1)
    def leave(request: Request) -> None:
        sys.exit(3)

    @server.stream(2)
    def interrupted(request: Request) -> Iterator[bytes]:
        yield b"one"
        raise KeyboardInterrupt

    def served() -> BaseException | None:
        try:
            server.run()
        except BaseException as raised:
            return raised
        return None

    serves = Thread(served)
    with Client.connect("s", timeout=LONG) as client:
        with pytest.raises(CallError, match="SystemExit: 3"):
            client.call(1)
        ended = serves.result()
        assert isinstance(ended, SystemExit) and ended.code == 3
        # The server is as it was.
        serves = Thread(served)
        with pytest.raises(CallError, match="KeyboardInterrupt"):
            list(client.stream(2))
        assert isinstance(serves.result(), KeyboardInterrupt)
    server.close()


def test_a_handler_may_ask_its_server() -> None:
    server = Server("s")

    @server.method(1)
    def look(request: Request) -> bytes:
        with pytest.raises(ramway.BusyError):
            server.method(2)(print)
        with pytest.raises(ramway.BusyError):
            server.close()
        with pytest.raises(ramway.BusyError):
            server.run()
        return b"%d" % server.clients

    with serving(server), Client.connect("s") as client:
        assert client.call(1).body in (b"0", b"1")

        @server.method(2)
        def late(request: Request) -> bytes:
            return b"registered while it serves"

        assert client.call(2).body.startswith(b"registered")
        with pytest.raises(ramway.BusyError):
            server.run()


@pytest.mark.filterwarnings("ignore:This process")
# Of this process's other threads, which the child does not need: the server's, and JAX's where its tests ran before.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_a_forks_child_has_neither() -> None:
    with store() as (kept, client):
        child = os.fork()
        if child == 0:
            outcomes = []
            for call in (lambda: client.call(1), kept.server.run, lambda: kept.server.method(50)(print)):
                try:
                    call()
                except ramway.DetachedError:
                    outcomes.append(True)
            client.close()
            os._exit(0 if outcomes == [True, True, True] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert client.call(1, b"mine").body == b"mine"


def test_nothing_is_left_behind() -> None:
    with store() as (kept, client):
        returned: list[weakref.ref[object]] = []

        @kept.server.method(30)
        def marked(request: Request) -> object:
            value = np.ones(100, "u1")
            returned.append(weakref.ref(value))
            return value

        def work(count: int) -> None:
            for n in range(count):
                client.call(1, bytes(100), meta=b"m")
                client.call(30)
                list(client.stream(4, b"5"))
                with pytest.raises(CallError):
                    client.call("Store.Refuse", b"1")
                with pytest.raises(CallError):
                    client.call(3)
                pending = client.start(1, bytes(50))
                if n % 2:
                    pending.wait()

        work(50)
        gc.collect()
        body = bytes(77)
        references = sys.getrefcount(body)
        assert all(value() is None for value in returned)
        returned.clear()
        counts = []
        for _ in range(4):
            counts.append(sys.getallocatedblocks())
            work(100)
            client.call(1, body)
            assert all(value() is None for value in returned)
            returned.clear()
            gc.collect()
        # One object that each round leaves behind would be 100 of them, each time; the interpreter's come and go.
        assert min(after - before for before, after in pairwise(counts)) < 90, counts
        assert sys.getrefcount(body) == references


def test_a_server_and_its_handlers_are_collected() -> None:
    class Owner:
        def __init__(self) -> None:
            self.server = Server("s")
            self.server.method(1)(self.handle)

        def handle(self, request: Request) -> bytes:
            return b"x"

    owner = Owner()
    with serving(owner.server), Client.connect("s") as client:
        reply = client.call(1)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
    assert isinstance(reply, Reply) and rpc.Client is Client
    # A client that is not closed is gone with its last reference.
    with store():
        Client.connect("s").call(1)
