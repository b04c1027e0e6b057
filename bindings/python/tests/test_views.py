"""A view never outlives its memory: held across release, close, del, collection, threads and the interpreter's exit.

The same under the interpreter's debug allocator and development mode, in processes of their own.
"""

import gc
import os
import sys
import textwrap
import weakref
from pathlib import Path

import numpy as np
import pytest
import ramway
from ramway import Receiver, Ring, Sender
from support import DEBUG, DEBUG_ENVIRONMENT, LONG, Child, run


def named(name: str = "r", capacity: int = 4096) -> tuple[Sender, Receiver]:
    return Ring.create(name, capacity=capacity).sender(), Ring.open(name).receiver()


def test_release_is_refused_while_views_are_alive() -> None:
    tx, rx = named()
    tx.send(b"x" * 100)
    message = rx.recv()
    for make in (
        memoryview,
        lambda m: m[10:20],
        lambda m: memoryview(m).cast("H"),
        lambda m: m.numpy(),
        lambda m: np.frombuffer(m, "u1"),
        lambda m: np.from_dlpack(m),
    ):
        view = make(message)
        with pytest.raises(BufferError, match="view"):
            message.release()
        assert not message.released and tx.used > 0
        del view
        gc.collect()
    message.release()
    message.release()
    assert message.released and tx.used == 0


def test_a_released_message_gives_nothing_more() -> None:
    tx, rx = named()
    tx.send(b"abc", 5, 6)
    message = rx.recv()
    message.release()
    for call in (
        lambda: memoryview(message),
        lambda: bytes(message),
        message.tobytes,
        lambda: len(message),
        lambda: message[0],
        lambda: message == b"abc",
        message.numpy,
        lambda: np.from_dlpack(message),
        message.tensor,
    ):
        with pytest.raises(ramway.DetachedError, match="released"):
            call()
    # What is not memory stays.
    assert (message.type_id, message.tag, message.released) == (5, 6, True)
    assert "released" in repr(message)


def test_the_end_of_a_with_puts_the_release_off() -> None:
    tx, rx = named()
    tx.send(b"abc")
    with rx.recv() as message:
        view = memoryview(message)
        array = message.numpy()
    assert not message.released and rx.lent > 0
    assert bytes(view) == b"abc" and array.tolist() == [97, 98, 99]
    view.release()
    assert not message.released and array[0] == 97
    del array
    gc.collect()
    assert message.released and rx.lent == 0 and tx.used == 0


def test_a_with_without_views_releases_at_once() -> None:
    tx, rx = named()
    for _ in range(3):
        tx.send(b"abc")
    with rx.recv() as message:
        assert bytes(message) == b"abc"
    assert message.released
    with pytest.raises(RuntimeError):
        with rx.recv() as message:
            raise RuntimeError
    assert message.released
    with rx.recv() as message:
        message.release()
    assert tx.used == 0


def test_frames_go_back_in_order() -> None:
    """The ring's memory is taken back up to the first message that is still held."""
    tx, rx = named()
    for n in range(4):
        tx.send(bytes([n]) * 112)
    messages = [rx.recv() for _ in range(4)]
    assert rx.lent == 4 * 128
    messages[1].release()
    messages[3].release()
    assert rx.lent == 4 * 128
    messages[0].release()
    assert rx.lent == 2 * 128
    view = memoryview(messages[2])
    del messages
    assert rx.lent == 2 * 128 and bytes(view) == bytes([2]) * 112
    del view
    assert rx.lent == 0 and tx.used == 0


def test_a_view_keeps_everything_alive(directory: Path) -> None:
    tx, rx = named()
    tx.send(b"y" * 1000)
    view = memoryview(rx.recv())
    part = np.frombuffer(view, "u1")[100:200]
    tx.close()
    rx.close()
    with pytest.raises(ramway.DetachedError):
        rx.recv()
    del tx, rx, view
    gc.collect()
    assert part.tobytes() == b"y" * 100
    # The receiver's role is kept as well: what is looked at is not received again by somebody else meanwhile.
    with pytest.raises(ramway.BusyError):
        Ring.open("r").receiver()
    del part
    gc.collect()
    # Now it was given back, and the close that was seen by nobody is what is left.
    with Ring.open("r").receiver() as rx:
        with pytest.raises(ramway.ClosedError):
            rx.recv(LONG)
    assert os.listdir(directory) == []


def test_a_sender_is_not_let_into_what_is_looked_at() -> None:
    tx, rx = named()
    tx.send(b"a" * 2000)
    view = memoryview(rx.recv())
    tx.send(b"b" * 2000)
    for _ in range(50):
        with pytest.raises(ramway.FullError):
            tx.try_send(b"c" * 1000)
    with pytest.raises(ramway.TimedOutError):
        tx.send(b"c" * 1000, timeout=0.05)
    assert bytes(view) == b"a" * 2000
    view.release()
    gc.collect()
    tx.send(b"c" * 1000)
    assert [rx.recv_bytes() for _ in range(2)] == [b"b" * 2000, b"c" * 1000]


def test_views_of_batches_and_iteration() -> None:
    tx, rx = named(capacity=1 << 16)
    tx.send_batch([bytes([n]) * 10 for n in range(100)])
    batch = rx.recv_batch(50)
    views = [memoryview(m) for m in batch[::7]]
    del batch
    kept = []
    tx.close()
    for message in rx:
        if message[0] % 10 == 0:
            kept.append(message)
    del message
    assert [bytes(v) for v in views] == [bytes([n]) * 10 for n in range(0, 50, 7)]
    assert [m[0] for m in kept] == [50, 60, 70, 80, 90]
    rx.close()
    assert [bytes(m) for m in kept] == [bytes([n]) * 10 for n in range(50, 100, 10)]


def test_views_of_a_slot_are_cut_off_by_the_commit() -> None:
    tx, rx = named()
    slot = tx.reserve(16)
    view, array = memoryview(slot), np.frombuffer(slot, "u1")
    view[:] = b"0123456789abcdef"
    slot.commit(10)
    message = rx.recv()
    # They show what they showed, can be written, and reach nothing.
    assert bytes(view) == b"0123456789abcdef"
    view[0] = ord("X")
    assert array[0] == ord("X") and bytes(message) == b"0123456789"
    with pytest.raises(ramway.DetachedError):
        memoryview(slot)
    with pytest.raises(ramway.DetachedError):
        slot.commit()
    message.release()
    for n in range(100):
        with tx.reserve(2000) as other:
            other[:] = bytes([n]) * 2000
        assert rx.recv_bytes() == bytes([n]) * 2000
    assert bytes(view) == b"X123456789abcdef"
    tx.close()
    rx.close()
    del tx, rx, slot
    gc.collect()
    assert bytes(view) == b"X123456789abcdef"


def test_views_of_an_aborted_slot_and_of_a_closed_sender() -> None:
    tx, rx = named()
    with pytest.raises(RuntimeError):
        with tx.reserve(100) as slot:
            view = memoryview(slot)
            view[:3] = b"abc"
            raise RuntimeError
    assert rx.try_recv() is None and bytes(view[:3]) == b"abc"
    slot = tx.reserve(100)
    other = memoryview(slot)
    other[:3] = b"def"
    tx.close()
    with pytest.raises(ramway.ClosedError):
        rx.recv(LONG)
    del tx, rx, slot
    gc.collect()
    other[3] = 1
    assert bytes(other[:4]) == b"def\1" and bytes(view[:3]) == b"abc"


def test_a_dropped_slot_leaves_nothing_behind() -> None:
    tx, rx = named()
    slot = tx.reserve(100)
    slot[:5] = b"never"
    with pytest.raises(ramway.BusyError, match="slot"):
        tx.send(b"x")
    del slot
    gc.collect()
    tx.send(b"x")
    assert rx.recv_bytes() == b"x" and rx.try_recv() is None


def test_cycles_are_collected(directory: Path) -> None:
    class Holder:
        pass

    tx, rx = named()
    tx.send(b"abc")
    holder = Holder()
    holder.self = holder  # type: ignore[attr-defined]
    holder.parts = [tx, rx, rx.recv()]  # type: ignore[attr-defined]
    holder.parts.append(memoryview(holder.parts[-1]))  # type: ignore[attr-defined]
    gone = weakref.ref(holder)
    del holder, tx, rx
    gc.collect()
    assert gone() is None
    with Ring.open("r").receiver() as rx, pytest.raises(ramway.ClosedError):
        rx.recv(LONG)
    assert os.listdir(directory) == []


def test_references_are_counted_right() -> None:
    tx, rx = named()
    before = sys.getrefcount(rx)
    for _ in range(50):
        tx.send(b"abc")
        message = rx.recv()
        views = [memoryview(message), message[1:], message.numpy(), np.frombuffer(message, "u1")]
        views[0].release()  # type: ignore[attr-defined]
        with pytest.raises(BufferError):
            message.release()
        del message, views
    gc.collect()
    assert sys.getrefcount(rx) == before and rx.lent == 0


# In processes of their own, with the interpreter at its most suspicious

SETUP = """
    import gc, sys
    import numpy as np
    import ramway
    from ramway import Ring, Region
    tx = Ring.create("r", capacity=4096).sender()
    rx = Ring.open("r").receiver()
    region = Region.create("g", 4096)
    tx.send(b"abc" * 100)
    message = rx.recv()
"""

ENDS = {
    "everything alive": """
        views = [memoryview(message), message.numpy(), np.frombuffer(region, "f8"), np.from_dlpack(message)]
        slot = tx.reserve(100)
        views.append(memoryview(slot))
    """,
    "only views alive": """
        views = [memoryview(message), message.numpy(), np.frombuffer(region, "f8"), np.from_dlpack(message)]
        slot = tx.reserve(100)
        views.append(memoryview(slot))
        views[-1][:] = bytes(100)
        slot.commit()
        rx.close(), tx.close(), region.close()
        del tx, rx, region, message, slot
        gc.collect()
        assert bytes(views[0]) == b"abc" * 100
    """,
    "a cycle": """
        class Holder: pass
        holder = Holder()
        holder.me = holder
        holder.all = [tx, rx, region, message, memoryview(message), memoryview(region)]
        del tx, rx, region, message
    """,
    "in a module": """
        import types
        module = types.ModuleType("kept")
        module.view, module.message, module.region = memoryview(message), message, region.numpy()
        sys.modules["kept"] = module
    """,
    "in an exit handler": """
        import atexit
        view = memoryview(message)
        def last():
            assert bytes(view) == b"abc" * 100
            region[:3] = b"end"
            tx.send(b"last")
        atexit.register(last)
    """,
    "in a finalizer": """
        class Last:
            def __init__(self): self.view, self.tx = memoryview(message), tx
            def __del__(self): assert bytes(self.view) == b"abc" * 100
        last = Last()
    """,
    "a daemon thread that waits": """
        import threading, time
        threading.Thread(target=lambda: rx.recv(), daemon=True).start()
        threading.Thread(target=lambda: region.wait(), daemon=True).start()
        view = memoryview(message)
        time.sleep(0.05)
    """,
    "with descriptors": """
        rx.fileno(), tx.fileno(), region.fileno()
        view = memoryview(message)
    """,
    "with sys.exit": """
        view = memoryview(message)
        sys.exit(0)
    """,
}


@pytest.mark.parametrize("debug", [False, True], ids=["plain", "debug"])
@pytest.mark.parametrize("end", ENDS)
def test_an_interpreter_that_exits_with_views_alive_is_silent(end: str, debug: bool) -> None:
    code = textwrap.dedent(SETUP) + textwrap.dedent(ENDS[end])
    options, env = (DEBUG, DEBUG_ENVIRONMENT) if debug else ((), {})
    run(code, options=options, env=env)


def test_an_unhandled_exception_ends_it_orderly() -> None:
    code = """
        import ramway
        tx = ramway.Ring.open("r").sender()
        slot = tx.reserve(100)
        view = memoryview(slot)
        raise SystemError("on purpose")
    """
    with Ring.create("r").receiver() as rx, Child(code) as child:
        assert child.wait() == 1
        assert "on purpose" in child.stderr() and "panicked" not in child.stderr()
        with pytest.raises((ramway.ClosedError, ramway.PeerDeadError)):
            rx.recv(LONG)


def test_these_tests_under_the_debug_allocator() -> None:
    """All of the above that runs in this process, once more in one with PYTHONMALLOC=debug and -X dev."""
    code = """
        import sys
        import pytest
        those = "not interpreter and not these_tests"
        sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-k", those, *sys.argv[1:]]))
    """
    here = Path(__file__).parent
    files = [here / "test_views.py", here / "test_region.py"]
    # Other people's packages may warn as they like: what counts here is memory.
    with Child(code, *files, options=("-X", "dev"), env=DEBUG_ENVIRONMENT) as child:
        code_of_exit = child.wait(10 * LONG)
        output = []
        while (line := child.lines.get(timeout=LONG)) is not None:
            output.append(line)
        assert code_of_exit == 0, "\n".join([*output, child.stderr()])
        assert "Debug memory block" not in child.stderr() and "Fatal" not in child.stderr()
