"""A topic in one process: policies, what messages say, where subscribers begin, what the publisher knows of them."""

import copy
import gc
import pickle
import time
import weakref
from collections.abc import Callable

import pytest
import ramway
from ramway import (
    BusyError,
    ClosedError,
    DetachedError,
    FullError,
    InvalidArgumentError,
    LaggedError,
    Publisher,
    Ring,
    Subscriber,
    TimedOutError,
    TooLargeError,
    Topic,
    TopicMessage,
    UnsupportedError,
)
from support import LONG, Thread, eventually

POLICIES = ("reliable", "lossy", "latest")


def made(name: str = "t", capacity: int = 1 << 16) -> Publisher:
    return Topic.create(name, capacity=capacity).publisher()


def joined(policy: str = "reliable", name: str = "t") -> Subscriber:
    match policy:
        case "lossy":
            return Topic.open(name).subscriber("lossy")
        case "latest":
            return Topic.open(name).subscriber("latest")
        case "ejectable":
            return Topic.open(name, may_eject=True).subscriber()
        case _:
            return Topic.open(name).subscriber()


def fill(publisher: Publisher, size: int = 100) -> int:
    """Publishes until a subscriber is in the way; gives how many."""
    count = 0
    while True:
        try:
            publisher.try_send(bytes(size))
        except FullError:
            return count
        count += 1
        assert count < 100_000, "nobody is in the way"


def test_its_ends_are_a_sender_and_a_receiver() -> None:
    publisher = Topic.create("t", capacity=1 << 16, align=64, slots=4).publisher(wait="block")
    subscriber = joined()
    assert isinstance(publisher, ramway.Sender) and isinstance(subscriber, ramway.Receiver)
    assert (publisher.name, publisher.capacity, publisher.align, publisher.wait) == ("t", 1 << 16, 64, "block")
    assert publisher.max_message_len == subscriber.max_message_len == (1 << 15) - 32
    assert (subscriber.policy, subscriber.label, subscriber.wait) == ("reliable", None, "hybrid")
    assert (publisher.epoch, subscriber.epoch, subscriber.peer_epoch) == (1, 1, 1)
    assert publisher.peer_alive and subscriber.peer_alive
    assert repr(Topic.open("t")) == "<ramway.Topic 't'>".replace("'", '"')
    assert repr(publisher) == '<ramway.Publisher "t">' and repr(subscriber) == '<ramway.Subscriber "t">'
    with pytest.raises(TooLargeError):
        publisher.send(bytes(1 << 15))


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_message_says(policy: str) -> None:
    publisher = Topic.create("t", capacity=1 << 16).publisher(timestamps=True)
    subscriber = joined(policy)
    before = time.time_ns()
    publisher.send(b"payload", type_id=3, tag=4)
    message = subscriber.recv(LONG)
    assert type(message) is TopicMessage and isinstance(message, ramway.Message)
    assert (bytes(message), message.type_id, message.tag) == (b"payload", 3, 4)
    assert (message.seq, message.lost) == (1, 0)
    # The clocks' readings are of one machine; one may be coarser.
    assert before - 10_000_000 <= message.time <= time.time_ns() + 10_000_000
    assert repr(message) == "<ramway.TopicMessage of 7 bytes, type_id=0x3, tag=4, seq=1>"
    with pytest.raises(AttributeError):
        message.seq = 2  # type: ignore[misc]
    message.release()
    assert message.released and message.seq == 1


def test_a_rings_message_says_less() -> None:
    tx, rx = Ring.pair(4096)
    tx.send(b"x")
    message = rx.recv()
    assert type(message) is ramway.Message and not hasattr(message, "seq")


def test_a_reliable_subscriber_sees_every_message_in_place() -> None:
    publisher, subscriber = made(capacity=4096), joined()
    sent = fill(publisher)
    with pytest.raises(TimedOutError):
        publisher.send(bytes(100), timeout=0.02)
    first = subscriber.recv()
    assert memoryview(first).readonly and subscriber.lent == 160
    # It is a view: its place is not given back while it is held.
    with pytest.raises(FullError):
        publisher.try_send(bytes(2000))
    numbers = [first.seq, *(subscriber.recv().seq for _ in range(sent - 1))]
    assert numbers == list(range(1, sent + 1)) and subscriber.lost == 0
    first.release()
    publisher.send(bytes(2000), timeout=LONG)


@pytest.mark.parametrize("policy", ["lossy", "latest"])
def test_nobody_waits_for_the_other_policies(policy: str) -> None:
    publisher, subscriber = made(capacity=4096), joined(policy)
    publisher.send(b"first")
    message = subscriber.recv(LONG)
    view = memoryview(message)
    for n in range(1000):
        publisher.try_send(b"%d" % n)
    # A copy: what the publisher writes over does not reach it, and it is the caller's to change.
    assert bytes(message) == b"first" and not view.readonly and subscriber.lent == 0
    view[0] = ord("F")
    assert bytes(message) == b"First"
    subscriber.close()
    del message
    assert bytes(view) == b"First"


def test_a_gap_is_exact() -> None:
    publisher, subscriber = made(capacity=4096), joined("lossy")
    received = lost = 0
    for burst in (1, 10, 100, 1000, 5, 500):
        for _ in range(burst):
            publisher.send(bytes(64))
        while (message := subscriber.try_recv()) is not None:
            received, lost = received + 1, lost + message.lost
            assert message.seq == received + lost
        assert received + lost == publisher.seq
    assert lost > 1000 and subscriber.lost == lost


def test_the_newest_message() -> None:
    publisher, subscriber, other = made(), joined("latest"), joined()
    assert subscriber.latest() is None and subscriber.latest(0.01) is None
    with pytest.raises(TimedOutError, match="subscriber of 't'"):
        subscriber.wait_newer(0.01)
    publisher.send_batch([b"one", b"two"])
    newest = subscriber.latest()
    assert newest is not None and (bytes(newest), newest.seq, newest.lost) == (b"two", 2, 0)
    again = subscriber.latest(0)
    assert again is not None and again.seq == 2
    with pytest.raises(TimedOutError):
        subscriber.wait_newer(0.01)
    waiting = Thread(subscriber.wait_newer, LONG)
    publisher.send(b"three")
    assert waiting.result().seq == 3
    assert subscriber.try_recv() is None
    # Under another policy it is beside what is received.
    newest = other.latest()
    assert newest is not None and newest.seq == 3
    assert [message.seq for message in other.recv_batch()] == [1, 2, 3]
    with pytest.raises(UnsupportedError, match="'latest'"):
        other.wait_newer()
    publisher.close()
    newest = subscriber.latest()
    assert newest is not None and bytes(newest) == b"three"
    with pytest.raises(ClosedError):
        subscriber.wait_newer()


@pytest.mark.parametrize("policy", POLICIES)
def test_the_newest_message_is_waited_for_until_there_is_one(policy: str) -> None:
    publisher, subscriber = made(), joined(policy)
    waiting = Thread(subscriber.latest, LONG)
    time.sleep(0.02)
    publisher.send(b"first")
    assert bytes(waiting.result()) == b"first"


def test_where_a_subscriber_begins() -> None:
    publisher, topic = made(), Topic.open("t")
    for n in range(1, 11):
        publisher.send(b"%d" % n)

    def numbers(subscriber: Subscriber) -> list[int]:
        with subscriber:
            return [message.seq for message in subscriber.try_recv_batch()]

    assert numbers(topic.subscriber()) == list(range(1, 11))
    assert numbers(topic.subscriber(start="oldest")) == list(range(1, 11))
    assert numbers(topic.subscriber("lossy", start="oldest")) == list(range(1, 11))
    assert numbers(topic.subscriber("lossy")) == numbers(topic.subscriber(start="now")) == []
    assert numbers(topic.subscriber(history=3)) == numbers(topic.subscriber("lossy", history=3)) == [8, 9, 10]
    assert numbers(topic.subscriber(after_seq=7)) == numbers(topic.subscriber("lossy", after_seq=7)) == [8, 9, 10]
    assert numbers(topic.subscriber(history=0)) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"policy": "fast"}, "policy=\"fast\": expected 'reliable', 'lossy' or 'latest'"),
        ({"start": "newest"}, "start=\"newest\": expected 'oldest' or 'now'"),
        ({"start": "now", "history": 3}, "at most one"),
        ({"history": 3, "after_seq": 4}, "at most one"),
        ({"history": -1}, "history=-1"),
        ({"after_seq": 1 << 64}, "after_seq="),
        ({"policy": "latest", "history": 3}, "latest"),
        ({"policy": "lossy", "durable": True, "label": "x"}, "durable"),
        ({"durable": True}, "label"),
        ({"label": ""}, "label"),
        ({"label": "x" * 65}, "label"),
        ({"read_only": True}, "read-only"),
        ({"wait": "idle"}, "wait="),
    ],
)
def test_what_makes_no_subscriber(options: dict[str, object], says: str) -> None:
    publisher = made()
    with pytest.raises(InvalidArgumentError, match=says):
        Topic.open("t").subscriber(**options)  # type: ignore[arg-type]
    assert publisher.subscribers() == []


def test_options_are_the_creators() -> None:
    with pytest.raises(InvalidArgumentError, match="eject_after is 0"):
        Topic.create("t").publisher(eject_after=0)
    with pytest.raises(TypeError, match="colour"):
        Topic.create("t", colour="red")  # type: ignore[call-arg]
    with pytest.raises(InvalidArgumentError, match=r"mode.*Topic\.open would ignore it"):
        Topic.open("t", mode=0o644)  # type: ignore[call-arg]
    with pytest.raises(ramway.NotFoundError):
        Topic.open("t").subscriber()
    publisher = made()
    with pytest.raises(ramway.AlreadyExistsError):
        made()
    with pytest.raises(BusyError):
        Topic.open("t").publisher()
    with pytest.raises(InvalidArgumentError, match="slots"):
        Topic.open_or_create("t", slots=7).subscriber()
    with pytest.raises(UnsupportedError, match="may_eject"):
        Topic.open("t").publisher(eject_after=1.0)
    segment = ramway.ls()[0]
    assert (segment.kind, segment.capacity, segment.align, segment.producer_held) == ("topic", 1 << 16, 32, True)
    publisher.close()


def test_slots_and_labels_are_counted() -> None:
    publisher = Topic.create("t", slots=2).publisher()
    topic = Topic.open("t")
    first, second = topic.subscriber(label="one"), topic.subscriber()
    with pytest.raises(BusyError):
        topic.subscriber()
    second.close()
    with pytest.raises(BusyError, match="one"):
        topic.subscriber(label="one")
    # These need no slot.
    others = [topic.subscriber("lossy"), topic.subscriber("latest", label="viewer")]
    assert [other.label for other in others] == [None, "viewer"]
    assert publisher.subscribers()[0].label == "one" == first.label
    del others


def test_a_topic_that_takes_no_reliable_subscriber() -> None:
    publisher = Topic.create("t", capacity=4096, lossy_only=True).publisher()
    with pytest.raises(UnsupportedError, match="lossy_only"):
        Topic.open("t").subscriber()
    with Topic.open("t").subscriber("lossy") as subscriber:
        publisher.send(b"x")
        assert subscriber.recv_bytes(LONG) == b"x"


def test_a_durable_subscriber_goes_on_where_it_was() -> None:
    publisher, topic = made(capacity=4096), Topic.open("t")
    recorder = topic.subscriber(label="recorder", durable=True)
    publisher.send_batch([b"1", b"2", b"3"])
    assert recorder.recv_bytes() == b"1"
    with pytest.raises(BusyError, match="recorder"):
        topic.subscriber(label="recorder", durable=True)
    recorder.close()
    left = publisher.subscribers()[0]
    assert (left.label, left.durable, left.alive) == ("recorder", True, False)
    assert left.lag == ramway.Lag(bytes=128, messages=2)
    fill(publisher)
    recorder = topic.subscriber(label="recorder", durable=True)
    message = recorder.recv()
    assert (bytes(message), message.seq, message.lost, recorder.epoch) == (b"2", 2, 0, 2)
    recorder.unsubscribe()
    assert recorder.closed
    # What is held keeps its memory; then the label is forgotten, and nobody is in the way.
    with pytest.raises(FullError):
        publisher.try_send(bytes(2000))
    assert bytes(message) == b"2"
    del message
    assert publisher.subscribers() == []
    publisher.send(bytes(2000), timeout=LONG)


def test_a_subscriber_that_is_in_the_way_is_ejected() -> None:
    publisher = Topic.create("t", capacity=4096).publisher(eject_after=0.05)
    subscriber = joined("ejectable")
    publisher.send(b"copied")
    held = subscriber.recv()
    assert not memoryview(held).readonly and subscriber.lent == 0
    for n in range(300):
        publisher.send(b"%d" % n * 20, timeout=LONG)
    info = publisher.subscribers()[0]
    assert info.ejected and info.alive
    with pytest.raises(LaggedError) as raised:
        subscriber.recv(LONG)
    assert raised.value.lost > 0 and (raised.value.kind, raised.value.code) == ("Lagged", 19)
    assert bytes(held) == b"copied"
    received = subscriber.recv_batch(1000, LONG)
    assert received[0].seq == raised.value.lost + 2 and received[0].lost == 0
    assert received[-1].seq == publisher.seq == 301
    assert subscriber.lost == raised.value.lost


def test_being_ejected_is_told_once_by_whatever_receives() -> None:
    calls: list[Callable[[Subscriber], object]] = [
        lambda subscriber: subscriber.recv(LONG),
        lambda subscriber: subscriber.try_recv(),
        lambda subscriber: subscriber.recv_bytes(LONG),
        lambda subscriber: subscriber.recv_into(bytearray(100), LONG),
        lambda subscriber: subscriber.try_recv_into(bytearray(100)),
        lambda subscriber: subscriber.recv_batch(5, LONG),
        lambda subscriber: subscriber.try_recv_batch(5),
        lambda subscriber: next(iter(subscriber)),
        lambda subscriber: next(subscriber),
    ]
    publisher = Topic.create("t", capacity=4096).publisher(eject_after=0.02)
    for call in calls:
        subscriber = joined("ejectable")
        for _ in range(100):
            publisher.send(bytes(60), timeout=LONG)
        with pytest.raises(LaggedError):
            call(subscriber)
        assert call(subscriber) is not None
        subscriber.close()


def test_moving_on_to_the_newest_message() -> None:
    publisher, subscriber = made(capacity=4096), joined()
    assert subscriber.skip_to_newest() == 0
    for n in range(1, 11):
        publisher.send(b"%d" % n)
    seen = []
    for message in subscriber:
        seen.append((message.seq, message.lost))
        if message.seq == 1:
            # The loop's message is held, and keeps its place.
            assert subscriber.skip_to_newest() == 8 and bytes(message) == b"1"
            assert subscriber.lag.messages == 1
        if message.seq == 10:
            publisher.close()
    assert seen == [(1, 0), (10, 0)] and subscriber.lost == 0
    del message
    with pytest.raises(UnsupportedError):
        joined("latest").skip_to_newest()


def test_what_was_left_out_is_given_back_with_what_was_held() -> None:
    publisher, subscriber = made(capacity=4096), joined()
    fill(publisher)
    first = subscriber.recv()
    assert subscriber.skip_to_newest() > 0
    with pytest.raises(FullError):
        publisher.try_send(bytes(100))
    del first
    publisher.try_send(bytes(100))
    assert subscriber.recv().seq == publisher.seq - 1


def test_how_far_a_subscriber_is_behind() -> None:
    publisher, subscriber, lossy = made(), joined(), joined("lossy")
    assert subscriber.lag == ramway.Lag(0, 0)
    publisher.send_batch([bytes(32)] * 4)
    assert subscriber.lag == ramway.Lag(bytes=256, messages=4) == publisher.subscribers()[0].lag
    assert lossy.lag == ramway.Lag(bytes=256, messages=4)
    held = subscriber.recv()
    assert subscriber.lag == ramway.Lag(bytes=256, messages=3)
    del held
    assert subscriber.lag == ramway.Lag(bytes=192, messages=3) and publisher.used == 192


def test_who_subscribes() -> None:
    publisher, topic = made(), Topic.open("t")
    with pytest.raises(TimedOutError, match="publisher of 't' had fewer than 2 reliable subscribers"):
        publisher.wait_for_subscribers(2, 0.02)
    with pytest.raises(InvalidArgumentError, match="slots"):
        publisher.wait_for_subscribers(33)
    waiting = Thread(publisher.wait_for_subscribers, 2, LONG)
    first = topic.subscriber(label="controller")
    lossy = topic.subscriber("lossy")
    assert waiting.is_alive()
    second = topic.subscriber(label="wärme")
    waiting.result()
    publisher.wait_for_subscribers(0)
    by_label = {info.label: info for info in publisher.subscribers()}
    controller, viewer, heat = by_label["controller"], by_label[None], by_label["wärme"]
    assert (controller.policy, controller.label, controller.alive, controller.blocks_for) == (
        "reliable",
        "controller",
        True,
        None,
    )
    assert (viewer.policy, viewer.label, viewer.lag) == ("lossy", None, None)
    assert heat.label == second.label == "wärme"
    assert pickle.loads(pickle.dumps(controller)) == controller
    before = publisher.peer_epoch
    first.close()
    assert publisher.peer_epoch != before
    del lossy


def test_numbers_and_tags_go_on_with_the_next_publisher() -> None:
    publisher, subscriber = made(), joined()
    assert (publisher.seq, publisher.last_tag) == (0, None)
    publisher.send(b"one", tag=10)
    publisher.skip_seq(5)
    publisher.send(b"seven", tag=11)
    assert (publisher.seq, publisher.last_tag) == (7, 11)
    with pytest.raises(InvalidArgumentError):
        publisher.skip_seq(1 << 63)
    with pytest.raises(InvalidArgumentError, match="n=-1"):
        publisher.skip_seq(-1)
    publisher.close()
    publisher = Topic.open("t").publisher()
    assert (publisher.seq, publisher.last_tag, publisher.epoch) == (7, 11, 2)
    publisher.send(b"eight")
    assert [(message.seq, message.lost) for message in subscriber.recv_batch()] == [(1, 0), (7, 5), (8, 0)]
    assert subscriber.lost == 5


def test_a_close_with_views_alive_keeps_them() -> None:
    publisher, subscriber = made(capacity=4096), joined()
    publisher.send(b"kept" * 10)
    view = memoryview(subscriber.recv())
    subscriber.close()
    assert subscriber.closed
    fill(publisher)
    assert bytes(view) == b"kept" * 10
    assert publisher.subscribers()[0].alive
    del view
    publisher.send(bytes(1000), timeout=LONG)
    assert publisher.subscribers() == []


@pytest.mark.parametrize("policy", POLICIES)
def test_an_exception_in_the_publishers_block_is_no_close(policy: str) -> None:
    subscriber = Topic.open_or_create("t").subscriber(policy)  # type: ignore[arg-type]
    with pytest.raises(ZeroDivisionError):
        with Topic.open("t").publisher() as publisher:
            publisher.send(b"half of it")
            1 / 0
    assert subscriber.recv_bytes(LONG) == b"half of it"
    with pytest.raises(ramway.PeerDeadError):
        subscriber.recv(LONG)
    with Topic.open("t").publisher() as publisher:
        assert subscriber.wait_for_peer(LONG) == 2
        publisher.send(b"the rest")
    assert [bytes(message) for message in subscriber] == [b"the rest"]


def test_a_view_of_a_slot_does_not_lead_into_the_topic() -> None:
    publisher, subscriber = made(capacity=1 << 16), joined()
    slot = publisher.reserve(10_000)
    view = memoryview(slot)
    view[:] = b"a" * 10_000
    with pytest.raises(BusyError):
        publisher.send(b"x")
    slot.commit(9_000)
    view[:] = b"b" * 10_000
    assert subscriber.recv_bytes(LONG) == b"a" * 9_000
    with publisher.reserve(100, type_id=5) as slot:
        slot.abort()
    with publisher.reserve(100) as slot:
        slot.commit(3, flush=False)
    assert subscriber.try_recv() is None
    publisher.flush()
    message = subscriber.recv(LONG)
    assert (len(message), message.seq) == (3, 2)


def test_a_holder_that_is_in_the_way_is_told_so() -> None:
    publisher, subscriber = made(capacity=4096), joined()
    held = []
    for _ in range(fill(publisher)):
        held.append(subscriber.recv())
    sending = Thread(publisher.send, bytes(100))
    with pytest.raises(BusyError, match="publisher waits for room.*of the topic"):
        subscriber.recv(LONG)
    held.clear()
    sending.result()
    assert subscriber.recv(LONG).seq == publisher.seq


def test_who_is_not_in_the_way_is_told_nothing() -> None:
    publisher, near, far = made(capacity=4096), joined(), joined()
    held = []
    for _ in range(fill(publisher)):
        held.append(near.recv())
    # It holds nearly all there is, but the other one is further behind.
    del held[0]
    sending = Thread(publisher.send, bytes(100))
    with pytest.raises(TimedOutError):
        near.recv(0.3)
    far.close()
    held.clear()
    sending.result()


@pytest.mark.parametrize("policy", [*POLICIES, "ejectable"])
def test_every_way_to_receive(policy: str) -> None:
    publisher = Topic.create("t", capacity=1 << 16, may_eject=policy == "ejectable").publisher()
    subscriber = joined(policy)
    assert subscriber.try_recv() is None and subscriber.try_recv_batch() == []
    buffer = bytearray(8)
    assert subscriber.try_recv_into(buffer) is None
    for call in (subscriber.recv, subscriber.recv_bytes, lambda t: subscriber.recv_batch(5, t)):
        with pytest.raises(TimedOutError):
            call(0.001)
    publisher.send(b"1")
    assert subscriber.recv_bytes(LONG) == b"1"
    publisher.send(b"two")
    with pytest.raises(TooLargeError):
        subscriber.recv_into(bytearray(2), LONG)
    assert subscriber.recv_into(buffer, LONG) == 3 and buffer[:3] == b"two"
    publisher.send(b"3")
    assert subscriber.try_recv_into(buffer) == 1
    publisher.send_vectored([b"fo", b"ur"])
    assert [bytes(message) for message in subscriber.recv_batch(5, LONG)] == [b"four"]
    publisher.send(b"5")
    message = subscriber.try_recv()
    assert message is not None and message.tobytes() == b"5"
    with publisher.reserve(10, tag=6) as slot:
        slot[:3] = b"six"
        slot.commit(3)
    assert bytes(next(subscriber)) == b"six"
    publisher.close()
    assert list(subscriber) == []
    with pytest.raises(ClosedError):
        subscriber.recv()


@pytest.mark.parametrize("policy", [*POLICIES, "ejectable"])
def test_calls_after_the_close(policy: str) -> None:
    publisher = Topic.create("t", may_eject=policy == "ejectable").publisher()
    subscriber = joined(policy)
    waiting = Thread(subscriber.recv, LONG)
    eventually("the wait", lambda: _busy(subscriber))
    subscriber.close()
    with pytest.raises(DetachedError):
        waiting.result()
    for call in (subscriber.recv, subscriber.latest, subscriber.skip_to_newest, subscriber.unsubscribe):
        with pytest.raises(DetachedError, match="subscriber of 't' is closed"):
            call()
    for name in ("lost", "lag", "used"):
        with pytest.raises(DetachedError):
            getattr(subscriber, name)
    publisher.close()
    for call in (publisher.subscribers, lambda: publisher.seq, lambda: publisher.wait_for_subscribers(0)):
        with pytest.raises(DetachedError, match="publisher of 't' is closed"):
            call()


def _busy(subscriber: Subscriber) -> bool:
    try:
        subscriber.used
    except BusyError:
        return True
    return False


def test_what_can_be_pickled() -> None:
    topic = Topic.open_or_create("t", capacity=8192, slots=3)
    for again in (pickle.loads(pickle.dumps(topic)), copy.copy(topic)):
        with again.publisher() as publisher:
            assert publisher.capacity == 8192
    with topic.publisher() as publisher, topic.subscriber() as subscriber:
        for handle, says in ((publisher, "a Publisher .*Topic"), (subscriber, "a Subscriber .*Topic")):
            with pytest.raises(TypeError, match=says):
                pickle.dumps(handle)


def test_nothing_is_kept_by_cycles_or_forgotten() -> None:
    class Holder:
        pass

    ends = []
    for end in (made(), joined(), joined("lossy")):
        holder = Holder()
        holder.end, holder.itself = end, holder  # type: ignore[attr-defined]
        ends.append(weakref.ref(end))
    publisher = ends[0]()
    assert publisher is not None
    publisher.send(b"x")
    message = joined("lossy").latest()
    del publisher, end, holder
    gc.collect()
    assert [end() for end in ends] == [None, None, None]
    assert message is not None and bytes(message) == b"x"
    # Copies are freed with their messages: the objects are used again.
    publisher, subscriber = Topic.open_or_create("t").publisher(), joined("latest")
    for n in range(1000):
        publisher.send(b"%d" % n)
        assert bytes(subscriber.recv(LONG)) == b"%d" % n


def test_classes_have_no_constructor_of_their_own() -> None:
    class Own(ramway.Message):  # type: ignore[misc]
        pass

    for cls in (ramway.Message, TopicMessage, Own, Publisher, Subscriber, Topic, ramway.Sender, ramway.Receiver):
        with pytest.raises(TypeError):
            cls()


def test_a_read_only_subscriber_writes_nothing() -> None:
    publisher = Topic.create("t", mode=0o644).publisher()
    publisher.send(b"before")
    subscriber = Topic.open("t").subscriber("lossy", read_only=True, start="oldest")
    newest = Topic.open("t").subscriber("latest", read_only=True)
    assert publisher.subscribers() == []
    assert subscriber.recv_bytes(LONG) == b"before"
    waiting = Thread(subscriber.recv_bytes, LONG)
    publisher.send(b"after")
    assert waiting.result() == b"after"
    assert bytes(newest.wait_newer(LONG)) == b"after"
    with pytest.raises(UnsupportedError, match="descriptor"):
        subscriber.fileno()
    with pytest.raises(InvalidArgumentError, match="read-only"):
        Topic.open("t").subscriber(read_only=True)
