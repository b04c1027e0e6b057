using System;
using System.Diagnostics;
using System.IO;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>Peers that close, die, stop and come back, in processes of their own.</summary>
    internal static class DeathTests
    {
        [Test]
        private static void Endings()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            using Receiver rx = Receiver.Create(name);
            Check.That(!rx.PeerAlive && rx.PeerEpoch == 0 && rx.Epoch == 1, "a peer that never came");
            Check.That(!rx.TryRecv(out _), "nothing yet");

            // Killed: what it committed comes, what it had not flushed does not, then PeerDead, again and again.
            Peer child = Peer.Start("hold", "producer", name);
            child.Expect("attached");
            foreach (string line in new[] { "send one", "send two", "unflushed three" })
            {
                child.Tell(line);
                child.Expect("done");
            }
            // A stopped process is alive.
            RingHelpers.Stop(child);
            Check.Equal("one", RingHelpers.Receive(rx), "of a stopped sender");
            Check.Equal("two", RingHelpers.Receive(rx), "of a stopped sender");
            Check.Fails(ErrorKind.TimedOut, () => rx.Recv(TimeSpan.FromMilliseconds(450)).Dispose());
            Check.That(rx.PeerAlive, "a stopped process is alive");
            child.Kill();
            var watch = Stopwatch.StartNew();
            for (int i = 0; i < 3; i++)
            {
                Check.Fails(ErrorKind.PeerDead, () => rx.Recv(Wait.Long).Dispose());
                Check.Fails(ErrorKind.PeerDead, () => rx.TryRecv(out _));
                Check.Fails(ErrorKind.PeerDead, () => rx.WaitToReadAsync().AsTask().GetAwaiter().GetResult());
            }
            Check.That(watch.ElapsedMilliseconds < 20_000, "nine times PeerDead took " + watch.Elapsed);

            // A successor ends that; its orderly close is delivered.
            child = Peer.Start("hold", "producer", name);
            child.Expect("attached");
            Check.That(rx.PeerEpoch == 2 && rx.PeerAlive, "a successor");
            Check.That(!rx.TryRecv(out _), "nothing of it yet");
            foreach (string line in new[] { "unflushed four", "flush", "unflushed five", "close" })
            {
                child.Tell(line);
                child.Expect("done");
            }
            Check.Equal("four", RingHelpers.Receive(rx), "of the successor");
            Check.Equal("five", RingHelpers.Receive(rx), "flushed by its close");
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
            Check.That(!rx.WaitToReadAsync().AsTask().GetAwaiter().GetResult(), "nothing to read any more");
            child.Finish();
            rx.Dispose();
            dir.Holds();
        }

        [Test]
        private static void ACloseIsDeliveredOnce()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            using (Sender tx = Sender.Create(name))
            {
                tx.Send(1, 5, new byte[] { (byte)'x' });
            }
            // Undelivered, and an unseen end: both wait for the next receiver.
            dir.Holds("ring");
            using (Receiver rx = Receiver.Open(name))
            {
                Check.Equal("x", RingHelpers.Receive(rx), "of a sender that is gone");
                Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
                using Sender holds = Sender.Open(name);
                Check.Equal((ulong?)5, holds.LastTag, "a successor knows the last tag");
                holds.Abandon();
            }
            dir.Holds();
        }

        [Test]
        private static void AnAbandonedStreamIsNoWholeOne()
        {
            using var dir = new Folder();
            using Receiver rx = Receiver.Create(dir.At("ring"));
            Peer child = Peer.Start("hold", "producer", dir.At("ring"));
            child.Expect("attached");
            foreach (string line in new[] { "unflushed one", "reserve four", "abandon" })
            {
                child.Tell(line);
                child.Expect("done");
            }
            Check.Equal("one", RingHelpers.Receive(rx), "what was committed");
            Check.Fails(ErrorKind.PeerDead, () => rx.Recv(Wait.Long).Dispose());
            child.Finish();
        }

        [Test]
        private static void ANewReceiverGoesOnWhereTheLastOneWasKilled()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            using Sender tx = Sender.Create(name, new RingOptions { Capacity = 4096 });
            foreach (string word in new[] { "a", "b", "c" })
            {
                tx.Send(1, System.Text.Encoding.ASCII.GetBytes(word));
            }
            Peer child = Peer.Start("hold", "consumer", name);
            child.Expect("attached");
            child.Tell("recv");
            child.Expect("a");
            child.Tell("keep");
            child.Expect("b");
            child.Kill();
            tx.Send(1, System.Text.Encoding.ASCII.GetBytes("d")); // what fits, succeeds
            Check.Fails(ErrorKind.PeerDead, () => Fill(tx));
            using (Receiver rx = Receiver.Open(name, new RingOptions { Timeout = Wait.Long }))
            {
                Check.Equal(2u, rx.Epoch, "its epoch");
                foreach (string word in new[] { "b", "c", "d" })
                {
                    Check.Equal(word, RingHelpers.Receive(rx), "what was not released");
                }
            }
            Check.Fails(ErrorKind.Closed, () => Fill(tx));
        }

        private static void Fill(Sender tx)
        {
            for (;;)
            {
                tx.Send(1, 0, new byte[1000], Wait.Long);
            }
        }

        [Test]
        private static void ADeathIsLearntInTheMiddleOfAWait()
        {
            foreach (bool sends in new[] { false, true })
            {
                foreach (WaitMode mode in RingHelpers.Modes)
                {
                    using var dir = new Folder();
                    var options = new RingOptions { Wait = mode, Capacity = 4096 };
                    using RingEnd end = sends ? (RingEnd)Sender.Create(dir.At("ring"), options) : Receiver.Create(dir.At("ring"), options);
                    Peer child = Peer.Start("hold", sends ? "consumer" : "producer", dir.At("ring"));
                    child.Expect("attached");
                    Action wait = sends ? (Action)(() => Fill((Sender)end)) : () => ((Receiver)end).Recv(Wait.Long).Dispose();
                    var waiting = new Beside(wait);
                    Thread.Sleep(150);
                    var watch = Stopwatch.StartNew();
                    child.Kill();
                    Check.Equal(ErrorKind.PeerDead, waiting.Kind(), "the one that waited");
                    // And some for a machine with other work.
                    Check.That(watch.ElapsedMilliseconds < 5000, mode + " learnt it after " + watch.Elapsed);
                }
            }
        }

        [Test]
        private static void ANameThatVanishes()
        {
            using var dir = new Folder();
            using Receiver rx = Receiver.Create(dir.At("ring"), new RingOptions { Wait = WaitMode.Block });
            File.Delete(dir.At("ring"));
            Check.Fails(ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose(), "name was removed");
        }

        [Test(Seconds = 120)]
        private static void KilledAtAnyMomentNothingIsLostOrTorn()
        {
            using var dir = new Folder();
            using Receiver rx = Receiver.Create(dir.At("ring"), new RingOptions { Capacity = 1 << 16 });
            var random = new Random(7);
            int next = 0;
            for (int round = 0; round < 15; round++)
            {
                Peer child = Peer.Start("numbers", dir.At("ring"));
                child.Expect("attached");
                long end = Stopwatch.GetTimestamp() + random.Next(12_000_000);
                bool killed = false;
                for (;;)
                {
                    if (!killed && Stopwatch.GetTimestamp() > end)
                    {
                        child.Kill();
                        killed = true;
                    }
                    try
                    {
                        using Message m = rx.Recv(Wait.Long);
                        Check.Equal(next + 1, (int)(uint)m.Tag, "the number in the tag");
                        Mixed.Verify(m, next++, 300);
                    }
                    catch (RamwayException e) when (e.Kind == ErrorKind.PeerDead && killed)
                    {
                        break;
                    }
                }
            }
            Check.That(next > 1000, "messages of killed senders: " + next);
        }

        [Test(Seconds = 120)]
        private static void AReceiverKilledAtAnyMomentLosesNothing()
        {
            using var dir = new Folder();
            using Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Capacity = 4096 });
            var random = new Random(8);
            int sent = 0;
            for (int round = 0; round < 15; round++)
            {
                Peer child = Peer.Start("follow", dir.At("ring"));
                child.Expect("attached");
                long end = Stopwatch.GetTimestamp() + random.Next(10_000_000);
                while (Stopwatch.GetTimestamp() < end)
                {
                    // A full ring is what a receiver that found something wrong, and ended, looks like.
                    Mixed.Send(tx, sent, 300, true);
                    sent++;
                }
                child.Kill();
            }
            using Receiver rx = Receiver.Open(dir.At("ring"), new RingOptions { Timeout = Wait.Long });
            int left = 0;
            while (rx.TryRecv(out Message m))
            {
                if (left++ == 0)
                {
                    // At most what the ring holds is left.
                    Check.That(sent - (int)(uint)m.Tag < 4096 / 16, "the first that is left is " + (uint)m.Tag + " of " + sent);
                }
                sent = Math.Max(sent, (int)(uint)m.Tag);
                Mixed.Verify(m, (int)(uint)m.Tag - 1, 300);
                m.Dispose();
            }
        }

        /// <summary>NAME: receives numbers and checks that none is missing.</summary>
        [Helper("follow")]
        private static void Follow(string[] args)
        {
            using Receiver rx = Receiver.Open(args[0], new RingOptions { Timeout = Wait.Long });
            Peer.Say("attached");
            int next = -1;
            foreach (Message m in rx.ReadAll())
            {
                int seq = (int)(uint)m.Tag - 1;
                Check.That(next < 0 || seq == next, "message " + seq + " in the place of " + next);
                Mixed.Verify(m, seq, 300);
                next = seq + 1;
            }
        }

        [Test]
        private static void ASlowPeerIsNoDeadOne()
        {
            using var dir = new Folder();
            using Sender tx = Sender.Create(dir.At("ring"), new RingOptions { Capacity = 4096 });
            Peer child = Peer.Start("slow", dir.At("ring"));
            child.Expect("attached");
            for (int i = 0; i < 4; i++)
            {
                tx.Send(1, (ulong)i, new byte[4080], Wait.Long);
            }
            // A process that does not run at all keeps its messages waiting, and nothing else.
            RingHelpers.Stop(child);
            Check.Fails(ErrorKind.TimedOut, () => tx.Send(1, 9, new byte[4080], TimeSpan.FromMilliseconds(300)));
            RingHelpers.Continue(child);
            tx.Send(1, 4, new byte[4080], Wait.Long);
            tx.Dispose();
            child.Finish();
        }

        /// <summary>NAME: takes 0.4 s for a message.</summary>
        [Helper("slow")]
        private static void Slow(string[] args)
        {
            using Receiver rx = Receiver.Open(args[0]);
            Peer.Say("attached");
            ulong next = 0;
            foreach (Message m in rx.ReadAll())
            {
                Check.Equal(next++, m.Tag, "the order");
                Thread.Sleep(400);
            }
            Check.Equal(5ul, next, "messages");
        }
    }
}
