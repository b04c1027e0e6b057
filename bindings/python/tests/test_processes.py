"""Rings between processes that die, stop, restart and are of another language."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Literal

import pytest
import ramway
from ramway import Ring
from support import LONG, Child, eventually, run, stopped

STREAM = """
    import ramway, sys, time
    start, capacity = int(sys.argv[1]), int(sys.argv[2])
    tx = ramway.Ring.open_or_create("stream", capacity=capacity, timeout=60).sender()
    last = tx.last_tag
    print(last, tx.epoch, flush=True)
    n = start if last is None else last + 1
    while True:
        tx.send(b"%d " % n * (n % 50), n % 1000, n)
        if n % 100 == 0:
            print(n, flush=True)
        n += 1
"""


def expect(rx: ramway.Receiver, n: int, message: ramway.Message | None = None) -> None:
    if message is None:
        message = rx.recv(LONG)
    assert (message.tag, message.type_id) == (n, n % 1000)
    assert bytes(message) == b"%d " % n * (n % 50)
    message.release()


@pytest.mark.parametrize("capacity", [4096, 1 << 20])
def test_a_killed_sender_loses_nothing_that_it_committed(capacity: int) -> None:
    """Killed in the middle of a stream, four times; each successor goes on where the one before it ended."""
    with Ring.open_or_create("stream", capacity=capacity).receiver() as rx:
        n = 1
        for life in range(4):
            with Child(STREAM, 1, capacity) as child:
                last, epoch = child.line().split()
                assert (last, epoch) == ("None" if life == 0 else str(n - 1), str(life + 1))
                for _ in range(500 + life * 37):
                    expect(rx, n)
                    n += 1
                child.kill()
            reported = 0
            while (line := child.lines.get(timeout=LONG)) is not None:
                reported = int(line)
            # All that it committed is still there, at least what it said that it had sent.
            with pytest.raises(ramway.PeerDeadError):
                while True:
                    expect(rx, n, rx.recv(LONG))
                    n += 1
            assert n > reported
            assert not rx.peer_alive and rx.peer_epoch == life + 1


def test_what_a_killed_receiver_had_not_released_is_received_again() -> None:
    code = """
        import ramway, time
        rx = ramway.Ring.open("r").receiver()
        for n in range(10):
            assert bytes(rx.recv()) == b"%d" % n     # released when dropped
        held = [rx.recv(), rx.recv()]
        later = rx.recv()
        del later                                    # given back, but after what is held
        view = memoryview(held[0])
        print(bytes(view).decode(), rx.epoch, flush=True)
        time.sleep(1000)
    """
    with Ring.create("r", capacity=4096).sender() as tx:
        for n in range(20):
            tx.send(b"%d" % n)
        with Child(code) as child:
            assert child.line() == "10 1"
            child.kill()
        with Ring.open("r", timeout=LONG).receiver() as rx:
            assert rx.epoch == 2
            assert [rx.recv_bytes(LONG) for _ in range(10)] == [b"%d" % n for n in range(10, 20)]


def test_a_sender_learns_of_its_receivers_death_and_its_successor_takes_over() -> None:
    code = """
        import ramway, time
        rx = ramway.Ring.open("r").receiver()
        print("attached", flush=True)
        time.sleep(1000)
    """
    with Ring.create("r", capacity=4096).sender() as tx:
        with Child(code) as child:
            child.line()
            assert tx.peer_alive
            child.kill()
        eventually("the kernel releases it", lambda: not tx.peer_alive)
        # There is room: it is kept for the next receiver.
        tx.send(bytes(4000))
        with pytest.raises(ramway.PeerDeadError):
            tx.send(bytes(4000), timeout=LONG)
        with Ring.open("r").receiver() as rx:
            assert len(rx.recv(LONG)) == 4000
            tx.send(bytes(4000), timeout=LONG)
            assert tx.peer_epoch == 2 and len(rx.recv(LONG)) == 4000


def test_a_stopped_process_is_alive() -> None:
    with Child(STREAM, 1, 4096) as child, Ring.open_or_create("stream", capacity=4096, timeout=LONG).receiver() as rx:
        child.line()
        for n in range(1, 50):
            expect(rx, n)
        n = 50
        with stopped(child):
            # What was committed is there, then nothing; for longer than a death takes to be seen.
            with pytest.raises(ramway.TimedOutError):
                while True:
                    message = rx.recv(1.0)
                    expect(rx, n, message)
                    n += 1
            assert rx.peer_alive
        for later in range(n, n + 100):
            expect(rx, later)


def test_whichever_starts_first() -> None:
    send = """
        import ramway
        with ramway.Ring.open_or_create("r").sender() as tx:
            for n in range(100):
                tx.send(b"%d" % n)
    """
    receive = """
        import ramway
        with ramway.Ring.open_or_create("r").receiver() as rx:
            print([bytes(m) for m in rx] == [b"%d" % n for n in range(100)])
    """
    for order in ((send, receive), (receive, send)):
        with Child(order[0]) as first, Child(order[1]) as second:
            assert sorted(first.finish() + second.finish()) == ["True"]


def test_a_role_is_taken_once_and_free_after_a_kill() -> None:
    code = """
        import ramway, time
        rx = ramway.Ring.open("r").receiver()
        print("attached", flush=True)
        time.sleep(1000)
    """
    with Ring.create("r").sender() as tx:
        with pytest.raises(ramway.BusyError, match="r"):
            Ring.open("r").sender()
        with Child(code) as child:
            child.line()
            with pytest.raises(ramway.BusyError, match="r"):
                Ring.open("r").receiver()
            started = time.monotonic()
            with pytest.raises(BlockingIOError):
                Ring.open("r", timeout=0.3).receiver()
            assert time.monotonic() - started >= 0.3
            child.kill()
            with Ring.open("r", timeout=LONG).receiver() as rx:
                tx.send(b"x")
                assert rx.recv_bytes(LONG) == b"x"


def test_undelivered_messages_wait_for_a_receiver(directory: Path) -> None:
    with Ring.create("r").sender() as tx:
        tx.send(b"for later", 7, 8)
    assert (directory / "r").exists()
    with pytest.raises(ramway.AlreadyExistsError, match="1 "):
        Ring.create("r").sender()
    code = """
        import ramway
        with ramway.Ring.open("r").receiver() as rx:
            message = rx.recv()
            print(bytes(message).decode(), message.type_id, message.tag)
            del message
            try:
                rx.recv()
            except EOFError:
                print("closed")
    """
    assert run(code) == ["for later 7 8", "closed"]
    assert not (directory / "r").exists()
    with Ring.create("r").sender() as tx:
        tx.send(b"thrown away")
    with Ring.create("r", discard=True).sender():
        with Ring.open("r").receiver() as rx:
            assert rx.try_recv() is None


@pytest.mark.parametrize("wait", ["block", "hybrid"])
@pytest.mark.parametrize("align", [16, 64, 4096])
def test_the_smallest_ring_does_not_hang(align: int, wait: Literal["block", "hybrid"]) -> None:
    """One page: the two sides wait for each other at nearly every message."""
    code = """
        import ramway, sys
        with ramway.Ring.open("small", wait=sys.argv[1]).receiver() as rx:
            count = total = 0
            for message in rx:
                count, total = count + 1, total + len(message)
                del message
            print(count, total)
    """
    longest = 4096 - 16
    lengths = [n % (longest + 1) for n in range(0, 40 * 997, 997)] + [longest] * 40 + [0] * 600
    with Ring.create("small", capacity=1, align=align, wait=wait).sender() as tx, Child(code, wait) as child:
        assert (tx.capacity, tx.align, tx.max_message_len) == (4096, align, longest)
        for length in lengths:
            tx.send(bytes(length), timeout=LONG)
        tx.close()
        assert child.finish() == [f"{len(lengths)} {sum(lengths)}"]


def test_a_message_of_length_0_is_a_message() -> None:
    with Ring.create("r").sender() as tx, Ring.open("r").receiver() as rx:
        tx.send(b"", 1, 2)
        tx.send(b"after")
        # Truth is about whether there is one, as `while message := rx.try_recv()` has it.
        message = rx.try_recv()
        assert message and len(message) == 0 and (message.type_id, message.tag) == (1, 2)
        assert bytes(message) == b"" and memoryview(message).nbytes == 0
        del message
        assert rx.recv_bytes() == b"after"


def test_capacity_and_alignment_must_fit() -> None:
    with Ring.create("r", capacity=10_000, align=64).sender() as tx:
        assert (tx.capacity, tx.align) == (16384, 64)
        with pytest.raises(ramway.InvalidArgumentError, match=r"capacity is 16384 bytes, not the 4096"):
            Ring.open("r", capacity=4096).receiver()
        with pytest.raises(ramway.InvalidArgumentError, match=r"alignment is 64 bytes, not the 16"):
            Ring.open_or_create("r", align=16).receiver()
        # What rounds up to the same is the same.
        with Ring.open("r", capacity=9000, align=64).receiver() as rx:
            assert (rx.capacity, rx.align) == (16384, 64)


# multiprocessing


def child_sends(ring: Ring, count: int) -> None:
    with ring.sender() as tx:
        for n in range(count):
            tx.send(b"%d" % n, n)


def child_echoes(there: str, back: Ring) -> None:
    with Ring.open(there, timeout=LONG).receiver() as rx, back.sender() as tx:
        for message in rx:
            with message:
                tx.send(message, message.type_id, message.tag)


# By path: a fork server is started once and keeps the environment of that time.


# JAX, where an earlier test has imported it, warns of forks.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork:RuntimeWarning")
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_name_or_a_ring_goes_to_a_multiprocessing_child(method: str, directory: Path) -> None:
    context: BaseContext = multiprocessing.get_context(method)
    there, back = str(directory / "there"), Ring.open_or_create(directory / "back", capacity=8192)
    with Ring.create(there).sender() as tx, back.receiver() as rx:
        process = context.Process(target=child_echoes, args=(there, back))  # type: ignore[attr-defined]
        process.start()
        for n in range(100):
            tx.send(b"%d" % n, n, n)
            message = rx.recv(LONG)
            assert (bytes(message), message.type_id, message.tag) == (b"%d" % n, n, n)
            del message
        tx.close()
        with pytest.raises(ramway.ClosedError):
            rx.recv(LONG)
        process.join(LONG)
        assert process.exitcode == 0


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_pool_of_children_sends_on_rings_that_it_is_given(method: str, directory: Path) -> None:
    rings = [Ring.open_or_create(directory / f"ring.{n}", capacity=4096, wait="block") for n in range(3)]
    receivers = [ring.receiver() for ring in rings]
    with multiprocessing.get_context(method).Pool(3) as pool:
        done = pool.starmap_async(child_sends, [(ring, 200) for ring in rings])
        for rx in receivers:
            assert [m.type_id for m in rx] == list(range(200))
        done.get(LONG)
        pool.close()
        pool.join()
    for rx in receivers:
        rx.close()


def test_the_resource_tracker_does_not_touch_our_files(directory: Path) -> None:
    """A process that uses multiprocessing's shared memory (so that its tracker runs) and ours, and is killed: the
    tracker cleans up after it, not after us."""
    code = """
        import os, ramway, time
        from multiprocessing import resource_tracker, shared_memory
        theirs = shared_memory.SharedMemory(create=True, size=100)
        tx = ramway.Ring.create("ring", persistent=True).sender()
        region = ramway.Region.create("region", 100, persistent=True)
        listener = ramway.Listener.bind("listener")
        tx.send(b"kept")
        region[:4] = b"kept"
        print(theirs.name, resource_tracker._resource_tracker._pid, flush=True)
        time.sleep(1000)
    """
    with Child(code) as child:
        name, tracker = child.line().split()
        assert Path("/dev/shm", name).exists()
        child.kill()
        eventually("the tracker removes what is its own", lambda: not Path("/dev/shm", name).exists())
        eventually("the tracker ends", lambda: not Path(f"/proc/{tracker}").exists() or _is_zombie(int(tracker)))
    assert {"ring", "region", "listener.sock"} <= set(os.listdir(directory))
    with Ring.open("ring").receiver() as rx, ramway.Region.open("region") as region:
        assert rx.recv_bytes(LONG) == b"kept" and bytes(region[:4]) == b"kept"


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


# The other side in Rust: the command line


@pytest.fixture(scope="module")
def cli() -> str:
    """The `ramway` command of this repository, built if need be; `RAMWAY_CLI` names one that is."""
    if found := os.environ.get("RAMWAY_CLI"):
        return found
    root = Path(__file__).resolve().parents[3]
    if not (root / "cli").is_dir() or shutil.which("cargo") is None:
        pytest.skip("no source tree, or no cargo to build the command with")
    build = ["cargo", "build", "--quiet", "--package", "ramway-cli", "--message-format", "json"]
    # Not what maturin may have set for the extension module.
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYO3_")}
    built = subprocess.run(build, cwd=root, env=env, stdout=subprocess.PIPE, check=True, text=True)
    for line in reversed(built.stdout.splitlines()):
        if executable := json.loads(line).get("executable"):
            return str(executable)
    raise AssertionError("cargo built no command")


def test_rust_sends_and_we_receive(tmp_path: Path, cli: str) -> None:
    lines = [b"line %d" % n for n in range(1000)]
    (tmp_path / "lines").write_bytes(b"".join(line + b"\n" for line in lines))
    with Ring.open_or_create("r", capacity=4096).receiver() as rx, open(tmp_path / "lines", "rb") as file:
        with subprocess.Popen([cli, "send", "r", "--lines"], stdin=file) as rust:
            assert [bytes(message).rstrip(b"\n") for message in rx] == lines
            assert rust.wait(LONG) == 0


def test_we_send_and_rust_receives(cli: str) -> None:
    with Ring.create("r", capacity=4096).sender() as tx:
        with subprocess.Popen([cli, "recv", "r"], stdout=subprocess.PIPE) as rust:
            for n in range(1000):
                tx.send(b"line %d\n" % n)
            tx.close()
            assert rust.stdout is not None
            assert rust.stdout.read() == b"".join(b"line %d\n" % n for n in range(1000))
            assert rust.wait(LONG) == 0


def test_a_killed_rust_sender_and_a_killed_rust_receiver(cli: str) -> None:
    with Ring.open_or_create("r", capacity=4096).receiver() as rx:
        with subprocess.Popen([cli, "send", "r", "--lines"], stdin=subprocess.PIPE) as rust:
            assert rust.stdin is not None
            rust.stdin.write(b"one\ntwo\n")
            rust.stdin.flush()
            assert rx.recv_bytes(LONG).rstrip() == b"one"
            rust.send_signal(signal.SIGKILL)
            rust.wait(LONG)
            messages = []
            with pytest.raises(ramway.PeerDeadError):
                while True:
                    messages.append(rx.recv_bytes(LONG).rstrip())
            assert messages in ([], [b"two"])
    with Ring.create("s", capacity=4096).sender() as tx:
        with subprocess.Popen([cli, "recv", "s"], stdout=subprocess.DEVNULL) as rust:
            eventually("it is there", lambda: tx.peer_alive)
            rust.send_signal(signal.SIGKILL)
            rust.wait(LONG)
        with pytest.raises(ramway.PeerDeadError):
            while True:
                tx.send(bytes(1000), timeout=LONG)


def test_what_we_leave_is_listed_and_cleaned(directory: Path, cli: str) -> None:
    code = """
        import ramway, time
        tx = ramway.Ring.create("killed").sender()
        print("made", flush=True)
        time.sleep(1000)
    """
    with Child(code) as child, Ring.create("live").sender():
        child.line()
        listed = subprocess.run([cli, "ls"], stdout=subprocess.PIPE, check=True, text=True).stdout
        assert "killed" in listed and "live" in listed
        child.kill()
        subprocess.run([cli, "clean"], stdout=subprocess.DEVNULL, check=True)
        assert os.listdir(directory) == ["live"]
