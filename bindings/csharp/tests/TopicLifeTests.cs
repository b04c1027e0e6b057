using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Text;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>Labels, durable cursors, ejection, slots, deaths, and what stays of a topic.</summary>
    internal static class TopicLifeTests
    {
        private static TopicOptions Durable(string label) => new TopicOptions { Label = label, Durable = true };

        [Test]
        private static void LabelsAndDurableCursors()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            Subscriber first = Subscriber.Open(name, Durable("größe"));
            Check.Equal("größe", first.Label, "its label");
            Check.Fails(ErrorKind.Busy, () => Subscriber.Open(name, new TopicOptions { Label = "größe" }), "'größe'");
            TopicTests.Send(publisher, "a", "b");
            Check.That(first.TryRecv(out Message m), "a");
            m.Dispose();
            first.Dispose();
            TopicTests.Send(publisher, "c");
            SubscriberInfo away = publisher.Subscribers().Single();
            Check.That(away.Durable && !away.Alive && away.Label == "größe" && away.Lag!.Value.Messages == 2, "it is waited for");
            using (Subscriber second = Subscriber.Open(name, Durable("größe")))
            {
                Check.Equal("b2 c3", TopicTests.All(second), "where the first one was");
                Check.Equal(2u, second.Epoch, "its epoch");
                second.Unsubscribe();
            }
            Check.Equal(0, publisher.Subscribers().Count, "unsubscribed");
            using (Subscriber third = Subscriber.Open(name, Durable("größe")))
            {
                Check.Equal("a1 b2 c3", TopicTests.All(third), "from the oldest again");
            }
            // One that does not want to be durable takes the cursor up, and it goes with it.
            TopicTests.Send(publisher, "d");
            using (Subscriber last = Subscriber.Open(name, new TopicOptions { Label = "größe" }))
            {
                Check.Equal("d4", TopicTests.All(last), "resumed");
            }
            Check.Equal(0, publisher.Subscribers().Count, "gone");
        }

        [Test]
        private static void ACloseIsDeliveredOnceToADurableSubscriber()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using (Publisher publisher = Publisher.Create(name))
            {
                Subscriber.Open(name, Durable("r")).Dispose();
                TopicTests.Send(publisher, "a");
            }
            Check.Fails(ErrorKind.AlreadyExists, () => Publisher.Create(name), "'r' has 1 undelivered messages (1 bytes)");
            using (Subscriber one = Subscriber.Open(name, Durable("r")))
            {
                Check.Fails(ErrorKind.Closed, () => Check.Equal("a1", TopicTests.All(one), "the message before the close"));
            }
            // It has met the close, so nothing keeps the topic.
            folder.Holds();
        }

        [Test]
        private static void AnEjectedSubscriberIsToldHowMuchItLost()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name,
                new TopicOptions { Capacity = 4096, EjectAfter = TimeSpan.FromMilliseconds(40) });
            using Subscriber slow = Subscriber.Open(name, new TopicOptions { Label = "slow" });
            TopicTests.Numbers(publisher, 1, 1, 96);
            slow.Recv(Wait.Long).Dispose();
            for (int i = 2; i <= 90; i++)
            {
                publisher.Send(1, (ulong)i, new byte[96], Wait.Long);
            }
            SubscriberInfo info = publisher.Subscribers().Single();
            Check.That(info.Ejected && info.Alive && info.Lag == null && info.Label == "slow", "it is seen as ejected");
            RamwayException lagged = Check.Fails(ErrorKind.Lagged, () => slow.Recv(Wait.Long), "messages were lost");
            Check.That(lagged.Lost > 30, "how many: " + lagged.Lost);
            Check.Equal(lagged.Lost, slow.Lost, "and in all");
            using (Message next = slow.Recv(Wait.Long))
            {
                Check.Equal(2 + lagged.Lost, next.Seq, "it goes on after them");
                Check.Equal(0ul, next.Lost, "which were told already");
                Check.Equal(next.Seq, next.Tag, "whole");
            }
            Check.That(!publisher.Subscribers().Single().Ejected, "it gates again");
            Check.That(TopicTests.All(slow).Split(' ').Length > 5, "and receives the rest");
        }

        [Test]
        private static void AnEjectionWhileAMessageIsOutLosesWhatFollows()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name,
                new TopicOptions { Capacity = 4096, EjectAfter = TimeSpan.FromMilliseconds(20) });
            using Subscriber slow = Subscriber.Open(name, Durable("slow"));
            TopicTests.Numbers(publisher, 1, 1, 96);
            using (Message kept = slow.Recv(Wait.Long))
            {
                for (int i = 2; i <= 90; i++)
                {
                    publisher.Send(1, (ulong)i, new byte[96], Wait.Long);
                }
                Check.Equal(1ul, kept.Tag, "a copy stays what it was");
                Check.Equal(96, kept.Data.Length, "as long as it was");
            }
            Check.Fails(ErrorKind.Lagged, () => slow.RecvAsync().AsTask().GetAwaiter().GetResult());
            slow.Recv(Wait.Long).Dispose();
            slow.Dispose();
            // Another one that takes up an ejected cursor is told too.
            while (!publisher.Subscribers().Single().Ejected)
            {
                publisher.Send(1, new byte[96], Wait.Long);
            }
            using Subscriber next = Subscriber.Open(name, Durable("slow"));
            RamwayException e = Check.Fails(ErrorKind.Lagged, () => next.TryRecv(out _));
            next.Recv(Wait.Long).Dispose();
            Check.Equal(e.Lost, next.Lost, "counted");
        }

        [Test]
        private static void SlotsAreFew()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Slots = 2 });
            using Subscriber shown = Subscriber.Open(name, new TopicOptions { Policy = Policy.Latest, Label = "display" });
            SubscriberInfo display = publisher.Subscribers().Single();
            Check.That(display.Slot == 1 && display.Policy == Policy.Latest && display.Label == "display" && display.Lag == null, "shown");
            using Subscriber unseen = Subscriber.Open(name, TopicTests.By(Policy.Lossy));
            Check.Equal(1, publisher.Subscribers().Count, "without a slot it goes on unseen");
            using Subscriber one = Subscriber.Open(name);
            Check.Fails(ErrorKind.Busy, () => Subscriber.Open(name), "all 2 slots", "1 by reliable", "1 by lossy", "'display'");
            var watch = Stopwatch.StartNew();
            var waits = new Beside(() => Subscriber.Open(name, new TopicOptions { Timeout = Wait.Long }).Dispose());
            Thread.Sleep(50);
            one.Dispose();
            Check.Equal(null, waits.End(), "a slot that is taken is waited for");
        }

        [Test]
        private static void TopicsAreListedAndCleaned()
        {
            using var folder = new Folder();
            Publisher live = Publisher.Create(folder.At("live"), new TopicOptions { Capacity = 8192, Align = 64 });
            Subscriber display = Subscriber.Open(folder.At("live"), TopicTests.By(Policy.Latest));
            using (Subscriber r = Subscriber.Create(folder.At("kept"), Durable("r")))
            using (Publisher other = Publisher.Open(folder.At("kept")))
            {
                TopicTests.Send(other, "for r");
            }
            TopicTests.Send(live, "for nobody");
            IReadOnlyList<SegmentInfo> all = Segments.Ls(folder.Path);
            Check.Equal("kept live", string.Join(" ", all.Select(s => s.Name)), "names");
            SegmentInfo kept = all[0], used = all[1];
            Check.That(kept.Kind == SegmentKind.Topic && kept.Stale && !kept.ProducerHeld && kept.Seq == 1, "the dead one");
            Check.That(used.InUse && used.ProducerHeld && used.Capacity == 8192 && used.Align == 64, "the live one");
            SubscriberInfo away = kept.Subscribers.Single();
            Check.That(away.Label == "r" && away.Durable && !away.Alive && away.Lag!.Value.Messages == 1 &&
                away.Lag.Value.Bytes == 64, "r");
            Check.That(used.Subscribers.Single().Policy == Policy.Latest && used.Subscribers.Single().Alive, "the display");
            IReadOnlyList<CleanedSegment> cleaned = Segments.Clean(folder.Path);
            Check.Equal("the durable subscriber 'r' has 1 undelivered messages (5 bytes); in use",
                string.Join("; ", cleaned.Select(c => c.Reason)), "kept");
            Publisher.Create(folder.At("kept"), new TopicOptions { Discard = true }).Dispose();
            live.Dispose();
            display.Dispose();
            folder.Holds();
            Publisher.Create(folder.At("stays"), new TopicOptions { Persistent = true }).Dispose();
            folder.Holds("stays");
            Segments.Unlink(folder.At("stays"));
        }

        [Test]
        private static void APublisherSaysForHowLongASubscriberBlocksIt()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            using Subscriber slow = Subscriber.Open(name);
            while (publisher.TrySend(1, new byte[500]))
            {
            }
            Check.Fails(ErrorKind.TimedOut, () => publisher.Send(1, new byte[500], TimeSpan.FromMilliseconds(150)));
            Check.That(publisher.Subscribers().Single().BlocksFor >= TimeSpan.FromMilliseconds(100), "for how long");
            slow.Recv(Wait.Long).Dispose();
            Check.Equal(TimeSpan.Zero, publisher.Subscribers().Single().BlocksFor, "it has read something");
        }

        /// <summary>NAME LABEL COUNT: receives so many, one of them still out, and waits.</summary>
        [Helper("subscriber")]
        private static void Subscribe(string[] args)
        {
            var o = new TopicOptions { Timeout = Wait.Long };
            if (args[1].Length != 0)
            {
                o.Label = args[1];
                o.Durable = true;
            }
            using Subscriber subscriber = Subscriber.Open(args[0], o);
            for (int i = 0; i < int.Parse(args[2]); i++)
            {
                subscriber.Recv(Wait.Long).Dispose();
            }
            MessageLease held = subscriber.RecvAsync().AsTask().Result;
            Peer.Say("received " + held.Seq);
            Peer.Told();
        }

        /// <summary>NAME: publishes numbered messages for ever, each with a tag of its number.</summary>
        [Helper("publisher")]
        private static void Publish(string[] args)
        {
            using Publisher publisher = Publisher.OpenOrCreate(args[0], new TopicOptions { Capacity = 16384, Timeout = Wait.Long });
            Peer.Say("ready");
            for (; ; )
            {
                ulong seq = publisher.Seq + 1;
                byte[] bytes = new byte[seq % 1000];
                bytes.AsSpan().Fill((byte)seq);
                publisher.Send(1, seq, bytes);
            }
        }

        [Test]
        private static void AKilledSubscriberNoLongerHoldsThePublisherBack()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            using Peer peer = Peer.Start("subscriber", name, "", "0");
            publisher.WaitForSubscribers(1, Wait.Long);
            TopicTests.Send(publisher, "a");
            peer.Expect("received 1");
            while (publisher.TrySend(1, new byte[500]))
            {
            }
            peer.Kill();
            var watch = Stopwatch.StartNew();
            publisher.Send(1, new byte[500], Wait.Long);
            Check.That(watch.Elapsed < TimeSpan.FromSeconds(10), "within a poll interval or a few: " + watch.Elapsed);
            Check.Equal(0, publisher.Subscribers().Count, "its slot is free");
        }

        [Test]
        private static void AKilledDurableSubscriberIsWaitedForAndResumed()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            using Peer peer = Peer.Start("subscriber", name, "robot", "1");
            publisher.WaitForSubscribers(1, Wait.Long);
            TopicTests.Numbers(publisher, 1, 3, 500);
            peer.Expect("received 2");
            peer.Kill();
            while (publisher.TrySend(1, publisher.Seq + 1, new byte[500]))
            {
            }
            Check.Fails(ErrorKind.TimedOut, () => publisher.Send(1, new byte[500], TimeSpan.FromMilliseconds(300)));
            using Subscriber next = Subscriber.Open(name, new TopicOptions { Label = "robot", Durable = true, Timeout = Wait.Long });
            using Message held = next.Recv(Wait.Long);
            Check.Equal(2ul, held.Tag, "the message that was out comes again");
        }

        [Test(Seconds = 120)]
        private static void PublishersThatAreKilled()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Subscriber reliable = Subscriber.Create(name, new TopicOptions { Capacity = 16384 }),
                lossy = Subscriber.Open(name, TopicTests.By(Policy.Lossy));
            var random = new Random(5);
            ulong next = 1, sum = 0;
            for (int round = 0; round < 6; round++)
            {
                using Peer peer = Peer.Start("publisher", name);
                peer.Expect("ready");
                var watch = Stopwatch.StartNew();
                int ms = random.Next(5, 60);
                for (bool killed = false; ;)
                {
                    if (!killed && watch.ElapsedMilliseconds > ms)
                    {
                        peer.Kill();
                        killed = true;
                    }
                    try
                    {
                        using Message m = reliable.Recv(TimeSpan.FromMilliseconds(killed ? 5000 : 20));
                        Check.Equal(next, m.Seq, "no hole");
                        Check.Equal(next, m.Tag, "its own tag");
                        Check.Equal((int)(next % 1000), m.Length, "its length");
                        next++;
                    }
                    catch (RamwayException e) when (e.Kind == ErrorKind.TimedOut && !killed)
                    {
                    }
                    catch (RamwayException e) when (e.Kind == ErrorKind.PeerDead)
                    {
                        break;
                    }
                }
                try
                {
                    while (lossy.TryRecv(out Message m))
                    {
                        using (m)
                        {
                            sum += 1 + m.Lost;
                            Check.Equal(sum, m.Seq, "received and lost, in order");
                        }
                    }
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.PeerDead)
                {
                }
            }
            Check.Equal(next - 1, sum, "both have come to the same end");
        }
    }
}
