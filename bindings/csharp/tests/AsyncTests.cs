using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    internal static class AsyncTests
    {
        /// <summary>By the poller, and by a thread for each wait.</summary>
        private static async Task Both(Func<Task> test)
        {
            await test();
            bool before = Poller.Refused;
            Poller.Refused = true;
            try
            {
                await test();
            }
            finally
            {
                Poller.Refused = before;
            }
        }

        [Test]
        private static Task StreamsEachWay() => Both(async () =>
        {
            using var dir = new Folder();
            using Sender tx = Sender.Create(dir.At("out"), new RingOptions { Capacity = 4096 });
            using Receiver rx = Receiver.Create(dir.At("in"), new RingOptions { Capacity = 4096 });
            Peer child = Peer.Start("echo", dir.At("out"), dir.At("in"), "Hybrid");
            const int count = 20_000;
            Task sending = Task.Run(async () =>
            {
                byte[] bytes = new byte[8];
                for (int i = 0; i < count; i++)
                {
                    BinaryPrimitives.WriteInt32LittleEndian(bytes, i);
                    await tx.SendAsync(2, (ulong)i, bytes.AsMemory(0, 4 + i % 5));
                }
                tx.Dispose();
            });
            int next = 0;
            await foreach (MessageLease m in rx.ReadAllAsync())
            {
                Check.That(m.Tag == (ulong)next && m.TypeId == 2 && m.Length == 4 + next % 5, "message " + next);
                Check.Equal(next, BinaryPrimitives.ReadInt32LittleEndian(m.Memory.Span), "its bytes");
                next++;
            }
            await sending;
            Check.Equal(count, next, "messages");
            child.Finish();
        });

        [Test]
        private static Task AWaitHoldsNoThread() => Both(async () =>
        {
            const int count = 300;
            bool threads = Poller.Refused;
            var rings = Enumerable.Range(0, count).Select(_ => Ring.Pair(new RingOptions { Capacity = 4096 })).ToArray();
            Task<bool>[] waits = rings.Select(r => r.Receiver.WaitToReadAsync().AsTask()).ToArray();
            await Task.Delay(250);
            int running = Process.GetCurrentProcess().Threads.Count;
            Check.That(threads || running < 100, running + " threads for " + count + " waits");
            Check.That(waits.All(w => !w.IsCompleted), "nothing has come");
            for (int i = 0; i < count; i += 2)
            {
                rings[i].Sender.Send(1, default);
            }
            for (int i = 0; i < count; i++)
            {
                if (i % 2 == 1)
                {
                    rings[i].Sender.Dispose();
                }
                Check.Equal(i % 2 == 0, await waits[i], "true for a message, false for the end");
                Check.Equal(i % 2 == 0, await rings[i].Receiver.WaitToReadAsync(), "and again");
                rings[i].Sender.Dispose();
                rings[i].Receiver.Dispose();
            }
        });

        [Test]
        private static Task ATokenEndsAWaitAtOnce() => Both(async () =>
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
            var took = new List<TimeSpan>();
            for (int i = 0; i < 60; i++)
            {
                using var source = new CancellationTokenSource();
                ValueTask<bool> wait = rx.WaitToReadAsync(source.Token);
                await Task.Delay(i % 4);
                Check.That(!wait.IsCompleted, "it waits");
                Check.Throws<InvalidOperationException>(() => rx.TryRecv(out _));
                var watch = Stopwatch.StartNew();
                source.Cancel();
                try
                {
                    await wait;
                    throw new CheckException("a cancelled wait ended well");
                }
                catch (OperationCanceledException e)
                {
                    Check.Equal(source.Token, e.CancellationToken, "the token");
                }
                took.Add(watch.Elapsed);
                await Cancelled(rx.WaitToReadAsync(source.Token).AsTask());
                await Cancelled(rx.RecvAsync(source.Token).AsTask());
                tx.Send(1, new byte[4080]);
                await Cancelled(tx.SendAsync(1, 0, new byte[1], source.Token).AsTask());
                Check.That(await rx.WaitToReadAsync(source.Token), "what is there is said to be");
                (await rx.RecvAsync(source.Token)).Dispose();
            }
            WaitTests.Prompt("cancelled waits", took);
            tx.Dispose();
            rx.Dispose();
        });

        private static async Task Cancelled(Task task)
        {
            try
            {
                await task;
            }
            catch (OperationCanceledException)
            {
                return;
            }
            throw new CheckException("a cancelled wait ended well");
        }

        [Test]
        private static Task DisposeEndsAWait() => Both(async () =>
        {
            for (int i = 0; i < 50; i++)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
                tx.Send(1, new byte[4080]);
                Task sending = tx.SendAsync(1, new byte[1]).AsTask();
                if (i % 2 == 0)
                {
                    await Task.Delay(i % 3);
                }
                tx.Dispose();
                Check.Equal(ErrorKind.Detached, await KindOf(sending), "a send that waits");
                rx.Recv().Dispose();
                Check.That(!await rx.WaitToReadAsync(), "the end");
                rx.Dispose();
                Check.Equal(ErrorKind.Detached, await KindOf(rx.WaitToReadAsync().AsTask()), "of a closed handle");

                (tx, rx) = Ring.Pair();
                Task reading = Drain(rx);
                await Task.Delay(i % 3);
                rx.Dispose();
                Check.Equal(ErrorKind.Detached, await KindOf(reading), "a loop that waits");
                Check.Equal(ErrorKind.Closed, await KindOf(tx.SendAsync(1, default).AsTask()), "its peer");
                tx.Dispose();
            }
        });

        private static async Task<ErrorKind> KindOf(Task task)
        {
            try
            {
                await task;
                return 0;
            }
            catch (RamwayException e)
            {
                return e.Kind;
            }
        }

        private static async Task Drain(Receiver rx)
        {
            await foreach (MessageLease m in rx.ReadAllAsync())
            {
                Check.That(m.Length >= 0, "a message");
            }
        }

        [Test]
        private static Task ADeathIsLearnt() => Both(async () =>
        {
            using var dir = new Folder();
            using Receiver rx = Receiver.Create(dir.At("ring"));
            Peer child = Peer.Start("hold", "producer", dir.At("ring"));
            child.Expect("attached");
            child.Tell("send one");
            Task reading = Drain(rx);
            child.Expect("done");
            await Task.Delay(50);
            RingHelpers.Stop(child);
            await Task.Delay(300);
            Check.That(!reading.IsCompleted, "a stopped process is alive");
            var watch = Stopwatch.StartNew();
            child.Kill();
            Check.Equal(ErrorKind.PeerDead, await KindOf(reading), "the loop");
            Check.That(watch.ElapsedMilliseconds < 5000, "learnt after " + watch.Elapsed);
        });

        [Test]
        private static async Task Leases()
        {
            var (tx, rx) = Ring.Pair();
            using (tx)
            using (rx)
            {
                tx.Send(7, 8, new byte[] { 1, 2, 3 });
                tx.Send(7, new byte[] { 4 });
                MessageLease first = await rx.RecvAsync();
                ReadOnlyMemory<byte> memory = first.Memory;
                Check.Equal(ErrorKind.Busy, await KindOf(rx.RecvAsync().AsTask()), "one is out");
                Check.Equal(ErrorKind.Busy, await KindOf(rx.WaitToReadAsync().AsTask()), "one is out");
                await Task.Run(() =>
                {
                    // On another thread.
                    Check.That(first.TypeId == 7 && first.Tag == 8 && first.Length == 3 && first.Info.Length == 3, "what it is");
                    Check.Same(new byte[] { 1, 2, 3 }, memory.Span, "its bytes");
                    first.Dispose();
                });
                Check.Throws<ObjectDisposedException>(() => first.Data.ToArray());
                Check.Throws<ObjectDisposedException>(() => memory.Span.ToArray());
                Check.Throws<ObjectDisposedException>(() => default(MessageLease).ToArray());
                await foreach (MessageLease m in rx.ReadAllAsync())
                {
                    Check.Equal(4, m.Data[0], "the next one");
                    Check.Throws<ObjectDisposedException>(() => first.Data.ToArray());
                    m.Dispose();
                    break;
                }
                Check.That(!rx.TryRecv(out _), "released once");
                // Left by an exception, a loop releases all the same.
                tx.Send(1, default);
                tx.Send(1, default);
                Check.Equal(ErrorKind.Full, await KindOf(Break(rx)), "the body's own");
                rx.Recv().Dispose();
            }
        }

        private static async Task Break(Receiver rx)
        {
            await foreach (MessageLease _ in rx.ReadAllAsync())
            {
                throw Errors.Fail(ErrorKind.Full, null);
            }
        }

        [Test]
        private static Task RoundTripsThatSleep() => Both(async () =>
        {
            var (there, echoIn) = Ring.Pair(new RingOptions { Wait = WaitMode.Block });
            var (echoOut, back) = Ring.Pair(new RingOptions { Wait = WaitMode.Block });
            Task echo = Task.Run(async () =>
            {
                await foreach (MessageLease m in echoIn.ReadAllAsync())
                {
                    await echoOut.SendAsync(m.TypeId, m.Tag, m.Memory);
                }
                echoOut.Dispose();
            });
            int slow = 0;
            for (int i = 0; i < 3000; i++)
            {
                var watch = Stopwatch.StartNew();
                there.Send(1, (ulong)i, new byte[8]);
                using MessageLease m = await back.RecvAsync();
                Check.Equal((ulong)i, m.Tag, "the answer");
                slow += watch.ElapsedMilliseconds > 50 ? 1 : 0;
            }
            Check.That(slow <= 10, slow + " round trips took more than 50 ms");
            there.Dispose();
            await echo;
            Check.That(!await back.WaitToReadAsync(), "the end");
        });
    }
}
