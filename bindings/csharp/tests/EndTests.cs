using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>When a peer counts as closed or dead: the moments between two steps of it, which no real peer stops in.</summary>
    internal static unsafe class EndTests
    {
        /// <summary>A link that does what a test says.</summary>
        private sealed class FakeLink : ILink
        {
            internal bool Gone;
            internal Func<bool> Alive = () => true;

            public bool Final { get; set; }

            public bool PeerAlive(Role me) => Alive();

            public bool Vanished() => Gone;

            public void Close()
            {
            }
        }

        /// <summary>Does something with an end of a new ring that has no peer but the words that the test writes.</summary>
        private static void With(bool sends, FakeLink link, Action<RingEnd, IntPtr> act)
        {
            Spec spec = Spec.Ring(4096, 16, Memory.PageSize);
            int fd = Memfd.New("ramway-test");
            try
            {
                SegmentFile.Fill(fd, spec, null);
                RingOptions o = RingOptions.Default;
                Attachment at = Attachment.Memory(fd, Layout.Block0, spec.Blocks[0], link, o);
                RoleLine* peer = sends ? &at.Ring->Consumer : &at.Ring->Producer;
                using RingEnd end = sends ? (RingEnd)Sender.Over(at, o) : Receiver.Over(at, o);
                act(end, (IntPtr)peer);
            }
            finally
            {
                Files.Close(fd);
            }
        }

        private static void Words(IntPtr peer, uint epoch, uint flags)
        {
            Volatile.Write(ref ((RoleLine*)peer)->Epoch, epoch);
            Volatile.Write(ref ((RoleLine*)peer)->Flags, flags);
        }

        [Test]
        private static void APeerThatAttachesAndClosesWhileTheKernelIsAskedHasClosed()
        {
            foreach (bool sends in new[] { false, true })
            {
                foreach (bool asynchronous in new[] { false, true })
                {
                    var link = new FakeLink { Final = true };
                    With(sends, link, (end, peer) =>
                    {
                        link.Alive = () =>
                        {
                            Words(peer, 1, Layout.RoleClosed);
                            return false;
                        };
                        Check.Fails(ErrorKind.Closed, () => WaitFor(end, asynchronous, Wait.Long));
                    });
                }
            }
        }

        private static uint WaitFor(RingEnd end, bool asynchronous, TimeSpan timeout) =>
            asynchronous ? end.WaitForPeerAsync().AsTask().GetAwaiter().GetResult() : end.WaitForPeer(timeout);

        [Test]
        private static void APeerThatHangsUpBeforeItAttachesIsDeadWhereAnEndIsFinal()
        {
            foreach (bool sends in new[] { false, true })
            {
                var link = new FakeLink { Final = true, Alive = () => false };
                With(sends, link, (end, peer) => Check.Fails(ErrorKind.PeerDead, () => end.WaitForPeer(Wait.Long)));
            }
        }

        [Test]
        private static void WhereTheNameIsGoneNobodyCanCome()
        {
            foreach (bool sends in new[] { false, true })
            {
                var link = new FakeLink { Gone = true };
                With(sends, link, (end, peer) => Check.Fails(ErrorKind.Closed, () => end.WaitForPeer(Wait.Long), "name was removed"));
            }
        }

        [Test]
        private static void ASuccessorThatAttachesWhileTheKernelIsAskedIsTheOneThatIsFound()
        {
            foreach (bool sends in new[] { false, true })
            {
                var link = new FakeLink();
                With(sends, link, (end, peer) =>
                {
                    Words(peer, 1, 0);
                    link.Alive = () =>
                    {
                        Words(peer, 2, 0);
                        return true;
                    };
                    Check.Equal(2u, end.WaitForPeer(Wait.Long), "the successor's epoch");
                });
            }
        }

        /// <summary>A successor has the lock and clears the flags before it raises the epoch.</summary>
        [Test]
        private static void ACloseThatACallHasMetIsRemembered()
        {
            foreach (bool sends in new[] { false, true })
            {
                var link = new FakeLink { Alive = () => false };
                With(sends, link, (end, peer) =>
                {
                    Words(peer, 1, Layout.RoleClosed);
                    Check.Fails(ErrorKind.Closed, () => Try(end));
                    link.Alive = () => true;
                    Words(peer, 1, 0);
                    Check.Fails(ErrorKind.TimedOut, () => end.WaitForPeer(TimeSpan.Zero));
                    Words(peer, 2, 0);
                    Check.Equal(2u, end.WaitForPeer(Wait.Long), "the successor's epoch");
                });
            }
        }

        /// <summary>Sends until there is no room, or receives, without waiting.</summary>
        private static void Try(RingEnd end)
        {
            if (end is Receiver receiver)
            {
                receiver.TryRecv(out _);
                return;
            }
            while (((Sender)end).TrySend(1, new byte[1000]))
            {
            }
        }
    }
}
