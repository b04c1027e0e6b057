"""Slots: writing in place, and what becomes of views that outlive one."""

import struct

import numpy as np
import pytest
import ramway


def pair(capacity: int = 1 << 16) -> tuple[ramway.Sender, ramway.Receiver]:
    return ramway.Ring.pair(capacity)


def test_a_slot_is_committed_as_long_as_it_was_used() -> None:
    tx, rx = pair()
    with tx.reserve(100, type_id=3, tag=4) as slot:
        assert len(slot) == 100 and slot.open
        slot[:5] = b"hello"
        slot.tag = 6
        slot.commit(5)
    msg = rx.recv()
    assert (bytes(msg), msg.type_id, msg.tag) == (b"hello", 3, 6) and not slot.open


def test_the_end_of_the_block_commits_all_of_it() -> None:
    tx, rx = pair()
    with tx.reserve(8) as slot:
        struct.pack_into("<Q", slot, 0, 77)
    assert struct.unpack("<Q", rx.recv()) == (77,)


def test_an_exception_in_the_block_aborts() -> None:
    tx, rx = pair()
    with pytest.raises(ZeroDivisionError), tx.reserve(8) as slot:
        slot[:] = b"8 bytes."
        raise ZeroDivisionError
    assert rx.try_recv() is None and tx.used == 0
    tx.send(b"next")
    assert rx.recv() == b"next"


def test_a_dropped_slot_leaves_nothing_behind() -> None:
    tx, rx = pair()
    slot = tx.reserve(8)
    slot.abort()
    slot.abort()
    tx.reserve(8)
    tx.send(b"x")
    assert rx.recv() == b"x" and rx.try_recv() is None


def test_one_slot_at_a_time() -> None:
    tx, rx = pair()
    with tx.reserve(8) as slot:
        for second in (
            lambda: tx.reserve(8),
            lambda: tx.send(b"x"),
            lambda: tx.try_send(b"x"),
            lambda: tx.try_reserve(1),
        ):
            with pytest.raises(ramway.BusyError, match="slot"):
                second()
        slot.abort()
    tx.send(b"x")
    assert rx.recv() == b"x"


def test_unflushed_commits_wait_for_the_flush() -> None:
    tx, rx = pair()
    for number in range(3):
        tx.reserve(1).commit(flush=False)
        assert rx.try_recv() is None, number
    tx.flush()
    assert len(rx.recv_batch(10)) == 3


def test_bad_commits() -> None:
    tx, rx = pair()
    slot = tx.reserve(8)
    with pytest.raises(ramway.InvalidArgumentError, match="8 bytes"):
        slot.commit(9)
    with pytest.raises(OverflowError):
        slot.commit(-1)
    with pytest.raises(ramway.InvalidArgumentError, match="0xffff0000"):
        slot.type_id = 0xFFFF0000
    slot.commit(2)
    for late in (slot.commit, lambda: slot[0], lambda: memoryview(slot)):
        with pytest.raises(ramway.DetachedError):
            late()
    assert len(rx.recv()) == 2


@pytest.mark.parametrize("size", [1, 64, 4096, 10_000, 60_000])
@pytest.mark.parametrize("how", ["exit", "commit", "abort", "close"])
def test_a_view_that_outlives_its_slot_is_cut_off(size: int, how: str) -> None:
    tx, rx = pair()
    # Not at the start of a page, and over the end of the data area in some of the rounds.
    for round in range(5):
        tx.send(bytes(40 + 4000 * round))
        rx.recv().release()
        slot = tx.reserve(size)
        with slot:
            array = np.frombuffer(slot, np.uint8)
            array[:] = round + 1
            part = array[: max(1, size // 2)]
            if how == "commit":
                slot.commit()
            elif how == "abort":
                slot.abort()
            elif how == "close":
                tx.close()
        assert (array == round + 1).all(), "it shows what it showed"
        array[:] = 99
        part[:] = 98
        if how == "close":
            with pytest.raises(EOFError):
                rx.recv()
            return
        if how == "abort":
            assert rx.try_recv() is None
            tx.send(bytes([round + 1]) * size)
        msg = rx.recv()
        assert bytes(msg) == bytes([round + 1]) * size, "what was written to it later went nowhere"
        del msg


def test_views_of_one_slot_are_not_the_next_ones() -> None:
    tx, rx = pair(1 << 18)
    arrays = []
    for number in range(20):
        with tx.reserve(5000) as slot:
            arrays.append(np.frombuffer(slot, np.uint8))
            arrays[-1][:] = number
    for number, msg in enumerate(rx.recv_batch(20)):
        assert bytes(msg) == bytes([number]) * 5000
    for number, array in enumerate(arrays):
        assert (array == number).all()


def test_a_view_dropped_in_time_costs_no_mapping() -> None:
    tx, rx = pair()

    def mappings() -> int:
        with open("/proc/self/maps") as maps:
            return sum(1 for _ in maps)

    for _ in range(3):
        with tx.reserve(64) as slot:
            np.frombuffer(slot, np.uint8)[:] = 1
        rx.recv()
    before = mappings()
    for _ in range(100):
        with tx.reserve(64) as slot:
            np.frombuffer(slot, np.uint8)[:] = 1
        rx.recv()
    assert mappings() <= before + 2


def test_slots_and_handles_cannot_be_pickled() -> None:
    import pickle

    tx, rx = pair()
    tx.send(b"x")
    for what in (tx, rx, rx.recv(), tx.reserve(1)):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(what)
    ring = pickle.loads(pickle.dumps(ramway.Ring.create("pickled", capacity=8192)))
    assert ring.sender().capacity == 8192
