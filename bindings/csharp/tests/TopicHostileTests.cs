using System;
using System.Linq;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>A topic whose words somebody scribbles over: an error and nothing worse, to the reader and nobody else.</summary>
    internal static unsafe class TopicHostileTests
    {
        /// <summary>A topic's file, mapped for writing as only a hostile process would.</summary>
        private sealed class Scribbled : IDisposable
        {
            private readonly Folder _folder = new Folder();
            private readonly Attachment _own;

            internal Scribbled(TopicOptions o)
            {
                Name = _folder.At("topic");
                Publisher = Publisher.Create(Name, o);
                // The publisher's attachment is the only one that maps everything for writing; its role is not asked for here.
                int fd = Files.OpenAt(Files.WorkingDirectory, Name, true);
                Header h = Header.Check(SegmentFile.ReadPage(fd, out ulong size), size);
                _own = Attachment.Memory(fd, Facts.Block0, h.Blocks[0], NoLink.Instance, new RingOptions());
                Files.Close(fd);
            }

            internal string Name { get; }

            internal Publisher Publisher { get; }

            internal TopicBlock* Block => _own.Topic;

            internal SubscribersArea* Area => _own.Area;

            internal SubscriberSlot* Slots => _own.Slots;

            internal byte* Data => _own.Data;

            public void Dispose()
            {
                Publisher.Dispose();
                _own.Release();
                _folder.Dispose();
            }
        }

        private static readonly ulong[] Values = { 0, 1, 32, 4096, 1ul << 31, 1ul << 63, ulong.MaxValue, ulong.MaxValue - 31 };

        /// <summary>What a subscriber may say of a topic that was scribbled over.</summary>
        private static void Survives(Subscriber subscriber)
        {
            for (int i = 0; i < 40; i++)
            {
                try
                {
                    if (!subscriber.TryRecv(out Message m))
                    {
                        break;
                    }
                    using (m)
                    {
                        // Every byte that it says is there can be read.
                        int sum = 0;
                        foreach (byte b in m.Data)
                        {
                            sum += b;
                        }
                        Check.That(sum >= 0 && m.Length <= 4096, "a message");
                    }
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.Corrupt || e.Kind == ErrorKind.Lagged || e.Kind == ErrorKind.Closed)
                {
                }
            }
            try
            {
                subscriber.TryReadLatest(new byte[4096], out _);
                subscriber.PendingBytes.ToString();
                subscriber.Lag.ToString();
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Corrupt)
            {
            }
        }

        [Test(Seconds = 180)]
        private static void WhateverThePublisherWrites()
        {
            foreach (bool mayEject in new[] { false, true })
            {
                foreach (Policy policy in new[] { Policy.Reliable, Policy.Lossy, Policy.Latest })
                {
                    for (int word = 0; word < 8; word++)
                    {
                        foreach (ulong value in Values)
                        {
                            using var s = new Scribbled(new TopicOptions { Capacity = 4096, MayEject = mayEject });
                            using Subscriber subscriber = Subscriber.Open(s.Name,
                                new TopicOptions { Policy = policy, MayEject = mayEject, Wait = WaitMode.Block });
                            TopicTests.Numbers(s.Publisher, 1, 3, 64);
                            ulong* frame = (ulong*)(s.Data + 0);
                            switch (word)
                            {
                                case 0:
                                    s.Block->Tail = value;
                                    break;
                                case 1:
                                    s.Block->Last = value;
                                    break;
                                case 2:
                                    s.Block->Claim = value;
                                    break;
                                case 3:
                                    s.Block->Starts[0] = value;
                                    break;
                                default:
                                    // A frame's length and type, tag, number, time.
                                    frame[word - 4] = value;
                                    break;
                            }
                            Survives(subscriber);
                        }
                    }
                }
            }
        }

        [Test]
        private static void AFrameThatNoPublisherWritesIsCorruptAndStaysSo()
        {
            using var s = new Scribbled(new TopicOptions { Capacity = 4096 });
            using Subscriber reliable = Subscriber.Open(s.Name), lossy = Subscriber.Open(s.Name, TopicTests.By(Policy.Lossy));
            TopicTests.Numbers(s.Publisher, 1, 2, 64);
            *(uint*)s.Data = 5000;
            for (int i = 0; i < 2; i++)
            {
                Check.Fails(ErrorKind.Corrupt, () => reliable.Recv(Wait.Long), "Recreate the topic");
                Check.Fails(ErrorKind.Corrupt, () => lossy.RecvAsync().AsTask().GetAwaiter().GetResult());
            }
        }

        [Test]
        private static void WhateverSubscribersWriteThePublisherGoesOn()
        {
            foreach (ulong value in Values)
            {
                using var s = new Scribbled(new TopicOptions { Capacity = 4096, EjectAfter = TimeSpan.FromMilliseconds(10) });
                for (int i = 0; i < 4; i++)
                {
                    s.Slots[i].State = i % 2 == 0 ? (long)(Facts.SlotGating | Facts.SlotActive) : (long)value;
                    s.Slots[i].Cursor = value;
                    s.Slots[i].Flags = (uint)value;
                    s.Slots[i].Label[0] = value;
                }
                s.Area->Word = (long)value;
                s.Area->Wait = (uint)value;
                s.Publisher.Subscribers();
                Check.That(s.Publisher.PendingBytes <= 4096, "pending");
                for (int i = 0; i < 100; i++)
                {
                    s.Publisher.Send(1, (ulong)i, new byte[100], Wait.Long);
                }
                Check.Equal(100ul, s.Publisher.Seq, "all were published");
                Segments.Ls(System.IO.Path.GetDirectoryName(s.Name)!).Single();
            }
        }

        [Test]
        private static void ADurableCursorThatIsNoneIsCorrupt()
        {
            using var s = new Scribbled(new TopicOptions { Capacity = 4096 });
            var o = new TopicOptions { Label = "r", Durable = true };
            Subscriber.Open(s.Name, o).Dispose();
            TopicTests.Numbers(s.Publisher, 1, 2, 64);
            s.Slots[0].Cursor = 7;
            Check.Fails(ErrorKind.Corrupt, () => Subscriber.Open(s.Name, o));
            s.Slots[0].Cursor = 0;
            s.Slots[0].State = (long)(Facts.SlotDurable | Facts.SlotEjected);
            // Without MAY_EJECT nobody is ejected.
            Check.Fails(ErrorKind.Corrupt, () => Subscriber.Open(s.Name, o));
        }

        [Test]
        private static void AWriterThatLapsTheReaderTearsNothing()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            using Subscriber lossy = Subscriber.Open(name, TopicTests.By(Policy.Lossy)),
                latest = Subscriber.Open(name, TopicTests.By(Policy.Latest));
            bool stop = false;
            var writes = new Beside(() =>
            {
                byte[] bytes = new byte[200];
                while (!Volatile.Read(ref stop))
                {
                    bytes.AsSpan().Fill((byte)(publisher.Seq + 1));
                    publisher.Send(1, publisher.Seq + 1, bytes);
                }
            });
            ulong sum = 0, newest = 0, whole = 0;
            byte[] buffer = new byte[200];
            var watch = System.Diagnostics.Stopwatch.StartNew();
            while (watch.ElapsedMilliseconds < 1500)
            {
                if (lossy.TryRecv(out Message m))
                {
                    using (m)
                    {
                        sum += 1 + m.Lost;
                        Check.Equal(sum, m.Seq, "received and lost");
                        Same(m.Data, m.Seq, m.Tag);
                        whole++;
                    }
                }
                if (latest.TryReadLatest(buffer, out MessageInfo info))
                {
                    Check.That(info.Seq >= newest, "never back");
                    newest = info.Seq;
                    Same(buffer, info.Seq, info.Tag);
                }
            }
            Volatile.Write(ref stop, true);
            Check.Equal(null, writes.End(), "the writer");
            Check.That(whole > 100, "messages: " + whole);
        }

        private static void Same(ReadOnlySpan<byte> data, ulong seq, ulong tag)
        {
            Check.Equal(seq, tag, "the tag");
            foreach (byte b in data)
            {
                Check.That(b == (byte)seq, "torn: " + b + " in message " + seq);
            }
        }
    }
}
