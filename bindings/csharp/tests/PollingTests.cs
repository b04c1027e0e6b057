using System;
using System.Diagnostics;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>Loops of calls with short time-outs: they learn of every end that one long call learns of.</summary>
    internal static class PollingTests
    {
        /// <summary>0, 20 µs, 1, 5, 50, 99 and 150 ms; and by calls that never wait, which -1 stands for.</summary>
        private static readonly double[] Times = { -1, 0, 0.02, 1, 5, 50, 99, 150 };

        private static TimeSpan Span(double milliseconds) => TimeSpan.FromTicks((long)(milliseconds * 10_000));

        /// <summary>Calls until it is something else than a time-out, which is to happen long before the test is over.</summary>
        private static ErrorKind Poll(Action call)
        {
            var watch = Stopwatch.StartNew();
            for (;;)
            {
                try
                {
                    call();
                }
                catch (RamwayException e) when (e.Kind != ErrorKind.TimedOut)
                {
                    return e.Kind;
                }
                catch (RamwayException)
                {
                }
                Check.That(watch.Elapsed < Wait.Long, "nothing but time-outs for " + watch.Elapsed);
            }
        }

        private static Action Receiving(Receiver rx, double time, int way)
        {
            byte[] buffer = new byte[64];
            switch (time < 0 ? way + 10 : way)
            {
                case 0:
                    return () => rx.Recv(Span(time)).Dispose();
                case 1:
                    return () => rx.RecvBatch(4, Span(time)).Dispose();
                case 2:
                    return () => rx.RecvInto(buffer, out _, Span(time));
                case 10:
                    return () => rx.TryRecv(out _);
                case 11:
                    return () => rx.TryRecvBatch(4, out _);
                default:
                    return () => rx.TryRecvInto(buffer, out _);
            }
        }

        private static Action Sending(Sender tx, double time, int way)
        {
            switch (time < 0 ? way + 10 : way)
            {
                case 0:
                    return () => tx.Send(1, 0, new byte[4000], Span(time));
                case 1:
                    return () => tx.Reserve(4000, Span(time)).Dispose();
                case 2:
                    return () => tx.SendBatch(1, new ReadOnlyMemory<byte>[] { new byte[4000] }, Span(time));
                case 3:
                    return () => tx.SendTensor(ElementType.UInt8, new long[] { 3900 }, new byte[3900], Span(time));
                case 10:
                    return () => tx.TrySend(1, new byte[4000]);
                case 11:
                    return () => tx.TryReserve(4000, out _);
                default:
                    return () => tx.TrySendTensor(ElementType.UInt8, new long[] { 3900 }, new byte[3900]);
            }
        }

        /// <summary>A peer that dies or closes, after which each way of polling learns of it, again and again.</summary>
        private static void Ends(WaitMode mode, bool kill, bool sends, Action<RingEnd, double, ErrorKind> poll)
        {
            ErrorKind expected = kill ? ErrorKind.PeerDead : ErrorKind.Closed;
            foreach (double time in Times)
            {
                using var dir = new Folder();
                var options = new RingOptions { Capacity = 4096, Wait = mode };
                using RingEnd end = sends ? (RingEnd)Sender.Create(dir.At("ring"), options) : Receiver.Create(dir.At("ring"), options);
                using Peer child = Peer.Start("hold", sends ? "consumer" : "producer", dir.At("ring"));
                child.Expect("attached");
                if (sends)
                {
                    ((Sender)end).Send(1, new byte[4000]);
                }
                else
                {
                    child.Tell("send last");
                    child.Expect("done");
                }
                if (kill)
                {
                    child.Kill();
                }
                else
                {
                    child.Tell("close");
                    child.Expect("done");
                }
                if (!sends)
                {
                    // What was committed before the end comes before it, whatever the time-out.
                    using Message last = ((Receiver)end).Recv(TimeSpan.Zero);
                    Check.Equal("last", Encoding.ASCII.GetString(last.Data), "before the end");
                }
                poll(end, time, expected);
            }
        }

        private static void ByWays(RingEnd end, double time, ErrorKind expected)
        {
            for (int way = 0; way < (end is Sender && time >= 0 ? 4 : 3); way++)
            {
                Action call = end is Sender tx ? Sending(tx, time, way) : Receiving((Receiver)end, time, way);
                string what = end.GetType().Name + " polling by " + time + " ms, way " + way;
                Check.Equal(expected, Poll(call), what);
                Check.Equal(expected, Poll(call), what + ", once more");
            }
        }

        [Test(Seconds = 120)]
        private static void ADeathIsLearntByEveryLoopThatReceives() => Ends(WaitMode.Hybrid, true, false, ByWays);

        [Test(Seconds = 120)]
        private static void ADeathIsLearntByEveryLoopThatSends() => Ends(WaitMode.Hybrid, true, true, ByWays);

        [Test(Seconds = 120)]
        private static void ACloseIsLearntByEveryLoopThatReceives() => Ends(WaitMode.Hybrid, false, false, ByWays);

        [Test(Seconds = 120)]
        private static void ACloseIsLearntByEveryLoopThatSends() => Ends(WaitMode.Hybrid, false, true, ByWays);

        [Test(Seconds = 120)]
        private static void ALoopThatSleepsLearnsOfADeath() => Ends(WaitMode.Block, true, false, ByWays);

        /// <summary>A token in place of a time-out: each wait ends long before a round is over.</summary>
        private static void ByTokens(RingEnd end, double time, ErrorKind expected)
        {
            if (time < 1)
            {
                // No source cancels so early.
                return;
            }
            Check.Equal(expected, Poll(() =>
            {
                using var source = new CancellationTokenSource(Span(time));
                try
                {
                    if (end is Sender tx)
                    {
                        tx.Send(1, 0, new byte[4000], null, source.Token);
                    }
                    else
                    {
                        ((Receiver)end).Recv(null, source.Token).Dispose();
                    }
                }
                catch (OperationCanceledException)
                {
                }
            }), "waits that a token ends after " + time + " ms");
            Check.Equal(expected, Poll(() =>
            {
                using var source = new CancellationTokenSource(Span(time));
                try
                {
                    Task wait = end is Sender tx
                        ? tx.SendAsync(1, 0, new byte[4000], source.Token).AsTask()
                        : ((Receiver)end).RecvAsync(source.Token).AsTask();
                    wait.GetAwaiter().GetResult();
                }
                catch (OperationCanceledException)
                {
                }
            }), "asynchronous waits that a token ends after " + time + " ms");
        }

        [Test(Seconds = 120)]
        private static void ADeathIsLearntByLoopsThatATokenEnds()
        {
            foreach (bool sends in new[] { false, true })
            {
                Ends(WaitMode.Hybrid, true, sends, ByTokens);
            }
        }

        [Test]
        private static void ALivePeerIsNeverTakenForADeadOne()
        {
            using var dir = new Folder();
            using Receiver rx = Receiver.Create(dir.At("ring"));
            using Peer child = Peer.Start("hold", "producer", dir.At("ring"));
            child.Expect("attached");
            var watch = Stopwatch.StartNew();
            while (watch.ElapsedMilliseconds < 700)
            {
                Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.FromMilliseconds(5)).Dispose());
            }
            child.Kill();
            Check.Equal(ErrorKind.PeerDead, Poll(() => rx.Recv(TimeSpan.FromMilliseconds(5)).Dispose()), "after that");
            // A successor ends it.
            using Peer next = Peer.Start("hold", "producer", dir.At("ring"));
            next.Expect("attached");
            Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.FromMilliseconds(5)).Dispose());
            next.Tell("send again");
            next.Expect("done");
            Check.Equal("again", RingHelpers.Receive(rx), "of the successor");
        }

        /// <summary>A bus's peer, in a process of its own.</summary>
        [Helper("bus-peer")]
        private static void BusPeer(string[] args)
        {
            using Bus bus = Bus.Connect(args[0]);
            Peer.Say("connected");
            Peer.Told();
        }

        [Test]
        private static void LoopsOnABusLearnOfADeath()
        {
            foreach (double time in new[] { 0, 0.02, 1, 50, 150 })
            {
                using var dir = new Folder();
                using Listener listener = Listener.Bind(dir.At("bell"), new ListenOptions { Capacity = 4096 });
                using Peer child = Peer.Start("bus-peer", listener.Path);
                using Bus bus = listener.Accept(Wait.Long);
                child.Expect("connected");
                bus.Sender.Send(1, new byte[4000]);
                child.Kill();
                Check.Equal(ErrorKind.PeerDead, Poll(Receiving(bus.Receiver, time, 0)), "receiving");
                Check.Equal(ErrorKind.PeerDead, Poll(Sending(bus.Sender, time, 0)), "sending");
            }
        }

        [Test]
        private static void ACloseWithAMessageKeptTellsTheSenderAtOnce()
        {
            foreach (string kept in new[] { "message", "memory", "pinned" })
            {
                using var dir = new Folder();
                using Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Capacity = 4096 });
                Receiver rx = Receiver.Open(dir.At("ring"));
                tx.Send(1, Encoding.ASCII.GetBytes("kept"));
                tx.Send(1, new byte[3900]);
                var waiting = new Beside(() => tx.Send(1, new byte[3900]));
                Thread.Sleep(20);
                Action release;
                Func<string> look;
                switch (kept)
                {
                    case "memory":
                    case "pinned":
                        OwnedMessage owned = rx.RecvMemory();
                        System.Buffers.MemoryHandle pin = kept == "pinned" ? owned.Pin() : default;
                        look = () => Encoding.ASCII.GetString(owned.Memory.Span);
                        release = () =>
                        {
                            owned.Dispose();
                            pin.Dispose();
                        };
                        break;
                    default:
                        MessageLease lease = rx.RecvAsync().GetAwaiter().GetResult();
                        look = () => Encoding.ASCII.GetString(lease.Data);
                        release = () => lease.Dispose();
                        break;
                }
                rx.Dispose();
                Check.Equal(ErrorKind.Closed, waiting.Kind(), "a sender that waits for room, " + kept);
                Check.That(!tx.PeerAlive, "closed is not alive");
                Check.Equal("kept", look(), "what is kept");
                // The role and the frame stay with what is kept.
                Check.Fails(ErrorKind.Busy, () => Receiver.Open(dir.At("ring")));
                Check.Equal(32L + 3920, tx.PendingBytes, "what is not released");
                release();
                using (Receiver next = Receiver.Open(dir.At("ring")))
                {
                    Check.Equal(3900, next.Recv(Wait.Long).Length, "the next receiver begins after what was released");
                }
            }
        }

        [Test]
        private static void ABusTellsAtOnceThatItIsClosedWithAMessageKept()
        {
            using var dir = new Folder();
            using Listener listener = Listener.Bind(dir.At("bell"), new ListenOptions { Capacity = 4096 });
            Task<Bus> connecting = Bus.ConnectAsync(listener.Path);
            using Bus ours = listener.Accept(Wait.Long);
            Bus theirs = connecting.GetAwaiter().GetResult();
            ours.Sender.Send(1, new byte[4000]);
            OwnedMessage kept = theirs.Receiver.RecvMemory();
            var waiting = new Beside(() => ours.Sender.Send(1, new byte[4000]));
            Thread.Sleep(20);
            theirs.Dispose();
            Check.Equal(ErrorKind.Closed, waiting.Kind(), "a sender that waits for room");
            Check.Equal(4000, kept.Memory.Span.Length, "what is kept");
            kept.Dispose();
        }

        [Test]
        private static void DisposeEndsAWaitOfANamedRing()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                using var dir = new Folder();
                Receiver rx = Receiver.Create(dir.At("ring"), new RingOptions { Capacity = 4096, Wait = mode });
                Sender tx = Sender.Open(dir.At("ring"), new RingOptions { Wait = mode });
                var receiving = new Beside(() => rx.Recv().Dispose());
                Thread.Sleep(20);
                rx.Dispose();
                Check.Equal(ErrorKind.Detached, receiving.Kind(), "a receive, " + mode);
                rx = Receiver.Open(dir.At("ring"), new RingOptions { Wait = mode });
                tx.Send(1, new byte[4000]);
                var sending = new Beside(() => tx.Send(1, new byte[4000]));
                Thread.Sleep(20);
                tx.Dispose();
                Check.Equal(ErrorKind.Detached, sending.Kind(), "a send, " + mode);
                rx.Recv(Wait.Long).Dispose();
                tx = Sender.Open(dir.At("ring"));
                Task pending = rx.WaitToReadAsync().AsTask();
                rx.Dispose();
                Check.Fails(ErrorKind.Detached, () => pending.GetAwaiter().GetResult());
                tx.Dispose();
            }
        }
    }
}
