"""Tasks that publish and subscribe."""

import asyncio
import gc
import warnings
from typing import Literal

import numpy as np
import pytest
from loops import every_loop, run, turns
from ramway import (
    BusyError,
    ClosedError,
    DetachedError,
    InvalidArgumentError,
    LaggedError,
    PeerDeadError,
    Publisher,
    Subscriber,
    Topic,
    TopicMessage,
    UnsupportedError,
)
from support import LONG, Child
from test_topic import POLICIES, fill, joined, made


@every_loop
def test_each_policy_iterates(kind: str) -> None:
    async def publish(publisher: Publisher) -> None:
        await publisher.wait_for_subscribers_async(1)
        for n in range(500):
            await publisher.send_async(b"%d" % n)
            if n % 50 == 0:
                await asyncio.sleep(0.001)
        publisher.close()

    async def read(subscriber: Subscriber) -> list[TopicMessage]:
        got = []
        async for message in subscriber:
            assert type(message) is TopicMessage
            got.append((message.seq, message.lost, bytes(message)))
        return got  # type: ignore[return-value]

    async def main() -> None:
        publisher = made(capacity=4096)
        tasks = [asyncio.create_task(read(joined(policy))) for policy in POLICIES]
        await turns(1)
        async with asyncio.timeout(LONG):
            await publish(publisher)
            reliable, lossy, latest = await asyncio.gather(*tasks)
        assert reliable == [(n + 1, 0, b"%d" % n) for n in range(500)]
        for got in (lossy, latest):
            assert len(got) + sum(lost for _, lost, _ in got) == 500  # type: ignore[misc]
            assert all(payload == b"%d" % (seq - 1) for seq, _, payload in got)  # type: ignore[misc]

    run(kind, main())


@every_loop
@pytest.mark.parametrize("policy", POLICIES)
def test_what_waits_for_a_message(kind: str, policy: str) -> None:
    async def main() -> None:
        publisher, subscriber = made(), joined(policy)
        buffer = bytearray(10)
        for call, want in (
            (subscriber.recv_async, lambda got: bytes(got) == b"1234"),
            (subscriber.recv_bytes_async, lambda got: got == b"1234"),
            (lambda: subscriber.recv_into_async(buffer), lambda got: got == 4 and buffer[:4] == b"1234"),
            (subscriber.recv_batch_async, lambda got: [bytes(message) for message in got] == [b"1234"]),
            (lambda: subscriber.recv_array_async("<u4"), lambda got: got.tobytes() == b"1234"),
            (lambda: anext(aiter(subscriber)), lambda got: bytes(got) == b"1234"),
        ):
            waiting = asyncio.ensure_future(call())  # type: ignore[no-untyped-call]
            await turns()
            assert not waiting.done()
            # One that is cancelled has taken nothing.
            other = asyncio.ensure_future(subscriber.recv_async())
            with pytest.raises(BusyError):
                await other
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            waiting = asyncio.ensure_future(call())  # type: ignore[no-untyped-call]
            await turns()
            publisher.send(b"1234")
            async with asyncio.timeout(LONG):
                assert want(await waiting)  # type: ignore[no-untyped-call]
        publisher.close()
        with pytest.raises(ClosedError):
            await subscriber.recv_async()
        with pytest.raises(StopAsyncIteration):
            await anext(aiter(subscriber))

    run(kind, main())


@every_loop
def test_a_newer_value_is_awaited(kind: str) -> None:
    async def main() -> None:
        publisher, subscriber, other = made(), joined("latest"), joined()
        with pytest.raises(UnsupportedError):
            other.wait_newer_async()
        publisher.send(b"1")
        assert (await subscriber.wait_newer_async()).seq == 1
        waiting = asyncio.ensure_future(subscriber.wait_newer_async())
        await turns()
        assert not waiting.done()
        publisher.send_batch([b"2", b"3"])
        async with asyncio.timeout(LONG):
            assert (await waiting).seq == 3
        waiting = asyncio.ensure_future(subscriber.wait_newer_async())
        await turns()
        subscriber.close()
        with pytest.raises(DetachedError):
            await waiting

    run(kind, main())


@every_loop
def test_a_publisher_awaits_room_and_subscribers(kind: str) -> None:
    async def main() -> None:
        publisher = made(capacity=4096)
        waiting = asyncio.ensure_future(publisher.wait_for_subscribers_async(2))
        first = joined()
        await turns()
        assert not waiting.done()
        second = joined()
        async with asyncio.timeout(LONG):
            await waiting
            await publisher.wait_for_subscribers_async(1)
        with pytest.raises(InvalidArgumentError):
            await publisher.wait_for_subscribers_async(1000)
        sent = fill(publisher)
        sending = asyncio.ensure_future(publisher.send_async(bytes(100)))
        await turns()
        assert not sending.done()
        # Both are in the way.
        assert len(first.recv_batch(1000)) == sent
        await turns()
        assert not sending.done()
        assert len(second.recv_batch(1000)) == sent
        async with asyncio.timeout(LONG):
            await sending
            assert await publisher.send_batch_async([b"a", b"b"]) == 2
            assert await publisher.send_array_async(np.arange(10)) == 10
        publisher.close()
        second.recv_batch(1000)
        async with asyncio.timeout(LONG):
            assert [message.seq async for message in first] == list(range(sent + 1, sent + 14))

    run(kind, main())


@every_loop
def test_room_comes_when_a_subscriber_is_killed(kind: str) -> None:
    code = """
        import ramway, sys
        subscriber = ramway.Topic.open("t").subscriber()
        print("here", flush=True)
        sys.stdin.readline()
    """

    async def main(child: Child) -> None:
        publisher = made(capacity=4096)
        child.tell()
        await asyncio.to_thread(publisher.wait_for_subscribers, 1, LONG)
        fill(publisher)
        sending = asyncio.ensure_future(publisher.send_async(bytes(100)))
        await turns()
        assert not sending.done()
        child.kill()
        async with asyncio.timeout(LONG):
            await sending

    with Child("import sys; sys.stdin.readline()\n" + code.replace("\n        ", "\n")) as child:
        run(kind, main(child))


@every_loop
def test_a_publisher_that_is_killed_ends_the_loop(kind: str) -> None:
    code = """
        import ramway, os, signal
        publisher = ramway.Topic.open("t").publisher()
        publisher.wait_for_subscribers(1)
        publisher.send(b"last words")
        os.kill(os.getpid(), signal.SIGKILL)
    """

    async def main() -> None:
        topic = Topic.open_or_create("t")
        ends = [topic.subscriber(), topic.subscriber("lossy"), topic.subscriber("latest")]

        async def read(subscriber: Subscriber) -> bytes:
            got = b""
            with pytest.raises(PeerDeadError):
                async for message in subscriber:
                    got += bytes(message)
            return got

        with Child(code):
            async with asyncio.timeout(LONG):
                assert await asyncio.gather(*map(read, ends)) == [b"last words"] * 3

    run(kind, main())


@every_loop
def test_an_ejection_is_raised_and_the_loop_may_go_on(kind: str) -> None:
    async def main() -> None:
        publisher = Topic.create("t", capacity=4096).publisher(eject_after=0.02)
        subscriber = joined("ejectable")
        for _ in range(100):
            publisher.send(bytes(100), timeout=LONG)
        publisher.close()
        with pytest.raises(LaggedError) as raised:
            async for _ in subscriber:
                pass
        got = [message.seq async for message in subscriber]
        assert got == list(range(raised.value.lost + 1, 101))

    run(kind, main())


@every_loop
@pytest.mark.parametrize("policy", ["lossy", "latest"])
def test_a_read_only_subscriber_is_awaited_by_a_timer(kind: str, policy: Literal["lossy", "latest"]) -> None:
    async def main() -> None:
        publisher = made()
        subscriber = Topic.open("t").subscriber(policy, read_only=True)
        for n in range(1, 20):
            task = asyncio.ensure_future(subscriber.recv_async())
            await asyncio.sleep(0.002)
            with pytest.raises(BusyError, match="another task"):
                await subscriber.recv_async()
            publisher.send(b"%d" % n)
            message = await asyncio.wait_for(task, LONG)
            assert (message.seq, message.lost, bytes(message)) == (n, 0, b"%d" % n)
        # Cancelled, it has taken nothing.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(subscriber.recv_async(), 0.01)
        publisher.send(b"after")
        assert bytes(await subscriber.recv_async()) == b"after"
        task = asyncio.ensure_future(subscriber.recv_async())
        await asyncio.sleep(0.005)
        publisher.close()
        with pytest.raises(ClosedError):
            await asyncio.wait_for(task, LONG)
        # Its own close ends a wait too.
        again = Topic.open_or_create("t").publisher()
        task = asyncio.ensure_future(subscriber.recv_async())
        await asyncio.sleep(0.005)
        subscriber.close()
        with pytest.raises(DetachedError):
            await asyncio.wait_for(task, LONG)
        again.close()

    run(kind, main())


def test_what_is_never_awaited_warns() -> None:
    publisher, subscriber = made(), joined("latest")
    for call in (lambda: publisher.wait_for_subscribers_async(1), subscriber.wait_newer_async):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
            gc.collect()
        assert ["never awaited" in str(warning.message) for warning in caught] == [True]
