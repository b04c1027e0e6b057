"""Every kind of error: its class, the built-in that it also is, and a text that names the thing."""

import builtins
import ctypes
import json
import pickle
import random
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import ramway
from ramway import Region, Ring
from support import LONG, Child, Thread, run

KINDS: list[tuple[type[ramway.Error], str, int, tuple[type[Exception], ...]]] = [
    (ramway.NotFoundError, "NotFound", 1, (FileNotFoundError,)),
    (ramway.AlreadyExistsError, "AlreadyExists", 2, (FileExistsError,)),
    (ramway.InvalidArgumentError, "InvalidArgument", 3, (ValueError,)),
    (ramway.BusyError, "Busy", 4, (BlockingIOError,)),
    (ramway.FullError, "Full", 5, (BlockingIOError,)),
    (ramway.EmptyError, "Empty", 6, (BlockingIOError,)),
    (ramway.TooLargeError, "TooLarge", 7, (ValueError,)),
    (ramway.TimedOutError, "TimedOut", 8, (TimeoutError,)),
    (ramway.ClosedError, "Closed", 9, (BrokenPipeError, EOFError)),
    (ramway.DetachedError, "Detached", 10, (ValueError,)),
    (ramway.PeerDeadError, "PeerDead", 11, (ConnectionResetError,)),
    (ramway.CorruptError, "Corrupt", 12, (OSError,)),
    (ramway.AbiMismatchError, "AbiMismatch", 13, (OSError,)),
    (ramway.PermissionDeniedError, "PermissionDenied", 14, (PermissionError,)),
    (ramway.NoSpaceError, "NoSpace", 15, (OSError,)),
    (ramway.WaitInterruptedError, "Interrupted", 16, (InterruptedError,)),
    (ramway.UnsupportedError, "Unsupported", 17, (OSError,)),
    (ramway.OsError, "Os", 18, (OSError,)),
    (ramway.LaggedError, "Lagged", 19, (Exception,)),
]


@pytest.mark.parametrize(("error", "kind", "code", "builtin"), KINDS)
def test_classes(error: type[ramway.Error], kind: str, code: int, builtin: tuple[type[Exception], ...]) -> None:
    assert (error.kind, error.code) == (kind, code)
    assert issubclass(error, ramway.Error) and error.__module__.startswith("ramway") and error.__doc__
    for base in builtin:
        assert issubclass(error, base) and getattr(builtins, base.__name__) is base
    raised = error("what happened")
    assert str(raised) == "what happened" and raised.args == ("what happened",)
    assert raised.errno is None or isinstance(raised.errno, int)
    copy = pickle.loads(pickle.dumps(raised))
    assert type(copy) is error and str(copy) == str(raised) and copy.code == code


def test_the_classes_are_all_and_in_the_order_of_the_format() -> None:
    classes = [c for c in vars(ramway).values() if isinstance(c, type) and issubclass(c, ramway.Error)]
    assert set(classes) - {ramway.Error} == {error for error, *_ in KINDS}
    page = Path(__file__).resolve().parents[3] / "docs" / "ABI.md"
    if page.exists():
        text = page.read_text()
        for _, kind, code, _ in KINDS:
            assert f"{code} {kind}" in text or f"| {code} | `{kind}`" in text or f"`{kind}` {code}" in text, kind


def test_the_text_says_what_was_tried_on_which_name(directory: Path) -> None:
    tx = Ring.create("taken", capacity=4096).sender()
    (directory / "notes.txt").write_bytes(b"no segment" * 1000)
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: Ring.open("absent").receiver(), FileNotFoundError, "absent"),
        (lambda: Ring.create("taken").sender(), FileExistsError, "taken"),
        (lambda: Ring.open("taken").sender(), ramway.BusyError, "taken"),
        (lambda: Ring.open("taken", capacity=8192).receiver(), ValueError, "taken.*4096.*8192"),
        (lambda: Ring.open("notes.txt").receiver(), ramway.Error, "notes.txt"),
        (lambda: Ring.create("no/such/directory/x").sender(), FileNotFoundError, "no/such/directory"),
        (lambda: Ring.create(".dot").sender(), ramway.InvalidArgumentError, r"\.dot"),
        (lambda: Ring.create("a b").sender(), ramway.InvalidArgumentError, "a b"),
        (lambda: Ring.create("x", align=24).sender(), ramway.InvalidArgumentError, "24"),
        (lambda: tx.send(bytes(5000)), ramway.TooLargeError, "5000"),
        (lambda: tx.send(b"", 0xFFFF0000), ramway.InvalidArgumentError, "0xffff0000"),
        (lambda: Ring.create("x", wait="later").sender(), ramway.InvalidArgumentError, "later"),  # type: ignore[arg-type]
        (lambda: Ring.create("big", capacity=1 << 45).sender(), ramway.NoSpaceError, "big"),
    ]
    for call, error, text in cases:
        with pytest.raises(error, match=f"(?s){text}"):
            call()
    tx.close()
    with pytest.raises(ramway.DetachedError, match="sender.*closed"):
        tx.send(b"")


def test_the_errno_of_the_system_is_there() -> None:
    with pytest.raises(ramway.Error) as caught:
        Ring.create("/proc/ramway-cannot-be-here").sender()
    assert caught.value.errno is None or caught.value.errno > 0


RING_ARGUMENTS: list[tuple[dict[str, object], type[Exception] | tuple[type[Exception], ...]]] = [
    ({"capacity": -1}, (ValueError, OverflowError)),
    ({"capacity": 2**64}, (ValueError, OverflowError)),
    ({"capacity": 2**63}, (ramway.InvalidArgumentError, ramway.NoSpaceError)),
    ({"capacity": 1.5}, TypeError),
    ({"capacity": "4096"}, TypeError),
    ({"align": 0}, ramway.InvalidArgumentError),
    ({"align": 8}, ramway.InvalidArgumentError),
    ({"align": 17}, ramway.InvalidArgumentError),
    ({"align": 8192}, ramway.InvalidArgumentError),
    ({"align": -16}, (ValueError, OverflowError)),
    ({"align": 2**32}, (ValueError, OverflowError)),
    ({"mode": -1}, (ValueError, OverflowError)),
    ({"mode": "0600"}, TypeError),
    ({"timeout": -1}, ramway.InvalidArgumentError),
    ({"timeout": float("nan")}, ramway.InvalidArgumentError),
    ({"timeout": "1"}, TypeError),
    ({"wait": "x"}, ramway.InvalidArgumentError),
    ({"wait": b"spin"}, TypeError),
    ({"discard": "yes"}, TypeError),
    ({"persistent": 1}, TypeError),
    ({"numa_node": -1}, (ValueError, OverflowError)),
    ({"numa_node": 10**6}, ramway.Error),
    ({"nonsense": 1}, TypeError),
    ({"Capacity": 4096}, TypeError),
]


@pytest.mark.parametrize(("options", "error"), RING_ARGUMENTS)
def test_wrong_arguments_of_rings(options: dict[str, object], error: type[Exception]) -> None:
    for make in (Ring.create, Ring.open_or_create):
        with pytest.raises(error):
            make("r", **options).sender()  # type: ignore[arg-type]
        with pytest.raises(error):
            make("r", **options).receiver()  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        Ring.open("r").sender()


NEW_ONLY: dict[str, object] = {"persistent": True, "mode": 0o600, "huge_pages": True, "numa_node": 0, "discard": True}


@pytest.mark.parametrize(("option", "value"), NEW_ONLY.items())
def test_options_that_would_be_ignored_are_refused(option: str, value: object) -> None:
    calls: list[Callable[..., object]] = [Ring.open, Region.open]
    for call in calls:
        with pytest.raises(ramway.InvalidArgumentError, match=f"{option}=.*{option} applies to create"):
            call("r", **{option: value})
    if option == "discard":
        with pytest.raises(ramway.InvalidArgumentError, match="discard applies to create only"):
            Ring.open_or_create("r", discard=True)  # type: ignore[call-arg]
        with pytest.raises(ramway.InvalidArgumentError, match="discard applies to create only"):
            Region.open_or_create("r", 8, discard=True)  # type: ignore[call-arg]
        # What asks for nothing is not refused.
        Ring.open_or_create("r", discard=False)  # type: ignore[call-arg]


def test_no_time_out_is_as_long_as_it_takes_and_others_are_from_0_on(directory: Path) -> None:
    opening = [
        Thread(lambda: Ring.open("later", timeout=None).receiver()),
        Thread(lambda: Region.open("region", timeout=None)),
    ]
    # Made meanwhile, whenever that is.
    with Ring.create("later").sender(), Region.create("region", 8):
        for thread in opening:
            thread.result().close()
    tx, rx = Ring.pair(4096)
    region = Region.create("g", 8)
    listener = ramway.Listener.bind("l")
    for bad in (-1, -1e-9, float("nan"), float("-inf")):
        calls: list[Callable[[], object]] = [
            lambda bad=bad: rx.recv(bad),
            lambda bad=bad: rx.recv_batch(timeout=bad),
            lambda bad=bad: rx.recv_bytes(bad),
            lambda bad=bad: rx.recv_into(bytearray(1), bad),
            lambda bad=bad: rx.recv_array("u1", timeout=bad),
            lambda bad=bad: tx.send(b"", timeout=bad),
            lambda bad=bad: tx.send_vectored([], timeout=bad),
            lambda bad=bad: tx.send_batch([], timeout=bad),
            lambda bad=bad: tx.reserve(1, timeout=bad),
            lambda bad=bad: tx.reserve_tensor(1, "u1", timeout=bad),
            lambda bad=bad: region.wait(bad),
            lambda bad=bad: region.wait_since(0, bad),
            lambda bad=bad: listener.accept(bad),
            lambda bad=bad: Ring.open("r", timeout=bad),
            lambda bad=bad: Region.open("r", timeout=bad),
            lambda bad=bad: ramway.Bus.connect("l", timeout=bad),
            lambda bad=bad: ramway.Bus.listen("x", timeout=bad),
            lambda bad=bad: ramway.Listener.bind("x", handshake_timeout=bad),
        ]
        for call in calls:
            with pytest.raises(ramway.InvalidArgumentError, match="time-out of"):
                call()
    assert sorted(path.name for path in directory.iterdir()) == ["g", "l", "l.sock", "later"]


def test_integers_that_cannot_be_are_named() -> None:
    tx, rx = Ring.pair(4096)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: tx.send(b"", -1), "type_id=-1"),
        (lambda: tx.send(b"", 2**32), "type_id=4294967296"),
        (lambda: tx.send(b"", tag=-1), "tag=-1"),
        (lambda: tx.try_send(b"", 0, 2**64), "tag=18446744073709551616"),
        (lambda: tx.reserve(-1), "n=-1"),
        (lambda: tx.reserve_async(-1), "n=-1"),
        (lambda: tx.send_batch([b""], -2), "type_id=-2"),
        (lambda: rx.recv_batch(-1), "max=-1"),
        (lambda: Ring.create("r", capacity=-1), "capacity=-1"),
        (lambda: Ring.create("r", mode=2**32), "mode=4294967296"),
        (lambda: Region.create("r", -1), "size=-1"),
        (lambda: ramway.Listener.bind("l", -1), "capacity=-1"),
        (lambda: ramway.Bus.listen("l", backlog=-1), "backlog=-1"),
    ]
    for call, text in calls:
        with pytest.raises(ramway.InvalidArgumentError, match=f"^{text}: "):
            call()
    with pytest.raises(TypeError, match="tag"):
        tx.send(b"", 0, "x")  # type: ignore[arg-type]


def test_python_objects_are_not_sent() -> None:
    np = pytest.importorskip("numpy")
    tx, rx = Ring.pair(4096)
    objects = np.array([object(), object()])
    nested = np.zeros(2, [("Other", "i4"), ("inner", [("x", "f8"), ("y", "O")])])
    texts = ctypes.py_object * 2
    for bad in (objects, nested, memoryview(objects), texts("a", "b")):
        calls: list[Callable[[], object]] = [
            lambda bad=bad: tx.send(bad),
            lambda bad=bad: tx.try_send(bad),
            lambda bad=bad: tx.send_vectored([b"x", bad]),
            lambda bad=bad: tx.send_batch([bad]),
        ]
        for call in calls:
            with pytest.raises(ramway.InvalidArgumentError, match="Python objects"):
                call()
    tx.send(bytes(16))
    for bad in (objects, nested):
        with pytest.raises(ramway.InvalidArgumentError, match="Python objects"):
            rx.recv_into(bad)
    assert rx.recv_bytes() == bytes(16) and rx.try_recv() is None
    # Their bytes are what they are, also where the buffer protocol has no name for them.
    named_so = np.zeros(2, [("O", "i4"), ("Object", "f4")])
    for fine in (np.zeros(2, "M8[ns]"), named_so, memoryview(b"O"), ctypes.c_int(7)):
        tx.send(fine)
        assert rx.recv_bytes() == (fine.tobytes() if isinstance(fine, np.ndarray) else bytes(fine))


def test_a_traceback_says_what_a_program_catches() -> None:
    tx, rx = Ring.pair(4096)
    with tx, pytest.raises(ramway.TimedOutError) as caught:
        rx.recv(0)
    assert traceback.format_exception_only(caught.value)[0].startswith("ramway.TimedOutError: ")
    for error in (ramway.Error, *(error for error, *_ in KINDS)):
        assert error.__module__ == "ramway"


def test_a_time_out_says_what_did_not_come() -> None:
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        with pytest.raises(ramway.TimedOutError, match="receiver of 'r' had no message within the time"):
            rx.recv(0)
        tx.send(bytes(4000))
        with pytest.raises(ramway.TimedOutError, match="sender of 'r' had no room within the time"):
            tx.send(bytes(4000), timeout=0.01)


def test_no_more_descriptors_says_what_to_do() -> None:
    printed = run("""
        import asyncio, resource, ramway
        ends = [ramway.Ring.pair(4096) for _ in range(40)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
        async def main():
            for _, rx in ends:
                asyncio.ensure_future(rx.recv_async()).add_done_callback(report)
            await asyncio.sleep(0.5)
        seen = []
        def report(task):
            if not task.cancelled():
                seen.append(str(task.exception()))
        asyncio.run(main())
        assert seen and all("ulimit -n" in text for text in seen), seen
        print("told")
    """)
    assert printed == ["told"]


@pytest.mark.parametrize("name", [None, 5, 1.5, b"bytes", ["r"], object()])
def test_names_of_the_wrong_type(name: object) -> None:
    for make in (Ring.create, Ring.open, Ring.open_or_create):
        with pytest.raises(TypeError):
            make(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "a b", "a\n", "ü", "x" * 81, "x.sock", "a\0b", "\ud800"])
def test_names_that_cannot_be(name: str) -> None:
    for make in (Ring.create, Ring.open, Ring.open_or_create):
        with pytest.raises(ValueError):
            make(name).sender()


@pytest.mark.parametrize("name", ["x", "A-b_c.9", "x" * 80, "1"])
def test_names_that_can_be(name: str, directory: Path) -> None:
    for spelling in (name, directory / name, str(directory / name)):
        with Ring.create(spelling, discard=True).sender() as tx:
            assert tx.name == str(spelling)
            tx.send(b"x")
            with Ring.open(directory / name).receiver() as rx:
                assert rx.recv_bytes() == b"x"


BAD_DATA = [None, "text", 5, [1, 2], object(), memoryview(bytes(8))[::2]]


def test_wrong_arguments_of_calls() -> None:
    tx, rx = Ring.pair(4096)
    for send in (tx.send, tx.try_send):
        for data in BAD_DATA:
            with pytest.raises((TypeError, BufferError)):
                send(data)  # type: ignore[arg-type]
        for wrong in (-1, 2**32, 0xFFFF_0000, 2**64, 1.5, "1", None):
            with pytest.raises((ValueError, OverflowError, TypeError)):
                send(b"", wrong)  # type: ignore[arg-type]
        for wrong in (-1, 2**64, 1.5, "1", None):
            with pytest.raises((ValueError, OverflowError, TypeError)):
                send(b"", 0, wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            send()  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            send(b"", nonsense=1)  # type: ignore[call-arg]
    for timeout in (-1, -0.001, float("nan"), float("-inf"), "1", b"", [1]):
        calls: list[Callable[[], object]] = [
            lambda: tx.send(b"", timeout=timeout),  # type: ignore[arg-type]  # noqa: B023
            lambda: tx.reserve(1, timeout=timeout),  # type: ignore[arg-type]  # noqa: B023
            lambda: rx.recv(timeout),  # type: ignore[arg-type]  # noqa: B023
            lambda: rx.recv_bytes(timeout),  # type: ignore[arg-type]  # noqa: B023
            lambda: rx.recv_batch(1, timeout),  # type: ignore[arg-type]  # noqa: B023
            lambda: rx.recv_into(bytearray(9), timeout),  # type: ignore[arg-type]  # noqa: B023
        ]
        for call in calls:
            with pytest.raises((ValueError, TypeError)):
                call()
    for n in (-1, 4081, 2**31, 2**63, 2**64, 1.5, "1", None):
        for reserve in (tx.reserve, tx.try_reserve):
            with pytest.raises((ValueError, OverflowError, TypeError)):
                reserve(n)  # type: ignore[arg-type]
    for most in (0, -1, 2**64, 1.5, "1", None):
        with pytest.raises((ValueError, OverflowError, TypeError)):
            rx.recv_batch(most)  # type: ignore[arg-type]
    with pytest.raises((TypeError, BufferError)):
        rx.recv_into(b"read-only")  # type: ignore[arg-type]
    with pytest.raises((TypeError, BufferError)):
        rx.recv_into("text")  # type: ignore[arg-type]
    for messages in (None, 5, [b"", "text"], [None]):
        with pytest.raises((TypeError, BufferError)):
            tx.send_batch(messages)  # type: ignore[arg-type]
    with pytest.raises((ValueError, TypeError)):
        tx.wait = "x"  # type: ignore[assignment]
    for attribute in ("name", "capacity", "closed", "epoch"):
        with pytest.raises(AttributeError):
            setattr(tx, attribute, 1)
    for make in (ramway.Sender, ramway.Receiver, ramway.Message, ramway.Slot, ramway.Ring, ramway.Region, ramway.Bus):
        with pytest.raises(TypeError):
            make()
    # send_batch had sent what came before the wrong one; nothing else has left a trace.
    assert [bytes(rx.recv(LONG))] == [b""]
    assert rx.try_recv() is None and tx.used == 0
    tx.send(b"fine")
    assert rx.recv_bytes() == b"fine"


def test_what_is_sent_may_be_any_buffer() -> None:
    import array
    import ctypes
    import mmap

    tx, rx = Ring.pair(1 << 16)
    with mmap.mmap(-1, 4096) as mapped:
        mapped[:3] = b"map"
        for data, expected in [
            (b"bytes", b"bytes"),
            (bytearray(b"array"), b"array"),
            (memoryview(b"0123456789")[2:5], b"234"),
            (array.array("H", [1, 2]), b"\1\0\2\0"),
            ((ctypes.c_uint8 * 3)(7, 8, 9), b"\7\x08\x09"),
            (mapped, b"map" + bytes(4093)),
            (memoryview(bytes(range(6))).cast("B", (2, 3)), bytes(range(6))),
            (b"", b""),
        ]:
            tx.send(data)  # type: ignore[arg-type]
            assert rx.recv_bytes() == expected


# A hostile or broken peer

SCRIBBLE = """
    import mmap, os, sys
    path, offset, value = sys.argv[1], int(sys.argv[2], 0), bytes.fromhex(sys.argv[3])
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[offset : offset + len(value)] = value
"""

# Segment offsets of docs/ABI.md: block 0 at 0x400, the data at 0x1000.
TAIL, HEAD, DATA = 0x480, 0x500, 0x1000


@pytest.mark.parametrize(
    ("what", "offset", "value"),
    [
        ("tail far ahead", TAIL, (1 << 40).to_bytes(8, "little")),
        ("tail all ones", TAIL, b"\xff" * 8),
        ("tail not aligned", TAIL, (33).to_bytes(8, "little")),
        ("tail one beyond the capacity", TAIL, (4096 + 16).to_bytes(8, "little")),
        ("a length beyond the tail", DATA + 32, (4000).to_bytes(4, "little")),
        ("the greatest length", DATA + 32, b"\xff" * 4),
        ("a length of half of everything", DATA + 32, (2**31).to_bytes(4, "little")),
    ],
)
def test_what_no_correct_sender_writes_is_corrupt(what: str, offset: int, value: bytes, directory: Path) -> None:
    with Ring.create("r", capacity=4096).sender() as tx, Ring.open("r").receiver() as rx:
        tx.send(b"good")
        held = rx.recv()
        view = memoryview(held)
        tx.send(b"doubtful")
        run(SCRIBBLE, directory / "r", hex(offset), value.hex())
        with pytest.raises(ramway.CorruptError):
            rx.recv(LONG)
        # It stays dead, and what was received before stays readable.
        for call in (rx.recv, rx.try_recv, rx.recv_bytes, lambda: rx.recv_batch(3), lambda: next(rx)):
            with pytest.raises(ramway.CorruptError):
                call()
        assert bytes(view) == b"good"
        view.release()
        held.release()


@pytest.mark.parametrize("value", [(1 << 40).to_bytes(8, "little"), b"\xff" * 8, (3).to_bytes(8, "little")])
def test_what_no_correct_receiver_writes_is_corrupt(value: bytes, directory: Path) -> None:
    tx, rx = Ring.create("r", capacity=4096).sender(), Ring.open("r").receiver()
    run(SCRIBBLE, directory / "r", hex(HEAD), value.hex())
    with pytest.raises(ramway.CorruptError):
        for _ in range(10):
            tx.send(bytes(1000), timeout=LONG)
    for call in (lambda: tx.send(b"x"), lambda: tx.try_send(b"x"), lambda: tx.reserve(1), lambda: tx.send_batch([b""])):
        with pytest.raises(ramway.CorruptError):
            call()
    rx.close()


def test_a_ring_that_is_scribbled_over_all_the_time_crashes_nobody(directory: Path) -> None:
    """Another process writes anything anywhere into the ring, meanwhile and for seconds."""
    scribble = """
        import mmap, random, sys
        generator = random.Random(int(sys.argv[2]))
        with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            print("at it", flush=True)
            while True:
                data = 0x1000 + generator.randrange(4080)
                where = generator.choice((0x400, 0x480, 0x500, 0x580, 0x600, 0x1000, data))
                where += generator.randrange(0, 16)
                memory[where] = generator.randrange(256)
    """
    seed = random.randrange(10**6)
    print("seed", seed)
    ends: list[str] = []
    with Ring.create("r", capacity=4096, persistent=True).sender() as first:
        first.send(b"x")
    (directory / "copy").write_bytes((directory / "r").read_bytes())
    for life in range(8):
        path = directory / "r"
        # The file as it was, for the next side that attaches.
        path.write_bytes((directory / "copy").read_bytes())
        tx = Ring.open("r").sender()
        rx = Ring.open("r").receiver()
        with Child(scribble, path, seed + life) as child:
            child.line()

            def send(tx: ramway.Sender = tx) -> None:
                for n in range(3000):
                    tx.send(bytes([n % 256]) * (n % 500), timeout=0.05)

            def receive(rx: ramway.Receiver = rx) -> None:
                for n in range(3000):
                    with rx.recv(0.05) as message:
                        assert len(bytes(message)) == len(message) <= 4080
                        if n % 7 == 0:
                            message.type_id  # noqa: B018

            for thread in [Thread(send), Thread(receive)]:
                try:
                    thread.result()
                    ends.append("done")
                except ramway.Error as error:
                    ends.append(error.kind)
            child.kill()
        for end in (tx, rx):
            try:
                end.close()
            except ramway.Error:
                pass
    assert set(ends) <= {"done", "Corrupt", "TimedOut", "Closed", "PeerDead", "Detached"}, json.dumps(ends)
    assert threading.active_count() < 10
