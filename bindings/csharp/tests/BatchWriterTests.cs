using System;

namespace Ramway.Tests
{
    internal static class BatchWriterTests
    {
        [Test]
        private static void MessagesBecomeVisibleTogether()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            BatchWriter batch = tx.StartBatch();
            batch.Add(1, 4).Fill(1);
            batch.Add(2, 0);
            batch.Add(3, 9, 100).Fill(3);
            Check.That(!rx.TryRecv(out _), "added, not flushed");
            Check.Fails(ErrorKind.Busy, () => tx.Send(1, default));
            Check.Fails(ErrorKind.Busy, () => tx.StartBatch());
            batch.Flush();
            Check.Equal(3, Count(rx), "messages after the flush");
            Check.Equal((ulong?)9, tx.LastTag, "the last one's tag");
            batch.Add(4, 10);
            batch.Dispose();
            batch.Dispose();
            tx.Send(5, new byte[1]);
            using (Message m = rx.Recv())
            {
                Check.Equal(5u, m.TypeId, "what was not flushed is given up");
            }
            Check.Throws<ObjectDisposedException>(() => Late(tx));
            Check.Throws<ObjectDisposedException>(() => default(BatchWriter).Add(1, 1));
            foreach ((uint type, int length, ErrorKind kind) in new[]
            {
                (1u, 5000, ErrorKind.TooLarge), (1u, -1, ErrorKind.InvalidArgument), (0xFFFF0000u, 1, ErrorKind.InvalidArgument),
            })
            {
                Check.Fails(kind, () => Wrong(tx, type, length));
                Check.Equal(1, Count(rx), "what was added before the one that is wrong");
            }
            tx.Dispose();
            Check.Fails(ErrorKind.Detached, () => tx.StartBatch());
            rx.Dispose();
        }

        private static int Count(Receiver rx)
        {
            using Batch messages = rx.RecvBatch(100, Wait.Long);
            return messages.Count;
        }

        private static void Late(Sender tx)
        {
            BatchWriter batch = tx.StartBatch();
            batch.Dispose();
            batch.Add(1, 1);
        }

        private static void Wrong(Sender tx, uint type, int length)
        {
            BatchWriter batch = tx.StartBatch();
            try
            {
                batch.Add(1, 1);
                batch.Add(type, length);
            }
            finally
            {
                batch.Flush();
                batch.Dispose();
            }
        }

        [Test]
        private static void AFullRingIsWaitedFor()
        {
            const int count = 20_000;
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            var receiving = new Beside(() =>
            {
                int seq = 0;
                foreach (Message m in rx.ReadAll())
                {
                    Mixed.Verify(m, seq++, 300);
                }
                Check.Equal(count, seq, "messages");
            });
            BatchWriter batch = tx.StartBatch();
            byte[] bytes = new byte[300];
            for (int seq = 0; seq < count; seq++)
            {
                Span<byte> filled = bytes.AsSpan(0, Mixed.LengthOf(seq, 300));
                Mixed.Fill(filled, seq);
                filled.CopyTo(batch.Add(Mixed.TypeOf(seq), Mixed.TagOf(seq, filled), filled.Length));
                if (seq % 97 == 0)
                {
                    batch.Flush();
                }
            }
            batch.Flush();
            batch.Dispose();
            tx.Dispose();
            Check.Equal(null, receiving.End(), "the receiver");
            rx.Dispose();
        }

        [Test]
        private static void DisposeOfTheSenderWaitsForIt()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            BatchWriter batch = tx.StartBatch();
            batch.Add(1, 10);
            tx.Dispose();
            Check.That(rx.PeerAlive, "not closed yet");
            ErrorKind kind = 0;
            try
            {
                batch.Add(1, 10);
            }
            catch (RamwayException e)
            {
                kind = e.Kind;
            }
            Check.Equal(ErrorKind.Detached, kind, "an addition to a closed handle");
            batch.Flush();
            batch.Dispose();
            Check.Equal(1, Count(rx), "what was added before");
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());

            // And one that waits for room is called off.
            (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096, Wait = WaitMode.Block });
            Sender full = tx;
            var waiting = new Beside(() =>
            {
                BatchWriter more = full.StartBatch();
                try
                {
                    for (;;)
                    {
                        more.Add(1, 1000);
                    }
                }
                finally
                {
                    more.Dispose();
                }
            });
            Wait.Until("it waits", () => HostileTests.Waits(rx));
            tx.Dispose();
            Check.Equal(ErrorKind.Detached, waiting.Kind(), "the one that waited");
            Check.Equal(4, Count(rx), "what was flushed before it waited");
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
            rx.Dispose();
        }

        [Test]
        private static void AClosedReceiverIsSeen()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            BatchWriter batch = tx.StartBatch();
            batch.Add(1, 10);
            rx.Dispose();
            ErrorKind kind = 0;
            try
            {
                batch.Add(1, 10);
            }
            catch (RamwayException e)
            {
                kind = e.Kind;
            }
            Check.Equal(ErrorKind.Closed, kind, "at the next call");
            batch.Dispose();
            tx.Dispose();
        }

        [Test]
        private static void NothingIsAllocated()
        {
            var (tx, rx) = Ring.Pair();
            long least = long.MaxValue;
            for (int i = 0; i < 5; i++)
            {
                long before = GC.GetAllocatedBytesForCurrentThread();
                for (int n = 0; n < 2000; n++)
                {
                    BatchWriter batch = tx.StartBatch();
                    for (int k = 0; k < 8; k++)
                    {
                        batch.Add(1, 32)[0] = 1;
                    }
                    batch.Flush();
                    batch.Dispose();
                    rx.RecvBatch(8).Dispose();
                }
                least = Math.Min(least, GC.GetAllocatedBytesForCurrentThread() - before);
            }
            Check.Equal(0L, least, "bytes in 16000 messages");
            tx.Dispose();
            rx.Dispose();
        }
    }
}
