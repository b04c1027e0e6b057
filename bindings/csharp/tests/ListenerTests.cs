using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    internal static class ListenerTests
    {
        private static readonly ListenOptions Small = new ListenOptions { Capacity = 4096 };
        private static readonly ConnectOptions Patient = new ConnectOptions { Timeout = Wait.Long };

        /// <summary>Accepts one bus after another, and says what it got.</summary>
        [Helper("bus-listen")]
        internal static void ListenForEver(string[] arguments)
        {
            using Listener listener = Listener.Bind(arguments[0], Small);
            Peer.Say("listening");
            while (true)
            {
                Bus bus = listener.Accept();
                using Message message = bus.Receiver.Recv();
                Peer.Say(Encoding.UTF8.GetString(message.Data));
                GC.KeepAlive(bus);
            }
        }

        [Test]
        internal static void AKilledListenerIsTakenOver()
        {
            using var folder = new Folder();
            string bell = folder.At("bell");
            using Peer first = Peer.Start("bus-listen", bell);
            first.Expect("listening");
            Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(bell));
            using (Bus bus = Bus.Connect(bell))
            {
                bus.Sender.Send(0, Encoding.UTF8.GetBytes("one"));
                first.Expect("one");
                first.Kill();
                folder.Holds("bell", "bell.lock");
                Check.Fails(ErrorKind.PeerDead, () => bus.Receiver.Recv(Wait.Long));
            }
            // Nobody is there; a connector says so, or waits for the next one.
            Check.Fails(ErrorKind.NotFound, () => Bus.Connect(bell, In(50)), "gone", "bell", "connecting for ");
            Task<Bus> waiting = Bus.ConnectAsync(bell, Patient);
            using Peer second = Peer.Start("bus-listen", bell);
            second.Expect("listening");
            using (Bus bus = waiting.GetAwaiter().GetResult())
            {
                bus.Sender.Send(0, Encoding.UTF8.GetBytes("two"));
                second.Expect("two");
            }
            second.Kill();
            using (Listener listener = Listener.Bind(bell))
            {
                Check.Equal(bell, listener.Path, "path");
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(bell), "live");
            }
            folder.Holds();
        }

        [Test]
        internal static void WhatIsNotASocketIsLeftAsItIs()
        {
            using var folder = new Folder();
            foreach ((string name, string socket) in new[] { (folder.At("path"), "path"), (folder.At("other"), "other") })
            {
                File.WriteAllText(folder.At(socket), "somebody's");
                Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(name), "a regular file", socket);
                Check.Fails(ErrorKind.InvalidArgument, () => Bus.Connect(name), "a regular file");
                Check.Equal("somebody's", File.ReadAllText(folder.At(socket)), "what was in it");
            }
            folder.Holds("other", "path");
            // Not the file's, but the segment's name is taken.
            File.WriteAllText(folder.At("taken.lock"), "no segment");
            Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(folder.At("taken")));
            Check.Equal("no segment", File.ReadAllText(folder.At("taken.lock")), "what was in it");
            Directory.CreateDirectory(folder.At("folder"));
            Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(folder.At("folder")), "a directory");
            Check.Equal(0, Sys.Libc.Result(symlink(Sys.Libc.CString("path"), Sys.Libc.CString(folder.At("link")))), "symlink");
            Check.Fails(ErrorKind.AlreadyExists, () => Listener.Bind(folder.At("link")), "a symbolic link");
            folder.Holds("folder", "link", "other", "path", "taken.lock");
        }

        [Test]
        internal static void WhatTakesItsPlaceMeanwhileIsLeftAsItIs()
        {
            using var folder = new Folder();
            Listener listener = Listener.Bind(folder.At("mine"));
            File.Delete(folder.At("mine"));
            File.WriteAllText(folder.At("mine"), "somebody's");
            listener.Dispose();
            Check.Equal("somebody's", File.ReadAllText(folder.At("mine")), "what was in it");
            folder.Holds("mine");
        }

        [Test]
        internal static void WaitsEndByTheirTokensAtOnce()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("quiet"));
            var forEver = new ConnectOptions { Timeout = Timeout.InfiniteTimeSpan };
            foreach (Func<CancellationToken, Task<Bus>> wait in new Func<CancellationToken, Task<Bus>>[]
            {
                token => listener.AcceptAsync(token),
                token => Task.Factory.StartNew(() => listener.Accept(null, token), TaskCreationOptions.LongRunning),
                // Nobody listens there, and nobody accepts here.
                token => Bus.ConnectAsync(folder.At("absent"), forEver, token),
                token => Bus.ConnectAsync(listener.Path, forEver, token),
            })
            {
                using var cancel = new CancellationTokenSource();
                Task<Bus> waiting = wait(cancel.Token);
                Thread.Sleep(30);
                Check.That(!waiting.IsCompleted, "it waits");
                var watch = Stopwatch.StartNew();
                cancel.Cancel();
                var e = Check.Throws<OperationCanceledException>(() => waiting.GetAwaiter().GetResult());
                Check.Equal(cancel.Token, e.CancellationToken, "whose token it was");
                Check.That(watch.ElapsedMilliseconds < 20_000, "it took " + watch.ElapsedMilliseconds + " ms");
                // A token that was cancelled before.
                Check.Throws<OperationCanceledException>(() => wait(cancel.Token).GetAwaiter().GetResult());
            }
        }

        [Test]
        internal static void WaitsEndByTheirTimes()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("quiet"));
            foreach (int milliseconds in new[] { 0, 30 })
            {
                var time = TimeSpan.FromMilliseconds(milliseconds);
                var watch = Stopwatch.StartNew();
                Check.Fails(ErrorKind.TimedOut, () => listener.Accept(time), "quiet");
                Check.Fails(ErrorKind.NotFound, () => Bus.Connect(folder.At("absent"), In(milliseconds)), "no listener made");
                // A listener that lives and does not accept: the connector waits, and says so.
                Check.Fails(ErrorKind.TimedOut, () => Bus.Connect(listener.Path, In(milliseconds)), "accepting");
                Check.That(watch.ElapsedMilliseconds >= 3 * milliseconds, "after " + watch.ElapsedMilliseconds + " ms");
                Check.That(watch.ElapsedMilliseconds < 3 * milliseconds + 20_000, "after " + watch.ElapsedMilliseconds + " ms");
            }
            Check.Fails(ErrorKind.InvalidArgument, () => listener.Accept(TimeSpan.FromSeconds(-3)));
            Check.Fails(ErrorKind.NotFound, () => Bus.Connect(folder.At("no/such/directory"), In(10)));
        }

        [Test]
        internal static void DisposeEndsAllThatWaits()
        {
            using var folder = new Folder();
            Listener listener = Listener.Bind(folder.At("bell"));
            Task<Bus> asynchronous = listener.AcceptAsync();
            Task<Bus> blocking = Task.Factory.StartNew(() => listener.Accept(), TaskCreationOptions.LongRunning);
            Task<int> all = CountAll(listener);
            Thread.Sleep(30);
            listener.Dispose();
            listener.Dispose();
            Check.Fails(ErrorKind.Detached, () => asynchronous.GetAwaiter().GetResult(), "closed", "bell");
            Check.Fails(ErrorKind.Detached, () => blocking.GetAwaiter().GetResult());
            Check.Equal(0, all.GetAwaiter().GetResult(), "accepted by the loop");
            Check.Fails(ErrorKind.Detached, () => listener.Accept());
            Check.Fails(ErrorKind.Detached, () => listener.TryAccept(out _));
            Check.Equal(folder.At("bell"), listener.Path, "path");
            folder.Holds();
        }

        private static async Task<int> CountAll(Listener listener)
        {
            int count = 0;
            await foreach (Bus bus in listener.AcceptAllAsync())
            {
                bus.Dispose();
                count++;
            }
            return count;
        }

        [Test]
        internal static void ConnectorsThatWereNotServedWaitForTheNextListener()
        {
            using var folder = new Folder();
            Listener first = Listener.Bind(folder.At("bell"));
            Task<Bus> connecting = Bus.ConnectAsync(first.Path, Patient);
            Thread.Sleep(50);
            first.Dispose();
            Thread.Sleep(50);
            Check.That(!connecting.IsCompleted, "it still waits");
            using Listener second = Listener.Bind(folder.At("bell"));
            using Bus ours = second.Accept(Wait.Long);
            using Bus theirs = connecting.GetAwaiter().GetResult();
            Check.That(ours.PeerAlive && theirs.PeerAlive, "connected");
        }

        [Test]
        internal static void TryAcceptNeverWaitsAndFindsThemInTheEnd()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("try"), Small);
            Check.That(!listener.TryAccept(out _), "nobody is there");
            Task<Bus>[] connecting = Enumerable.Range(0, 3).Select(_ => Bus.ConnectAsync(listener.Path, Patient)).ToArray();
            var accepted = new List<Bus>();
            Wait.Until("all are accepted", () =>
            {
                if (listener.TryAccept(out Bus? bus))
                {
                    accepted.Add(bus);
                }
                return accepted.Count == 3;
            });
            Check.That(!listener.TryAccept(out _), "nobody else is there");
            foreach (Bus bus in Task.WhenAll(connecting).GetAwaiter().GetResult())
            {
                bus.Dispose();
            }
            accepted.ForEach(bus => bus.Dispose());
        }

        [Test]
        internal static void ABusThatNobodyWaitsForAnyMoreIsTheNextOnes()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("late"), Small);
            // Times out or is cancelled in all states that a handshake can be in.
            int accepted = 0, lost = 0;
            for (int round = 0; round < 60; round++)
            {
                Task<Bus> connecting = Bus.ConnectAsync(listener.Path, Patient);
                while (true)
                {
                    try
                    {
                        if (round % 2 == 0)
                        {
                            listener.Accept(TimeSpan.FromTicks(round * 1000)).Dispose();
                        }
                        else
                        {
                            using var cancel = new CancellationTokenSource(TimeSpan.FromTicks(round * 1000));
                            listener.AcceptAsync(cancel.Token).GetAwaiter().GetResult().Dispose();
                        }
                        accepted++;
                        break;
                    }
                    catch (Exception e) when (e is OperationCanceledException || (e as RamwayException)?.Kind == ErrorKind.TimedOut)
                    {
                        lost++;
                    }
                }
                connecting.GetAwaiter().GetResult().Dispose();
            }
            Check.Equal(60, accepted, "accepted (" + lost + " waits ended before)");
            Check.Equal(0L, listener.Refused, "refused: " + listener.LastRefusal?.Message);
        }

        [Test]
        internal static void ConnectorsQueueUpBeyondTheBacklog()
        {
            const int connectors = 20;
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("queue"), new ListenOptions { Backlog = 1, Capacity = 4096 });
            Task[] connecting = Enumerable.Range(0, connectors).Select(async _ =>
            {
                using Bus bus = await Bus.ConnectAsync(listener.Path, Patient);
                bus.Sender.Send(9, new byte[] { 1 });
            }).ToArray();
            Thread.Sleep(50);
            Task[] accepting = Enumerable.Range(0, 4).Select(_ => Task.Factory.StartNew(() =>
            {
                for (int i = 0; i < connectors / 4; i++)
                {
                    using Bus bus = listener.Accept(Wait.Long);
                    bus.Receiver.Recv(Wait.Long).Dispose();
                    Check.Fails(ErrorKind.Closed, () => bus.Receiver.Recv(Wait.Long));
                }
            }, TaskCreationOptions.LongRunning)).ToArray();
            Task.WhenAll(accepting.Concat(connecting)).GetAwaiter().GetResult();
        }

        [Test]
        internal static void OnlyOneIsWelcomedByListen()
        {
            const int connectors = 5;
            using var folder = new Folder();
            string once = folder.At("once");
            Task<ErrorKind>[] outcomes = Enumerable.Range(0, connectors).Select(_ => Task.Factory.StartNew(() =>
            {
                try
                {
                    using Bus bus = Bus.Connect(once, In(2000));
                    bus.Receiver.Recv(Wait.Long).Dispose();
                }
                catch (RamwayException e)
                {
                    return e.Kind;
                }
                return (ErrorKind)0;
            }, TaskCreationOptions.LongRunning)).ToArray();
            Thread.Sleep(50);
            Bus bus = Bus.Listen(once, null, Wait.Long);
            folder.Holds();
            Wait.Until("the others have given up", () => outcomes.Count(o => o.IsCompleted) == connectors - 1);
            Check.That(outcomes.Where(o => o.IsCompleted).All(o => o.Result == ErrorKind.NotFound), "why they gave up");
            bus.Dispose();
            Check.Equal(ErrorKind.Closed, outcomes.Single(o => o.GetAwaiter().GetResult() != ErrorKind.NotFound).Result, "the one");
            Check.Throws<OperationCanceledException>(() => Bus.Listen(once, null, null, new CancellationToken(true)));
            Check.Fails(ErrorKind.TimedOut, () => Bus.Listen(once, null, TimeSpan.FromMilliseconds(20)));
            folder.Holds();
        }

        /// <summary>
        /// A listener for one peer welcomes one connector at a time. A handshake that fails after WELCOME, however it does, gives
        /// its permit to the next one; a bus that was accepted keeps it.
        /// </summary>
        [Test]
        internal static void APermitGoesBackHoweverAHandshakeEnds()
        {
            using var folder = new Folder();
            using Listener listener = Listener.BindFor(1, folder.At("one"), new ListenOptions { Capacity = 4096 });
            Task<Bus> accepting = listener.AcceptAsync();
            byte[] hello = RawSocket.Encoded(HandshakeType.Hello);
            RawSocket welcomed = RawSocket.Dial(listener.Path);
            welcomed.Send(hello);
            welcomed.Message();
            foreach (Action<RawSocket> fail in new Action<RawSocket>[]
            {
                socket => { },
                socket => socket.Send(RawSocket.Encoded(HandshakeType.Ack, ErrorKind.NoSpace)),
                socket => socket.Send(hello),
                socket => socket.ShutDown(),
            })
            {
                RawSocket next = RawSocket.Dial(listener.Path);
                next.Send(hello);
                Thread.Sleep(20);
                Check.That(!next.HasAnswer, "welcomed, and there is one permit");
                fail(welcomed);
                welcomed.Dispose();
                RamwayException? error = Handshake.Decode(next.Message(), HandshakeType.Welcome, out _, out _);
                Check.That(error == null, "the next one: " + error?.Message);
                welcomed = next;
            }
            welcomed.Send(RawSocket.Encoded(HandshakeType.Ack));
            using Bus bus = accepting.GetAwaiter().GetResult();
            _ = listener.AcceptAsync();
            using RawSocket late = RawSocket.Dial(listener.Path);
            late.Send(hello);
            Thread.Sleep(50);
            Check.That(!late.HasAnswer, "welcomed although the one peer is there");
            welcomed.Dispose();
        }

        [Test]
        internal static void AcceptingHoldsNoThreadOfThePool()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("many"), Small);
            int before = Process.GetCurrentProcess().Threads.Count;
            Task<Bus>[] waiting = Enumerable.Range(0, 200).Select(_ => listener.AcceptAsync()).ToArray();
            Thread.Sleep(100);
            int after = Process.GetCurrentProcess().Threads.Count;
            Check.That(after < before + 20, before + " threads, with 200 calls that wait " + after);
            using Bus theirs = Bus.Connect(listener.Path, Patient);
            using Bus ours = Task.WhenAny(waiting).GetAwaiter().GetResult().GetAwaiter().GetResult();
            Check.That(ours.PeerAlive, "accepted");
        }

        [Test]
        internal static void WithoutMemoryBothSidesAreTold()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("huge"), new ListenOptions { Capacity = 1L << 45 });
            // It goes on after each.
            for (int round = 0; round < 3; round++)
            {
                Task<Bus> accepting = listener.AcceptAsync();
                Check.Fails(ErrorKind.NoSpace, () => Bus.Connect(listener.Path, Patient), "the listener refused");
                Check.Fails(ErrorKind.NoSpace, () => accepting.GetAwaiter().GetResult(), "accepting at", "huge");
            }
            Check.Equal(0L, listener.Refused, "it was not the connectors' fault");
        }

        [Test]
        internal static void AnInterruptEndsABlockingAccept()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("interrupted"), Small);
            Exception? failure = null;
            var waiting = new Thread(() =>
            {
                try
                {
                    Check.Throws<ThreadInterruptedException>(() => listener.Accept());
                }
                catch (Exception e)
                {
                    failure = e;
                }
            });
            waiting.Start();
            Thread.Sleep(30);
            waiting.Interrupt();
            Check.That(waiting.Join(Wait.Long) && failure == null, "how it ended: " + failure);
            // The next one has the next bus.
            Task<Bus> connecting = Bus.ConnectAsync(listener.Path, Patient);
            using Bus ours = listener.Accept(Wait.Long);
            using Bus theirs = connecting.GetAwaiter().GetResult();
            Check.That(ours.PeerAlive, "accepted");
        }

        private static ConnectOptions In(int milliseconds) =>
            new ConnectOptions { Timeout = TimeSpan.FromMilliseconds(milliseconds) };

        [System.Runtime.InteropServices.DllImport("libc", SetLastError = true)]
        private static extern int symlink(byte[] target, byte[] path);
    }
}
