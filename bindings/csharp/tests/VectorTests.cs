using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>Every image of a segment and of a topic of format/vectors, good and hostile, read by this port.</summary>
    internal static class VectorTests
    {
        [Test(Seconds = 180)]
        private static void NamedRings() => PlayAll(v => v.Kind == "ring", 300);

        [Test(Seconds = 180)]
        private static void Buses() => PlayAll(v => v.Kind == "bus", 50);

        [Test(Seconds = 180)]
        private static void RegionsAndListeners() => PlayAll(v => v.Kind == "region" || v.Kind == "listener", 30);

        [Test(Seconds = 180)]
        private static void Topics() => PlayAll(Vector.Topics(), 250);

        /// <summary>Those of a kind, and that they are at least so many.</summary>
        private static void PlayAll(Func<Vector, bool> wanted, int least) => PlayAll(Vector.Segments().Where(wanted), least);

        private static void PlayAll(IEnumerable<Vector> images, int least)
        {
            var plays = images.SelectMany(v => v.Readers.Select(r => (Image: v, Reader: r))).ToList();
            Check.That(plays.Count >= least, "only " + plays.Count + " readers in the vectors");
            var failures = new List<string>();
            // They mostly wait, so more at once than there are processors.
            var workers = Enumerable.Range(0, 12).Select(w => new Thread(() =>
            {
                for (int i = w; i < plays.Count; i += 12)
                {
                    try
                    {
                        using var play = new Play(plays[i].Image, plays[i].Reader);
                        play.Run();
                    }
                    catch (Exception e)
                    {
                        lock (failures)
                        {
                            failures.Add(plays[i].Image.Name + " as " + plays[i].Reader.As + ": " + e);
                        }
                    }
                }
            })).ToList();
            workers.ForEach(w => w.Start());
            workers.ForEach(w => w.Join());
            Check.That(failures.Count == 0, failures.Count + " of " + plays.Count + ": " + string.Join("\n", failures.Take(5)));
        }
    }

    /// <summary>One reader of one image.</summary>
    internal sealed unsafe class Play : IDisposable
    {
        private readonly Vector _image;
        private readonly VectorReader _reader;
        private readonly Folder _dir = new Folder();
        // The image's, for what the other side does and for what is left in it.
        private int _file = -1;
        private Action _hangUp = () => throw new CheckException("there is no socket");

        internal Play(Vector image, VectorReader reader)
        {
            _image = image;
            _reader = reader;
        }

        public void Dispose()
        {
            if (_file >= 0)
            {
                Files.Close(_file);
            }
            _dir.Dispose();
        }

        internal void Run()
        {
            if (_image.Kind == "bus")
            {
                Bus();
            }
            else if (_image.Kind == "topic")
            {
                Topic();
            }
            else if (_reader.As == "region")
            {
                Region();
            }
            else if (_reader.As == "listener")
            {
                Listener();
            }
            else
            {
                Ring();
            }
        }

        /// <summary>Fills the image in.</summary>
        private void Write(int file)
        {
            _file = file;
            Check.That(file >= 0 && Files.Truncate(file, _image.Size) == 0, "a file for the image");
            foreach (VectorRun run in _image.Bytes)
            {
                Check.Equal(0, Files.WriteAt(file, run.Hex, run.At), "writing the image");
            }
        }

        /// <summary>Writes the image to a file of this name.</summary>
        private string Make(string name)
        {
            int dir = Files.OpenDir(_dir.Path, true);
            Write(Files.CreateNew(dir, name));
            Files.Close(dir);
            foreach (long at in _reader.Held)
            {
                Check.Equal(1, Lock.Try(_file, Facts.ByteInUse, LockMode.Shared), "byte 0");
                Check.Equal(1, Lock.Try(_file, at, LockMode.Exclusive), "byte " + at);
            }
            return _dir.At(name);
        }

        /// <summary>
        /// Compares what opening gave; null: there is nothing more to look at but the name. early: an error that it may give as well.
        /// </summary>
        private T? Opened<T>(Func<T> open, string? early = null)
            where T : class
        {
            string said = "ok";
            T? opened = null;
            try
            {
                opened = open();
            }
            catch (RamwayException e)
            {
                said = e.Kind.ToString();
            }
            Check.Equal(said == early ? early : _reader.Open, said, "opening");
            return opened;
        }

        private void NameAfter(string path)
        {
            if (_reader.NameAfter.Length != 0)
            {
                Check.Equal(_reader.NameAfter, File.Exists(path) ? "stays" : "gone", "the name");
            }
        }

        private void Region()
        {
            string path = Make("region");
            Region? region = Opened(() => Ramway.Region.Open(path));
            if (region != null)
            {
                Check.Equal(_reader.Region, region.Length + " " + Crc32.Of(region.Data), "length and checksum");
                region.Dispose();
                Leaves();
            }
            NameAfter(path);
        }

        private void Listener()
        {
            string path = Make("bell.lock");
            Opened(() => Ramway.Listener.Bind(_dir.At("bell")))?.Dispose();
            NameAfter(path);
        }

        private void Ring()
        {
            string path = Make("ring");
            if (_reader.As == "consumer")
            {
                Closed(Opened(() => Receiver.Open(path)), Consume);
            }
            else
            {
                Closed(Opened(() => Sender.Open(path)), Produce);
            }
            NameAfter(path);
        }

        private void Topic()
        {
            string path = Make("topic");
            if (_reader.As == "publisher")
            {
                Closed(Opened(() => Publisher.Open(path)), p => Ends(() => p.TrySend(1, default) ? "sent" : "Full"));
            }
            else
            {
                // A subscriber may look at frames when it is opened.
                bool early = _reader.End == "Corrupt" && _reader.Then.Count == 0;
                Closed(Opened(() => Subscriber.Open(path, Subscribing()), early ? "Corrupt" : null), Subscribed);
            }
            NameAfter(path);
        }

        private TopicOptions Subscribing() => new TopicOptions
        {
            Policy = _reader.As == "lossy" ? Policy.Lossy : _reader.As == "latest" ? Policy.Latest : Policy.Reliable,
            Start = _reader.As == "lossy" ? Start.Oldest : default,
            Label = _reader.Label,
            Durable = _reader.Label != null,
        };

        private void Subscribed(Subscriber rx)
        {
            Then();
            if (_reader.Lagged.Length != 0)
            {
                RamwayException e = Check.Fails(ErrorKind.Lagged, () => rx.TryRecv(out _));
                Check.Equal(_reader.Lagged, e.Lost.ToString(CultureInfo.InvariantCulture), "lagged by");
            }
            foreach (string expected in _reader.Messages)
            {
                Check.That(rx.TryRecv(out Message m), "no message where this one is expected: " + expected);
                Check.Equal(expected, $"{Said(m)} {m.Seq} {m.Lost}", "a message");
                m.Dispose();
            }
            Ends(() =>
            {
                if (_reader.End == "PeerDead")
                {
                    // A death is learned of by a wait.
                    rx.Recv(Wait.Long).Dispose();
                }
                return rx.TryRecv(out _) ? "a message more" : "Empty";
            });
            if (_reader.End == "Corrupt")
            {
                Check.Fails(ErrorKind.Corrupt, () => rx.TryRecv(out _));
            }
        }

        /// <summary>Compares what the last call gives.</summary>
        private void Ends(Func<string> call)
        {
            string end;
            try
            {
                end = call();
            }
            catch (RamwayException e)
            {
                end = e.Kind.ToString();
            }
            Check.Equal(_reader.End, end, "the end");
        }

        private static string Said(Message m) =>
            m.TypeId + " " + m.Tag.ToString(CultureInfo.InvariantCulture) + " " + m.Length + " " + Crc32.Of(m.Data);

        /// <summary>A listener that sends the image as a bus's memory.</summary>
        private void Bus()
        {
            int memory = Memfd.New("ramway-vector");
            Write(memory);
            Check.Equal(0, Libc.Result(Libc.fcntl(memory, 1033, 1L | 2 | 4)), "F_ADD_SEALS: SEAL, SHRINK, GROW");
            string path = _dir.At("bus");
            using RawSocket listener = RawSocket.Listen(path);
            RawSocket? peer = null;
            uint status = 0;
            Task served = Task.Factory.StartNew(() =>
            {
                peer = listener.Accept() ?? throw new CheckException("nobody connected");
                peer.Message();
                peer.Send(RawSocket.Encoded(HandshakeType.Welcome, 0, (ulong)_image.Size), memory);
                status = BitConverter.ToUInt32(peer.Message(), 0x14);
            }, TaskCreationOptions.LongRunning);
            Bus? bus = Opened(() => Ramway.Bus.Connect(path, new ConnectOptions { Timeout = Wait.Long }));
            served.Wait();
            using (peer)
            {
                _hangUp = () => peer!.Dispose();
                Check.Equal(_reader.Open, status == 0 ? "ok" : ((ErrorKind)status).ToString(), "ACK");
                if (bus == null)
                {
                    return;
                }
                if (_reader.As == "consumer")
                {
                    Consume(bus.Receiver);
                }
                else
                {
                    Produce(bus.Sender);
                }
                bus.Dispose();
                Leaves();
            }
        }

        private void Closed<T>(T? end, Action<T> use)
            where T : RingEnd
        {
            if (end != null)
            {
                use(end);
                end.Dispose();
                Leaves();
            }
        }

        private void Attached(RingEnd end)
        {
            if (_reader.Attached.Length != 0)
            {
                Check.Equal(_reader.Attached, end.Epoch + " " + end.PeerEpoch + " " + end.Capacity + " " + end.MaxMessageLength,
                    "epochs, capacity and longest message");
            }
            if (_reader.When == "paused")
            {
                Then();
            }
        }

        /// <summary>What the other side does.</summary>
        private void Then()
        {
            foreach (VectorRun run in _reader.Then)
            {
                int size = run.Hex.Length;
                if (size != 4 && size != 8 || run.At % size != 0)
                {
                    Check.Equal(0, Files.WriteAt(_file, run.Hex, run.At), "poking");
                    continue;
                }
                long page = run.At / Memory.PageSize * Memory.PageSize;
                Check.Equal(0, Memory.Map(_file, page, Memory.PageSize, 1, true, out byte* at), "mapping");
                byte* word = at + (run.At - page);
                if (size == 8)
                {
                    Volatile.Write(ref *(ulong*)word, BitConverter.ToUInt64(run.Hex, 0));
                }
                else
                {
                    Volatile.Write(ref *(uint*)word, BitConverter.ToUInt32(run.Hex, 0));
                }
                Memory.Unmap(at, Memory.PageSize);
            }
            if (_reader.HangUp)
            {
                _hangUp();
            }
        }

        private void Consume(Receiver rx)
        {
            Attached(rx);
            Task? poked = null;
            if (_reader.When == "waiting")
            {
                poked = Task.Factory.StartNew(() =>
                {
                    Thread.Sleep(50);
                    Then();
                }, TaskCreationOptions.LongRunning);
            }
            // Nothing more to come is waited for longer than an ending takes that is none here.
            TimeSpan waitMax = _reader.End == "TimedOut" ? TimeSpan.FromMilliseconds(300) : Wait.Long;
            var found = new List<string>();
            string end = "";
            while (end.Length == 0)
            {
                try
                {
                    using Message m = rx.Recv(waitMax);
                    found.Add(Said(m));
                    Check.That(found.Count <= _reader.Messages.Count, "more messages: " + found.Last());
                }
                catch (RamwayException e)
                {
                    end = e.Kind.ToString();
                }
            }
            poked?.Wait();
            Check.Equal(string.Join(", ", _reader.Messages), string.Join(", ", found), "messages");
            Check.Equal(_reader.End, end, "the end");
            if (end == "Corrupt")
            {
                Check.Fails(ErrorKind.Corrupt, () => rx.TryRecv(out _));
            }
        }

        private void Produce(Sender tx)
        {
            Attached(tx);
            if (_reader.Last.Length != 0)
            {
                Check.Equal(_reader.Last, tx.LastTag?.ToString(CultureInfo.InvariantCulture) ?? "none", "the last tag");
            }
            byte[] payload = Enumerable.Range(0, _reader.Send).Select(i => (byte)i).ToArray();
            Ends(() => tx.TrySend(0, (ulong)Crc32.Of(payload) << 32, payload) ? "sent" : "Full");
            if (_reader.End == "Corrupt")
            {
                Check.Fails(ErrorKind.Corrupt, () => tx.TrySend(0, default));
            }
        }

        /// <summary>Compares the bytes of the file.</summary>
        private void Leaves()
        {
            foreach (VectorRun run in _reader.Leaves)
            {
                byte[] found = new byte[run.Hex.Length];
                Check.Equal(found.Length, Files.ReadAt(_file, found, run.At), "reading what is left");
                Check.Same(Masked(run.Hex, run.Mask), Masked(found, run.Mask), "what is left at 0x" + run.At.ToString("x"));
            }
        }

        private static byte[] Masked(byte[] bytes, byte[] mask) => bytes.Select((b, i) => (byte)(b & mask[i])).ToArray();
    }
}
