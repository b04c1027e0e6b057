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
                Attachment at = Attachment.Memory(fd, Facts.Block0, spec.Blocks[0], link, o);
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

        /// <summary>What the rule says of a peer; without the kernel it knows of a close only.</summary>
        private static (Ending, uint) EndOf(bool final, uint delivered, uint epoch, uint flags, bool gone = false, bool alive = false)
        {
            var words = new RoleLine { Epoch = epoch, Flags = flags };
            var life = new PeerState(&words, final, delivered);
            Ending end = life.End(true, new FakeLink { Gone = gone, Alive = () => alive }, Role.Consumer, out uint over);
            var refusing = new FakeLink { Alive = () => throw new CheckException("the kernel was asked") };
            Check.Equal(end == Ending.Closed ? end : Ending.None, life.End(false, refusing, Role.Consumer, out _), "without the kernel");
            return (end, over);
        }

        [Test]
        private static void TheRule()
        {
            const uint closed = Facts.RoleClosed;
            // On a named ring a peer that never came has not ended.
            Check.Equal((Ending.None, 0u), EndOf(false, 0, 0, 0), "never came");
            Check.Equal((Ending.None, 0u), EndOf(false, 0, 0, closed), "never came, and a flag");
            Check.Equal((Ending.NameGone, 0u), EndOf(false, 0, 0, 0, gone: true), "never came, and cannot");
            // Where an end is final, the peer was there: one that hangs up before it attaches is dead.
            Check.Equal((Ending.Dead, 0u), EndOf(true, 0, 0, 0), "hung up before it attached");
            Check.Equal((Ending.None, 0u), EndOf(true, 0, 0, 0, alive: true), "about to attach");
            // A close that was delivered ends nothing again.
            Check.Equal((Ending.None, 4u), EndOf(false, 4, 4, closed), "delivered");
            Check.Equal((Ending.Closed, 4u), EndOf(false, 3, 4, closed), "a successor's");
            Check.Equal((Ending.Dead, 4u), EndOf(false, 3, 4, 0), "a successor's death");
            Check.Equal((Ending.None, 4u), EndOf(false, 3, 4, 0, alive: true), "a successor that lives");
            // A close is an end also where the name is gone or the lock is held.
            Check.Equal((Ending.Closed, 1u), EndOf(false, 0, 1, closed, gone: true), "closed, and the name is gone");
            Check.Equal((Ending.Closed, 1u), EndOf(false, 0, 1, closed, alive: true), "closed, and not yet released");
            Check.Equal((Ending.NameGone, 1u), EndOf(false, 0, 1, 0, gone: true, alive: true), "the name is gone");
        }

        /// <summary>A successor takes the lock before it clears the flag of the close before it.</summary>
        [Test]
        private static void ASuccessorThatTakesTheLockMeanwhileIsNoDeath()
        {
            var words = new RoleLine { Epoch = 1 };
            int asked = 0;
            Ending end = new PeerState(&words, false, 0).End(true, new FakeLink { Alive = () => asked++ > 0 }, Role.Consumer, out _);
            Check.Equal(Ending.None, end, "the second time somebody holds the lock");
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
                            Words(peer, 1, Facts.RoleClosed);
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
                    Words(peer, 1, Facts.RoleClosed);
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
