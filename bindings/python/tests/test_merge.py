"""merge: the messages of many, by a task or a thread."""

import asyncio
import gc
import threading
import time
import weakref
from typing import Any

import pytest
import ramway
from loops import every_loop, run, turns
from ramway import (
    Bus,
    BusyError,
    ClosedError,
    InvalidArgumentError,
    LaggedError,
    Listener,
    Merge,
    PeerDeadError,
    Receiver,
    Region,
    Ring,
    Sender,
    Topic,
    merge,
)
from support import LONG, Child, eventually


def pairs(count: int, capacity: int = 4096) -> tuple[list[Sender], list[Receiver]]:
    made = [Ring.pair(capacity) for _ in range(count)]
    return [tx for tx, _ in made], [rx for _, rx in made]


@every_loop
def test_messages_come_in_turn_with_their_source_until_all_have_closed(kind: str) -> None:
    senders, receivers = pairs(3)

    async def main() -> list[tuple[int, bytes]]:
        for number, tx in enumerate(senders):
            tx.send_batch([b"%d" % n for n in range(3 + number)])
        senders[0].close()
        merged = merge(*receivers)

        async def rest() -> None:
            await asyncio.sleep(0.02)
            senders[1].send(b"late")
            senders[1].close()
            await asyncio.sleep(0.02)
            senders[2].close()

        task = asyncio.create_task(rest())
        got = [(receivers.index(who), bytes(message)) async for who, message in merged]
        await task
        assert merged.sources == []
        # It is over, and stays so until something is added.
        assert [message async for message in merged] == []
        return got

    got = run(kind, main())
    assert [number for number, _ in got[:9]] == [0, 1, 2] * 3
    for number in range(3):
        texts = [text for who, text in got if who == number]
        assert texts == [b"%d" % n for n in range(3 + number)] + [b"late"] * (number == 1)


def test_a_thread_iterates_too() -> None:
    senders, receivers = pairs(2)

    def send() -> None:
        for n in range(200):
            senders[n % 2].send(b"%d" % n)
            if n % 20 == 0:
                time.sleep(0.002)
        for tx in senders:
            tx.close()

    thread = threading.Thread(target=send)
    thread.start()
    got = []
    for _, message in merge(*receivers):
        with message:
            got.append(int(bytes(message)))
    thread.join()
    assert sorted(got) == list(range(200)) and [n for n in got if n % 2] == list(range(1, 200, 2))


@every_loop
def test_cancelling_loses_nothing(kind: str) -> None:
    """A wait is cancelled at every moment: before, with and after a message."""

    async def main() -> list[bytes]:
        senders, receivers = pairs(2, 1 << 16)
        merged = merge(*receivers)
        total, got = 300, []

        async def send() -> None:
            for n in range(total):
                senders[n % 2].send(b"%d" % n)
                await asyncio.sleep(0.0005 if n % 3 else 0)
            for tx in senders:
                tx.close()

        task = asyncio.create_task(send())
        while True:
            try:
                async with asyncio.timeout(0.0007):
                    async for _, message in merged:
                        got.append(bytes(message))
                    break
            except TimeoutError:
                continue
        await task
        return got

    got = run(kind, main())
    assert sorted(map(int, got)) == list(range(300))
    for odd in (0, 1):
        assert [int(n) for n in got if int(n) % 2 == odd] == list(range(odd, 300, 2))


@every_loop
def test_a_death_is_raised_once_with_its_source_and_the_others_go_on(kind: str) -> None:
    code = "import ramway\ntx = ramway.Ring.open('r', timeout=60).sender()\ntx.send(b'mine')\nprint('sent')\ninput()"

    async def main() -> None:
        rx = Ring.create("r").receiver()
        tx, other = Ring.pair(4096)
        merged = merge(rx, other)
        with Child(code) as child:
            who, message = await asyncio.wait_for(anext(merged), LONG)
            assert who is rx and bytes(message) == b"mine"
            del message
            waiting = asyncio.ensure_future(anext(merged))
            await asyncio.sleep(0.02)
            child.kill()
            with pytest.raises(PeerDeadError) as death:
                await asyncio.wait_for(waiting, LONG)
        assert death.value.source is rx and merged.sources == [other]  # type: ignore[attr-defined]
        tx.send(b"goes on")
        assert bytes((await asyncio.wait_for(anext(merged), LONG))[1]) == b"goes on"
        # A successor's messages come once the source is taken in again.
        successor = asyncio.ensure_future(anext(merged))
        await asyncio.sleep(0.01)
        again = Ring.open("r").sender()
        await rx.wait_for_peer_async()
        merged.add(rx)
        again.send(b"again")
        who, message = await asyncio.wait_for(successor, LONG)
        assert who is rx and bytes(message) == b"again"
        again.close()
        tx.close()
        assert [pair async for pair in merged] == []

    run(kind, main())


def test_a_death_is_raised_in_a_thread_too() -> None:
    code = "import ramway\ntx = ramway.Ring.open('r', timeout=60).sender()\ntx.send(b'mine')\ninput()"
    rx = Ring.create("r").receiver()
    tx, other = Ring.pair(4096)
    merged = merge(rx, other)
    with Child(code) as child:
        assert bytes(next(merged)[1]) == b"mine"
        threading.Timer(0.05, child.kill).start()
        with pytest.raises(PeerDeadError) as death:
            next(merged)
    assert death.value.source is rx  # type: ignore[attr-defined]
    tx.send(b"goes on")
    assert bytes(next(merged)[1]) == b"goes on"


@every_loop
def test_a_source_that_this_process_closes_leaves(kind: str) -> None:
    async def main() -> None:
        senders, receivers = pairs(3)
        merged = merge(*receivers)
        waiting = asyncio.ensure_future(anext(merged))
        await turns()
        # While the task waits for all of them.
        receivers[0].close()
        await turns()
        assert merged.sources == receivers[1:] and not waiting.done()
        assert merged.remove(receivers[1]) and not merged.remove(receivers[1])
        await turns()
        senders[1].send(b"not for the merge")
        await turns()
        assert not waiting.done() and bytes(receivers[1].recv(0)) == b"not for the merge"
        receivers[2].close()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(waiting, LONG)

    run(kind, main())


@every_loop
def test_sources_are_added_while_a_task_waits(kind: str) -> None:
    async def main() -> None:
        senders, receivers = pairs(2)
        merged = merge(receivers[0])
        waiting = asyncio.ensure_future(anext(merged))
        await turns()
        merged.add(receivers[1])
        senders[1].send(b"x")
        who, message = await asyncio.wait_for(waiting, LONG)
        assert who is receivers[1] and bytes(message) == b"x"
        with pytest.raises(InvalidArgumentError, match="already"):
            merged.add(receivers[0])

    run(kind, main())


@every_loop
def test_one_task_at_a_time_waits(kind: str) -> None:
    async def main() -> None:
        senders, receivers = pairs(1)
        merged = merge(*receivers)
        waiting = asyncio.ensure_future(anext(merged))
        await turns()
        with pytest.raises(BusyError, match="another task"):
            await anext(merged)
        senders[0].send(b"x")
        assert bytes((await waiting)[1]) == b"x"

    run(kind, main())


@every_loop
def test_every_kind_of_source(kind: str) -> None:
    async def main() -> None:
        tx, rx = Ring.pair(4096)
        topic = Topic.open_or_create("t", capacity=4096)
        publisher = topic.publisher()
        subscribers = [topic.subscriber(policy) for policy in ("reliable", "lossy", "latest")]  # type: ignore[arg-type]
        viewer = Topic.open("t").subscriber("lossy", read_only=True)
        region, notifier = Region.create("r", 64), Region.open("r")
        listener = Listener.bind("l")
        merged: Merge[Any, Any] = merge(rx, *subscribers, viewer, region, listener)
        waiting = asyncio.ensure_future(anext(merged))
        await turns()
        tx.send(b"x")
        who, message = await asyncio.wait_for(waiting, LONG)
        assert who is rx and bytes(message) == b"x"
        waiting = asyncio.ensure_future(anext(merged))
        await turns()
        notifier.notify()
        assert await asyncio.wait_for(waiting, LONG) == (region, None)
        connecting = asyncio.ensure_future(Bus.connect_async("l"))
        who, bus = await asyncio.wait_for(anext(merged), LONG)
        assert who is listener and isinstance(bus, Bus)
        connected = await connecting
        # A bus is a source of its own.
        merged.add(bus)
        connected.send(b"over the bus")
        who, message = await asyncio.wait_for(anext(merged), LONG)
        assert who is bus and bytes(message) == b"over the bus"
        publisher.send(b"to all")
        got = set()
        for _ in range(4):
            who, message = await asyncio.wait_for(anext(merged), LONG)
            assert (message.seq, message.lost, bytes(message)) == (1, 0, b"to all")
            got.add(who)
        assert got == {*subscribers, viewer}
        for closes in (tx, publisher, region, notifier, listener, connected):
            closes.close()
        assert [pair async for pair in merged] == []

    run(kind, main())


def test_an_ejected_subscriber_is_told_and_stays() -> None:
    async def main() -> None:
        topic = Topic.open_or_create("t", capacity=4096, may_eject=True)
        publisher = topic.publisher(eject_after=0.05)
        subscriber = topic.subscriber()
        merged = merge(subscriber)
        for n in range(40):
            publisher.send(b"%d" % n + bytes(400), timeout=LONG)
        with pytest.raises(LaggedError) as lagged:
            await anext(merged)
        assert lagged.value.lost > 0 and lagged.value.source is subscriber  # type: ignore[attr-defined]
        _, message = await anext(merged)
        assert message.seq == lagged.value.lost + 1 and merged.sources == [subscriber]

    asyncio.run(main())


def test_a_busy_source_does_not_starve_the_others_or_the_loop() -> None:
    async def main() -> None:
        senders, receivers = pairs(2, 1 << 20)
        senders[0].send_batch([b"busy"] * 5000)
        merged = merge(*receivers)
        ran = 0

        async def other() -> None:
            nonlocal ran
            while True:
                ran += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        senders[1].send(b"rare")
        got = [bytes((await anext(merged))[1]) for _ in range(3000)]
        task.cancel()
        assert got.index(b"rare") < 2 and ran > 10

    asyncio.run(main())


def test_held_messages_stay_and_the_loops_variable_is_moved_out_of_the_way() -> None:
    async def main() -> None:
        tx, rx = Ring.pair(4096)
        other_tx, other = Ring.pair(4096)
        merged = merge(rx, other)
        tx.send(b"a" * 3000)
        _, message = await anext(merged)
        sender = threading.Thread(target=lambda: tx.send(b"b" * 3000))
        sender.start()
        _, second = await asyncio.wait_for(anext(merged), LONG)
        sender.join()
        assert bytes(message) == b"a" * 3000 and bytes(second) == b"b" * 3000
        # A view keeps it in its own ring, and that ring alone is full.
        view = memoryview(second)
        other_tx.send(b"c")
        assert bytes((await asyncio.wait_for(anext(merged), LONG))[1]) == b"c"
        with pytest.raises(ramway.FullError):
            tx.try_send(bytes(3000))
        assert bytes(view) == b"b" * 3000

    asyncio.run(main())


def test_what_gives_no_messages_is_refused() -> None:
    tx, rx = Ring.pair(4096)
    for wrong in (tx, tx.room(1), 0, "rx", None, merge(rx)):
        with pytest.raises(TypeError):
            merge(wrong)  # type: ignore[call-overload]
    with pytest.raises(InvalidArgumentError, match="already"):
        merge(rx, rx)
    assert list(merge()) == []
    assert repr(merge(rx)) == "<ramway.Merge of 1 sources>"


def test_a_merge_that_is_dropped_leaves_its_sources_alone() -> None:
    async def main() -> None:
        tx, rx = Ring.pair(4096)
        merged = merge(rx)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(merged), 0.01)
        gone = weakref.ref(merged)
        del merged
        # The loop holds the cancellation, and with it the frames that it went through, until the task's next step.
        await asyncio.sleep(0)
        gc.collect()
        assert gone() is None
        tx.send(b"x")
        assert bytes(await rx.recv_async()) == b"x"
        rx.close()

    asyncio.run(main())


def test_a_closed_loop_is_left_behind() -> None:
    senders, receivers = pairs(2)
    merged = merge(*receivers)

    async def wait() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(merged), 0.01)

    for _ in range(3):
        asyncio.run(wait())
    senders[1].send(b"x")
    assert bytes(asyncio.run(_next(merged))) == b"x"
    # And a thread goes on with it.
    senders[0].send(b"y")
    assert bytes(next(merged)[1]) == b"y"


async def _next(merged: Merge[Receiver, ramway.Message]) -> ramway.Message:
    return (await anext(merged))[1]


def test_a_thread_that_waits_sees_additions_and_removals() -> None:
    senders, receivers = pairs(2)
    merged = merge(receivers[0])
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.extend(merged))
    thread.start()
    time.sleep(0.05)
    merged.add(receivers[1])
    time.sleep(0.05)
    senders[1].send(b"x")
    eventually("the added source's message comes", lambda: len(got) == 1)
    assert got[0][0] is receivers[1]
    got.clear()
    for tx in senders:
        tx.close()
    thread.join(LONG)
    assert not thread.is_alive() and got == []
    with pytest.raises(ClosedError):
        receivers[0].recv(0)
