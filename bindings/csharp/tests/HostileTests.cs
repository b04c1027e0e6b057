using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>Words in shared memory that no correct peer writes: each is Corrupt, and stays so.</summary>
    internal static unsafe class HostileTests
    {
        private const int Capacity = 4096;

        private static readonly ulong[] Numbers =
        {
            0, 1, 15, 16, 64, Capacity - 16, Capacity, Capacity + 16, 1ul << 31, 1ul << 32, 1ul << 63, ulong.MaxValue - 15,
            ulong.MaxValue,
        };

        /// <summary>
        /// A handle's view of the ring, out of its private parts: what a hostile peer has by right.
        /// </summary>
        internal static RingBlock* RingOf(RingEnd end) => end.SharedForTests;

        internal static byte* DataOf(RingEnd end) => end.DataForTests;

        /// <summary>Whether the peer of this handle is asleep, or about to be.</summary>
        internal static bool Waits(RingEnd end)
        {
            RingBlock* ring = RingOf(end);
            return Volatile.Read(ref end is Sender ? ref ring->Consumer.Wait : ref ring->Producer.Wait) == 1;
        }

        [Test]
        private static void Tails()
        {
            foreach (ulong tail in Numbers)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = Capacity });
                tx.Send(1, new byte[48]);
                Volatile.Write(ref RingOf(tx)->Tail, tail);
                // Inside the ring lies an old frame, or none: zeros are a message of length 0.
                bool possible = tail <= Capacity && tail % 16 == 0;
                ErrorKind kind = 0;
                try
                {
                    for (int i = 0; i < 1 << 10 && rx.TryRecv(out Message m); i++)
                    {
                        Check.That(m.Length <= Capacity, "the length");
                        Sum(m.Data);
                        m.Dispose();
                    }
                }
                catch (RamwayException e)
                {
                    kind = e.Kind;
                }
                Check.That(kind == ErrorKind.Corrupt || possible && kind == 0, "tail " + tail + ": " + kind);
                if (!possible)
                {
                    Check.Fails(ErrorKind.Corrupt, () => rx.Recv().Dispose(), "not what any correct peer writes");
                    Check.Fails(ErrorKind.Corrupt, () => rx.RecvBatch(5).Dispose());
                    Check.Fails(ErrorKind.Corrupt, () => rx.RecvInto(new byte[9], out _));
                    Check.Fails(ErrorKind.Corrupt, () => rx.WaitToReadAsync().AsTask().GetAwaiter().GetResult());
                    // Put right again: it stays dead.
                    Volatile.Write(ref RingOf(tx)->Tail, 64);
                    Check.Fails(ErrorKind.Corrupt, () => rx.TryRecv(out _));
                }
                tx.Dispose();
                rx.Dispose();
            }
        }

        private static int Sum(ReadOnlySpan<byte> bytes)
        {
            int sum = 0;
            foreach (byte b in bytes)
            {
                sum += b;
            }
            return sum;
        }

        [Test]
        private static void Heads()
        {
            foreach (ulong head in Numbers)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = Capacity });
                for (int i = 0; i < 64; i++)
                {
                    tx.Send(1, new byte[48]);
                }
                Volatile.Write(ref RingOf(tx)->Head, head);
                if (head <= Capacity && head % 16 == 0)
                {
                    tx.TrySend(1, new byte[48]);
                }
                else
                {
                    Check.Fails(ErrorKind.Corrupt, () => tx.TrySend(1, new byte[48]));
                    Check.Fails(ErrorKind.Corrupt, () => tx.Reserve(0));
                    Check.Fails(ErrorKind.Corrupt, () => tx.Flush());
                    Check.Fails(ErrorKind.Corrupt, () => tx.SendBatch(1, new ReadOnlyMemory<byte>[1]));
                    Check.Fails(ErrorKind.Corrupt, () => tx.SendAsync(1, default).AsTask().GetAwaiter().GetResult());
                }
                tx.Dispose();
                rx.Dispose();
            }
        }

        [Test]
        private static void Lengths()
        {
            var lengths = new uint[]
            {
                49, 64, 80, Capacity, 0x7FFFFFEF, 0x7FFFFFF0, 1u << 31, uint.MaxValue - 15, uint.MaxValue,
            };
            foreach (uint length in lengths)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = Capacity });
                tx.Send(1, new byte[48]);
                Volatile.Write(ref *(uint*)DataOf(tx), length);
                Check.Fails(ErrorKind.Corrupt, () => rx.Recv().Dispose());
                Check.Fails(ErrorKind.Corrupt, () => rx.TryRecv(out _));
                tx.Dispose();
                rx.Dispose();

                (tx, rx) = Ring.Pair(new RingOptions { Capacity = Capacity });
                tx.Send(1, new byte[48]);
                Volatile.Write(ref *(uint*)DataOf(tx), length);
                Check.Fails(ErrorKind.Corrupt, () => rx.RecvAsync().AsTask().GetAwaiter().GetResult());
                tx.Dispose();
                rx.Dispose();
            }
        }

        [Test]
        private static void ALengthInABatch()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = Capacity });
            tx.Send(1, new byte[48]);
            tx.Send(1, new byte[48]);
            Volatile.Write(ref *(uint*)(DataOf(tx) + 64), Capacity);
            using (Batch batch = rx.RecvBatch(5))
            {
                Check.Equal(1, batch.Count, "messages before the one that is wrong");
                Check.Equal(48, batch[0].Length, "its length");
            }
            Check.Fails(ErrorKind.Corrupt, () => rx.Recv().Dispose());
            rx.Dispose();
            Check.Fails(ErrorKind.Detached, () => rx.Recv().Dispose());
            tx.Dispose();
        }

        [Test]
        private static void WhileWaiting()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = Capacity, Wait = mode });
                var other = new Beside(() =>
                {
                    Thread.Sleep(20);
                    Volatile.Write(ref RingOf(tx)->Tail, 8ul);
                    Volatile.Write(ref RingOf(tx)->Consumer.Wait, 0u);
                    Sys.Futex.WakeAll(&RingOf(tx)->Consumer.Wait);
                });
                Check.Fails(ErrorKind.Corrupt, () => rx.Recv(Wait.Long).Dispose());
                Check.Equal(null, other.End(), "the other thread");
                rx.Dispose();
                tx.Dispose();
            }
        }

        [Test]
        private static void PositionsAtAttach()
        {
            using var dir = new Folder();
            Receiver rx = Receiver.Create(dir.At("ring"), new RingOptions { Capacity = Capacity, Persistent = true });
            Volatile.Write(ref RingOf(rx)->Tail, 24ul);
            Check.Fails(ErrorKind.Corrupt, () => Sender.Open(dir.At("ring")));
            Volatile.Write(ref RingOf(rx)->Tail, 0ul);
            Sender.Open(dir.At("ring")).Dispose();
            rx.Dispose();
        }

        [Test]
        private static void MarksOfAKilledSender()
        {
            using var dir = new Folder();
            Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Persistent = true });
            tx.Send(1, 5, default);
            tx.Send(1, 6, default);
            // As if it was killed between its stores into the mark and into tail: the third message would end at 48.
            TagRecord* stale = RingOf(tx)->LastTag0.End == 32 ? &RingOf(tx)->LastTag1 : &RingOf(tx)->LastTag0;
            Volatile.Write(ref stale->End, 48ul);
            Volatile.Write(ref stale->Tag, 7ul);
            tx.Abandon();
            tx = Sender.Open(dir.At("ring"));
            Check.Equal((ulong?)6, tx.LastTag, "the last tag");
            tx.Send(1, default);
            Check.Equal((ulong?)0, tx.LastTag, "a message without a tag");
            tx.Send(1, 8, default);
            Check.Equal((ulong?)8, tx.LastTag, "the next one");
            tx.Dispose();
        }

        [Test]
        private static void APeerThatScribbles()
        {
            int corrupt = 0;
            for (int round = 0; round < 40; round++)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = Capacity });
                RingBlock* ring = RingOf(tx);
                byte* data = DataOf(tx);
                bool stop = false;
                var scribbler = new Beside(() =>
                {
                    var random = new Random(round);
                    byte* words = (byte*)ring + 0x80;
                    while (!Volatile.Read(ref stop))
                    {
                        ulong value = random.Next(3) > 0
                            ? (ulong)random.Next(8192) & ~15ul
                            : (ulong)random.Next() << 33 | (uint)random.Next();
                        byte* at = random.Next(2) == 0 ? words + random.Next(0x200) : data + random.Next(Capacity);
                        Volatile.Write(ref *(ulong*)((ulong)at & ~7ul), value);
                        Thread.SpinWait(random.Next(50));
                    }
                });
                if (Suffer(tx, rx, round))
                {
                    corrupt++;
                }
                Volatile.Write(ref stop, true);
                Check.Equal(null, scribbler.End(), "the scribbler");
                tx.Dispose();
                rx.Dispose();
            }
            Check.That(corrupt > 10, "found corrupt in " + corrupt + " of 40 rounds");
        }

        /// <summary>Uses both ends for a while: errors are all that may come of it.</summary>
        private static bool Suffer(Sender tx, Receiver rx, int round)
        {
            byte[] buffer = new byte[Capacity];
            byte[] payload = new byte[500];
            var random = new Random(round + 1000);
            long end = System.Diagnostics.Stopwatch.GetTimestamp() + 50_000_000;
            ErrorKind sent = 0, received = 0;
            while (System.Diagnostics.Stopwatch.GetTimestamp() < end && (sent == 0 || received == 0))
            {
                try
                {
                    if (sent == 0)
                    {
                        tx.TrySend(1, (ulong)random.Next(2), payload.AsSpan(0, random.Next(500)));
                        tx.Send(1, 0, default, TimeSpan.FromMilliseconds(1));
                    }
                }
                catch (RamwayException e) when (e.Kind != ErrorKind.TimedOut)
                {
                    sent = e.Kind;
                }
                catch (RamwayException)
                {
                    // Full for a while.
                }
                try
                {
                    if (received == 0)
                    {
                        rx.TryRecvInto(buffer, out _);
                        if (rx.TryRecvBatch(10, out Batch batch))
                        {
                            using (batch)
                            {
                                foreach (Message m in batch)
                                {
                                    Sum(m.Data);
                                }
                            }
                        }
                        rx.RecvInto(buffer, out _, TimeSpan.FromMilliseconds(1));
                    }
                }
                catch (RamwayException e) when (e.Kind != ErrorKind.TimedOut)
                {
                    received = e.Kind;
                }
                catch (RamwayException)
                {
                    // Empty for a while.
                }
            }
            return sent == ErrorKind.Corrupt || received == ErrorKind.Corrupt;
        }
    }
}
