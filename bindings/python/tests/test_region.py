"""Regions: the same bytes in several processes, notifications, and how long views keep the memory."""

import gc
import io
import os
import select
import struct
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import ramway
from ramway import Region
from support import LONG, Child, Thread, eventually, run


def test_two_handles_see_the_same_bytes() -> None:
    with Region.create("r", 104) as one, Region.open("r") as other:
        assert (len(one), len(other), one.name, one.closed, one.read_only) == (104, 104, "r", False, False)
        assert bytes(one) == bytes(104)
        one[10:15] = b"hello"
        one[103] = 7
        assert bytes(other[10:15]) == b"hello"
        assert (other[103], other[-1], other[0]) == (7, 7, 0)
        assert other[1::34].tolist() == [0, 0, 0, 7]
        memoryview(other).cast("Q")[0] = 2**64 - 1
        assert bytes(one[:8]) == b"\xff" * 8
        struct.pack_into("<I", one, 20, 0xDEADBEEF)
        assert struct.unpack_from("<I", other, 20) == (0xDEADBEEF,)
        assert io.BytesIO(b"read").readinto(one) == 4
        assert bytes(other)[:4] == b"read"


def test_another_process_sees_the_same_bytes() -> None:
    with Region.create("r", 1 << 16) as region:
        code = """
            import ramway
            with ramway.Region.open("r") as region:
                region[:5] = b"child"
                print(bytes(region[-6:]).decode(), len(region))
        """
        region[-6:] = b"parent"
        assert run(code) == ["parent 65536"]
        assert bytes(region[:5]) == b"child"


def test_a_view_is_no_copy_and_says_what_it_is() -> None:
    with Region.create("r", 4096) as region:
        view = memoryview(region)
        assert (view.format, view.itemsize, view.ndim, view.shape, view.nbytes) == ("B", 1, 1, (4096,), 4096)
        assert not view.readonly and view.c_contiguous and view.obj is region
        view[5] = 55
        assert region[5] == 55
        with pytest.raises(IndexError):
            region[4096]
        with pytest.raises(ValueError):
            region[:3] = b"four"
        with pytest.raises(TypeError):
            region["a"]  # type: ignore[index]


def test_read_only_handles_do_not_write() -> None:
    with Region.create("r", 64) as region, Region.open("r", read_only=True) as reader:
        assert reader.read_only and memoryview(reader).readonly
        region[0] = 9
        assert reader[0] == 9
        with pytest.raises(TypeError):
            reader[0] = 1
        with pytest.raises((BufferError, TypeError)):
            io.BytesIO(b"x").readinto(reader)
        with pytest.raises(ramway.PermissionDeniedError, match="notify"):
            reader.notify()
        with pytest.raises(ramway.UnsupportedError, match="read-only"):
            reader.fileno()
        with pytest.raises(ramway.InvalidArgumentError, match="read_only"):
            reader.numpy(writable=True)
        assert not reader.numpy().flags.writeable
        region.notify()
        assert reader.wait(LONG)


def test_numpy_arrays_are_the_shared_bytes() -> None:
    with Region.create("r", 8 * 12) as region:
        grid = region.numpy("float64", (3, 4))
        assert grid.dtype == np.float64 and grid.shape == (3, 4) and grid.flags.writeable
        grid[:] = np.arange(12).reshape(3, 4)
        assert struct.unpack_from("<12d", region) == tuple(range(12))
        tail = region.numpy("<f8", offset=80)
        assert tail.tolist() == [10.0, 11.0]
        tail[1] = 5.5
        assert grid[2, 3] == 5.5
        assert not region.numpy(np.uint8, writable=False).flags.writeable
        ticks = region.numpy(np.dtype([("price", "<f8"), ("size", "<u4"), ("pad", "<u4")]), 6)
        ticks["size"] = 3
        assert region.numpy("<u4", offset=8)[0] == 3
        for wrong in ({"shape": (100, 100)}, {"offset": 97}, {"dtype": "no such type"}):
            with pytest.raises((ValueError, TypeError)):
                region.numpy(**wrong)  # type: ignore[arg-type]
        with pytest.raises((ValueError, TypeError)):
            region.numpy(object)


def test_notifications() -> None:
    with Region.create("r", 8) as one, Region.open("r") as other:
        assert not other.try_wait() and not other.wait(0)
        started = time.monotonic()
        assert not other.wait(0.2)
        assert time.monotonic() - started >= 0.2
        for _ in range(3):
            one.notify()
        # They count as one, and came before the call.
        assert other.wait(0) and not other.wait(0) and not other.try_wait()
        one.notify()
        assert other.try_wait()
        # What was notified before a handle was opened is not news to it.
        with Region.open("r") as late:
            assert not late.try_wait()


@pytest.mark.parametrize("wait", ["spin", "hybrid", "block"])
def test_a_waiting_process_is_woken(wait: str) -> None:
    code = """
        import sys, ramway
        region = ramway.Region.open("r", wait=sys.argv[1])
        print("ready")
        for _ in range(3):
            assert region.wait()
            print(region[0])
    """
    with Region.create("r", 8) as region, Child(code, wait) as child:
        assert child.line() == "ready"
        for value in (1, 2, 3):
            region[0] = value
            region.notify()
            assert child.line() == str(value)
        child.finish()


def test_the_descriptor_is_readable_when_there_is_news() -> None:
    with Region.create("r", 8) as region, Region.open("r") as other:
        fd = region.fileno()
        assert region.fileno() == fd
        assert not region.try_wait()
        assert select.select([fd], [], [], 0.1)[0] == []
        other.notify()
        assert select.select([fd], [], [], LONG)[0] == [fd]
        assert region.try_wait()
        while region.try_wait():
            pass
        assert select.select([fd], [], [], 0.1)[0] == []


def test_close_is_final_and_can_be_repeated() -> None:
    region = Region.create("r", 8)
    region.close()
    region.close()
    assert region.closed and "closed" in repr(region) and region.name == "r"
    calls = [
        lambda: memoryview(region),
        lambda: bytes(region),
        lambda: region[0],
        lambda: region.__setitem__(0, 1),
        lambda: len(region),
        region.notify,
        region.wait,
        lambda: region.wait(0),
        region.try_wait,
        region.fileno,
        region.numpy,
        region.__enter__,
    ]
    for call in calls:
        with pytest.raises(ramway.DetachedError, match="'r'.*closed"):
            call()


def test_a_thread_that_waits_learns_of_the_close() -> None:
    region = Region.create("r", 8)
    waiting = Thread(region.wait)
    time.sleep(0.05)
    region.close()
    with pytest.raises(ramway.DetachedError):
        waiting.result()


def test_many_threads_may_wait_at_once() -> None:
    with Region.create("r", 8) as region, Region.open("r") as other:
        handles = [Region.open("r") for _ in range(8)]
        threads = [Thread(handle.wait, LONG) for handle in handles]
        shared = [Thread(other.wait, LONG) for _ in range(2)]
        time.sleep(0.05)
        region.notify()
        assert all(thread.result() for thread in threads)
        # Threads that share a handle share what it has seen: at least one of them is told.
        eventually("one of the two", lambda: any(not thread.is_alive() for thread in shared))
        while any(thread.is_alive() for thread in shared):
            region.notify()
            time.sleep(0.01)
        assert all(thread.result() for thread in shared)
        for handle in handles:
            handle.close()


def test_views_keep_the_memory_and_the_name(directory: Path) -> None:
    region = Region.create("r", 4096)
    view, array = memoryview(region), region.numpy()
    part = view[100:200]
    region[150] = 42
    region.close()
    with pytest.raises(ramway.DetachedError):
        region.notify()
    del region
    gc.collect()
    assert (directory / "r").exists()
    part[51] = 43
    assert (view[150], array[151]) == (42, 43)
    with Region.open("r") as other:
        assert other[150] == 42
        other[0] = 1
    assert view[0] == 1
    del view, part
    gc.collect()
    assert (directory / "r").exists() and array[0] == 1
    del array
    gc.collect()
    assert not (directory / "r").exists()


def test_life_of_the_name(directory: Path) -> None:
    one = Region.create("r", 100)
    with pytest.raises(ramway.AlreadyExistsError, match="'?.*r"):
        Region.create("r", 100)
    with pytest.raises(FileExistsError):
        Region.create("r", 100)
    with pytest.raises(ramway.InvalidArgumentError, match=r"100.*200|200.*100"):
        Region.open_or_create("r", 200)
    two = Region.open_or_create("r", 100)
    one.close()
    assert (directory / "r").exists()
    two.close()
    assert not (directory / "r").exists()
    with pytest.raises(ramway.NotFoundError, match="r"):
        Region.open("r")
    with pytest.raises(FileNotFoundError):
        Region.open(directory / "absent")

    with Region.create("kept", 100, persistent=True) as kept:
        kept[0] = 5
    assert (directory / "kept").exists()
    with Region.open("kept") as kept:
        assert kept[0] == 5
    with pytest.raises(ramway.AlreadyExistsError):
        Region.create("kept", 100)
    with Region.create("kept", 200, discard=True) as kept:
        assert (kept[0], len(kept)) == (0, 200)


def test_paths_and_permissions(directory: Path) -> None:
    path = directory / "sub"
    path.mkdir()
    with Region.create(path / "here", 10, mode=0o640) as region:
        assert (path / "here").stat().st_mode & 0o777 == 0o640
        with Region.open(str(path / "here")) as other:
            region[0] = 3
            assert other[0] == 3
    with Region.create("prefaulted", 1 << 20, prefault=True) as region:
        assert bytes(region[-3:]) == bytes(3)


def test_open_waits_for_a_name() -> None:
    code = """
        import ramway
        with ramway.Region.open("late", timeout=60) as region:
            region[0] = 1
            region.notify()
    """
    with Child(code) as child:
        time.sleep(0.3)
        assert child.process.poll() is None
        with Region.create("late", 8) as region:
            assert region.wait(LONG) and region[0] == 1
            child.finish()
    started = time.monotonic()
    with pytest.raises(ramway.NotFoundError):
        Region.open("never", timeout=0.3)
    assert time.monotonic() - started >= 0.3


def test_a_name_that_is_removed_ends_the_wait(directory: Path) -> None:
    with Region.create("r", 8) as region:
        waiting = Thread(region.wait)
        time.sleep(0.05)
        os.unlink(directory / "r")
        with pytest.raises(ramway.ClosedError, match="name"):
            waiting.result()


def test_a_killed_user_leaves_it_usable() -> None:
    code = """
        import ramway, time
        region = ramway.Region.open("r")
        region[0] = 77
        print("here")
        time.sleep(1000)
    """
    with Region.create("r", 8) as region, Child(code) as child:
        child.line()
        child.kill()
        assert region[0] == 77
        region.notify()
        with Region.open("r") as other:
            assert other[0] == 77


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [
        (("r", 0), {}, ramway.InvalidArgumentError),
        (("r", -1), {}, (ValueError, OverflowError)),
        (("r", 2**64), {}, (ValueError, OverflowError)),
        (("r", 2**63), {}, (ramway.InvalidArgumentError, ramway.NoSpaceError)),
        (("r", 1 << 50), {}, ramway.NoSpaceError),
        (("r", 1.5), {}, TypeError),
        (("r", "8"), {}, TypeError),
        (("r", None), {}, TypeError),
        (("", 8), {}, ramway.InvalidArgumentError),
        ((".hidden", 8), {}, ramway.InvalidArgumentError),
        (("a b", 8), {}, ramway.InvalidArgumentError),
        (("x" * 81, 8), {}, ramway.InvalidArgumentError),
        (("nul\0", 8), {}, ValueError),
        ((None, 8), {}, TypeError),
        ((5, 8), {}, TypeError),
        (("r", 8), {"timeout": -1}, ramway.InvalidArgumentError),
        (("r", 8), {"timeout": float("nan")}, ramway.InvalidArgumentError),
        (("r", 8), {"timeout": "1"}, TypeError),
        (("r", 8), {"wait": "sleep"}, ramway.InvalidArgumentError),
        (("r", 8), {"mode": -1}, (ValueError, OverflowError)),
        (("r", 8), {"mode": "600"}, TypeError),
        (("r", 8), {"numa_node": 10**6}, ramway.Error),
        (("r", 8), {"persistent": "yes"}, TypeError),
        (("r", 8), {"no_such_option": 1}, TypeError),
        (("r", 8, True), {}, TypeError),
    ],
)
def test_wrong_arguments(arguments: tuple[object, ...], options: dict[str, object], error: type[Exception]) -> None:
    for make in (Region.create, Region.open_or_create):
        with pytest.raises(error):
            make(*arguments, **options)  # type: ignore[arg-type]
    with pytest.raises(ramway.NotFoundError):
        Region.open("r")


@pytest.mark.parametrize(
    ("timeout", "error"),
    [
        (-1, ramway.InvalidArgumentError),
        (-1e-9, ramway.InvalidArgumentError),
        (float("nan"), ramway.InvalidArgumentError),
        (float("-inf"), ramway.InvalidArgumentError),
        ("1", TypeError),
        (b"1", TypeError),
        ([], TypeError),
    ],
)
def test_wrong_timeouts(timeout: object, error: type[Exception]) -> None:
    with Region.create("r", 8) as region:
        with pytest.raises(error):
            region.wait(timeout)  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, sys.float_info.max, 2**62, None, True])
def test_timeouts_of_any_length(timeout: float | None) -> None:
    with Region.create("r", 8) as region:
        region.notify()
        assert region.wait(timeout)


def test_a_segment_of_another_kind_is_refused() -> None:
    with ramway.Ring.create("ring").sender():
        with pytest.raises(ramway.InvalidArgumentError, match="ring"):
            Region.open("ring")
    with Region.create("region", 8):
        with pytest.raises(ramway.InvalidArgumentError, match="region"):
            ramway.Ring.open("region").receiver()


def test_a_file_that_is_no_segment_is_left_alone(directory: Path) -> None:
    (directory / "notes").write_bytes(b"mine" * 2000)
    with pytest.raises(ramway.Error, match="notes"):
        Region.open("notes")
    with pytest.raises(ramway.AlreadyExistsError):
        Region.create("notes", 8, discard=True)
    assert (directory / "notes").read_bytes() == b"mine" * 2000
