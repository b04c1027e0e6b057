using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>Whose a socket's name is, who makes room for whom, and what is done without descriptors.</summary>
    internal static unsafe class ListenerRuleTests
    {
        private static readonly ListenOptions Small = new ListenOptions { Capacity = 4096 };

        [DllImport("libc", SetLastError = true)]
        private static extern int rename(string from, string to);

        /// <summary>With its own Ramway directory.</summary>
        private static void InDirectory(Action<Folder> test)
        {
            string? before = Environment.GetEnvironmentVariable("RAMWAY_DIR");
            string working = Directory.GetCurrentDirectory();
            using var folder = new Folder();
            Environment.SetEnvironmentVariable("RAMWAY_DIR", folder.Path);
            try
            {
                test(folder);
            }
            finally
            {
                Directory.SetCurrentDirectory(working);
                Environment.SetEnvironmentVariable("RAMWAY_DIR", before);
            }
        }

        private static void Serves(Listener listener, string name)
        {
            Task<Bus> connecting = Bus.ConnectAsync(name, new ConnectOptions { Timeout = Wait.Long });
            using Bus ours = listener.Accept(Wait.Long), theirs = connecting.GetAwaiter().GetResult();
            theirs.Sender.Send(1, new byte[3]);
            Check.Equal(3, ours.Receiver.Recv(Wait.Long).Length, "what came by " + name);
        }

        [Test]
        private static void ANameAndItsPathMeetAtOneLock() => InDirectory(folder =>
        {
            string link = folder.Path + "-link";
            Posix.Do(Posix.symlink(folder.Path, link), "symlink");
            try
            {
                Directory.SetCurrentDirectory(folder.Path);
                string[] ways =
                {
                    "bell", folder.At("bell.sock"), folder.Path + "/../" + Path.GetFileName(folder.Path) + "/bell.sock",
                    link + "/bell.sock", "./bell.sock",
                };
                foreach (string first in ways)
                {
                    using Listener listener = Listener.Bind(first, Small);
                    folder.Holds("bell", "bell.sock");
                    foreach (string second in ways.Append(listener.Path))
                    {
                        Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(second, Small), "live listener");
                        Serves(listener, second);
                    }
                    listener.Dispose();
                    folder.Holds();
                }
                // Those that are nobody's name stay paths of their own.
                foreach (string path in new[] { "./x.sock.sock", "./x.lock.sock", "./.x.sock", "./plain" })
                {
                    using Listener listener = Listener.Bind(path, Small);
                    Check.That(File.Exists(path + ".lock"), path + " has its lock beside it");
                    Serves(listener, path);
                }
                folder.Holds();
            }
            finally
            {
                File.Delete(link);
            }
        });

        [Helper("bell")]
        private static void Bell(string[] arguments)
        {
            using Listener listener = Listener.Bind(arguments[0], Small);
            Peer.Say(listener.Path);
            Peer.Told();
        }

        [Test]
        private static void TheNextOneTakesOverWhatAKilledOneLeft() => InDirectory(folder =>
        {
            foreach ((string first, string next) in new[] { ("bell", folder.At("bell.sock")), (folder.At("bell.sock"), "bell") })
            {
                using Peer dead = Peer.Start("bell", first);
                Check.Equal(folder.At("bell.sock"), dead.Hear(), "its path");
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(next, Small));
                dead.Kill();
                folder.Holds("bell", "bell.sock");
                using Listener listener = Listener.Bind(next, Small);
                Serves(listener, first);
            }
            folder.Holds();
        });

        [Test]
        private static void ALiveSocketOfAnotherProgramStays() => InDirectory(folder =>
        {
            const string said = "a program that does not hold Ramway's lock is listening there";
            string path = folder.At("bell.sock");
            using (RawSocket theirs = RawSocket.Listen(path))
            {
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind("bell", Small), said, path);
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(path, Small), said, path);
                RawSocket.Dial(path).Dispose();
                // Also while nobody can connect to it.
                var queued = new List<int>();
                int full;
                do
                {
                    queued.Add(Sockets.Stream());
                    full = Sockets.Connect(queued.Last(), path);
                }
                while (full == 0);
                Check.Equal(-Errno.EAGAIN, full, "its backlog is full");
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind("bell", Small), said);
                queued.ForEach(Files.Close);
            }
            folder.Holds("bell.sock");
            // It is dead now.
            using (Listener listener = Listener.Bind("bell", Small))
            {
                Serves(listener, "bell");
            }
            folder.Holds();
            using (var datagrams = new Socket(AddressFamily.Unix, SocketType.Dgram, ProtocolType.Unspecified))
            {
                datagrams.Bind(new UnixDomainSocketEndPoint(path));
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind("bell", Small), said);
                folder.Holds("bell.sock");
            }
            File.Delete(path);
        });

        [Test]
        private static void ASocketThatCameInThePlaceOfOursStays() => InDirectory(folder =>
        {
            string path = folder.At("bell.sock");
            Listener listener = Listener.Bind("bell", Small);
            Posix.Do(rename(path, folder.At("away")), "rename");
            using RawSocket theirs = RawSocket.Listen(path);
            listener.Dispose();
            folder.Holds("away", "bell.sock");
            RawSocket.Dial(path).Dispose();
            // Nor does the lock of a killed one say that it is ours to remove.
            File.Delete(path);
            File.Delete(folder.At("away"));
            using Peer dead = Peer.Start("bell", "bell");
            dead.Hear();
            dead.Kill();
            File.Delete(path);
            using RawSocket others = RawSocket.Listen(path);
            Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind("bell", Small));
            RawSocket.Dial(path).Dispose();
            folder.Holds("bell.sock");
        });

        [Test]
        private static void TheOneThatWasSilentTheLongestMakesRoom()
        {
            foreach (int count in new[] { 64, 200 })
            {
                using var folder = new Folder();
                var options = new ListenOptions { Capacity = 4096, HandshakeTimeout = TimeSpan.FromSeconds(60) };
                using Listener listener = Listener.Bind(folder.At("bell"), options);
                using var over = new CancellationTokenSource();
                var buses = new List<Bus>();
                Task accepting = Task.Factory.StartNew(() =>
                {
                    while (!over.IsCancellationRequested)
                    {
                        try
                        {
                            buses.Add(listener.Accept(null, over.Token));
                        }
                        catch (OperationCanceledException)
                        {
                        }
                    }
                }, TaskCreationOptions.LongRunning);
                var silent = new List<int>();
                while (silent.Count < count)
                {
                    int fd = Sockets.Stream();
                    int result = Sockets.Connect(fd, listener.Path);
                    if (result == 0)
                    {
                        silent.Add(fd);
                        continue;
                    }
                    Files.Close(fd);
                    Check.Equal(-Errno.EAGAIN, result, "connecting");
                    Thread.Sleep(1);
                }
                for (int i = 0; i < 3; i++)
                {
                    using Bus served = Bus.Connect(listener.Path, new ConnectOptions { Timeout = Wait.Long });
                    Check.That(served.PeerAlive, "served while the silent ones are still there");
                }
                Check.That(listener.Refused >= count - 64 + 1, listener.Refused + " were refused of " + count);
                Check.That(listener.LastRefusal!.Kind == ErrorKind.TimedOut && listener.LastRefusal.Message.Contains(
                    "64 handshakes were under way, and this connector was silent the longest", StringComparison.Ordinal),
                    "why: " + listener.LastRefusal.Message);
                over.Cancel();
                accepting.GetAwaiter().GetResult();
                silent.ForEach(Files.Close);
                buses.ForEach(bus => bus.Dispose());
            }
        }

        /// <summary>PATH: listens, uses all descriptors up, asks for buses for a second and until it is told, and has some again.</summary>
        [Helper("no-descriptors")]
        private static void NoDescriptors(string[] arguments)
        {
            const int filesLimit = 7;
            ulong* limit = stackalloc ulong[] { 400, 400 };
            using Listener listener = Listener.Bind(arguments[0], Small);
            // What this needs is loaded before: an error of each kind, and a bus.
            Check.Fails(ErrorKind.TimedOut, () => listener.Accept(TimeSpan.FromMilliseconds(1)));
            Check.Fails(ErrorKind.Os, () => throw Errors.Os(Errno.EMFILE, "nothing"), "nothing");
            Task<Bus> connecting = Bus.ConnectAsync(arguments[0]);
            listener.Accept(Wait.Long).Dispose();
            connecting.GetAwaiter().GetResult().Dispose();
            Peer.Say("ready");
            Peer.Told();
            bool enough = false;
            var hearing = new Thread(() =>
            {
                Peer.Told();
                Volatile.Write(ref enough, true);
            }) { IsBackground = true };
            hearing.Start();
            Posix.Do(Posix.setrlimit(filesLimit, limit), "setrlimit");
            var all = new List<int>();
            for (int fd = Files.Dup(0); fd >= 0; fd = Files.Dup(0))
            {
                all.Add(fd);
            }
            Peer.Say("none left");
            var watch = Stopwatch.StartNew();
            int turns = 0;
            string why = "";
            while (!Volatile.Read(ref enough) || watch.ElapsedMilliseconds < 1000)
            {
                turns++;
                try
                {
                    listener.Accept(TimeSpan.FromSeconds(1)).Dispose();
                }
                catch (RamwayException e)
                {
                    why = e.Kind == ErrorKind.Os ? e.Message : why;
                }
            }
            long took = watch.ElapsedMilliseconds;
            all.ForEach(Files.Close);
            Peer.Say(turns + " " + took + " " + why);
            using Bus bus = listener.Accept(Wait.Long);
            bus.Sender.Send(1, new byte[7]);
            Peer.Told();
        }

        [Test]
        private static void WithoutDescriptorsConnectorsAreToldAndNothingSpins()
        {
            using var folder = new Folder();
            using Peer child = Peer.Start("no-descriptors", folder.At("bell"));
            child.Expect("ready");
            child.Tell("go on");
            child.Expect("none left");
            bool over = false;
            int told = 0;
            var connecting = new Beside(() =>
            {
                while (!Volatile.Read(ref over))
                {
                    try
                    {
                        Bus.Connect(folder.At("bell")).Dispose();
                    }
                    catch (RamwayException e) when (e.Kind == ErrorKind.NoSpace)
                    {
                        Check.That(e.Message.Contains("the listener refused: it has no memory or descriptors left (NoSpace)",
                            StringComparison.Ordinal), e.Message);
                        told++;
                        Volatile.Write(ref over, told == 3);
                    }
                }
            });
            Check.Equal(null, connecting.End(), "those who connect");
            Check.Equal(3, told, "connectors that were told");
            child.Tell("enough");
            string[] said = child.Hear().Split(' ', 3);
            Check.That(int.Parse(said[0]) <= 30 * (int.Parse(said[1]) / 1000 + 1),
                "Accept returned " + said[0] + " times in " + said[1] + " ms");
            Check.That(said[2].Contains("ulimit -n", StringComparison.Ordinal) && said[2].Contains("RLIMIT_NOFILE",
                StringComparison.Ordinal), "why: " + said[2]);
            using Bus bus = Bus.Connect(folder.At("bell"));
            Check.Equal(7, bus.Receiver.Recv(Wait.Long).Length, "served again");
            bus.Dispose();
            child.Finish();
        }
    }
}
