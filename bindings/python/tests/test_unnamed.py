"""Rings without a name, handed to children by descriptor."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import ramway
from ramway import Ring
from support import LONG, Child, descriptors, eventually


def produce(ring: Ring) -> None:
    with ring.sender() as tx:
        for n in range(100):
            tx.send(b"%d" % n)


def produce_what_comes(rings: Connection) -> None:
    produce(rings.recv())


def die(ring: Ring) -> None:
    tx = ring.sender()
    tx.send(b"last")
    os._exit(9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX's, where another test has imported it
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_multiprocessing_child_has_it_as_an_argument(method: str, directory: Path) -> None:
    ring = Ring.unnamed(capacity=4096)
    assert ring.name is None and "without a name" in repr(ring)
    child = multiprocessing.get_context(method).Process(target=produce, args=(ring,))
    with ring.receiver() as rx:
        child.start()
        assert [int(bytes(message)) for message in rx] == list(range(100))
    child.join(LONG)
    assert child.exitcode == 0 and os.listdir(directory) == []


def test_it_goes_through_a_pipe_of_multiprocessings() -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=produce_what_comes, args=(there,))
    child.start()
    ring = Ring.unnamed(capacity=4096, align=64, wait="block")
    with ring.receiver() as rx:
        here.send(ring)
        assert [int(bytes(message)) for message in rx] == list(range(100))
    child.join(LONG)
    assert child.exitcode == 0


def test_a_subprocess_has_it_as_a_descriptor() -> None:
    ring = Ring.unnamed(capacity=4096)
    code = "import sys, ramway; ramway.Ring.from_fd(int(sys.argv[1])).sender().send(b'from the child')"
    with ring.receiver() as rx:
        fd = ring.fileno()
        subprocess.run([sys.executable, "-c", code, str(fd)], pass_fds=[fd], check=True, timeout=LONG)
        assert rx.recv_bytes(LONG) == b"from the child"
        with pytest.raises(ramway.ClosedError):
            rx.recv(LONG)
        # A successor goes on, as on a ring with a name.
        subprocess.run([sys.executable, "-c", code, str(fd)], pass_fds=[fd], check=True, timeout=LONG)
        assert rx.recv_bytes(LONG) == b"from the child"


def test_a_child_that_dies_is_told_of() -> None:
    ring = Ring.unnamed(capacity=4096)
    child = multiprocessing.get_context("spawn").Process(target=die, args=(ring,))
    child.start()
    with ring.receiver() as rx:
        assert rx.recv_bytes(LONG) == b"last"
        with pytest.raises(ramway.PeerDeadError):
            rx.recv(LONG)
    child.join(LONG)


def test_the_roles_are_taken_once_and_the_options_are_kept() -> None:
    ring = Ring.unnamed(capacity=8192, align=64, wait="spin", writable_views=True)
    with ring.sender() as tx, Ring.from_fd(ring.fileno(), capacity=8192, wait="block").receiver() as rx:
        assert (tx.capacity, tx.align, tx.wait, rx.wait, tx.name) == (8192, 64, "spin", "block", None)
        with pytest.raises(ramway.BusyError):
            ring.sender()
        tx.send(b"x")
        assert rx.recv_bytes() == b"x"
        again = pickle.loads(pickle.dumps(ring))
        assert again.fileno() != ring.fileno() and os.get_inheritable(again.fileno()) is False
    with again.sender() as tx:
        assert (tx.capacity, tx.align, tx.wait) == (8192, 64, "spin")
    with pytest.raises(ramway.InvalidArgumentError, match=r"4096.*8192|8192.*4096"):
        Ring.from_fd(ring.fileno(), capacity=4096).sender()


def test_the_descriptor_stays_the_callers() -> None:
    before = descriptors()
    made = Ring.unnamed(capacity=4096)
    fd = os.dup(made.fileno())
    del made
    ring = Ring.from_fd(fd)
    os.close(fd)
    with ring.sender() as tx, ring.receiver() as rx:
        tx.send(b"x")
        assert rx.recv_bytes() == b"x"
    del ring, tx, rx
    eventually("all descriptors are closed", lambda: descriptors() <= before)


def test_what_cannot_be() -> None:
    read, write = os.pipe()
    with pytest.raises(ramway.Error):
        Ring.from_fd(read).sender()
    os.close(read)
    os.close(write)
    with pytest.raises(ramway.OsError, match=f"descriptor {read}"):
        Ring.from_fd(read)
    with pytest.raises(ramway.InvalidArgumentError, match="fd=-1"):
        Ring.from_fd(-1)
    for option, value in {"persistent": True, "discard": True, "mode": 0o600, "allow_disk": True}.items():
        with pytest.raises(ramway.InvalidArgumentError, match=f"{option} applies to a ring with a name"):
            Ring.unnamed(**{option: value})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="nonsense"):
        Ring.unnamed(nonsense=1)  # type: ignore[call-arg]
    with pytest.raises(ramway.NoSpaceError):
        Ring.unnamed(capacity=1 << 45)
    with pytest.raises(ramway.UnsupportedError, match="'named'.*pass its name"):
        Ring.open("named").fileno()


def test_what_comes_by_a_descriptor_is_checked(directory: Path) -> None:
    files = {"empty": b"", "text": b"no segment" * 1000}
    for name, content in files.items():
        (directory / name).write_bytes(content)
        fd = os.open(directory / name, os.O_RDWR)
        with pytest.raises(ramway.Error):
            Ring.from_fd(fd).receiver()
        os.close(fd)


def test_a_killed_child_leaves_nothing() -> None:
    ring = Ring.unnamed(capacity=4096)
    os.set_inheritable(ring.fileno(), True)
    code = (
        "import sys, ramway; rx = ramway.Ring.from_fd(int(sys.argv[1])).receiver(); print('up', flush=True); rx.recv()"
    )
    with ring.sender() as tx:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(ring.fileno())],
            pass_fds=[ring.fileno()],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None and process.stdout.readline() == "up\n"
        assert tx.wait_for_peer(LONG) == 1
        process.kill()
        process.wait()
        process.stdout.close()
        eventually("the receiver is gone", lambda: not tx.peer_alive)
        with Child("print()"):
            pass
