using System;
using System.IO;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>Waiting for somebody at the other end.</summary>
    internal static class WaitForPeerTests
    {
        private static uint Wait1(RingEnd end, bool asynchronous, TimeSpan? timeout = null, CancellationToken token = default) =>
            asynchronous ? end.WaitForPeerAsync(token).AsTask().GetAwaiter().GetResult() : end.WaitForPeer(timeout ?? Wait.Long, token);

        [Test]
        private static void OneThatComesAndItsSuccessor()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                foreach (bool sends in new[] { false, true })
                {
                    foreach (bool asynchronous in new[] { false, true })
                    {
                        using var dir = new Folder();
                        string name = dir.At("ring");
                        var options = new RingOptions { Capacity = 4096, Wait = mode };
                        using RingEnd end = sends ? (RingEnd)Sender.Create(name, options) : Receiver.Create(name, options);
                        string role = sends ? "consumer" : "producer";
                        uint found = 0;
                        var waiting = new Beside(() => found = Wait1(end, asynchronous));
                        Thread.Sleep(20);
                        using Peer first = Peer.Start("hold", role, name);
                        Check.Equal(null, waiting.End(), "the wait for the first");
                        Check.Equal(1u, found, "its epoch");
                        first.Expect("attached");
                        // Attached now: at once.
                        Check.Equal(1u, Wait1(end, asynchronous, TimeSpan.Zero), "its epoch, once more");
                        first.Kill();
                        Check.Fails(ErrorKind.TimedOut, () => end.WaitForPeer(TimeSpan.FromMilliseconds(30)));
                        waiting = new Beside(() => found = Wait1(end, asynchronous));
                        Thread.Sleep(20);
                        using Peer second = Peer.Start("hold", role, name);
                        Check.Equal(null, waiting.End(), "the wait for the successor");
                        Check.Equal(2u, found, "its epoch");
                        second.Expect("attached");
                        second.Tell("close");
                        second.Expect("done");
                        Check.Fails(ErrorKind.TimedOut, () => end.WaitForPeer(TimeSpan.Zero));
                    }
                }
            }
        }

        [Test]
        private static void AfterADeathTheStreamGoesOn()
        {
            using var dir = new Folder();
            using Receiver rx = Receiver.Create(dir.At("ring"));
            using Peer first = Peer.Start("hold", "producer", dir.At("ring"));
            first.Expect("attached");
            first.Kill();
            Check.Fails(ErrorKind.PeerDead, () => rx.Recv(Wait.Long).Dispose());
            using Peer second = Peer.Start("hold", "producer", dir.At("ring"));
            second.Tell("send again");
            rx.WaitForPeer(Wait.Long);
            Check.Equal("again", RingHelpers.Receive(rx), "of the successor");
        }

        /// <summary>
        /// A successor has the role's lock before it raises the epoch. A handle that has seen the end of the one before it does not
        /// take the lock for that one's life.
        /// </summary>
        [Test]
        private static void ASuccessorsLockIsNotItsPredecessorsLife()
        {
            const long flags = 0x400 + 0x180 + 4;
            foreach ((bool killed, bool receives) in new[] { (true, true), (true, false), (false, true), (false, false) })
            {
                using var dir = new Folder();
                using Receiver rx = Receiver.Create(dir.At("ring"));
                using Peer first = Peer.Start("hold", "producer", dir.At("ring"));
                first.Expect("attached");
                if (killed)
                {
                    first.Kill();
                }
                else
                {
                    first.Tell("close");
                    first.Expect("done");
                }
                if (receives)
                {
                    Check.Fails(killed ? ErrorKind.PeerDead : ErrorKind.Closed, () => rx.Recv(Wait.Long).Dispose());
                }
                else
                {
                    Check.Fails(ErrorKind.TimedOut, () => rx.WaitForPeer(TimeSpan.Zero));
                }
                // A successor that is stopped after its first two steps: it has the lock, and its flags do not say "closed".
                using var file = new FileStream(dir.At("ring"), FileMode.Open, FileAccess.ReadWrite, FileShare.ReadWrite);
                int fd = (int)file.SafeFileHandle.DangerousGetHandle();
                Check.Equal(1, Sys.Lock.Try(fd, 1, Sys.LockMode.Exclusive), "the producer's lock");
                file.Position = flags;
                file.Write(new byte[4], 0, 4);
                file.Flush();
                Check.Fails(ErrorKind.TimedOut, () => rx.WaitForPeer(TimeSpan.Zero));
                Sys.Lock.Unlock(fd, 1);
                using Peer second = Peer.Start("hold", "producer", dir.At("ring"));
                Check.Equal(2u, rx.WaitForPeer(Wait.Long), "the successor's epoch");
            }
        }

        [Test]
        private static void HowItEnds()
        {
            foreach (bool asynchronous in new[] { false, true })
            {
                using var dir = new Folder();
                Receiver rx = Receiver.Create(dir.At("ring"));
                using (var source = new CancellationTokenSource(20))
                {
                    Check.Throws<OperationCanceledException>(() => Wait1(rx, asynchronous, null, source.Token));
                    Check.Throws<OperationCanceledException>(() => Wait1(rx, asynchronous, null, source.Token));
                }
                Check.Fails(ErrorKind.InvalidArgument, () => rx.WaitForPeer(TimeSpan.FromSeconds(-2)));
                Check.Fails(ErrorKind.TimedOut, () => rx.WaitForPeer(TimeSpan.Zero), dir.At("ring"));
                var waiting = new Beside(() => Wait1(rx, asynchronous));
                Thread.Sleep(20);
                rx.Dispose();
                Check.Equal(ErrorKind.Detached, waiting.Kind(), "closed meanwhile");
                Check.Fails(ErrorKind.Detached, () => Wait1(rx, asynchronous));
                dir.Holds();
                // The name goes: nobody will ever come.
                using Sender tx = Sender.Create(dir.At("ring"));
                waiting = new Beside(() => Wait1(tx, asynchronous));
                Thread.Sleep(20);
                File.Delete(dir.At("ring"));
                Check.Equal(ErrorKind.Closed, waiting.Kind(), "the name was removed");
                // A handle that was waited with goes on.
                Check.That(tx.TrySend(1, new byte[3]), "room");
            }
        }

        [Test]
        private static void WhereAnEndIsFinal()
        {
            foreach (bool asynchronous in new[] { false, true })
            {
                var (tx, rx) = Ring.Pair();
                Check.Equal(1u, Wait1(tx, asynchronous), "the other end of a pair");
                tx.Dispose();
                Check.Fails(ErrorKind.Closed, () => Wait1(rx, asynchronous));
                rx.Dispose();
                using var dir = new Folder();
                using Listener listener = Listener.Bind(dir.At("bell"), new ListenOptions { Capacity = 4096 });
                using Peer child = Peer.Start("bus-peer", listener.Path);
                using Bus bus = listener.Accept(Wait.Long);
                child.Expect("connected");
                Check.Equal(1u, Wait1(bus.Sender, asynchronous), "the peer of a bus");
                child.Kill();
                Check.Fails(ErrorKind.PeerDead, () => Wait1(bus.Sender, asynchronous));
                Check.Fails(ErrorKind.PeerDead, () => Wait1(bus.Receiver, asynchronous), dir.At("bell"));
            }
        }

        [Test]
        private static void WhatWasCommittedGoesFirst()
        {
            using var dir = new Folder();
            using Sender tx = Sender.Create(dir.At("ring"));
            tx.Reserve(4).CommitUnflushed(1);
            Check.Fails(ErrorKind.TimedOut, () => tx.WaitForPeer(TimeSpan.Zero));
            using Receiver rx = Receiver.Open(dir.At("ring"));
            Check.That(rx.TryRecv(out Message message) && message.Length == 4, "flushed");
            message.Dispose();
        }
    }
}
