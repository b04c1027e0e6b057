using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;

namespace Ramway.Tests
{
    internal static class WaitTests
    {
        /// <summary>
        /// Fails if most took as long as a wait that nobody woke, which looks again after 100 ms. On a machine with other work
        /// some do.
        /// </summary>
        internal static void Prompt(string what, List<TimeSpan> took)
        {
            took.Sort();
            TimeSpan quick = took[took.Count / 4];
            Console.WriteLine("     " + what + ": median " + took[took.Count / 2].TotalMilliseconds + " ms, longest " +
                took[took.Count - 1].TotalMilliseconds + " ms");
            Check.That(quick < TimeSpan.FromMilliseconds(80), what + ": three in four took more than " + quick);
        }

        [Test]
        private static void ATokenEndsAWaitAtOnce()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096, Wait = mode });
                tx.Send(1, new byte[4080]);
                var took = new List<TimeSpan>();
                for (int i = 0; i < 60; i++)
                {
                    using var source = new CancellationTokenSource();
                    long called = 0;
                    var other = new Beside(() =>
                    {
                        Thread.Sleep(TimeSpan.FromMilliseconds(i % 7));
                        called = Stopwatch.GetTimestamp();
                        source.Cancel();
                    });
                    Check.Throws<OperationCanceledException>(() => tx.Send(1, 0, new byte[1], null, source.Token));
                    took.Add(TimeSpan.FromTicks((Stopwatch.GetTimestamp() - called) / 100));
                    other.End();
                    // A token that is cancelled already, where there is something to wait for, and where there is not.
                    Check.Throws<OperationCanceledException>(() => tx.Send(1, 0, new byte[1], null, source.Token));
                    rx.Recv(null, source.Token).Dispose();
                    Check.Throws<OperationCanceledException>(() => rx.Recv(null, source.Token).Dispose());
                    tx.Send(1, 0, new byte[4080], null, source.Token);
                }
                Prompt("cancelled sends, " + mode, took);
                tx.Dispose();
                rx.Dispose();
            }
        }

        [Test]
        private static void TimeOutsLastAsLongAsTold()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096, Wait = mode });
                tx.Send(1, new byte[4080]);
                var took = new List<TimeSpan>();
                for (int i = 0; i < 40; i++)
                {
                    var after = TimeSpan.FromMilliseconds(i * 0.2);
                    var watch = Stopwatch.StartNew();
                    Check.Fails(ErrorKind.TimedOut, () => tx.Send(1, 0, default, after));
                    took.Add(watch.Elapsed - after);
                }
                Check.That(took.Min() >= TimeSpan.Zero, "no wait is shorter than was told: " + took.Min());
                Prompt("time-outs, " + mode, took);
                rx.Recv().Dispose();
                var two = Stopwatch.StartNew();
                Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.FromMilliseconds(250)).Dispose());
                Check.That(two.ElapsedMilliseconds >= 250, "over more than one round");
                Check.Fails(ErrorKind.InvalidArgument, () => rx.Recv(TimeSpan.FromMilliseconds(-5)).Dispose());
                tx.Send(1, default);
                rx.Recv(TimeSpan.Zero).Dispose();
                Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.Zero).Dispose());
                tx.Send(1, default);
                rx.Recv(TimeSpan.MaxValue).Dispose();
                tx.Dispose();
                rx.Dispose();
            }
        }

        [Test]
        private static void DisposeEndsAWait()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                var took = new List<TimeSpan>();
                for (int i = 0; i < 60; i++)
                {
                    var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096, Wait = mode });
                    tx.Send(1, new byte[4080]);
                    var sending = new Beside(() => tx.Send(1, default));
                    Thread.Sleep(TimeSpan.FromMilliseconds(i % 4));
                    var watch = Stopwatch.StartNew();
                    tx.Dispose();
                    took.Add(watch.Elapsed);
                    // The call may have come after the close, or be the one that it interrupted.
                    Check.Equal(ErrorKind.Detached, sending.Kind(), "a send that was interrupted");
                    rx.Recv().Dispose();
                    Check.Fails(ErrorKind.Closed, () => rx.Recv().Dispose());
                    rx.Dispose();

                    (tx, rx) = Ring.Pair(new RingOptions { Wait = mode });
                    var receiving = new Beside(() => rx.Recv().Dispose());
                    Thread.Sleep(TimeSpan.FromMilliseconds(i % 4));
                    watch.Restart();
                    rx.Dispose();
                    took.Add(watch.Elapsed);
                    Check.Equal(ErrorKind.Detached, receiving.Kind(), "a receive that was interrupted");
                    Check.Fails(ErrorKind.Closed, () => tx.Send(1, default));
                    tx.Dispose();
                }
                Prompt("closes of a handle that waits, " + mode, took);
            }
        }

        [Test]
        private static void DisposeInTheMiddleOfAStream()
        {
            for (int i = 0; i < 150; i++)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
                var sending = new Beside(() =>
                {
                    for (ulong seq = 0; ; seq++)
                    {
                        tx.Send(1, seq, new byte[100]);
                    }
                });
                var receiving = new Beside(() =>
                {
                    for (ulong next = 0; ; next++)
                    {
                        using Message m = rx.Recv();
                        Check.That(m.Tag == next && m.Length == 100, "message " + m.Tag + " in the place of " + next);
                    }
                });
                Thread.Sleep(i % 3);
                RingEnd first = i % 2 == 0 ? (RingEnd)tx : rx, second = i % 2 == 0 ? (RingEnd)rx : tx;
                first.Dispose();
                ErrorKind kind = (i % 2 == 0 ? sending : receiving).Kind();
                Check.Equal(ErrorKind.Detached, kind, "the one that was closed");
                kind = (i % 2 == 0 ? receiving : sending).Kind();
                Check.Equal(ErrorKind.Closed, kind, "its peer");
                second.Dispose();
            }
        }

        [Test]
        private static void DisposeBesideCallsThatBegin()
        {
            for (int round = 0; round < 300; round++)
            {
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096 });
                var sending = new Beside(() =>
                {
                    for (;;)
                    {
                        tx.SendBatch(1, new ReadOnlyMemory<byte>[] { default, new byte[1] });
                        tx.Reserve(3).Dispose();
                    }
                });
                var receiving = new Beside(() =>
                {
                    for (;;)
                    {
                        rx.RecvBatch(3).Dispose();
                    }
                });
                Thread.SpinWait(round * 50);
                tx.Dispose();
                rx.Dispose();
                foreach (ErrorKind kind in new[] { sending.Kind(), receiving.Kind() })
                {
                    Check.That(kind == ErrorKind.Detached || kind == ErrorKind.Closed, "ended with " + kind);
                }
            }
        }

        [Test]
        private static void TwoThreadsAtOnce()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096, Wait = WaitMode.Block });
            tx.Send(1, new byte[4080]);
            var waiting = new Beside(() => tx.Send(1, default));
            Wait.Until("the other thread waits", () => HostileTests.Waits(rx));
            foreach (Action call in new Action[]
            {
                () => tx.Send(1, default), () => tx.TrySend(1, default), () => tx.Reserve(1), () => tx.Flush(),
                () => Console.Write(tx.PendingBytes), () => Console.Write(tx.LastTag), () => tx.WaitMode = WaitMode.Spin,
            })
            {
                Check.Throws<InvalidOperationException>(call);
            }
            Check.That(tx.PeerAlive && tx.PeerEpoch == 1, "what may be asked from any thread");
            rx.Recv().Dispose();
            Check.Equal(null, waiting.End(), "the one that waited");
            rx.Recv().Dispose();
            waiting = new Beside(() => rx.Recv().Dispose());
            Wait.Until("the other thread waits", () => HostileTests.Waits(tx));
            Check.Throws<InvalidOperationException>(() => rx.Recv().Dispose());
            Check.Throws<InvalidOperationException>(() => rx.TryRecvBatch(1, out _));
            tx.Dispose();
            Check.Equal(ErrorKind.Closed, waiting.Kind(), "the one that waited");
            rx.Dispose();
        }

        [Test]
        private static void DisposeWaitsForWhatIsOut()
        {
            using var dir = new Folder();
            Sender tx = Sender.Create(dir.At("ring"));
            Receiver rx = Receiver.Open(dir.At("ring"));
            tx.Send(1, Encoding.ASCII.GetBytes("kept"));
            Message m = rx.Recv();
            rx.Dispose();
            rx.Dispose();
            Check.Equal("kept", RingHelpers.Text(m), "what is out");
            Check.That(!tx.PeerAlive, "the sender is told at once");
            Check.Fails(ErrorKind.Busy, () => Receiver.Open(dir.At("ring")), "receiver already");
            Check.Fails(ErrorKind.Detached, () => rx.Recv().Dispose());
            m.Dispose();
            Check.That(!tx.PeerAlive && tx.PendingBytes == 0, "the release finishes the close");
            m.Dispose();

            Slot slot = tx.Reserve(10);
            tx.Dispose();
            Check.Fails(ErrorKind.Detached, () => tx.Send(1, default));
            Encoding.ASCII.GetBytes("last words").CopyTo(slot.Data);
            slot.Commit(2);
            rx = Receiver.Open(dir.At("ring"));
            Batch batch = rx.RecvBatch(8);
            rx.Dispose();
            Check.Equal("last words", RingHelpers.Text(batch[0]), "what was committed after Dispose");
            batch.Dispose();
            rx = Receiver.Open(dir.At("ring"));
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
            rx.Dispose();
            dir.Holds();
        }

        [Test]
        private static void AForgottenHandleLetsItsRoleGo()
        {
            using var dir = new Folder();
            using Receiver rx = Receiver.Create(dir.At("ring"), new RingOptions { Wait = WaitMode.Block });
            Forget(dir.At("ring"));
            // Closed, not dead: like a dropped handle of the Rust core.
            string? got = null;
            var reading = new Beside(() =>
            {
                foreach (Message m in rx.ReadAll())
                {
                    got += RingHelpers.Text(m);
                }
            });
            Wait.Until("it is collected", () =>
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                return !rx.PeerAlive;
            });
            Check.Equal(null, reading.End(), "the reader");
            Check.Equal("last", got, "what was committed and not flushed");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Forget(string name)
        {
            Sender tx = Sender.Open(name);
            Slot slot = tx.Reserve(4);
            Encoding.ASCII.GetBytes("last").CopyTo(slot.Data);
            slot.CommitUnflushed(1);
            tx.Reserve(4);
        }

        [Test]
        private static void AForgottenMessageKeepsItsBytes()
        {
            var bytes = KeepBytes(out WeakReference forgotten);
            Wait.Until("the receiver is collected", () =>
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                return !forgotten.IsAlive;
            });
            // Read by a Span that outlived everything: stale is all that it may be.
            Check.Equal(42, bytes[0], "the byte");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static ReadOnlySpan<byte> KeepBytes(out WeakReference forgotten)
        {
            var (tx, rx) = Ring.Pair();
            tx.Send(1, new byte[] { 42 });
            forgotten = new WeakReference(rx);
            return rx.Recv().Data;
        }

        [Test]
        private static void AnInterruptedThreadLeavesTheHandleUsable()
        {
            var (tx, rx) = Ring.Pair(new RingOptions { Wait = WaitMode.Block });
            using (tx)
            using (rx)
            {
                Exception? ended = null;
                Thread thread = RingHelpers.Beside(() => rx.Recv().Dispose(), e => ended = e);
                Wait.Until("it waits", () => HostileTests.Waits(tx));
                thread.Interrupt();
                Thread.Sleep(20);
                tx.Send(1, default);
                Check.That(thread.Join(Wait.Long), "it goes on");
                // .NET interrupts a thread where it waits for .NET's own things, which a system call is none of.
                Check.That(ended == null || ended is ThreadInterruptedException, "ended with " + ended);
                tx.Send(1, default);
                rx.Recv(Wait.Long).Dispose();
            }
        }
    }
}
