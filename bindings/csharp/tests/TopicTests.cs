using System;
using System.Buffers;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;

namespace Ramway.Tests
{
    /// <summary>How topics are made, and how a subscriber reads under each policy.</summary>
    internal static class TopicTests
    {
        internal static TopicOptions By(Policy policy, Start start = default) => new TopicOptions { Policy = policy, Start = start };

        internal static void Send(Publisher publisher, params string[] texts)
        {
            foreach (string text in texts)
            {
                publisher.Send(1, Encoding.UTF8.GetBytes(text));
            }
        }

        internal static void Numbers(Publisher publisher, int from, int to, int length = 0)
        {
            for (int i = from; i <= to; i++)
            {
                publisher.Send(1, (ulong)i, new byte[length]);
            }
        }

        /// <summary>Everything that is there: text, number, lost before it.</summary>
        internal static string All(Receiver subscriber)
        {
            var all = new List<string>();
            while (subscriber.TryRecv(out Message m))
            {
                using (m)
                {
                    all.Add(Encoding.UTF8.GetString(m.Data) + m.Seq + (m.Lost == 0 ? "" : "-" + m.Lost));
                }
            }
            return string.Join(" ", all);
        }

        [Test]
        private static void EverySubscriberReadsByItsPolicy()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            using Subscriber all = Subscriber.Open(name), lossy = Subscriber.Open(name, By(Policy.Lossy)),
                latest = Subscriber.Open(name, By(Policy.Latest));
            Check.Equal("", All(all) + All(lossy) + All(latest), "nothing yet");
            Send(publisher, "a", "b");
            Check.Equal("a1 b2", All(all), "reliable");
            Check.Equal("a1 b2", All(lossy), "lossy");
            Check.Equal("b2-1", All(latest), "latest");
            Check.Equal("", All(latest), "the same again is not newer");
            Send(publisher, "c");
            Check.Equal("c3", All(latest), "latest again");
            using Subscriber late = Subscriber.Open(name), now = Subscriber.Open(name, By(Policy.Lossy)),
                newest = Subscriber.Open(name, By(Policy.Latest));
            Check.Equal("a1 b2 c3", All(late), "a late reliable one");
            Check.Equal("", All(now), "a late lossy one");
            Check.Equal("c3", All(newest), "a late latest one");
            Check.Equal(Policy.Reliable, all.Policy, "policy");
            Check.Equal(3ul, publisher.Seq, "the last number");
            publisher.Dispose();
            foreach (Subscriber one in new[] { late, now, newest })
            {
                Check.Fails(ErrorKind.Closed, () => one.Recv(Wait.Long), "topic");
            }
            // It gives its value whether or not somebody publishes.
            Check.That(newest.TryReadLatest(new byte[8], out MessageInfo info) && info.Seq == 3, "the value stays");
        }

        [Test]
        private static void AReliableSubscriberHoldsThePublisherBackAndOthersDoNot()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            using Subscriber lossy = Subscriber.Open(name, By(Policy.Lossy)), latest = Subscriber.Open(name, By(Policy.Latest));
            Check.Equal(4096 / 2 - 32, publisher.MaxMessageLength, "the longest");
            Check.Fails(ErrorKind.TooLarge, () => publisher.Send(1, new byte[4096 / 2 - 31]), "this topic of 4096");
            Numbers(publisher, 1, 100, 96);
            using Message newest = latest.Recv(Wait.Long);
            Check.Equal(100ul, newest.Tag, "the newest");
            ulong seen = 0, lost = 0;
            while (lossy.TryRecv(out Message m))
            {
                using (m)
                {
                    Check.Equal(m.Seq, m.Tag, "each whole");
                    seen++;
                    lost += m.Lost;
                }
            }
            Check.Equal(100ul, seen + lost, "received and lost");
            Check.That(lost > 60, "more than the capacity was sent, lost " + lost);
            Check.Equal(lost, lossy.Lost, "counted");
            using Subscriber reliable = Subscriber.Open(name, By(Policy.Reliable, Start.Now));
            int fit = 0;
            while (publisher.TrySend(1, new byte[96]))
            {
                fit++;
            }
            Check.That(fit >= 30 && fit <= 32, "as many as fit: " + fit);
            Check.Fails(ErrorKind.TimedOut, () => publisher.Send(1, new byte[96], TimeSpan.FromMilliseconds(30)));
            Check.Equal((ulong)fit, reliable.Lag.Messages, "lag in messages");
            Check.Equal(fit * 128L, reliable.Lag.Bytes, "lag in bytes");
            Check.Equal(fit * 128L, publisher.PendingBytes, "pending");
            reliable.RecvBatch(10).Dispose();
            Check.That(publisher.TrySend(1, new byte[96]), "room again");
        }

        [Test]
        private static void WhereASubscriberBegins()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            Send(publisher, "a", "b", "c", "d");
            foreach ((Start start, string there) in new[]
            {
                (Start.Oldest, "a1 b2 c3 d4"), (Start.Now, ""), (Start.History(0), ""), (Start.History(1), "d4"),
                (Start.History(3), "b2 c3 d4"), (Start.History(9), "a1 b2 c3 d4"), (Start.AfterSeq(0), "a1 b2 c3 d4"),
                (Start.AfterSeq(2), "c3 d4"), (Start.AfterSeq(4), ""), (Start.AfterSeq(99), ""),
            })
            {
                foreach (Policy policy in new[] { Policy.Reliable, Policy.Lossy })
                {
                    using Subscriber subscriber = Subscriber.Open(name, By(policy, start));
                    Check.Equal(there, All(subscriber), policy + " from " + start.At + " " + start.Number);
                }
            }
            using var small = Publisher.Create(folder.At("small"), new TopicOptions { Capacity = 4096 });
            Numbers(small, 1, 200, 96);
            using Subscriber after = Subscriber.Open(folder.At("small"), By(Policy.Lossy, Start.AfterSeq(5)));
            using Message first = after.Recv(Wait.Long);
            Check.That(first.Lost > 100 && first.Seq == 6 + first.Lost, "what is gone: " + first.Lost);
        }

        [Test]
        private static void KnownLossesAndSkipping()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            using Subscriber subscriber = Subscriber.Open(name), lossy = Subscriber.Open(name, By(Policy.Lossy));
            publisher.SkipSeq(4);
            Send(publisher, "a", "b", "c");
            Check.Equal("a5-4 b6 c7", All(lossy), "a known loss");
            Check.Equal(2ul, subscriber.SkipToNewest() - 4, "skipped, the lost numbers among them");
            Check.Equal("c7", All(subscriber), "the newest");
            Check.Equal(0ul, subscriber.SkipToNewest(), "nothing");
            Check.Equal(0ul, subscriber.Lost, "what was skipped is not lost");
            Check.Fails(ErrorKind.InvalidArgument, () => publisher.SkipSeq(ulong.MaxValue), "no such numbers");
        }

        [Test]
        private static void TheNewestMessage()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Timestamps = true });
            using Subscriber latest = Subscriber.Open(name, By(Policy.Latest)), reliable = Subscriber.Open(name);
            byte[] buffer = new byte[2];
            Check.That(!latest.TryReadLatest(buffer, out _) && !latest.TryLatest(out _), "nothing yet");
            DateTime before = DateTime.UtcNow;
            Send(publisher, "aa", "bb");
            foreach (Subscriber one in new[] { latest, reliable })
            {
                for (int i = 0; i < 2; i++)
                {
                    Check.That(one.TryReadLatest(buffer, out MessageInfo info), "there");
                    Check.Equal("bb2 2 0", Encoding.UTF8.GetString(buffer) + info.Seq + " " + info.Length + " " + info.Lost, "the newest");
                    Check.That(info.Time >= before.AddSeconds(-1) && info.Time <= DateTime.UtcNow, "its time: " + info.Time);
                    Check.That(one.TryLatest(out Message m), "as a message");
                    using (m)
                    {
                        Check.Equal("bb", Encoding.UTF8.GetString(m.Data), "the newest as a message");
                    }
                }
            }
            Check.Fails(ErrorKind.TimedOut, () => latest.WaitNewer(TimeSpan.FromMilliseconds(20)));
            Check.Equal("aa1 bb2", All(reliable), "what is received in order stays as it was");
            publisher.Send(1, new byte[3]);
            Check.Fails(ErrorKind.TooLarge, () => latest.TryReadLatest(buffer, out _), "does not fit");
            using (Message newer = latest.WaitNewer(Wait.Long))
            {
                Check.Equal(3ul, newer.Seq, "one that did not fit was not seen");
            }
            publisher.Send(1, default);
            Check.That(latest.TryReadLatest(default, out MessageInfo empty) && empty.Length == 0 && empty.Seq == 4, "an empty one");
            Check.Fails(ErrorKind.Unsupported, () => reliable.WaitNewer(), "open it with the policy Latest");
            Check.Fails(ErrorKind.Unsupported, () => latest.SkipToNewest(), "anyway");
        }

        [Test]
        private static void WhatDoesNotFitOrIsGivenBackComesAgain()
        {
            using var folder = new Folder();
            foreach (TopicOptions o in new[]
            {
                By(Policy.Reliable), By(Policy.Lossy), By(Policy.Latest), new TopicOptions { MayEject = true },
            })
            {
                string name = folder.At("topic" + o.Policy + o.MayEject);
                using Publisher publisher = Publisher.Create(name, new TopicOptions { MayEject = o.MayEject });
                using Subscriber subscriber = Subscriber.Open(name, o);
                publisher.SkipSeq(3);
                publisher.Send(7, 9, new byte[] { 1, 2, 3 });
                Check.Fails(ErrorKind.TooLarge, () => subscriber.RecvInto(new byte[2], out _), "still there");
                Check.Throws<InvalidOperationException>(() => subscriber.RecvAppend(new Broken(0)));
                Check.Throws<InvalidOperationException>(() => subscriber.RecvAppend(new Broken(3)));
                byte[] buffer = new byte[5];
                Check.Equal(3, subscriber.RecvInto(buffer, out MessageInfo info), "length");
                Check.Equal(4ul, info.Seq, "number");
                Check.Equal(3ul, info.Lost, "lost before it");
                Check.Equal(3ul, subscriber.Lost, "in all, once");
                publisher.Send(7, 9, new byte[] { 4, 5, 6 });
                var writer = new ArrayBufferWriter<byte>();
                Check.Equal(5ul, subscriber.RecvAppend(writer).Seq, "the next");
                Check.Same(new byte[] { 4, 5, 6 }, writer.WrittenSpan, "appended");
            }
        }

        [Test]
        private static unsafe void AMessageThatIsCopiedAnywayIsAppendedByOneCopy()
        {
            using var folder = new Folder();
            foreach (TopicOptions o in new[] { By(Policy.Lossy), By(Policy.Latest), new TopicOptions { MayEject = true } })
            {
                string name = folder.At("topic" + o.Policy);
                using Publisher publisher = Publisher.Create(name, new TopicOptions { MayEject = o.MayEject });
                using Subscriber subscriber = Subscriber.Open(name, o);
                foreach (int length in new[] { 0, 5, 100_000 })
                {
                    byte[] sent = Enumerable.Range(0, length).Select(i => (byte)(i * 7)).ToArray();
                    publisher.Send(1, sent);
                    byte[] room = new byte[length + 1];
                    fixed (byte* at = room)
                    {
                        var writer = new Broken(room);
                        Check.Equal(length, subscriber.RecvAppend(writer).Length, "length");
                        Check.Equal(length, writer.Asked, "asked for");
                        Check.Same(sent, room.AsSpan(0, length), "appended");
                        Check.That(length == 0 || subscriber.FrameAt(0).Data == at, "it went there straight");
                    }
                }
            }
        }

        /// <summary>A writer that has so much room, and whose Advance throws unless it was given the room.</summary>
        private sealed class Broken : IBufferWriter<byte>
        {
            private readonly byte[] _room;
            private readonly bool _advances;

            internal Broken(int room) => _room = new byte[room];

            internal Broken(byte[] room)
            {
                _room = room;
                _advances = true;
            }

            internal int Asked { get; private set; }

            public void Advance(int count)
            {
                if (!_advances)
                {
                    throw new InvalidOperationException();
                }
            }

            public Memory<byte> GetMemory(int sizeHint = 0)
            {
                Asked += sizeHint;
                return sizeHint <= _room.Length ? _room : throw new InvalidOperationException();
            }

            public Span<byte> GetSpan(int sizeHint = 0) => GetMemory(sizeHint).Span;
        }

        [Test]
        private static void WhatARingCanDoATopicCan()
        {
            using var folder = new Folder();
            foreach (TopicOptions o in new[] { By(Policy.Reliable), By(Policy.Lossy), new TopicOptions { MayEject = true } })
            {
                string name = folder.At("topic" + o.Policy + o.MayEject);
                using Publisher publisher = Publisher.Create(name, new TopicOptions { MayEject = o.MayEject, Align = 64 });
                using Subscriber subscriber = Subscriber.Open(name, o);
                Check.Equal(null, publisher.LastTag, "no last tag");
                using (Slot slot = publisher.Reserve(8))
                {
                    Check.That((ulong)slot.Address % 64 == 0, "aligned");
                    slot.Data.Fill(1);
                    slot.CommitUnflushed(1, 11, 4);
                }
                Check.That(!subscriber.TryRecv(out _), "not published");
                publisher.Flush();
                BatchWriter batch = publisher.StartBatch();
                for (int i = 2; i <= 4; i++)
                {
                    batch.Add(1, (ulong)i, 4).Fill((byte)i);
                }
                batch.Flush();
                batch.Add(1, 99, 4);
                batch.Dispose();
                publisher.SendBatch(1, 5, new ReadOnlyMemory<byte>[] { new byte[] { 5, 5, 5, 5 }, new byte[] { 5, 5, 5, 5 } });
                publisher.SendVectored(1, 7, new ReadOnlyMemory<byte>[] { new byte[] { 7, 7 }, new byte[] { 7, 7 } });
                Check.Equal(7ul, publisher.LastTag, "the last tag");
                Check.Equal(7ul, publisher.Seq, "the last number");
                using (Batch all = subscriber.RecvBatch(100))
                {
                    Check.Equal("1:11 2:2 3:3 4:4 5:5 6:5 7:7",
                        string.Join(" ", Enumerable.Range(0, all.Count).Select(i => Numbered(subscriber, i))),
                        "in order");
                    for (int i = 0; i < all.Count; i++)
                    {
                        Check.That((ulong)all[i].Address % 64 == 0 && all[i].Length == 4, "aligned, and as long as it was committed");
                    }
                }
                publisher.SendTensor<float>(new long[] { 2 }, new float[] { 1, 2 });
                using (Message m = subscriber.Recv(Wait.Long))
                {
                    Check.Equal(2f, m.AsTensor().Elements<float>()[1], "a tensor");
                }
                Send(publisher, "kept");
                using (OwnedMessage owned = subscriber.RecvMemory())
                {
                    // The log is mapped read-only: what can be written is a copy.
                    owned.Memory.Span[0] = (byte)'K';
                    Check.Equal("Kept 9", Encoding.UTF8.GetString(owned.Memory.Span) + " " + owned.Seq, "a copy");
                }
                using Subscriber other = Subscriber.Open(name, By(Policy.Lossy, Start.History(1)));
                Check.Equal("kept9", All(other), "the log is as it was");
            }
        }

        private static string Numbered(Subscriber subscriber, int index) =>
            subscriber.FrameAt(index).Stamp.Seq + ":" + subscriber.FrameAt(index).Tag;

        [Test]
        private static void ABatchOfASubscriberThatWasOvertakenGoesOn()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            using Subscriber lossy = Subscriber.Open(name, By(Policy.Lossy));
            ulong next = 1, sum = 0;
            for (int round = 0; round < 200; round++)
            {
                Numbers(publisher, (int)publisher.Seq + 1, (int)publisher.Seq + round % 60, 40);
                while (lossy.TryRecvBatch(7, out Batch batch))
                {
                    using (batch)
                    {
                        foreach (Message m in batch)
                        {
                            Check.Equal(next + m.Lost, m.Seq, "the number");
                            Check.Equal(m.Seq, m.Tag, "its own");
                            next = m.Seq + 1;
                            sum += 1 + m.Lost;
                        }
                    }
                }
            }
            Check.Equal(publisher.Seq, sum, "received and lost");
        }

        [Test]
        private static void OptionsOfTheOtherSideAreRefused()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            void Publishes(string says, TopicOptions o) => Check.Fails(ErrorKind.InvalidArgument, () => Publisher.Create(name, o), says);
            void Subscribes(string says, TopicOptions o) => Check.Fails(ErrorKind.InvalidArgument, () => Subscriber.Create(name, o), says);
            Publishes("Policy", By(Policy.Lossy));
            Publishes("Start", By(Policy.Reliable, Start.Now));
            Publishes("Label", new TopicOptions { Label = "x" });
            Publishes("Durable", new TopicOptions { Durable = true });
            Publishes("ReadOnly", new TopicOptions { ReadOnly = true });
            Publishes("EjectAfter", new TopicOptions { EjectAfter = TimeSpan.FromSeconds(-1) });
            Publishes("nobody to eject", new TopicOptions { LossyOnly = true, MayEject = true });
            Publishes("an alignment of 16", new TopicOptions { Align = 16 });
            Publishes("1025 slots", new TopicOptions { Slots = 1025 });
            Publishes("-1 bytes", new TopicOptions { Capacity = -1 });
            Subscribes("EjectAfter", new TopicOptions { EjectAfter = TimeSpan.FromSeconds(1) });
            Subscribes("Timestamps", new TopicOptions { Timestamps = true });
            Subscribes("not a policy", By((Policy)3));
            Subscribes("label", new TopicOptions { Label = new string('x', 65) });
            Subscribes("label", new TopicOptions { Label = "" });
            Subscribes("label", new TopicOptions { Label = "a\0b" });
            Subscribes("Durable is for a reliable", new TopicOptions { Policy = Policy.Lossy, Durable = true, Label = "x" });
            Subscribes("needs a label", new TopicOptions { Durable = true });
            Subscribes("begins nowhere else", By(Policy.Latest, Start.Oldest));
            Subscribes("cannot be ReadOnly", new TopicOptions { ReadOnly = true });
            Subscribes("open the topic", new TopicOptions { ReadOnly = true, Policy = Policy.Lossy });
            folder.Holds();
        }

        [Test]
        private static void AnExistingTopicIsAsItWasMade()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            Check.Fails(ErrorKind.NotFound, () => Subscriber.Open(name), "topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 8192, LossyOnly = true, Slots = 4 });
            Check.Fails(ErrorKind.Busy, () => Publisher.Open(name), "has a publisher already");
            Check.Fails(ErrorKind.AlreadyExists, () => Publisher.Create(name), "a live topic");
            Check.Fails(ErrorKind.InvalidArgument, () => Subscriber.Open(name, new TopicOptions { Capacity = 4096, Policy = Policy.Lossy }),
                "its capacity is 8192");
            void Refused(TopicOptions o, string says) => Check.Fails(ErrorKind.InvalidArgument, () => Subscriber.Open(name, o), says);
            Refused(new TopicOptions { Slots = 5, Policy = Policy.Lossy }, "slots is 4");
            Refused(new TopicOptions { Align = 64, Policy = Policy.Lossy }, "is 32");
            Refused(new TopicOptions { MayEject = true, Policy = Policy.Lossy }, "cannot be ejected");
            Check.Fails(ErrorKind.Unsupported, () => Subscriber.Open(name), "LossyOnly", "policy Lossy");
            Check.Fails(ErrorKind.InvalidArgument, () => Receiver.Open(name), "this is a topic, not a ring");
            Check.Fails(ErrorKind.Unsupported, () => publisher.WaitForSubscribers(1), "LossyOnly");
            publisher.WaitForSubscribers(0);
            Check.Fails(ErrorKind.InvalidArgument, () => publisher.WaitForSubscribers(5), "4 slots");
            using (Subscriber lossy = Subscriber.OpenOrCreate(name, new TopicOptions { LossyOnly = true, Policy = Policy.Lossy }))
            {
                Send(publisher, "a");
                Check.Equal("a1", All(lossy), "lossy");
            }
            publisher.Dispose();
            folder.Holds();
            using Publisher plain = Publisher.Create(name);
            plain.Dispose();
            using Subscriber first = Subscriber.Create(name);
            Check.Fails(ErrorKind.Unsupported,
                () => Publisher.Open(name, new TopicOptions { EjectAfter = TimeSpan.FromSeconds(1) }), "MayEject");
        }

        [Test]
        private static void AReadOnlySubscriberWritesNothing()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            foreach (Policy policy in new[] { Policy.Lossy, Policy.Latest })
            {
                using Subscriber subscriber = Subscriber.Open(name, new TopicOptions { Policy = policy, ReadOnly = true });
                Check.Equal(0, publisher.Subscribers().Count, "seen by nobody");
                All(subscriber);
                var waits = new Beside(() => subscriber.Recv(Wait.Long).Dispose());
                Thread.Sleep(20);
                Send(publisher, "x");
                Check.Equal(null, waits.End(), "it checks each millisecond");
                using var source = new CancellationTokenSource(20);
                Check.Throws<OperationCanceledException>(() => subscriber.Recv(null, source.Token));
            }
        }
    }
}
