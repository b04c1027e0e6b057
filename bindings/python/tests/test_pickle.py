"""What can be pickled and copied, and what says why not."""

import copy
import multiprocessing
import pickle
from pathlib import Path

import pytest
import ramway
from ramway import Bus, Listener, Region, Ring
from support import LONG, Thread


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("make", [Ring.create, Ring.open, Ring.open_or_create])
def test_a_ring_is_its_name_and_options(make: object, protocol: int) -> None:
    assert callable(make)
    new = {} if make is Ring.open else {"mode": 0o640, "persistent": True}
    ring = make("r", capacity=8192, align=64, wait="block", timeout=1.5, **new)
    again = pickle.loads(pickle.dumps(ring, protocol))
    assert type(again) is Ring and again.name == "r" and repr(again) == repr(ring)
    first = Ring.create("r", capacity=8192, align=64).sender() if make is Ring.open else None
    if first is None:
        with again.sender() as tx:
            assert (tx.capacity, tx.align, tx.wait) == (8192, 64, "block")
    else:
        with first, again.receiver() as rx:
            assert (rx.capacity, rx.align, rx.wait) == (8192, 64, "block")


def test_a_ring_by_path_stays_that_path(directory: Path) -> None:
    ring = pickle.loads(pickle.dumps(Ring.create(directory / "p")))
    with ring.sender():
        assert (directory / "p").exists()


def test_copies_of_a_ring_lead_to_the_same_one() -> None:
    ring = Ring.open_or_create("r", capacity=4096)
    with copy.copy(ring).sender() as tx, copy.deepcopy(ring).receiver() as rx:
        tx.send(b"x")
        assert rx.recv_bytes(LONG) == b"x"


def test_a_pickled_ring_opens_nothing(directory: Path) -> None:
    pickle.loads(pickle.dumps(Ring.create("r", capacity=4096)))
    assert list(directory.iterdir()) == []


def test_handles_say_what_to_send_instead() -> None:
    with Ring.create("r").sender() as tx, Ring.open("r").receiver() as rx, Region.create("g", 8) as region:
        with Listener.bind("l", 4096) as listener:
            connecting = Thread(Bus.connect, "l")
            with listener.accept(LONG) as bus, connecting.result():
                tx.send(b"x")
                message = rx.recv()
                slot = tx.reserve(4)
                for handle in (tx, rx, region, listener, bus):
                    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
                        with pytest.raises(TypeError, match="name"):
                            attempt(handle)
                with pytest.raises(TypeError, match="bytes"):
                    pickle.dumps(message)
                with pytest.raises(TypeError):
                    pickle.dumps(slot)
                # A view is not sent by accident either.
                with pytest.raises(TypeError):
                    pickle.dumps(memoryview(message))
                # But its bytes are, out of band too.
                buffers: list[pickle.PickleBuffer] = []
                data = pickle.dumps(pickle.PickleBuffer(message), 5, buffer_callback=buffers.append)
                assert bytes(pickle.loads(data, buffers=buffers)) == b"x"
                buffers[0].release()
                slot.abort()
                del message


def take(_handle: object) -> None:
    raise AssertionError("it was pickled")


def test_a_spawned_child_is_not_given_a_handle() -> None:
    with Ring.create("r").sender() as tx:
        process = multiprocessing.get_context("spawn").Process(target=take, args=(tx,))
        with pytest.raises(TypeError, match="name"):
            process.start()
        process.close()


def test_a_broken_pickle_is_refused() -> None:
    from ramway import _ramway

    for arguments in (
        (),
        ("create",),
        ("create", "r"),
        ("create", "r", None),
        ("create", 5, {}),
        ("create", "r", {"x": 1}),
    ):
        with pytest.raises((TypeError, ValueError)):
            _ramway._remake_ring(*arguments)
    assert issubclass(ramway.Error, Exception)
