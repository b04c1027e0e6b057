using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>What a message costs the collector: nothing.</summary>
    internal static class AllocationTests
    {
        private const int Rounds = 20_000;

        /// <summary>Fails if the call, done often, allocates.</summary>
        private static void None(string what, Action call, int allowed = 0)
        {
            long least = long.MaxValue;
            // The compiler may replace a method between two of them, and what that costs is not the call's.
            for (int i = 0; i < 5 && least > allowed; i++)
            {
                long before = GC.GetAllocatedBytesForCurrentThread();
                for (int n = 0; n < Rounds; n++)
                {
                    call();
                }
                least = Math.Min(least, GC.GetAllocatedBytesForCurrentThread() - before);
            }
            Check.That(least <= allowed, what + ": " + least + " bytes in " + Rounds + " rounds");
        }

        [Test]
        private static void NothingForAMessage()
        {
            var (tx, rx) = Ring.Pair();
            byte[] payload = new byte[32], buffer = new byte[64];
            var parts = new ReadOnlyMemory<byte>[] { payload, payload };
            using var source = new CancellationTokenSource();
            CancellationToken token = source.Token;
            void Take()
            {
                using Message m = rx.Recv();
                buffer[0] = m.Data[0];
            }
            None("send and receive", () =>
            {
                tx.Send(1, payload);
                Take();
            });
            None("with everything", () =>
            {
                tx.Send(1, 7, payload, Wait.Long, token);
                using Message m = rx.Recv(Wait.Long, token);
                buffer[0] = m.Data[0];
            });
            None("trying", () =>
            {
                Check.That(tx.TrySend(1, payload) && rx.TryRecv(out Message m) && Released(m) && !rx.TryRecv(out _), "there and gone");
            });
            None("a slot", () =>
            {
                using Slot slot = tx.Reserve(32);
                slot.Data[0] = 1;
                slot.Commit(1);
                Take();
            });
            None("unflushed and a batch", () =>
            {
                for (int i = 0; i < 8; i++)
                {
                    tx.TryReserve(32, out Slot slot);
                    slot.CommitUnflushed(1);
                }
                tx.Flush();
                using Batch batch = rx.RecvBatch(8);
                foreach (Message m in batch)
                {
                    buffer[0] = m.Data[0];
                }
            });
            None("batch and vector", () =>
            {
                tx.SendBatch(1, parts);
                tx.SendVectored(1, 3, parts);
                rx.RecvBatch(2).Dispose();
                rx.RecvInto(buffer, out _);
            });
            tx.Dispose();
            rx.Dispose();
            (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            byte[] large = new byte[1000];
            None("a full ring", () =>
            {
                while (tx.TrySend(1, large))
                {
                }
                rx.RecvBatch(10).Dispose();
            });
            tx.Dispose();
            rx.Dispose();
        }

        private static bool Released(Message m)
        {
            m.Dispose();
            return true;
        }

        [Test]
        private static void NothingForAMessageOfATopic()
        {
            foreach (TopicOptions o in new[]
            {
                new TopicOptions(), new TopicOptions { MayEject = true }, new TopicOptions { Policy = Policy.Lossy },
                new TopicOptions { Policy = Policy.Latest },
            })
            {
                using var folder = new Folder();
                string name = folder.At("topic"), what = o.Policy + (o.MayEject ? ", may be ejected" : "");
                using Publisher tx = Publisher.Create(name, new TopicOptions { Timestamps = true, MayEject = o.MayEject });
                using Subscriber rx = Subscriber.Open(name, o);
                byte[] payload = new byte[300], buffer = new byte[300];
                var room = new System.Buffers.ArrayBufferWriter<byte>(1024);
                None("send and receive, " + what, () =>
                {
                    tx.Send(1, payload);
                    using Message m = rx.Recv();
                    buffer[0] = m.Data[0];
                });
                None("newest, " + what, () => Check.That(rx.TryReadLatest(buffer, out MessageInfo info) && info.Length == 300, "there"));
                None("copies and asynchronously, " + what, () =>
                {
                    tx.Send(1, payload);
                    rx.RecvInto(buffer, out _);
                    tx.Send(1, payload);
                    using MessageLease m = rx.RecvAsync().Result;
                    buffer[0] = m.Data[0];
                });
                None("unflushed and a batch, " + what, () =>
                {
                    for (int i = 0; i < 8; i++)
                    {
                        tx.TryReserve(32, out Slot slot);
                        slot.CommitUnflushed(1);
                    }
                    tx.Flush();
                    using Batch batch = rx.RecvBatch(8);
                    foreach (Message m in batch)
                    {
                        buffer[0] = m.Data[0];
                    }
                });
                None("a batch writer and appended, " + what, () =>
                {
                    BatchWriter batch = tx.StartBatch();
                    batch.Add(1, 300);
                    batch.Flush();
                    batch.Dispose();
                    buffer[0] = (byte)rx.RecvAppend(room).Length;
                    room.Clear();
                });
            }
        }

        [Test]
        private static void NothingForAMessageOfALoop()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 1 << 22 });
            byte[] payload = new byte[32];
            for (int i = 0; i < Rounds; i++)
            {
                tx.Send(1, payload);
            }
            tx.Dispose();
            long before = GC.GetAllocatedBytesForCurrentThread();
            int seen = 0;
            foreach (Message m in rx.ReadAll())
            {
                seen += m.Data.Length;
            }
            long spent = GC.GetAllocatedBytesForCurrentThread() - before;
            Check.Equal(32 * Rounds, seen, "bytes");
            // The end of the stream is an exception inside.
            Check.That(spent < 20_000, "a loop over " + Rounds + " messages: " + spent + " bytes");
            rx.Dispose();
        }

        [Test]
        private static void NothingForAMessageThatIsThereAsynchronously()
        {
            var (tx, rx) = Ring.Pair();
            byte[] payload = new byte[32];
            using var source = new CancellationTokenSource();
            CancellationToken token = source.Token;
            None("SendAsync and RecvAsync", () =>
            {
                ValueTask sent = tx.SendAsync(1, 5, payload, token);
                Check.That(sent.IsCompletedSuccessfully && rx.WaitToReadAsync(token).Result, "both at once");
                using MessageLease m = rx.RecvAsync(token).Result;
                Check.That(m.Data.Length == 32, "its length");
            });
            IAsyncEnumerator<MessageLease> loop = rx.ReadAllAsync(token).GetAsyncEnumerator();
            None("ReadAllAsync", () =>
            {
                tx.Send(1, payload);
                Check.That(loop.MoveNextAsync().Result && loop.Current.Data.Length == 32, "a message");
            });
            loop.DisposeAsync().AsTask().Wait();
            tx.Dispose();
            rx.Dispose();
        }

        [Test]
        private static void NothingForAWaitWithTheSameToken()
        {
            var (there, echoIn) = Ring.Pair(new RingOptions { Wait = WaitMode.Block });
            var (echoOut, back) = Ring.Pair(new RingOptions { Wait = WaitMode.Block });
            var echo = new Beside(() =>
            {
                foreach (Message m in echoIn.ReadAll())
                {
                    echoOut.Send(1, m.Data);
                }
            });
            using var source = new CancellationTokenSource();
            CancellationToken token = source.Token;
            byte[] payload = new byte[32];
            void Turn()
            {
                there.Send(1, 0, payload, Wait.Long, token);
                back.Recv(Wait.Long, token).Dispose();
            }
            for (int i = 0; i < 500; i++)
            {
                Turn();
            }
            long before = GC.GetAllocatedBytesForCurrentThread();
            for (int i = 0; i < 2000; i++)
            {
                Turn();
            }
            Check.Equal(0L, GC.GetAllocatedBytesForCurrentThread() - before, "bytes in 2000 waits");
            there.Dispose();
            Check.Equal(null, echo.End(), "the echo");
            echoIn.Dispose();
            echoOut.Dispose();
            back.Dispose();
        }
    }
}
