"""Not run: what mypy --strict and pyright must make of programs that use the package."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
import ramway
from numpy.typing import NDArray
from ramway import rpc


def rings(path: Path) -> None:
    ring = ramway.Ring.open_or_create(path / "ring", capacity=1 << 20, align=64, wait="spin", timeout=1.5)
    ring = ramway.Ring.create("name", mode=0o660, persistent=True, numa_node=0)
    tx, rx = ramway.Ring.pair(65536)
    assert_type(tx, ramway.Sender)
    assert_type(rx, ramway.Receiver)
    assert_type(ring.name, str | None)
    unnamed = ramway.Ring.unnamed(capacity=1 << 16, align=64)
    ramway.Ring.from_fd(unnamed.fileno(), timeout=1).sender().close()
    for segment in ramway.ls(path):
        assert_type(segment.undelivered, int | None)
    assert_type(ramway.clean(dry_run=True), list[ramway.Cleaned])
    ramway.unlink("name")
    assert_type(tx.name, str | None)
    tx.wait = "block"
    with ring.sender() as sender, ring.receiver() as receiver:
        sender.send(b"bytes", 7, 8, timeout=0.5)
        sender.send(bytearray(3))
        sender.send(memoryview(b"x"), tag=1 << 63)
        sender.send(np.zeros(8))
        sender.try_send(b"", type_id=3)
        assert_type(sender.send_batch([b"a", bytearray(b"b")], 1, 2, timeout=0.5), int)
        sender.send_vectored([b"a", memoryview(b"b")], tag=1, timeout=1)
        assert_type(sender.last_tag, int | None)
        assert_type(sender.wait_for_peer(timeout=1), int)
        os.set_inheritable(sender.fileno(), False)
        for message in receiver:
            assert_type(message, ramway.Message)
            message.release()


def topics(path: Path) -> None:
    topic = ramway.Topic.open_or_create(path / "topic", capacity=1 << 20, slots=64, align=64, timeout=1.5)
    topic = ramway.Topic.create("name", mode=0o644, lossy_only=True)
    topic = ramway.Topic.open("name", may_eject=True)
    assert_type(topic.name, str)
    with topic.publisher(eject_after=1.5, timestamps=True, wait="block") as publisher:
        assert_type(publisher, ramway.Publisher)
        publisher.send(b"bytes", 7, 8, timeout=0.5)
        publisher.wait_for_subscribers(3, timeout=1)
        publisher.skip_seq(2)
        assert_type(publisher.seq, int)
        for info in publisher.subscribers():
            assert_type(info, ramway.SubscriberInfo)
            assert_type(info.label, str | None)
            assert_type(info.lag, ramway.Lag | None)
        slots(publisher)
    subscriber = topic.subscriber("lossy", label="viewer", start="now")
    topic.subscriber(durable=True, label="recorder", after_seq=7)
    topic.subscriber("latest", read_only=True, wait="spin")
    assert_type(subscriber, ramway.Subscriber)
    assert_type(subscriber.recv(1).seq, int)
    assert_type(subscriber.try_recv(), ramway.TopicMessage | None)
    assert_type(subscriber.recv_batch(10), list[ramway.TopicMessage])
    assert_type(subscriber.latest(), ramway.TopicMessage | None)
    assert_type(subscriber.wait_newer(timeout=1), ramway.TopicMessage)
    assert_type(subscriber.lag.messages, int)
    assert_type(subscriber.skip_to_newest(), int)
    for message in subscriber:
        assert_type(message.lost, int)
    messages(subscriber)


async def tasks_of_topics(publisher: ramway.Publisher, subscriber: ramway.Subscriber) -> None:
    await publisher.wait_for_subscribers_async(1)
    await publisher.send_async(b"x")
    assert_type((await subscriber.recv_async()).seq, int)
    assert_type(await subscriber.recv_batch_async(), list[ramway.TopicMessage])
    assert_type(await subscriber.wait_newer_async(), ramway.TopicMessage)
    async for message in subscriber:
        assert_type(message.time, int)


def slots(tx: ramway.Sender) -> None:
    with tx.reserve(100, type_id=1) as slot:
        slot[:5] = b"hello"
        slot[5] = 0
        slot.tag = 3
        assert_type(slot[0], int)
        assert_type(slot.numpy(), NDArray[np.uint8])
        assert_type(slot.numpy(np.float32, (5, 5)), NDArray[np.float32])
        memoryview(slot).cast("I")[0] = 1
        slot.commit(6, flush=False)
    tx.flush()


def messages(rx: ramway.Receiver) -> None:
    with rx.recv(timeout=1) as message:
        assert_type(message.type_id, int)
        assert_type(len(message), int)
        assert_type(bytes(message), bytes)
        assert_type(message.numpy(), NDArray[np.uint8])
        assert_type(message.numpy(np.int16), NDArray[np.int16])
        assert_type(message.numpy(np.dtype(np.int64), (2, -1)), NDArray[np.int64])
        assert_type(memoryview(message).readonly, bool)
        view = np.frombuffer(message, np.float64)
        assert_type(view.dtype, np.dtype[np.float64])
        array = np.from_dlpack(message)
        assert array.shape == view.shape
    maybe = rx.try_recv()
    assert_type(maybe, ramway.Message | None)
    assert_type(rx.recv_batch(32), list[ramway.Message])
    assert_type(rx.try_recv_batch(), list[ramway.Message])
    assert_type(rx.try_recv_into(bytearray(100)), int | None)
    assert_type(rx.recv_bytes(), bytes)
    assert_type(rx.recv_into(bytearray(100), timeout=0), int)
    tick = np.dtype([("price", "<f8"), ("size", "<i8")])
    records = rx.recv_array(tick, 1000)
    assert_type(records.shape, tuple[int])
    rx.recv_array("<f8", 10)


def tensors(tx: ramway.Sender, rx: ramway.Receiver) -> None:
    tx.send_tensor(np.ones((3, 4)), tag=4)
    tx.send_tensor(bytearray(3))
    # A list is refused, here and at run time.
    tx.send_tensor([[1, 2], [3, 4]])  # type: ignore[arg-type]
    with tx.reserve_tensor((1080, 1920, 3), "uint8") as slot:
        assert_type(slot, ramway.TensorSlot)
        slot[...] = 0
        np.add(slot.numpy(), 1, out=slot.numpy())
        np.multiply(np.ones((1080, 1920, 3)), 2.5, out=slot.numpy())
    assert_type(tx.try_reserve_tensor(4, "f4"), ramway.TensorSlot)
    with tx.reserve_tensor(4, np.float32):
        pass
    with rx.recv() as message:
        if message.is_tensor:
            tensor = message.tensor()
            assert_type(tensor.shape, tuple[int, ...])
            assert_type(tensor.dtype, str)
            assert_type(np.asarray(tensor).ndim, int)
            np.from_dlpack(tensor)
            assert_type(tensor.message, ramway.Message)


def regions() -> None:
    with ramway.Region.open_or_create("state", 4096) as region:
        region[0] = 1
        region[:4] = b"abcd"
        values = region.numpy(np.int64, offset=64)
        assert_type(values, NDArray[np.int64])
        region.notify()
        assert_type(region.wait(timeout=0.1), bool)
        assert_type(region.wait_since(region.notifications, timeout=0.1), int | None)
    ramway.Region.open("state", read_only=True).close()


def buses() -> None:
    with ramway.Listener.bind("service", to_peer=1 << 20, from_peer=1 << 16, allow_uids=[1000]) as listener:
        assert_type(listener.accept(timeout=1), ramway.Bus)
        assert_type(listener.try_accept(), ramway.Bus | None)
        for bus in listener:
            assert_type(bus.sender, ramway.Sender)
            for message in bus:
                bus.send(message, message.type_id, message.tag)
            assert_type(bus.peer_pid, int | None)
    with ramway.Bus.connect("service", timeout=None) as bus:
        bus.send_tensor(np.zeros(3))
        assert_type(bus.recv(), ramway.Message)


def errors(rx: ramway.Receiver) -> int:
    try:
        rx.recv(timeout=0.1)
    except ramway.TimedOutError as error:
        assert_type(error.kind, str)
        return error.code
    except (BrokenPipeError, ConnectionResetError):
        return 0
    except ramway.Error as error:
        assert_type(error.errno, int | None)
    return 1


async def tasks(tx: ramway.Sender, rx: ramway.Receiver, region: ramway.Region, listener: ramway.Listener) -> None:
    await tx.send_async(b"x", 1, 2)
    with await tx.reserve_async(10) as slot:
        slot.abort()
    assert_type(await rx.recv_async(), ramway.Message)
    assert_type(await tx.send_batch_async([b"a"]), int)
    assert_type(await tx.reserve_tensor_async(3, "f4"), ramway.TensorSlot)
    assert_type(await rx.recv_bytes_async(), bytes)
    assert_type(await rx.recv_batch_async(8), list[ramway.Message])
    assert_type(await rx.recv_array_async(np.dtype(np.int32), 8), np.ndarray[tuple[int], np.dtype[np.int32]])
    async with asyncio.timeout(1):
        async for message in rx:
            assert_type(message, ramway.Message)
    task = asyncio.create_task(rx.recv_async())
    assert_type(await task, ramway.Message)
    await asyncio.gather(region.wait_async(), rx.recv_async())
    assert_type(await listener.accept_async(), ramway.Bus)
    async for bus in listener:
        await bus.send_async(b"hello")
    assert_type(await ramway.Bus.connect_async("service"), ramway.Bus)


async def many(rx: ramway.Receiver, subscriber: ramway.Subscriber, bus: ramway.Bus, region: ramway.Region) -> None:
    assert_type(ramway.select([rx, rx], timeout=1), list[ramway.Receiver])
    for source in ramway.select([bus, bus.sender.room(100), 0]):
        assert source is not None
    ramway.Select([rx, region, 0]).wait(timeout=1)
    waiting = ramway.Select([rx], wait="block")
    assert_type(waiting.wait(), list[ramway.Receiver])
    waiting.wake()
    async for who, message in ramway.merge(subscriber, subscriber):
        assert_type(who, ramway.Subscriber)
        assert_type(message, ramway.TopicMessage)
    merged = ramway.merge(rx, rx)
    merged.add(region)
    for who_else, other in merged:
        assert_type(who_else, ramway.Receiver)
        assert_type(other, ramway.Message)
    assert_type(merged.sources, list[ramway.Receiver])


async def inbox_and_outbox() -> None:
    with ramway.Inbox.bind("meters", 4096, max_peers=10) as inbox:
        async for peer, message in inbox:
            assert_type(peer.pid, int | None)
            if isinstance(message, ramway.Left):
                assert_type(message, ramway.Left)
            else:
                assert_type(message, ramway.Message)
        assert_type(inbox.try_recv(), tuple[ramway.Peer, ramway.Message | ramway.Left] | None)
    with ramway.Outbox.bind("tasks", prefetch=2, copies=True) as outbox:
        outbox.send(b"x", 1, tag=2, timeout=1)
        await outbox.send_async(b"x")
        await outbox.drain_async()
        assert_type(outbox.take_undelivered(), ramway.Undelivered | None)
        assert_type(outbox.workers(), list[tuple[ramway.Peer, int]])


async def calls(path: Path) -> None:
    with rpc.Client.connect(path / "s", timeout=1, allow_uids=[7], wait="spin", max_buffered=1 << 20) as client:
        assert_type(client.call(7, bytearray(3), timeout=1, meta=b"m"), rpc.Reply)
        assert_type(client.call("Store.Get").body, bytes)
        memoryview(client.start(7).wait(timeout=1))
        assert_type(client.start(7).try_wait(), rpc.Reply | None)
        for element in client.stream(8, b"x", window=3):
            assert_type(element, rpc.Reply)
        assert_type(client.stream(8).next(timeout=1), rpc.Reply | None)
        assert_type(client.describe()[0].name, str | None)
        assert_type(client.peer_pid, int | None)
    async with await rpc.AsyncClient.connect("s", timeout=None) as tasks:
        assert_type(await tasks.call(7, np.zeros(3), timeout=1), rpc.Reply)
        assert_type(await tasks.start("Store.Get"), rpc.Reply)
        async for element in tasks.stream(8, window=3):
            assert_type(element.meta, bytes)
        assert_type(await tasks.stream(8).next(), rpc.Reply | None)
        assert_type(await tasks.describe(), list[rpc.MethodInfo])
    error = rpc.CallError()
    assert_type(error.status, str | None)
    assert_type((error.kind, error.code, error.text, error.may_have_run), tuple[str, int, str, bool])


async def serves() -> None:
    server = rpc.Server("s", capacity=1 << 16, max_clients=3, max_bytes=None, threads=4, wait="block")

    @server.method(7, "Seven", pool=True)
    def plain(request: rpc.Request) -> bytes:
        assert_type(request.remaining, float | None)
        request.reply_meta = request.meta
        if request.cancelled:
            raise rpc.Fault(3, "late")
        return request.body

    assert_type(plain(rpc.Request()), bytes)

    @server.method("Store.Get")
    async def coroutine(request: rpc.Request) -> None:
        assert_type(request.peer, ramway.Peer)

    @server.stream(8)
    def generator(request: rpc.Request) -> Iterator[bytes]:
        yield b"x"

    @server.stream(9)
    async def async_generator(request: rpc.Request) -> AsyncIterator[memoryview]:
        yield memoryview(b"x")

    server.shutdown(limit=0.5)
    await server.serve()
    server.run()
    assert_type(rpc.method_id("Store.Get"), int)
