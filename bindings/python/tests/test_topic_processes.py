"""A topic between processes that are killed, stopped and restarted."""

import os
import signal
import time
from pathlib import Path

import pytest
import ramway
from ramway import LaggedError, PeerDeadError, PermissionDeniedError, Topic
from support import LONG, Child, eventually, run, stopped

PUBLISH = """
    import ramway, sys
    publisher = ramway.Topic.open_or_create("t", capacity=int(sys.argv[1]), timeout=60).publisher()
    print(publisher.seq, flush=True)
    publisher.wait_for_subscribers(int(sys.argv[2]))
    n = publisher.seq
    while True:
        n += 1
        publisher.send(b"%d " % n * (n % 50), n % 1000, n)
        if n % 100 == 0:
            print(n, flush=True)
"""

SUBSCRIBE = """
    import ramway, sys
    subscriber = ramway.Topic.open("t", timeout=60).subscriber(sys.argv[1], label=sys.argv[2] or None,
                                                               durable=sys.argv[3] == "durable")
    print("here", flush=True)
    for message in subscriber:
        assert bytes(message) == b"%d " % message.seq * (message.seq % 50), message
        print(message.seq, message.lost, flush=True)
"""


def check(message: ramway.TopicMessage) -> None:
    n = message.seq
    assert (message.tag, message.type_id) == (n, n % 1000) and bytes(message) == b"%d " % n * (n % 50)


@pytest.mark.parametrize("capacity", [4096, 1 << 20])
def test_a_killed_publisher_loses_nothing_that_it_published(capacity: int) -> None:
    """Killed in the middle of a stream, four times; each successor's numbers go on where they ended."""
    subscriber = Topic.open_or_create("t", capacity=capacity).subscriber()
    expected = 1
    for life in range(4):
        with Child(PUBLISH, capacity, 1) as child:
            assert int(child.line()) == expected - 1
            for _ in range(500 + life * 37):
                message = subscriber.recv(LONG)
                assert (message.seq, message.lost) == (expected, 0)
                check(message)
                expected += 1
            child.kill()
        reported = 0
        while (line := child.lines.get(timeout=LONG)) is not None:
            reported = int(line)
        with pytest.raises(PeerDeadError):
            while True:
                message = subscriber.recv(LONG)
                assert (message.seq, message.lost) == (expected, 0)
                check(message)
                expected += 1
        assert expected > reported and not subscriber.peer_alive
    assert subscriber.lost == 0


@pytest.mark.parametrize("policy", ["lossy", "latest"])
def test_a_killed_publisher_leaves_the_others_whole_messages(policy: str) -> None:
    subscriber = (Topic.open_or_create("t", capacity=4096)).subscriber("lossy" if policy == "lossy" else "latest")
    last = 0
    for _ in range(3):
        with Child(PUBLISH, 4096, 0) as child:
            # Until it is there, the end of the one before it is what there is to tell.
            child.line()
            for _ in range(200):
                message = subscriber.recv(LONG)
                assert message.seq == last + 1 + message.lost or last == 0
                check(message)
                last = message.seq
            child.kill()
        with pytest.raises(PeerDeadError):
            while True:
                message = subscriber.recv(LONG)
                check(message)
                last = message.seq
        newest = subscriber.latest()
        assert newest is not None and newest.seq == last


def test_a_killed_subscriber_holds_nobody_up() -> None:
    publisher = Topic.create("t", capacity=4096).publisher()
    own = Topic.open("t").subscriber()
    with Child(SUBSCRIBE, "reliable", "", "") as child:
        assert child.line() == "here"
        publisher.send(b"1 ")
        assert child.line() == "1 0"
        with stopped(child):
            for n in range(2, 1000):
                try:
                    publisher.send(b"%d " % n * (n % 50), timeout=0.05)
                except ramway.TimedOutError:
                    break
                own.recv(LONG).release()
            own.recv_batch(1000, 0) if own.lag.messages else None
            # A stopped process is alive: the publisher waits for it.
            with pytest.raises(ramway.TimedOutError):
                publisher.send(bytes(2000), timeout=0.3)
            child.kill()
        publisher.send(bytes(2000), timeout=LONG)
    assert len(publisher.subscribers()) == 1


def test_a_stopped_viewer_holds_nobody_up_and_counts_what_it_lost() -> None:
    publisher = Topic.create("t", capacity=4096).publisher()
    controller = Topic.open("t").subscriber()
    with Child(SUBSCRIBE, "lossy", "viewer", "") as viewer:
        assert viewer.line() == "here"
        total = 2000
        with stopped(viewer):
            for n in range(1, total):
                publisher.send(b"%d " % n * (n % 50), timeout=LONG)
                message = controller.recv(0)
                assert (message.seq, message.lost) == (n, 0)
        publisher.send(b"%d " % total * (total % 50))
        publisher.close()
        received = lost = 0
        for line in viewer.finish():
            seq, gap = map(int, line.split())
            received, lost = received + 1, lost + gap
            assert seq == received + lost
        assert received + lost == total and lost > 0


def test_a_durable_subscriber_that_is_killed_goes_on_where_it_was() -> None:
    publisher = Topic.create("t", capacity=1 << 16).publisher()
    seen: list[int] = []
    for life in range(3):
        with Child(SUBSCRIBE, "reliable", "recorder", "durable") as child:
            assert child.line() == "here"
            for _ in range(50):
                n = publisher.seq + 1
                publisher.send(b"%d " % n * (n % 50), timeout=LONG)
            for _ in range(30):
                seq, lost = map(int, child.line().split())
                assert lost == 0
                seen.append(seq)
            child.kill()
            while (line := child.lines.get(timeout=LONG)) is not None:
                seen.append(int(line.split()[0]))
        info = publisher.subscribers()[0]
        assert (info.label, info.durable, info.alive) == ("recorder", True, False), life
    # What it had not given back when it was killed comes again; nothing is left out.
    assert sorted(set(seen)) == list(range(1, max(seen) + 1))
    with Topic.open("t").subscriber(label="recorder", durable=True) as recorder:
        numbers = [message.seq for message in recorder.recv_batch(1000, LONG)]
        assert numbers[0] <= max(seen) + 1 and numbers == list(range(numbers[0], publisher.seq + 1))
        recorder.unsubscribe()


def test_a_stopped_subscriber_is_ejected_and_begins_anew() -> None:
    code = """
        import ramway
        subscriber = ramway.Topic.open("t").subscriber(label="slow")
        print("here", flush=True)
        while True:
            try:
                for message in subscriber:
                    print(message.seq, flush=True)
                break
            except ramway.LaggedError as lagged:
                print("lost", lagged.lost, flush=True)
    """
    publisher = Topic.create("t", capacity=4096).publisher(eject_after=0.1)
    with Child(code) as child:
        assert child.line() == "here"
        publisher.send(b"x")
        assert child.line() == "1"
        with stopped(child):
            for _ in range(200):
                publisher.send(bytes(100), timeout=LONG)
            assert publisher.subscribers()[0].ejected
        publisher.close()
        lines = child.finish()
        lost = [int(line.split()[1]) for line in lines if line.startswith("lost")]
        numbers = [int(line) for line in lines if not line.startswith("lost")]
        assert len(lost) == 1 and numbers[-1] == 201 and len(numbers) + lost[0] == 200


def test_a_topic_stays_only_for_durable_subscribers(directory: Path) -> None:
    topic = Topic.open_or_create("t")
    with topic.publisher() as publisher:
        publisher.send(b"nobody has read it")
    assert list(directory.iterdir()) == []
    publisher, recorder = topic.publisher(), topic.subscriber(label="recorder", durable=True)
    publisher.send(b"kept")
    recorder.close()
    publisher.close()
    assert [segment.kind for segment in ramway.ls()] == ["topic"]
    with pytest.raises(ramway.AlreadyExistsError):
        Topic.create("t").publisher()
    assert run("""
        import ramway
        with ramway.Topic.open("t").subscriber(label="recorder", durable=True) as recorder:
            print(bytes(recorder.recv(60)))
            recorder.unsubscribe()
    """) == ["b'kept'"]
    eventually("its end", lambda: ramway.ls() == [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_reads_a_topic_of_mode_644(directory: Path) -> None:
    directory.chmod(0o755)
    publisher = Topic.create(directory / "t", mode=0o644).publisher()
    publisher.send(b"for all")
    code = """
        import os, sys
        import ramway
        os.setuid(65534)
        topic = ramway.Topic.open(sys.argv[1])
        try:
            topic.subscriber()
        except ramway.PermissionDeniedError:
            print("refused")
        viewer = topic.subscriber("lossy", read_only=True, start="oldest")
        for message in viewer:
            print(message.seq, bytes(message).decode(), flush=True)
    """
    with Child(code, directory / "t") as child:
        assert [child.line(), child.line()] == ["refused", "1 for all"]
        publisher.send(b"and again")
        assert child.line() == "2 and again"
        assert publisher.subscribers() == []
        publisher.close()
        assert child.finish() == []
    assert issubclass(PermissionDeniedError, PermissionError) and issubclass(LaggedError, ramway.Error)


def test_a_thousand_joins_and_leaves_under_load() -> None:
    with Child(PUBLISH, 1 << 16, 0) as child:
        child.line()
        topic = Topic.open("t")
        until = time.monotonic() + 3
        joins = 0
        while time.monotonic() < until or joins < 20:
            with topic.subscriber() as reliable, topic.subscriber("lossy", history=3) as lossy:
                for subscriber in (reliable, lossy):
                    before = subscriber.recv(LONG)
                    after = subscriber.recv(LONG)
                    check(before)
                    check(after)
                    assert after.seq == before.seq + 1 + after.lost
                    assert after.lost == 0 or subscriber is lossy
                    del before, after
            joins += 2
        child.signal(signal.SIGKILL)
