using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    internal static class RegionTests
    {
        private static Thread Run(Action action)
        {
            var thread = new Thread(() => action()) { IsBackground = true };
            thread.Start();
            return thread;
        }

        private static void Join(Thread thread) => Check.That(thread.Join(Wait.Long), "a thread did not end");

        [Test]
        private static void TwoProcessesWakeEachOther()
        {
            foreach (WaitMode mode in new[] { WaitMode.Hybrid, WaitMode.Block, WaitMode.Spin })
            {
                using var dir = new Folder();
                Region r = Region.Create(dir.At("count"), 4096, new RegionOptions { Wait = mode });
                using Peer p = Peer.Start("region-count", dir.At("count"));
                p.Expect("ready");
                long began = Clock.Nanoseconds;
                for (int i = 0; i < 1000; i++)
                {
                    Interlocked.Increment(ref r.Int64At(0));
                    r.Notify();
                    while (r.ReadInt64(128) != i + 1)
                    {
                        r.Wait(Wait.Long);
                    }
                }
                // A lost wake-up costs a round of 100 ms each.
                Check.That(Clock.Nanoseconds - began < 20_000_000_000, mode + ": wake-ups were lost");
                p.Finish();
                r.Dispose();
                dir.Holds();
            }
        }

        /// <summary>Waits for notifications, adds one to the counter for each, and answers by a notification.</summary>
        [Helper("region-count")]
        private static void CountNotifications(string[] arguments)
        {
            using Region r = Region.Open(arguments[0], new RegionOptions { Timeout = Wait.Long, Wait = WaitMode.Block });
            Peer.Say("ready");
            while (r.ReadInt64(128) < 1000)
            {
                if (r.ReadInt64(0) == r.ReadInt64(128))
                {
                    r.Wait(Wait.Long);
                    continue;
                }
                Interlocked.Increment(ref r.Int64At(128));
                r.Notify();
            }
        }

        [Test]
        private static void ReadAndWriteKeepTheirContracts()
        {
            using var dir = new Folder();
            using Region r = Region.Create(dir.At("bytes"), 100);
            Check.That(r.Length == 100 && r.Capacity % 4096 == 0 && !r.ReadOnly && r.Data.Length == 100 && r.View.Length == 100 &&
                r.Memory.Length == 100, "its sizes");
            byte[] want = new byte[100];
            for (int start = 0; start < 20; start++)
            {
                for (int n = 0; n < 70; n++)
                {
                    byte[] from = Enumerable.Repeat((byte)(start * n + 1), n).ToArray();
                    from.CopyTo(want, start);
                    r.Write(start, from);
                    Check.Same(want, r.Data, n + " bytes at " + start);
                    byte[] back = new byte[n];
                    r.Read(start, back);
                    Check.Same(from, back, "what was read");
                }
            }
            byte[] ten = new byte[10];
            r.Read(90, ten);
            Check.Same(r.Data.Slice(90), ten, "the last ten");
            r.Read(100, default);
            foreach (long offset in new[] { -1, 91, 100, 1L << 62, long.MaxValue })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => r.Write(offset, ten), "10 bytes at offset " + offset);
                Check.Fails(ErrorKind.InvalidArgument, () => r.Read(offset, ten), "10 bytes at offset " + offset);
                Check.Fails(ErrorKind.InvalidArgument, () => r.Slice(offset, 10));
            }
            Check.Fails(ErrorKind.InvalidArgument, () => r.Slice(0, -1));
            foreach (long offset in new[] { -4, 2, 98, 100, 1L << 62 })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => r.Int32At(offset));
                Check.Fails(ErrorKind.InvalidArgument, () => r.ReadInt32(offset));
            }
            foreach (long offset in new[] { -8, 4, 96, 100, 1L << 62 })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => r.Int64At(offset));
                Check.Fails(ErrorKind.InvalidArgument, () => r.ReadInt64(offset));
            }
            r.Int32At(96) = 0x01020304;
            Check.Equal((byte)4, r.Data[96], "a word");
        }

        [Test]
        private static void AReadOnlyHandle()
        {
            using var dir = new Folder();
            Region w = Region.Create(dir.At("shown"), 64);
            Region r = Region.OpenReadOnly(dir.At("shown"));
            Check.That(r.ReadOnly && r.View.Length == 64, "its sizes");
            Check.Fails(ErrorKind.PermissionDenied, () => r.Write(0, new byte[1]), "read-only");
            Check.Fails(ErrorKind.PermissionDenied, () => r.Notify());
            Check.Fails(ErrorKind.PermissionDenied, () => r.Int32At(0));
            Check.Fails(ErrorKind.PermissionDenied, () => _ = r.Data[0]);
            Check.Fails(ErrorKind.PermissionDenied, () => _ = r.Memory.Length);
            Thread t = Run(() =>
            {
                Thread.Sleep(20);
                w.Int32At(8) = 77;
                w.Notify();
            });
            r.Wait(Wait.Long);
            Check.Equal(77, r.ReadInt32(8), "what was written before the notification");
            Check.Fails(ErrorKind.TimedOut, () => r.Wait(TimeSpan.FromMilliseconds(10)));
            Join(t);
            w.Dispose();
            dir.Holds("shown");
            // A handle that only reads can be the last one out.
            r.Dispose();
            dir.Holds();
        }

        [Test]
        private static void NotificationsAreCountedByEachHandle()
        {
            using var dir = new Folder();
            using Region a = Region.Create(dir.At("bell"), 8);
            using Region b = Region.OpenOrCreate(dir.At("bell"), 8);
            Check.That(!a.TryWait() && !b.TryWait(), "nobody has notified");
            uint before = a.Count;
            for (int i = 0; i < 3; i++)
            {
                a.Notify();
            }
            b.Wait(Wait.Long);
            Check.That(!b.TryWait() && a.TryWait() && !a.TryWait(), "three are one, for each handle");
            Check.That(a.Wait(before, Wait.Long) == a.Count && a.Count != before, "since a count");
            Check.Fails(ErrorKind.TimedOut, () => b.Wait(TimeSpan.FromMilliseconds(10)));
            Check.Fails(ErrorKind.TimedOut, () => b.Wait(TimeSpan.Zero));
            Check.Fails(ErrorKind.InvalidArgument, () => b.Wait(TimeSpan.FromMilliseconds(-2)));
            Check.Fails(ErrorKind.InvalidArgument, () => Region.OpenOrCreate(dir.At("bell"), 9), "9", "8");
            Check.Fails(ErrorKind.AlreadyExists, () => Region.Create(dir.At("bell"), 8), "live region");
            Check.Fails(ErrorKind.NotFound, () => Region.Open(dir.At("other")), "opening the region");
            Check.Fails(ErrorKind.InvalidArgument, () => Region.Create(dir.At("none"), 0), "0 bytes");
            Check.Fails(ErrorKind.InvalidArgument, () => Region.Create(dir.At("none"), -1));
            dir.Holds("bell");
        }

        [Test]
        private static void ATokenEndsAWaitAtOnce()
        {
            using var dir = new Folder();
            using Region r = Region.Create(dir.At("bell"), 8);
            Check.Throws<OperationCanceledException>(() => r.Wait(null, new CancellationToken(true)));
            var times = new List<long>();
            for (int i = 0; i < 31; i++)
            {
                using var source = new CancellationTokenSource();
                long cancelled = 0;
                Thread t = Run(() =>
                {
                    Futex.Sleep(1 + i * 200_000L);
                    Volatile.Write(ref cancelled, Clock.Nanoseconds);
                    source.Cancel();
                });
                var e = Check.Throws<OperationCanceledException>(() => r.Wait(null, source.Token));
                times.Add(Clock.Nanoseconds - Volatile.Read(ref cancelled));
                Check.Equal(source.Token, e.CancellationToken, "whose token");
                Join(t);
            }
            // Less than the round that a sleep takes by itself; the median, because the machine may be busy.
            times.Sort();
            Check.That(times[15] < 50_000_000, "half of the waits ended " + times[15] / 1000 + " µs after their token or later");
        }

        [Test]
        private static void ManyWaitersOfOneHandleAllWake()
        {
            using var dir = new Folder();
            using Region r = Region.Create(dir.At("crowd"), 8);
            const int waiters = 20, rings = 20;
            int woken = 0;
            List<Thread> threads = Enumerable.Range(0, waiters).Select(_ => Run(() =>
            {
                uint known = 0;
                while (known < 2 * rings)
                {
                    known = r.Wait(known, Wait.Long);
                }
                Interlocked.Increment(ref woken);
            })).ToList();
            for (int i = 0; i < rings; i++)
            {
                Thread.Sleep(1);
                r.Notify();
            }
            threads.ForEach(Join);
            Check.Equal(waiters, woken, "how many woke");
        }

        [Test]
        private static void DisposeUnderItsUsers()
        {
            foreach (bool readOnly in new[] { false, true })
            {
                using var dir = new Folder();
                Region owner = Region.Create(dir.At("shop"), 1 << 20);
                Region r = readOnly ? Region.OpenReadOnly(dir.At("shop")) : owner;
                var ended = new List<ErrorKind>();
                List<Thread> threads = Enumerable.Range(0, 8).Select(i => Run(() =>
                {
                    try
                    {
                        byte[] copied = new byte[1 << 20];
                        for (;;)
                        {
                            if (i % 2 == 0)
                            {
                                r.Wait();
                            }
                            else
                            {
                                r.Read(0, copied);
                            }
                        }
                    }
                    catch (RamwayException e)
                    {
                        lock (ended)
                        {
                            ended.Add(e.Kind);
                        }
                    }
                })).ToList();
                Thread.Sleep(30);
                r.Dispose();
                r.Dispose();
                threads.ForEach(Join);
                Check.That(ended.Count == 8 && ended.All(k => k == ErrorKind.Detached), string.Join(" ", ended));
                Check.Fails(ErrorKind.Detached, () => _ = r.View.Length);
                Check.Fails(ErrorKind.Detached, () => _ = r.Count);
                Check.Fails(ErrorKind.Detached, () => r.TryWait());
                Check.Fails(ErrorKind.Detached, () => r.Wait(TimeSpan.Zero));
                Check.Fails(ErrorKind.Detached, () => r.Notify());
                owner.Dispose();
                dir.Holds();
            }
        }

        [Test]
        private static unsafe void MemoryThatIsKeptThrowsAndPinnedBytesStay()
        {
            using var dir = new Folder();
            Region r = Region.Create(dir.At("kept"), 100);
            Memory<byte> memory = r.Memory;
            memory.Span[7] = 42;
            Check.Equal((byte)42, r.Data[7], "the same memory");
            System.Buffers.MemoryHandle pin = memory.Slice(7).Pin();
            r.Dispose();
            Check.Throws<ObjectDisposedException>(() => _ = memory.Span[0]);
            Check.Throws<ObjectDisposedException>(() => memory.Pin());
            Check.Equal((byte)42, *(byte*)pin.Pointer, "what is pinned");
            dir.Holds("kept");
            pin.Dispose();
            dir.Holds();
        }

        [Test]
        private static void AWaitEndsWhenTheNameGoes()
        {
            using var dir = new Folder();
            using Region r = Region.Create(dir.At("gone"), 8);
            List<Thread> threads = Enumerable.Range(0, 3)
                .Select(_ => Run(() => Check.Fails(ErrorKind.Closed, () => r.Wait(Wait.Long), "removed"))).ToList();
            Thread.Sleep(20);
            File.Delete(dir.At("gone"));
            threads.ForEach(Join);
            Check.Fails(ErrorKind.Closed, () => r.Wait(Wait.Long));
            // But a notification that came before is delivered.
            r.Notify();
            r.Wait(Wait.Long);
        }

        [Test]
        private static void APersistentRegionOutlivesItsUsers()
        {
            using var dir = new Folder();
            string name = dir.At("region");
            var o = new RegionOptions { Persistent = true, Mode = 0x1A0 };
            using (Region r = Region.Create(name, 5000, o))
            {
                r.Data[4999] = 9;
            }
            dir.Holds("region");
            using (Region r = Region.Open(name))
            {
                Check.Equal((byte)9, r.Data[4999], "what was written");
            }
            Check.Fails(ErrorKind.AlreadyExists, () => Region.Create(name, 5000), "persistent");
            using (Region r = Region.Create(name, 6000, new RegionOptions { Discard = true }))
            {
                Check.Equal((byte)0, r.Data[4999], "a new one");
            }
            dir.Holds();
        }

        [Test]
        private static async System.Threading.Tasks.Task AsynchronousWaits()
        {
            using var dir = new Folder();
            Region r = Region.Create(dir.At("bell"), 8);
            uint seen = r.Count;
            r.Notify();
            Check.Equal(seen + 2, await r.WaitAsync(seen), "what came before");
            await r.WaitAsync();
            Check.That(!r.TryWait(), "it remembers");
            var crowd = Enumerable.Range(0, 100).Select(_ => r.WaitAsync(r.Count).AsTask()).ToList();
            Check.That(crowd.All(t => !t.IsCompleted), "nobody has notified");
            r.Notify();
            foreach (var task in crowd)
            {
                Check.Equal(r.Count, await task, "the count");
            }
            using var source = new CancellationTokenSource();
            var cancelled = r.WaitAsync(r.Count, source.Token).AsTask();
            var stays = r.WaitAsync(r.Count).AsTask();
            source.Cancel();
            await Canceled(cancelled);
            await Canceled(r.WaitAsync(r.Count, source.Token).AsTask());
            Check.That(!stays.IsCompleted, "another one's token");
            r.Dispose();
            ErrorKind ended = 0;
            try
            {
                await stays;
            }
            catch (RamwayException e)
            {
                ended = e.Kind;
            }
            Check.Equal(ErrorKind.Detached, ended, "a wait that the end overtook");
            Check.Fails(ErrorKind.Detached, () => r.WaitAsync(0));
            dir.Holds();
        }

        private static async System.Threading.Tasks.Task Canceled(System.Threading.Tasks.Task task)
        {
            try
            {
                await task;
            }
            catch (OperationCanceledException)
            {
                return;
            }
            throw new CheckException("it was not cancelled");
        }

        [Test]
        private static async System.Threading.Tasks.Task AnAsynchronousWaitEndsWhenTheNameGoes()
        {
            using var dir = new Folder();
            using Region r = Region.Create(dir.At("gone"), 8);
            var task = r.WaitAsync(r.Count).AsTask();
            File.Delete(dir.At("gone"));
            try
            {
                await task;
                throw new CheckException("it ended well");
            }
            catch (RamwayException e)
            {
                Check.Equal(ErrorKind.Closed, e.Kind, "how it ended");
            }
        }

        [Test]
        private static void TheHolderOfARegionIsKilled()
        {
            using var dir = new Folder();
            string name = dir.At("region");
            Peer p = Peer.Start("region-count", name);
            Region r = Region.Create(name, 4096);
            p.Expect("ready");
            p.Kill();
            dir.Holds("region");
            r.Notify();
            // Nobody is left but this one.
            r.Dispose();
            dir.Holds();
        }
    }
}
