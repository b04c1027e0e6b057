using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway.Tests
{
    internal static class HostileBusTests
    {
        private const int SealSeal = 1, SealShrink = 2, SealGrow = 4, SealWrite = 8;
        private const int All = SealSeal | SealShrink | SealGrow;
        private const int Size = Facts.HeaderSize + 2 * 4096;

        /// <summary>A listener whose buses are collected in the background.</summary>
        private static Listener Listening(string path, ListenOptions options, List<Bus> buses)
        {
            Listener listener = Listener.Bind(path, options);
            _ = Collect(listener, buses);
            return listener;
        }

        private static async Task Collect(Listener listener, List<Bus> buses)
        {
            await foreach (Bus bus in listener.AcceptAllAsync())
            {
                lock (buses)
                {
                    buses.Add(bus);
                }
            }
        }

        private static Bus Next(List<Bus> buses)
        {
            Bus? next = null;
            Wait.Until("a bus is accepted", () =>
            {
                lock (buses)
                {
                    next = buses.FirstOrDefault();
                    return buses.Remove(next!);
                }
            });
            return next!;
        }

        /// <summary>What a connector is refused with, after which the other side must hang up.</summary>
        private static ErrorKind Refusal(RawSocket socket)
        {
            RamwayException? error = Handshake.Decode(socket.Message(), HandshakeType.Refuse, out uint status, out _);
            Check.That(error == null, "the answer is no refusal: " + error?.Message);
            Check.Equal(0, socket.Read(new byte[1]), "bytes after the refusal");
            return (ErrorKind)status;
        }

        [Test]
        internal static void WhatConnectorsDoWrongIsRefusedAndHoldsUpNobody()
        {
            int before = RawSocket.OpenDescriptors("socket:", "/memfd:ramway-bus");
            using var folder = new Folder();
            var buses = new List<Bus>();
            var options = new ListenOptions { Capacity = 4096, HandshakeTimeout = TimeSpan.FromMilliseconds(300) };
            using Listener listener = Listening(folder.At("target"), options, buses);
            int root = Files.OpenDir("/", true);
            byte[] good = RawSocket.Encoded(HandshakeType.Hello);
            // More silent ones than there are places.
            RawSocket[] silent = Enumerable.Range(0, Facts.HandshakesMax + 10).Select(_ => RawSocket.Dial(listener.Path)).ToArray();
            foreach ((string what, byte[] message, int descriptors, ErrorKind kind) in new[]
            {
                ("another magic", RawSocket.Changed(HandshakeType.Hello, 0, (byte)'X'), 0, ErrorKind.AbiMismatch),
                ("another byte order", RawSocket.Changed(HandshakeType.Hello, 8, 9), 0, ErrorKind.AbiMismatch),
                ("another version", RawSocket.Changed(HandshakeType.Hello, 0x0C, 2), 0, ErrorKind.AbiMismatch),
                ("a feature", RawSocket.Changed(HandshakeType.Hello, 0x18, 1), 0, ErrorKind.AbiMismatch),
                ("another type", RawSocket.Changed(HandshakeType.Hello, 0x10, 4), 0, ErrorKind.Corrupt),
                ("a descriptor", good, 1, ErrorKind.Corrupt),
                ("many descriptors", good, 20, ErrorKind.Corrupt),
                ("half of it", good.AsSpan(0, 32).ToArray(), 0, ErrorKind.TimedOut),
                ("nothing", new byte[0], 0, ErrorKind.TimedOut),
            })
            {
                using RawSocket socket = RawSocket.Dial(listener.Path);
                if (message.Length != 0)
                {
                    socket.Send(message, Enumerable.Repeat(root, descriptors).ToArray());
                }
                Check.Equal(kind, Refusal(socket), what);
            }
            foreach (RawSocket socket in silent)
            {
                Check.Equal(ErrorKind.TimedOut, Refusal(socket), "silence");
                socket.Dispose();
            }
            // One that says that it cannot use the memory, one with a descriptor, one that says nothing, and one that goes.
            foreach (Action<RawSocket> last in new Action<RawSocket>[]
            {
                socket => socket.Send(RawSocket.Encoded(HandshakeType.Ack, ErrorKind.NoSpace)),
                socket => socket.Send(RawSocket.Encoded(HandshakeType.Ack), root),
                socket => { },
                socket => socket.ShutDown(),
            })
            {
                using RawSocket socket = RawSocket.Dial(listener.Path);
                socket.Send(good);
                RamwayException? error = Handshake.Decode(socket.Message(), HandshakeType.Welcome, out _, out ulong size);
                Check.That(error == null, "welcome: " + error?.Message);
                Check.Equal((ulong)Size, size, "the size announced");
                last(socket);
                Check.Equal(0, socket.Read(new byte[1]), "bytes after that");
            }
            Check.Equal(0, buses.Count, "accepted of them");
            // A slow but honest one, a byte at a time.
            using (RawSocket socket = RawSocket.Dial(listener.Path))
            {
                for (int i = 0; i < good.Length; i++)
                {
                    socket.Send(good.AsSpan(i, 1));
                }
                socket.Message();
                byte[] yes = RawSocket.Encoded(HandshakeType.Ack);
                for (int i = 0; i < yes.Length; i++)
                {
                    socket.Send(yes.AsSpan(i, 1));
                }
                using Bus slow = Next(buses);
                socket.Dispose();
                Check.Fails(ErrorKind.PeerDead, () => slow.Receiver.Recv(Wait.Long));
            }
            // And an ordinary one.
            using (Bus theirs = Bus.Connect(listener.Path))
            {
                Next(buses).Dispose();
            }
            Wait.Until("all others were counted: " + listener.Refused, () => listener.Refused == Facts.HandshakesMax + 10 + 9 + 4);
            Check.That(listener.LastRefusal != null, "why the last one was refused");
            listener.Dispose();
            Files.Close(root);
            Check.Equal(before, RawSocket.OpenDescriptors("socket:", "/memfd:ramway-bus"), "descriptors that are left");
        }

        [Test]
        internal static void ASilentConnectorHoldsUpNobody()
        {
            using var folder = new Folder();
            var buses = new List<Bus>();
            var options = new ListenOptions { HandshakeTimeout = Timeout.InfiniteTimeSpan };
            using Listener listener = Listening(folder.At("silent"), options, buses);
            RawSocket[] silent = Enumerable.Range(0, Facts.HandshakesMax - 1).Select(_ => RawSocket.Dial(listener.Path)).ToArray();
            // And one that stops in the middle, once it is welcome.
            silent[0].Send(RawSocket.Encoded(HandshakeType.Hello));
            silent[0].Message();
            var watch = System.Diagnostics.Stopwatch.StartNew();
            for (int i = 0; i < 20; i++)
            {
                using Bus theirs = Bus.Connect(listener.Path);
                Next(buses).Dispose();
            }
            Check.That(watch.ElapsedMilliseconds < 5000, "20 connections took " + watch.ElapsedMilliseconds + " ms");
            Array.ForEach(silent, socket => socket.Dispose());
            Wait.Until("they have given up", () => listener.Refused == Facts.HandshakesMax - 1);
        }

        [Test]
        internal static void TimesDoNotBeginAnewWithEachByte()
        {
            using var folder = new Folder();
            var buses = new List<Bus>();
            var options = new ListenOptions { HandshakeTimeout = TimeSpan.FromMilliseconds(200) };
            using Listener listener = Listening(folder.At("drip"), options, buses);
            byte[] good = RawSocket.Encoded(HandshakeType.Hello);
            using RawSocket socket = RawSocket.Dial(listener.Path);
            var watch = System.Diagnostics.Stopwatch.StartNew();
            for (int i = 0; listener.Refused == 0; i++)
            {
                Check.That(i < good.Length, "served after " + watch.Elapsed);
                if (Sockets.Send(socket.Fd, good.AsSpan(i, 1), -1) == 0)
                {
                    Thread.Sleep(30);
                }
            }
            Check.Equal(ErrorKind.TimedOut, listener.LastRefusal!.Kind, "why: " + listener.LastRefusal.Message);
        }

        /// <summary>A listener that answers HELLO with what it is told, and collects the acknowledgements.</summary>
        private static RawSocket Hostile(string path, Action<RawSocket> respond, Queue<ErrorKind> acks)
        {
            RawSocket listening = RawSocket.Listen(path);
            var thread = new Thread(() =>
            {
                while (true)
                {
                    using RawSocket? socket = listening.Accept();
                    if (socket == null)
                    {
                        return;
                    }
                    byte[] message = new byte[Facts.HandshakeSize];
                    if (socket.Read(message) < message.Length)
                    {
                        continue;
                    }
                    respond(socket);
                    if (socket.Read(message) == message.Length)
                    {
                        Handshake.Decode(message, HandshakeType.Ack, out uint status, out _);
                        lock (acks)
                        {
                            acks.Enqueue((ErrorKind)status);
                        }
                    }
                }
            });
            thread.IsBackground = true;
            thread.Start();
            return listening;
        }

        private static byte[] Page(Action<byte[]> change)
        {
            byte[] page = Header.Format(Spec.Bus(4096, 4096, 16));
            change(page);
            return page;
        }

        [Test]
        internal static void WhatAListenerSendsIsDistrusted()
        {
            byte[] page = Page(_ => { });
            int fine = MemfdTests.Memory(Size, All, page);
            using var files = new Folder();
            System.IO.File.WriteAllBytes(files.At("file"), page.Concat(new byte[8192]).ToArray());
            int regular = Files.OpenWith(Files.WorkingDirectory, files.At("file"), 2);
            int nothing = Files.OpenWith(Files.WorkingDirectory, "/dev/null", 2);
            Action<RawSocket> Answer(HandshakeType type, ulong announced, params int[] descriptors) =>
                socket => socket.Send(RawSocket.Encoded(type, 0, announced), descriptors);
            Action<RawSocket> Welcome(params int[] descriptors) => Answer(HandshakeType.Welcome, Size, descriptors);
            Action<RawSocket> Memory(Action<byte[]> change) => Welcome(MemfdTests.Memory(Size, All, Page(change)));
            Action<RawSocket> Last(byte[] bytes) => socket =>
            {
                if (bytes.Length != 0)
                {
                    socket.Send(bytes);
                }
                socket.ShutDown();
            };
            byte[] refusal = RawSocket.Encoded(HandshakeType.Refuse, ErrorKind.NoSpace);
            foreach ((string what, Action<RawSocket> respond, ErrorKind kind, bool acknowledged) in new[]
            {
                ("no descriptor", Welcome(), ErrorKind.Corrupt, false),
                ("two descriptors", Welcome(fine, fine), ErrorKind.Corrupt, false),
                ("ten descriptors", Welcome(Enumerable.Repeat(fine, 10).ToArray()), ErrorKind.Corrupt, false),
                ("a device", Welcome(nothing), ErrorKind.Corrupt, true),
                ("a regular file", Welcome(regular), ErrorKind.Corrupt, true),
                ("no seals", Welcome(MemfdTests.Memory(Size, 0, page)), ErrorKind.Corrupt, true),
                ("can still grow", Welcome(MemfdTests.Memory(Size, SealShrink | SealSeal, page)), ErrorKind.Corrupt, true),
                ("can still shrink", Welcome(MemfdTests.Memory(Size, SealGrow | SealSeal, page)), ErrorKind.Corrupt, true),
                ("sealed against writing", Welcome(MemfdTests.Memory(Size, All | SealWrite, page)), ErrorKind.Corrupt, true),
                ("another size than it has", Answer(HandshakeType.Welcome, 2 * Size, fine), ErrorKind.Corrupt, true),
                ("a size beyond all", Answer(HandshakeType.Welcome, ulong.MaxValue, fine), ErrorKind.Corrupt, true),
                ("less than a page", Answer(HandshakeType.Welcome, 100, MemfdTests.Memory(100, All)), ErrorKind.Corrupt, true),
                ("nothing at all", Answer(HandshakeType.Welcome, 0, MemfdTests.Memory(0, All)), ErrorKind.Corrupt, true),
                ("not a segment", Welcome(MemfdTests.Memory(Size, All)), ErrorKind.AbiMismatch, true),
                ("another version", Memory(p => p[Facts.OffVersionMajor] = 9), ErrorKind.AbiMismatch, true),
                ("a ring", Memory(p => p[Facts.OffKind] = (byte)SegmentKind.Ring), ErrorKind.Corrupt, true),
                ("rings that overlap", Memory(p => Array.Copy(p, Facts.Block0, p, Facts.Block1, 8)), ErrorKind.Corrupt, true),
                ("rings outside of it", Memory(p => p[Facts.Block1 + 5] = 0x70), ErrorKind.Corrupt, true),
                ("no ring at all", Memory(p =>
                {
                    Array.Clear(p, Facts.Block0 + 8, 8);
                    Array.Clear(p, Facts.Block1 + 8, 8);
                }), ErrorKind.Corrupt, true),
                ("positions that cannot be", Memory(p => p[Facts.Block0 + 0x80] = 3), ErrorKind.Corrupt, true),
                ("positions of the other ring", Memory(p => p[Facts.Block1 + 0x101] = 0x40), ErrorKind.Corrupt, true),
                ("a message of another type", Answer(HandshakeType.Hello, Size, fine), ErrorKind.Corrupt, false),
                ("a refusal", Last(refusal), ErrorKind.NoSpace, false),
                ("another handshake's version", Last(RawSocket.Changed(HandshakeType.Welcome, 0x0C, 2)), ErrorKind.AbiMismatch, false),
                ("another magic", Last(new byte[Facts.HandshakeSize]), ErrorKind.AbiMismatch, false),
                ("the end in mid-message", Last(refusal.AsSpan(0, 33).ToArray()), ErrorKind.PeerDead, false),
                ("the end before any message", Last(new byte[0]), ErrorKind.NotFound, false),
                ("it is too busy", Last(RawSocket.Encoded(HandshakeType.Refuse, ErrorKind.TimedOut)), ErrorKind.TimedOut, false),
                ("silence", socket => { }, ErrorKind.TimedOut, false),
                ("a message that never goes on", socket => socket.Send(refusal.AsSpan(0, 5)), ErrorKind.TimedOut, false),
            })
            {
                using var folder = new Folder();
                var acks = new Queue<ErrorKind>();
                using RawSocket listening = Hostile(folder.At("hostile"), respond, acks);
                int before = RawSocket.OpenDescriptors("/memfd:", "/dev/null");
                bool tries = kind == ErrorKind.TimedOut || kind == ErrorKind.NotFound;
                var options = new ConnectOptions { Timeout = tries ? TimeSpan.FromMilliseconds(200) : Wait.Long };
                try
                {
                    Bus.Connect(folder.At("hostile"), options).Dispose();
                    Check.That(false, what + " was accepted");
                }
                catch (RamwayException e)
                {
                    // Who is hung up on tries again until the deadline, which may come in the middle of a try.
                    bool also = kind == ErrorKind.NotFound && e.Kind == ErrorKind.TimedOut;
                    Check.That(e.Kind == kind || also, what + ": " + e.Kind + ", expected " + kind + ": " + e.Message);
                }
                Check.Equal(before, RawSocket.OpenDescriptors("/memfd:", "/dev/null"), what + ": descriptors that are left");
                if (acknowledged)
                {
                    ErrorKind acked = 0;
                    Wait.Until(what + " is acknowledged", () =>
                    {
                        lock (acks)
                        {
                            return acks.TryDequeue(out acked);
                        }
                    });
                    Check.Equal(kind, acked, what + ": acknowledged");
                }
            }
        }

        [Test]
        internal static void AListenerThatHangsUpAfterTheAcknowledgementHasConnected()
        {
            using var folder = new Folder();
            // One message and the closed flag are in the memory before it is sent.
            byte[] page = Page(p => p[Facts.Block0 + Facts.OffProducer + 4] = (byte)Facts.RoleClosed);
            page[Facts.Block0 + Facts.OffProducer + 8] = 1;
            page[Facts.Block0 + Facts.OffTail] = 32;
            int memory = MemfdTests.Memory(Size, All, page);
            Files.WriteAt(memory, new byte[] { 1, 0, 0, 0, 9, 0, 0, 0 }, 4096);
            using RawSocket listening = Hostile(folder.At("brief"),
                socket => socket.Send(RawSocket.Encoded(HandshakeType.Welcome, 0, Size), memory), new Queue<ErrorKind>());
            using Bus bus = Bus.Connect(folder.At("brief"));
            using (Message message = bus.Receiver.Recv(Wait.Long))
            {
                Check.Equal(9u, message.TypeId, "type");
                Check.Equal(1, message.Length, "length");
            }
            Check.Fails(ErrorKind.Closed, () => bus.Receiver.Recv(Wait.Long));
        }
    }
}
