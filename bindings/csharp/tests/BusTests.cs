using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    internal static class BusTests
    {
        /// <summary>A user that nothing belongs to.</summary>
        private const uint OtherUid = 54321;

        private static readonly ListenOptions Small = new ListenOptions { Capacity = 4096 };

        /// <summary>The bus that a helper's arguments say: listen or connect, and where.</summary>
        private static Bus HelperBus(string[] arguments) => arguments[0] == "listen"
            ? Bus.Listen(arguments[1], Small, Wait.Long)
            : Bus.Connect(arguments[1], new ConnectOptions { Timeout = Wait.Long });

        /// <summary>Returns every message until the other side closes.</summary>
        [Helper("bus-echo")]
        internal static void Echo(string[] arguments)
        {
            using Bus bus = HelperBus(arguments);
            while (true)
            {
                try
                {
                    using Message message = bus.Receiver.Recv();
                    bus.Sender.Send(message.TypeId, message.Tag, message.Data);
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.Closed)
                {
                    return;
                }
            }
        }

        /// <summary>Sends three messages, and then waits to be killed or told to end.</summary>
        [Helper("bus-say")]
        internal static void SayAndWait(string[] arguments)
        {
            using Bus bus = HelperBus(arguments);
            for (int i = 0; i < 3; i++)
            {
                bus.Sender.Send(7, (ulong)i, Encoding.UTF8.GetBytes("last words"));
            }
            Peer.Say("sent");
            Peer.Told();
        }

        /// <summary>Connects as another user, and says how that ends.</summary>
        [Helper("bus-other")]
        internal static void ConnectAsAnother(string[] arguments)
        {
            string end = "";
            // The other user may not read the runtime's files: once through all of it before.
            using (var folder = new Folder())
            using (Listener own = Listener.Bind(folder.At("own")))
            {
                var connecting = Bus.ConnectAsync(own.Path);
                own.Accept(Wait.Long).Dispose();
                connecting.GetAwaiter().GetResult().Dispose();
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(own.Path));
            }
            var other = new Thread(() =>
            {
                // The system call is this thread's alone, and the kernel records whose the thread is that connects.
                Check.Equal(0L, Libc.syscall(Libc.IsArm64 ? 146 : 105, OtherUid, 0, 0, 0, 0, 0), "setuid");
                try
                {
                    using Bus bus = Bus.Connect(arguments[0], new ConnectOptions { AllowUids = new uint[] { 0 } });
                    end = "connected";
                }
                catch (RamwayException e)
                {
                    end = e.Kind.ToString();
                }
            });
            other.Start();
            other.Join();
            Peer.Say(end);
        }

        /// <summary>Makes a bus whose other end is a helper, which listens or connects.</summary>
        private static Bus Meet(string at, string helper, bool itListens, out Peer peer)
        {
            peer = Peer.Start(helper, itListens ? "listen" : "connect", at);
            Bus bus = itListens
                ? Bus.Connect(at, new ConnectOptions { Timeout = Wait.Long })
                : Bus.Listen(at, Small, Wait.Long);
            Check.Equal(peer.Pid, bus.PeerPid, "the peer's process");
            Check.Equal(Libc.geteuid(), bus.PeerUid, "the peer's user");
            Check.That(bus.PeerAlive, "the peer is alive");
            return bus;
        }

        [Test]
        internal static void TwoProcessesTalkOverABus()
        {
            int before = RawSocket.OpenDescriptors("socket:", "/memfd:ramway-bus");
            foreach (bool itListens in new[] { false, true })
            {
                using var folder = new Folder();
                Bus bus = Meet(folder.At("echo"), "bus-echo", itListens, out Peer peer);
                byte[] sent = new byte[2000];
                for (int i = 0; i < 1000; i++)
                {
                    int length = i * 7 % 2000;
                    sent.AsSpan(0, length).Fill((byte)i);
                    bus.Sender.Send((uint)i, (ulong)i << 40, sent.AsSpan(0, length), Wait.Long);
                    using Message back = bus.Receiver.Recv(Wait.Long);
                    Check.Equal((uint)i, back.TypeId, "type");
                    Check.Equal((ulong)i << 40, back.Tag, "tag");
                    Check.Same(sent.AsSpan(0, length), back.Data, "message " + i);
                }
                bus.Sender.Dispose();
                Check.Fails(ErrorKind.Closed, () => bus.Receiver.Recv(Wait.Long));
                peer.Finish();
                Wait.Until("the peer is seen to be gone", () => !bus.PeerAlive);
                bus.Dispose();
                bus.Dispose();
                Check.That(!bus.PeerAlive, "alive after Dispose");
                Check.Fails(ErrorKind.Detached, () => bus.Receiver.Recv(Wait.Long));
                Check.Fails(ErrorKind.Detached, () => bus.Sender.Send(1, default));
                folder.Holds();
                int after = RawSocket.OpenDescriptors("socket:", "/memfd:ramway-bus");
                Check.Equal(before, after, "descriptors that stay open");
            }
        }

        [Test]
        internal static void AKilledPeerIsNoticedAfterItsLastMessage()
        {
            foreach (bool itListens in new[] { false, true })
            {
                using var folder = new Folder();
                using Bus bus = Meet(folder.At("killed"), "bus-say", itListens, out Peer peer);
                peer.Expect("sent");
                peer.Kill();
                var watch = Stopwatch.StartNew();
                for (ulong i = 0; i < 3; i++)
                {
                    using Message message = bus.Receiver.Recv(Wait.Long);
                    Check.Equal(i, message.Tag, "tag");
                    Check.Same(Encoding.UTF8.GetBytes("last words"), message.Data, "message");
                }
                Check.Fails(ErrorKind.PeerDead, () => bus.Receiver.Recv(Wait.Long));
                Check.That(watch.Elapsed < TimeSpan.FromSeconds(20), "noticed after " + watch.Elapsed);
                // The sending half learns it when it has to wait.
                Check.Fails(ErrorKind.PeerDead, () =>
                {
                    while (true)
                    {
                        bus.Sender.Send(1, 0, new byte[1000], Wait.Long);
                    }
                });
                Check.That(!bus.PeerAlive, "the peer is dead and counts as alive");
            }
        }

        [Test]
        internal static void ABlockedReceiverLearnsOfADeathInTime()
        {
            foreach (bool itListens in new[] { false, true })
            {
                using var folder = new Folder();
                using Bus bus = Meet(folder.At("blocked"), "bus-say", itListens, out Peer peer);
                for (int i = 0; i < 3; i++)
                {
                    bus.Receiver.Recv(Wait.Long).Dispose();
                }
                var watch = new Stopwatch();
                var killer = new Thread(() =>
                {
                    Thread.Sleep(250);
                    peer.Kill();
                    watch.Start();
                });
                killer.Start();
                Check.Fails(ErrorKind.PeerDead, () => bus.Receiver.Recv(Wait.Long));
                killer.Join();
                // 200 ms by design; the machine may be busy.
                Check.That(watch.ElapsedMilliseconds < 20_000, "learned after " + watch.ElapsedMilliseconds + " ms");
            }
        }

        [Test]
        internal static void OneDirectionCanBeLeftOut()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("one-way"), new ListenOptions { ToPeer = 5000, Align = 64 });
            var connecting = Bus.ConnectAsync(listener.Path, new ConnectOptions { Wait = WaitMode.Block });
            using Bus ours = listener.Accept(Wait.Long);
            using Bus theirs = connecting.GetAwaiter().GetResult();
            Check.That(ours.HasSender && !ours.HasReceiver && !theirs.HasSender && theirs.HasReceiver, "the wrong halves");
            Check.Equal(8192L, ours.Sender.Capacity, "capacity");
            Check.Equal(64, ours.Sender.Align, "alignment");
            Check.Fails(ErrorKind.Unsupported, () => theirs.Sender.Flush(), "is receive-only");
            Check.Fails(ErrorKind.Unsupported, () => ours.Receiver.Recv(), "is send-only");
            Check.That(ours.Sender.TrySend(3, new byte[] { 1, 2 }), "sent");
            using Message message = theirs.Receiver.Recv(Wait.Long);
            Check.Same(new byte[] { 1, 2 }, message.Data, "message");
        }

        [Test]
        internal static void ImpossibleListenersAreRefused()
        {
            using var folder = new Folder();
            string x = folder.At("x");
            foreach ((string what, string name, ListenOptions options) in new[]
            {
                ("both ways of saying a capacity", x, new ListenOptions { Capacity = 4096, ToPeer = 4096 }),
                ("a negative capacity", x, new ListenOptions { Capacity = -1 }),
                ("an odd alignment", x, new ListenOptions { Align = 24 }),
                ("not a wait mode", x, new ListenOptions { Wait = WaitMode.Block + 1 }),
                ("a negative time", x, new ListenOptions { HandshakeTimeout = TimeSpan.FromSeconds(-2) }),
                ("no backlog", x, new ListenOptions { Backlog = 0 }),
                ("too many permissions", x, new ListenOptions { Mode = 4096 }),
                ("a name that ends in .lock", "x.lock", new ListenOptions()),
                ("a name that cannot be", "a name", new ListenOptions()),
                ("an empty name", "", new ListenOptions()),
                ("a path that is a directory", folder.Path + "/", new ListenOptions()),
                ("a NUL in a path", folder.At("x\0y"), new ListenOptions()),
                ("half a surrogate pair", folder.At("x\ud83d"), new ListenOptions()),
                ("a file name that is too long", folder.At(new string('n', 120)), new ListenOptions()),
                ("one that is too long in UTF-8", folder.At(new string('é', 60)), new ListenOptions()),
            })
            {
                try
                {
                    Listener.Bind(name, options).Dispose();
                    Check.That(false, what + " was taken");
                }
                catch (RamwayException e)
                {
                    Check.Equal(ErrorKind.InvalidArgument, e.Kind, what + ": " + e.Message);
                }
            }
            Check.Fails(ErrorKind.NoSpace, () => Listener.Bind(x, new ListenOptions { Capacity = long.MaxValue }));
            Check.Fails(ErrorKind.InvalidArgument, () => Bus.Connect(x, new ConnectOptions { Timeout = TimeSpan.FromSeconds(-2) }));
            Check.Fails(ErrorKind.InvalidArgument, () => Bus.Connect("a name"));
            Check.Throws<ArgumentNullException>(() => Listener.Bind(null!));
            Check.Throws<ArgumentNullException>(() => Bus.Connect(null!));
            folder.Holds();
        }

        [Test]
        internal static void NamesInAnyScriptAreTaken()
        {
            using var folder = new Folder();
            foreach (string name in new[] { "zählwerk", "カメラ", "😀", "with space", "new\nline", "@at", "-rf", "*", "a.lock" })
            {
                Bus bus = Meet(folder.At(name), "bus-say", true, out Peer peer);
                peer.Expect("sent");
                bus.Receiver.Recv(Wait.Long).Dispose();
                bus.Dispose();
                peer.Finish();
            }
            folder.Holds();
        }

        [Test]
        internal static void DisposeEndsTheWaitsOfOtherThreads()
        {
            using var folder = new Folder();
            Bus bus = Meet(folder.At("close"), "bus-say", false, out Peer peer);
            for (int i = 0; i < 3; i++)
            {
                bus.Receiver.Recv(Wait.Long).Dispose();
            }
            RamwayException? end = null;
            var waiting = new Thread(() => end = Check.Fails(ErrorKind.Detached, () => bus.Receiver.Recv()));
            waiting.Start();
            Thread.Sleep(50);
            bus.Dispose();
            Check.That(waiting.Join(Wait.Long) && end != null, "the wait did not end");
            peer.Finish();
        }

        [Test]
        internal static void PathsThatDoNotFitIntoAnAddress()
        {
            using var folder = new Folder();
            string deep = folder.Path;
            while (deep.Length <= 120)
            {
                deep += "/" + new string('d', 30);
            }
            Directory.CreateDirectory(deep);
            string? told = Environment.GetEnvironmentVariable("RAMWAY_DIR");
            Environment.SetEnvironmentVariable("RAMWAY_DIR", deep);
            try
            {
                foreach (string name in new[] { deep + "/socket", "by-name" })
                {
                    foreach (bool itListens in new[] { true, false })
                    {
                        using Bus bus = Meet(name, "bus-say", itListens, out Peer peer);
                        peer.Expect("sent");
                        bus.Receiver.Recv(Wait.Long).Dispose();
                        peer.Finish();
                    }
                }
            }
            finally
            {
                Environment.SetEnvironmentVariable("RAMWAY_DIR", told);
            }
            Check.Equal(0, Directory.GetFileSystemEntries(deep).Length, "what is left");
        }

        [Test]
        internal static void OtherUsersAreServedOnlyIfTheyAreNamed()
        {
            using var folder = new Folder();
            Check.Equal(0, chmod(Libc.CString(folder.Path), 0x1ED), "chmod 0755");
            uint before = umask(0x3F);
            using Listener open = Listener.Bind(folder.At("open"), new ListenOptions { AllowUids = new[] { OtherUid } });
            umask(before);
            using Listener closed = Listener.Bind(folder.At("closed"), new ListenOptions { Mode = 0x1B6 });
            using Listener own = Listener.Bind(folder.At("own"));
            foreach ((Listener listener, uint mode) in new[] { (open, 0x1B6u), (closed, 0x1B6u), (own, 0x180u) })
            {
                Check.Equal(0, Files.StatAt(Files.WorkingDirectory, listener.Path, out Stat stat), "stat");
                Check.That(stat.IsSocket, listener.Path + " is " + stat.Describe());
                Check.Equal(mode, stat.Permissions, "the mode of " + listener.Path);
            }
            if (Libc.geteuid() != 0)
            {
                throw new SkipException("only root can be another user");
            }
            foreach ((Listener listener, string end) in new[]
            {
                (open, "connected"), (closed, "PermissionDenied"), (own, "PermissionDenied"),
            })
            {
                using var cancel = new CancellationTokenSource();
                var accepting = listener.AcceptAsync(cancel.Token);
                using Peer peer = Peer.Start("bus-other", listener.Path);
                peer.Expect(end);
                if (end == "connected")
                {
                    using Bus bus = accepting.GetAwaiter().GetResult();
                    Check.Equal(OtherUid, bus.PeerUid, "the peer's user");
                }
                else
                {
                    cancel.Cancel();
                    Check.Throws<OperationCanceledException>(() => accepting.GetAwaiter().GetResult());
                }
                peer.Finish();
            }
            // It is counted after the other side was told.
            Wait.Until("one connector was refused for its user", () => closed.Refused == 1);
            Check.Equal(ErrorKind.PermissionDenied, closed.LastRefusal!.Kind, "why");
            Check.Equal(0L, open.Refused + own.Refused, "refused by the others");
        }

        [Test]
        internal static void ForgottenBusesAreClosedByTheCollector()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("forgotten"), Small);
            Bus theirs = Forget(listener);
            var watch = Stopwatch.StartNew();
            while (theirs.PeerAlive && watch.Elapsed < Wait.Long)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                Thread.Sleep(1);
            }
            Check.That(!theirs.PeerAlive, "the forgotten end still holds the socket");
            Check.Fails(ErrorKind.Closed, () =>
            {
                while (true)
                {
                    theirs.Receiver.Recv(Wait.Long).Dispose();
                }
            });
            theirs.Dispose();
        }

        [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
        private static Bus Forget(Listener listener)
        {
            var connecting = Bus.ConnectAsync(listener.Path);
            Bus ours = listener.Accept(Wait.Long);
            ours.Sender.Send(1, new byte[] { 1 });
            return connecting.GetAwaiter().GetResult();
        }

        [DllImport("libc")]
        private static extern uint umask(uint mode);

        [DllImport("libc", SetLastError = true)]
        private static extern int chmod(byte[] path, uint mode);
    }
}
