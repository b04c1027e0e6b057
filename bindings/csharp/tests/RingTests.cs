using System;
using System.Buffers;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Threading;

namespace Ramway.Tests
{
    internal static class RingTests
    {
        [Test(Seconds = 120)]
        private static void AMixedStreamAroundTheEnd()
        {
            const int count = 30_000;
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                foreach (int batch in new[] { 1, 16 })
                {
                    using var dir = new Folder();
                    using Receiver rx = Receiver.Create(dir.At("ring"), new RingOptions { Capacity = 1 << 16, Wait = mode });
                    Peer child = Peer.Start("mixed", dir.At("ring"), count.ToString(), mode.ToString(), batch.ToString());
                    int seq = 0, longest = rx.MaxMessageLength;
                    if (batch == 1)
                    {
                        foreach (Message m in rx.ReadAll())
                        {
                            Mixed.Verify(m, seq++, longest);
                        }
                    }
                    else
                    {
                        while (seq < count)
                        {
                            using Batch messages = rx.RecvBatch(10, Wait.Long);
                            Check.That(messages.Count >= 1 && messages.Count <= 10, "the size of a batch");
                            foreach (Message m in messages)
                            {
                                Mixed.Verify(m, seq++, longest);
                            }
                        }
                        Check.Fails(ErrorKind.Closed, () => rx.RecvBatch(1, Wait.Long).Dispose());
                    }
                    Check.Equal(count, seq, "messages, " + mode);
                    child.Finish();
                    rx.Dispose();
                    dir.Holds();
                }
            }
        }

        [Test]
        private static void EveryAlignmentFilledToTheLastByte()
        {
            for (int align = 16; align <= 4096; align *= 2)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 1, Align = align });
                int capacity = (int)tx.Capacity;
                Check.Equal(align, tx.Align, "align");
                Check.Equal(align, rx.Align, "align of the receiver");
                Check.Equal(Environment.SystemPageSize, capacity, "one page");
                for (int round = 0; round < 20; round++)
                {
                    FillAndDrain(tx, rx, round);
                }
                Check.Fails(ErrorKind.TooLarge, () => tx.TrySend(7, new byte[tx.MaxMessageLength + 1]), "can never fit");
                tx.Dispose();
                rx.Dispose();
            }
        }

        private static void FillAndDrain(Sender tx, Receiver rx, int round)
        {
            int capacity = (int)tx.Capacity, align = tx.Align;
            // The longest message fits whenever the ring is empty; beside it there is room for nothing.
            byte[] full = Enumerable.Repeat((byte)round, tx.MaxMessageLength).ToArray();
            Check.That(tx.TrySend(7, full), "the longest message fits");
            Check.That(!tx.TrySend(7, default), "and nothing else");
            Check.Equal((long)capacity, tx.PendingBytes, "bytes sent");
            Check.Equal((long)capacity, rx.PendingBytes, "bytes seen");
            Check.That(rx.TryRecv(out Message longest), "it is there");
            Check.Same(full, longest.Data, "its bytes");
            longest.Dispose();
            // And as many of length 0 as there is room for.
            for (int i = 0; i < capacity / align; i++)
            {
                Check.That(tx.TrySend(8, (ulong)round, default), "a message of length 0");
            }
            Check.That(!tx.TrySend(8, default), "full of them");
            Check.That(rx.TryRecvBatch(1 << 20, out Batch batch), "they are there");
            Check.Equal(capacity / align, batch.Count, "messages");
            Check.Equal((ulong)round, batch[batch.Count - 1].Tag, "the last one's tag");
            Check.Equal(0, batch[0].Length, "the first one's length");
            batch.Dispose();
            // What comes next begins elsewhere.
            tx.Send(1, new byte[33 * round]);
            using (Message m = rx.Recv())
            {
                Check.Equal(33 * round, m.Length, "length");
                Check.Equal(0L, (long)m.Address % align, "the payload's address");
            }
            Check.That(!rx.TryRecv(out _), "nothing more");
        }

        [Test(Seconds = 120)]
        private static void SleepersOnEachSide()
        {
            // Both sides sleep before each of the messages. A wake-up that is lost would show as a round of 100 ms.
            using var dir = new Folder();
            using Sender tx = Sender.Create(dir.At("out"), new RingOptions { Wait = WaitMode.Block });
            using Receiver rx = Receiver.Create(dir.At("in"), new RingOptions { Wait = WaitMode.Block });
            Peer child = Peer.Start("echo", dir.At("out"), dir.At("in"), "Block");
            const int count = 10_000;
            int slow = 0;
            byte[] payload = new byte[8];
            for (int seq = 0; seq < count; seq++)
            {
                BinaryPrimitives.WriteInt64LittleEndian(payload, seq);
                var watch = Stopwatch.StartNew();
                tx.Send(1, payload);
                using (Message m = rx.Recv(Wait.Long))
                {
                    Check.Equal((long)seq, BinaryPrimitives.ReadInt64LittleEndian(m.Data), "the answer");
                }
                if (watch.ElapsedMilliseconds > 50)
                {
                    slow++;
                }
            }
            // On a machine with other work a process may not run for longer than that, now and then.
            Check.That(slow <= count / 1000, slow + " of " + count + " round trips took more than 50 ms");
            tx.Dispose();
            child.Finish();
        }

        [Test]
        private static void FullThenRoom()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            using (tx)
            using (rx)
            {
                for (uint i = 0; i < 4; i++)
                {
                    tx.Reserve(1000).CommitUnflushed(i);
                }
                Check.That(!rx.TryRecv(out _), "committed, not flushed");
                var watch = Stopwatch.StartNew();
                Check.Fails(ErrorKind.TimedOut, () => tx.Send(9, new byte[100], timeout: TimeSpan.FromMilliseconds(5)));
                Check.That(watch.ElapsedMilliseconds >= 5, "a time-out lasts as long as told");
                var other = new Beside(() =>
                {
                    Thread.Sleep(20);
                    for (uint i = 0; i < 7; i++)
                    {
                        using Message m = rx.Recv(Wait.Long);
                        Check.Equal(i < 4 ? i : 9, m.TypeId, "flushed before it waited, in order");
                    }
                });
                for (int i = 0; i < 3; i++)
                {
                    tx.Send(9, new byte[1000]); // fills, waits, goes on
                }
                Check.Equal(null, other.End(), "the receiver");
            }
        }

        [Test]
        private static void SendCalls()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 1 << 16 });
            Check.Equal(null, tx.LastTag, "a tag before the first message");
            tx.SendVectored(3, 42, new ReadOnlyMemory<byte>[] { Bytes("in "), default, Bytes("pieces") });
            Check.Equal(3, tx.SendBatch(4, new ReadOnlyMemory<byte>[] { Bytes("a"), default, Bytes("ccc") }), "sent");
            Check.Equal((ulong?)0, tx.LastTag, "without a tag");
            tx.Send(5, 43, Bytes("tagged"));
            Check.Equal((ulong?)43, tx.LastTag, "the last tag");
            foreach (uint reserved in new[] { 0xFFFF0000u, uint.MaxValue })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => tx.Send(reserved, default), "Ramway's own");
                Check.Fails(ErrorKind.InvalidArgument, () => tx.TrySend(reserved, default), "Ramway's own");
                Check.Fails(ErrorKind.InvalidArgument, () => tx.Reserve(8).Commit(reserved), "Ramway's own");
                Check.Fails(ErrorKind.InvalidArgument, () => tx.SendBatch(reserved, new ReadOnlyMemory<byte>[1]));
            }
            Slot slot = tx.Reserve(8);
            Check.Fails(ErrorKind.Busy, () => tx.Send(1, default));
            Check.Fails(ErrorKind.Busy, () => tx.Reserve(1));
            slot.Dispose();
            slot.Dispose();
            foreach (int length in new[] { -1, int.MinValue, 9, int.MaxValue })
            {
                // Which aborts it.
                Check.Fails(ErrorKind.InvalidArgument, () => tx.Reserve(8).Commit(1, 0, length), "of a slot of 8");
            }
            Check.Fails(ErrorKind.InvalidArgument, () => tx.Reserve(-1));
            Check.Throws<ObjectDisposedException>(() => Late(tx, s => s.Commit(1)));
            Check.Throws<ObjectDisposedException>(() => Late(tx, s => s.Data.Clear()));
            Check.Throws<ObjectDisposedException>(() => default(Slot).Commit(1));
            Check.Equal(1, tx.SendBatch(1, new ReadOnlyMemory<byte>[] { default, new byte[1 << 17] }), "sent of two");
            Check.Fails(ErrorKind.TooLarge, () => tx.SendBatch(1, new ReadOnlyMemory<byte>[] { new byte[1 << 17] }));
            Check.Fails(ErrorKind.InvalidArgument, () => tx.Send(1, 0, default, TimeSpan.FromSeconds(-2)), "time-out");
            tx.Dispose();
            tx.Dispose();
            Check.Fails(ErrorKind.Detached, () => tx.Send(1, default));
            Check.Fails(ErrorKind.Detached, () => tx.TrySend(1, default));
            Check.Fails(ErrorKind.Detached, () => tx.Reserve(1));
            Check.Fails(ErrorKind.Detached, () => tx.Flush());
            Check.Equal(null, tx.LastTag, "of a closed handle");
            Check.That(!tx.PeerAlive && tx.PeerEpoch == 0 && tx.PendingBytes == 0, "what a closed handle says");

            var got = new List<string>();
            foreach (Message m in rx.ReadAll())
            {
                got.Add(m.TypeId + "/" + m.Tag + "/" + RingHelpers.Text(m));
            }
            Check.Equal("3/42/in pieces 4/0/a 4/0/ 4/0/ccc 5/43/tagged 1/0/ 1/0/ 1/0/", string.Join(" ", got), "all messages");
            Check.Fails(ErrorKind.Closed, () => rx.Recv().Dispose());
            Check.Fails(ErrorKind.Closed, () => rx.TryRecv(out _));
            rx.Dispose();
            Check.Fails(ErrorKind.Detached, () => rx.Recv().Dispose());
            Check.Fails(ErrorKind.Detached, () => rx.TryRecv(out _));
            Check.Fails(ErrorKind.Detached, () => rx.TryRecvBatch(1, out _));
        }

        private delegate void UseOfSlot(Slot slot);

        /// <summary>Uses a slot after its commit.</summary>
        private static void Late(Sender tx, UseOfSlot use)
        {
            Slot slot = tx.Reserve(0);
            slot.Commit(1);
            use(slot);
        }

        private static byte[] Bytes(string text) => System.Text.Encoding.ASCII.GetBytes(text);

        [Test]
        private static void MessageCalls()
        {
            var (tx, rx) = Ring.Pair();
            using (tx)
            using (rx)
            {
                tx.Send(7, 9, Bytes("hello"));
                Message m = rx.Recv();
                Message copy = m;
                Check.That(m.TypeId == 7 && m.Tag == 9 && m.Length == 5 && m.Info.Length == 5, "what it was sent with");
                Check.Same(Bytes("hello"), m.ToArray(), "its bytes");
                Check.Fails(ErrorKind.Busy, () => rx.Recv().Dispose());
                Check.Fails(ErrorKind.Busy, () => rx.TryRecvBatch(1, out _));
                m.Dispose();
                m.Dispose();
                Throws(copy, c => c.Data.ToArray());
                Throws(copy, c => c.Tag.ToString());
                Throws(copy, c => c.TypeId.ToString());
                Throws(copy, c => c.Length.ToString());
                Throws(default, c => c.Data.ToArray());
                tx.Send(1, Bytes("next"));
                using (Message next = rx.Recv())
                {
                    Throws(copy, c => c.Data.ToArray());
                    copy.Dispose();
                    Check.Same(Bytes("next"), next.Data, "a late Dispose of another message takes nothing away");
                }
                Batches(tx, rx);
                Copies(tx, rx);
                Owned(tx, rx);
            }
        }

        private delegate object UseOfMessage(Message message);

        private static void Throws(Message message, UseOfMessage use)
        {
            try
            {
                use(message);
            }
            catch (ObjectDisposedException)
            {
                return;
            }
            throw new CheckException("a message was used after its release, and nothing was thrown");
        }

        private static void Batches(Sender tx, Receiver rx)
        {
            Check.Fails(ErrorKind.InvalidArgument, () => rx.RecvBatch(0).Dispose());
            tx.SendBatch(1, new ReadOnlyMemory<byte>[] { Bytes("a"), Bytes("bb"), Bytes("ccc") });
            Batch batch = rx.RecvBatch(2);
            Check.Equal(2, batch.Count, "messages in the batch");
            Message second = batch[1];
            second.Dispose();
            Check.Same(Bytes("bb"), second.Data, "a message goes back with its batch");
            int seen = 0;
            foreach (Message m in batch)
            {
                Check.Equal(++seen, m.Length, "length");
            }
            batch.Dispose();
            batch.Dispose();
            Throws(second, c => c.Data.ToArray());
            try
            {
                Check.Equal(0, batch.Count, "a batch that was released");
                throw new CheckException("nothing was thrown");
            }
            catch (ObjectDisposedException)
            {
                // As it should be.
            }
            Check.Equal("ccc", RingHelpers.Receive(rx), "the rest");
        }

        private static void Copies(Sender tx, Receiver rx)
        {
            byte[] buffer = new byte[8];
            Check.That(!rx.TryRecvInto(buffer, out _), "nothing there");
            tx.Send(3, 4, Bytes("longer than 8"));
            Check.Fails(ErrorKind.TooLarge, () => rx.RecvInto(buffer, out _), "13", "8");
            Check.Fails(ErrorKind.TooLarge, () => rx.TryRecvInto(buffer, out _));
            var writer = new ArrayBufferWriter<byte>();
            Check.Equal(13, rx.RecvAppend(writer).Length, "its length");
            Check.Same(Bytes("longer than 8"), writer.WrittenSpan, "it was still there");
            tx.Send(3, 4, Bytes("short"));
            Check.Equal(5, rx.RecvInto(buffer, out MessageInfo info), "copied");
            Check.That(info.TypeId == 3 && info.Tag == 4 && info.Length == 5, "what it was sent with");
            Check.Same(Bytes("short"), buffer.AsSpan(0, 5), "its bytes");
            Check.Equal(0L, rx.PendingBytes, "and it was released");
        }

        private static void Owned(Sender tx, Receiver rx)
        {
            tx.Send(3, 4, Bytes("kept"));
            OwnedMessage owned = rx.RecvMemory();
            Memory<byte> memory = owned.Memory;
            Check.Same(Bytes("kept"), memory.Span, "its bytes");
            Check.Fails(ErrorKind.Busy, () => rx.Recv().Dispose());
            using (MemoryHandle pin = memory.Pin())
            {
                owned.Dispose();
                Check.Fails(ErrorKind.Busy, () => rx.Recv().Dispose());
                Check.Throws<ObjectDisposedException>(() => memory.Span.Clear());
            }
            Check.That(!rx.TryRecv(out _), "released by the end of the pin");
            Check.Throws<ObjectDisposedException>(() => memory.Span.Clear());
            owned.Dispose();
        }
    }
}
