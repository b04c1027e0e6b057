"""ls, unlink, clean."""

import os
from pathlib import Path

import pytest
import ramway
from ramway import Listener, Region, Ring, Topic, clean, ls, unlink
from support import Child, run


def test_ls_says_what_is_there(directory: Path) -> None:
    assert ls() == [] == ls(directory / "nothing")
    with (
        Ring.create("ring", capacity=8192, align=64, persistent=True).sender() as tx,
        Region.create("region", 100),
        Listener.bind("listener"),
    ):
        tx.send(b"x")
        tx.send(bytes(100))
        (directory / "foreign").write_bytes(b"no segment" * 1000)
        found = {segment.name: segment for segment in ls()}
        assert list(found) == ["foreign", "listener", "region", "ring"]
        ring = found["ring"]
        assert (ring.kind, ring.path, ring.in_use, ring.stale) == ("ring", str(directory / "ring"), True, False)
        assert (ring.persistent, ring.capacity, ring.align) == (True, 8192, 64)
        assert (ring.used, ring.undelivered) == (tx.used, 2) and ring.size > 8192
        assert (ring.producer_held, ring.consumer_held, ring.error) == (True, False, None)
        region = found["region"]
        assert (region.kind, region.capacity, region.undelivered, region.used) == ("region", 100, None, None)
        assert (found["listener"].kind, found["listener"].producer_held) == ("listener", True)
        foreign = found["foreign"]
        assert isinstance(foreign.error, ramway.AbiMismatchError) and foreign.kind is None
        assert [segment.name for segment in ls(directory)] == list(found)
    assert {segment.name: segment.stale for segment in ls() if segment.error is None} == {"ring": True}


def test_ls_says_who_subscribes() -> None:
    topic = Topic.create("topic", capacity=8192)
    publisher = topic.publisher()
    here = Topic.open("topic")
    assert [(segment.kind, segment.seq, segment.subscribers) for segment in ls()] == [("topic", 0, [])]
    recorder = here.subscriber(label="recorder", durable=True)
    viewer = here.subscriber("latest", label="viewer")
    publisher.send_batch([b"x"] * 3)
    recorder.recv().release()
    viewer.latest()
    (segment,) = ls()
    assert (segment.capacity, segment.align, segment.seq, segment.producer_held) == (8192, 32, 3, True)
    assert segment.subscribers is not None
    seen = {found.label: found for found in segment.subscribers}
    told = {found.label: found for found in publisher.subscribers()}
    for label in ("recorder", "viewer"):
        for attribute in ("slot", "policy", "durable", "alive", "ejected", "epoch", "lag", "lost"):
            assert getattr(seen[label], attribute) == getattr(told[label], attribute), (label, attribute)
    assert seen["recorder"].lag == ramway.Lag(bytes=seen["recorder"].lag.bytes, messages=2)  # type: ignore[union-attr]
    recorder.close()
    viewer.close()
    publisher.close()
    # The durable one is away, and its place stays.
    (segment,) = ls()
    assert segment.subscribers is not None and not segment.in_use
    assert [(found.label, found.alive, found.durable) for found in segment.subscribers] == [("recorder", False, True)]


def test_what_the_dead_left_is_removed_when_asked(directory: Path) -> None:
    code = """
        import os, signal, ramway
        keep = [ramway.Ring.create(name, capacity=4096).sender() for name in ("empty", "full")]
        keep[1].send(b"undelivered")
        print("made", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    with Child(code) as child:
        assert child.line() == "made"
        child.wait()
    (directory / "foreign").write_bytes(b"no segment" * 1000)
    with Region.create("live", 8):
        wanted = {"empty": (True, None), "live": (False, "in use")}
        for dry_run in (True, False):
            outcomes = {outcome.name: outcome for outcome in clean(dry_run=dry_run)}
            assert {name: (outcomes[name].removed, outcomes[name].kept) for name in wanted} == wanted
            assert not outcomes["full"].removed and "1 undelivered message" in str(outcomes["full"].kept)
            assert outcomes["foreign"].kept == "not a Ramway segment" and outcomes["foreign"].error is None
            assert (directory / "empty").exists() == dry_run
        assert [outcome.name for outcome in clean(directory, undelivered=True) if outcome.removed] == ["full"]
        assert sorted(os.listdir(directory)) == ["foreign", "live"]
    assert clean(directory / "nothing") == []


def test_unlink_removes_what_its_caller_names(directory: Path) -> None:
    with Ring.create("kept", capacity=4096, persistent=True).sender() as tx:
        tx.send(b"undelivered")
        with pytest.raises(ramway.BusyError, match="kept"):
            unlink("kept")
    unlink(directory / "kept")
    with pytest.raises(ramway.NotFoundError, match="kept"):
        unlink("kept")
    (directory / "foreign").write_bytes(b"no segment" * 1000)
    with pytest.raises(ramway.AbiMismatchError, match="foreign"):
        unlink("foreign")
    assert os.listdir(directory) == ["foreign"]
    with pytest.raises(TypeError):
        unlink(5)  # type: ignore[arg-type]


def test_a_directory_that_is_none(directory: Path) -> None:
    (directory / "file").write_bytes(b"")
    for call in (ls, clean):
        with pytest.raises(ramway.Error):
            call(directory / "file")
    assert run("import ramway; print(ramway.ls())", env={"RAMWAY_DIR": str(directory / "other")}) == ["[]"]
