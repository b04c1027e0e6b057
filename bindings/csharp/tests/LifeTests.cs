using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>The life of a name, row by row of the call table in section 11 of docs/ABI.md.</summary>
    internal static unsafe class LifeTests
    {
        /// <summary>A state of the table's columns: makes the name, and gives what keeps it in use.</summary>
        private delegate Attachment? Column(string name);

        private static readonly Dictionary<string, Column> Columns = new Dictionary<string, Column>
        {
            ["no file"] = name => null,
            ["in use"] = name => Rings.Hold(name, How.Create, Role.Producer, Rings.Of(8192)),
            ["stale and empty"] = name =>
            {
                Rings.StartHolder(name, "producer").Kill();
                return null;
            },
            ["stale, undelivered"] = name =>
            {
                Peer p = Rings.StartHolder(name, "producer");
                for (int i = 0; i < 3; i++)
                {
                    p.Tell("put");
                    p.Expect("done");
                }
                p.Kill();
                return null;
            },
            ["stale, an unseen close"] = name =>
            {
                Attachment a = Rings.Hold(name, How.Create, Role.Producer);
                a.Ring->Producer.Epoch = 1;
                a.Ring->Producer.Flags = Facts.RoleClosed;
                a.Release();
                return null;
            },
            ["stale, persistent"] = name =>
            {
                Rings.Hold(name, How.Create, Role.Producer, new RingOptions { Persistent = true }).Release();
                return null;
            },
            ["of another boot"] = name =>
            {
                Attachment a = Rings.Hold(name, How.Create, Role.Producer);
                Rings.Put(a, 100);
                a.Release();
                Rings.Poke(name, Facts.OffBootId, Encoding.ASCII.GetBytes("0123456789abcdef"));
                return null;
            },
        };

        private const string Makes = "makes it";
        private const string Attaches = "attaches";

        private static void Row(How how, RingOptions o, params string[] wanted)
        {
            string[] columns = { "no file", "in use", "stale and empty", "stale, undelivered", "stale, an unseen close",
                "stale, persistent", "of another boot" };
            for (int i = 0; i < columns.Length; i++)
            {
                try
                {
                    Cell(how, o, Columns[columns[i]], wanted[i]);
                }
                catch (Exception e)
                {
                    throw new CheckException(how.Verb() + ", " + columns[i] + ": " + e);
                }
            }
        }

        private static void Cell(How how, RingOptions o, Column make, string wanted)
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment? holder = make(name);
            ulong before = dir.Names().Length == 0 ? 0 : Rings.InodeOf(name);
            if (wanted == Makes || wanted == Attaches)
            {
                Attachment a = Rings.Hold(name, how, Role.Consumer, o);
                Check.Equal(wanted == Attaches, Rings.InodeOf(name) == before, "whether it is the one that was there");
                if (wanted == Makes)
                {
                    Check.That(a.Ring->Tail == 0 && a.Ring->Head == 0 && a.Ring->Producer.Epoch == 0, "it is not a new ring");
                }
                if (holder != null)
                {
                    // The same role once more is Busy, for every call that attaches.
                    Rings.Refused(ErrorKind.Busy, name, how, Role.Producer, o, name, "sender");
                }
                a.Release();
            }
            else
            {
                var kind = (ErrorKind)Enum.Parse(typeof(ErrorKind), wanted);
                Rings.Refused(kind, name, how, Role.Consumer, o, name);
                Check.That(before == 0 || Rings.InodeOf(name) == before, "it was touched");
            }
            holder?.Release();
        }

        [Test]
        private static void Create() => Row(How.Create, new RingOptions(),
            Makes, "AlreadyExists", Makes, "AlreadyExists", "AlreadyExists", "AlreadyExists", Makes);

        [Test]
        private static void CreateDiscarding() => Row(How.Create, new RingOptions { Discard = true },
            Makes, "AlreadyExists", Makes, Makes, Makes, Makes, Makes);

        [Test]
        private static void Open() => Row(How.Open, new RingOptions(),
            "NotFound", Attaches, Attaches, Attaches, Attaches, Attaches, "NotFound");

        [Test]
        private static void OpenOrCreate() => Row(How.OpenOrCreate, new RingOptions(),
            Makes, Attaches, Attaches, Attaches, Attaches, Attaches, Makes);

        [Test]
        private static void WhatIsThereIsSaid()
        {
            using var dir = new Folder();
            var said = new Dictionary<string, string>
            {
                ["in use"] = "live ring",
                ["stale, undelivered"] = "3 undelivered messages (15 bytes)",
                ["stale, an unseen close"] = "end of a stream",
                ["stale, persistent"] = "persistent",
            };
            int i = 0;
            foreach (KeyValuePair<string, string> pair in said)
            {
                string name = dir.At("ring" + i++);
                Attachment? holder = Columns[pair.Key](name);
                Rings.Refused(ErrorKind.AlreadyExists, name, How.Create, Role.Consumer, null,
                    "creating the ring '" + name + "'", pair.Value);
                holder?.Release();
            }
            string boot = dir.At("boot");
            Columns["of another boot"](boot);
            Rings.Refused(ErrorKind.NotFound, boot, How.Open, Role.Consumer, null, "another boot");
        }

        [Test]
        private static void TheLastOneOutRemovesTheName()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment tx = Rings.Hold(name, How.Create, Role.Producer, Rings.Of(4096));
            Peer p = Rings.StartHolder(name, "consumer");
            tx.Release();
            dir.Holds("ring");
            p.Finish();
            dir.Holds();

            // Undelivered keeps it, delivered does not.
            tx = Rings.Hold(name, How.Create, Role.Producer);
            Rings.Put(tx, 0);
            tx.Release();
            dir.Holds("ring");
            Attachment rx = Rings.Hold(name, How.Open, Role.Consumer);
            Rings.Drain(rx);
            rx.Release();
            dir.Holds();
        }

        [Test]
        private static void TwoLeaveAtOnceAndTheNameGoes()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            for (int i = 0; i < 200; i++)
            {
                Attachment tx = Rings.Hold(name, How.Create, Role.Producer, Rings.Of(4096));
                Attachment rx = Rings.Hold(name, How.Open, Role.Consumer);
                var other = new Thread(() => tx.Release());
                other.Start();
                rx.Release();
                other.Join();
                dir.Holds();
            }
        }

        [Test]
        private static void DiscardNeverOverTheLiving()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment tx = Rings.Hold(name, How.Create, Role.Producer);
            Rings.Put(tx, 10);
            Rings.Refused(ErrorKind.AlreadyExists, name, How.Create, Role.Consumer, new RingOptions { Discard = true });
            tx.Release();
            Attachment rx = Rings.Hold(name, How.Create, Role.Consumer, new RingOptions { Discard = true, Capacity = 8192 });
            Check.That(rx.Capacity == 8192 && rx.Ring->Tail == 0, "it is not a new ring");
            rx.Release();
        }

        [Test]
        private static void ATakenRoleIsWaitedFor()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Peer p = Rings.StartHolder(name, "producer");
            long start = Clock.Nanoseconds;
            Rings.Refused(ErrorKind.Busy, name, How.Open, Role.Producer, Rings.Waiting(0.15), "sender", name);
            Check.That(Clock.Nanoseconds - start >= 150_000_000, "it did not wait");
            p.Kill();
            Rings.Hold(name, How.Open, Role.Producer, Rings.Waiting(30)).Release();
            dir.Holds();
        }

        /// <summary>
        /// A side that waits for a role gets the ring that its holder leaves, however it goes and at whatever moment: nobody removes what
        /// is waited for. Who waits in vain is the last one out as well.
        /// </summary>
        [Test]
        private static void ARoleIsTakenOverAtAnyMoment()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            for (int round = 0; round < 16; round++)
            {
                Peer p = Rings.StartHolder(name, "producer");
                ulong before = Rings.InodeOf(name);
                // An orderly end removes the name if it comes before the opener does.
                bool kills = round % 2 == 0;
                Attachment? got = null;
                Exception? failure = null;
                var opener = new Thread(() =>
                {
                    try
                    {
                        got = Rings.Hold(name, kills ? How.Open : How.OpenOrCreate, Role.Producer, Rings.Waiting(30));
                    }
                    catch (Exception e)
                    {
                        failure = e;
                    }
                });
                opener.Start();
                Futex.Sleep(1 + round * 650_000L);
                if (kills)
                {
                    p.Kill();
                }
                else
                {
                    p.Finish();
                }
                opener.Join();
                Check.That(failure == null, "round " + round + ": " + failure);
                Check.That(!kills || Rings.InodeOf(name) == before, "round " + round + ": another ring");
                got!.Release();
                dir.Holds();
            }
        }

        [Test]
        private static void WhoWaitsInVainIsTheLastOneOut()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment tx = Rings.Hold(name, How.Create, Role.Producer);
            ErrorKind end = 0;
            var waiter = new Thread(() =>
            {
                try
                {
                    Rings.Hold(name, How.Open, Role.Producer, Rings.Waiting(0.3)).Release();
                }
                catch (RamwayException e)
                {
                    end = e.Kind;
                }
            });
            waiter.Start();
            Thread.Sleep(50);
            tx.Release();
            waiter.Join();
            Check.That(end == 0 || end == ErrorKind.NotFound, "it ended with " + end);
            dir.Holds();
            // And where the name goes while its role is waited for, there is nothing left to wait for.
            tx = Rings.Hold(name, How.Create, Role.Producer);
            var remover = new Thread(() =>
            {
                Thread.Sleep(50);
                System.IO.File.Delete(name);
            });
            remover.Start();
            Rings.Refused(ErrorKind.NotFound, name, How.Open, Role.Producer, Rings.Waiting(0.3));
            remover.Join();
            tx.Release();
        }

        [Test]
        private static void LivenessIsTheLock()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment rx = Rings.Hold(name, How.Create, Role.Consumer, Rings.Of(4096));
            Check.That(!rx.Link.PeerAlive(Role.Consumer), "a producer that never was");
            Peer p = Rings.StartHolder(name, "producer");
            Check.That(rx.Link.PeerAlive(Role.Consumer) && !rx.Link.Vanished() && !rx.Link.Final, "the producer lives");
            // A stopped process is alive.
            Posix.Do(Posix.kill(p.Pid, 19), "SIGSTOP");
            Thread.Sleep(20);
            Check.That(rx.Link.PeerAlive(Role.Consumer), "stopped is not dead");
            p.Kill();
            Wait.Until("the kernel releases the lock", () => !rx.Link.PeerAlive(Role.Consumer));
            Attachment tx = Rings.Hold(name, How.Open, Role.Producer, Rings.Waiting(30));
            Check.That(rx.Link.PeerAlive(Role.Consumer) && tx.Link.PeerAlive(Role.Producer),
                "two handles of one process are strangers who see each other");
            tx.Release();
            rx.Release();
            dir.Holds();
        }

        [Test]
        private static void ANameThatVanishesUnderItsUsers()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment tx = Rings.Hold(name, How.Create, Role.Producer);
            System.IO.File.Delete(name);
            Check.That(tx.Link.Vanished(), "it has no name any more");
            // The name is somebody else's now; the old user leaves it alone.
            Attachment rx = Rings.Hold(name, How.Create, Role.Consumer);
            tx.Release();
            dir.Holds("ring");
            Check.That(!rx.Link.Vanished(), "the new one has its name");
            // Renamed over by something else while in use: not ours to remove either.
            System.IO.File.WriteAllText(dir.At("other"), "somebody's");
            System.IO.File.Delete(name);
            System.IO.File.Move(dir.At("other"), name);
            rx.Release();
            dir.Holds("ring");
        }

        [Test]
        private static void ALeaverOfAnImpossibleRingLeavesIt()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            Attachment tx = Rings.Hold(name, How.Create, Role.Producer);
            tx.Ring->Head = 7;
            tx.Ring->Tail = 7;
            tx.Release();
            dir.Holds("ring");
            Rings.Refused(ErrorKind.AlreadyExists, name, How.Create, Role.Producer, null, "contradict");
        }

        /// <summary>Many processes create at the same moment: one makes it, the others say so.</summary>
        [Test]
        private static void OneOfManyCreatorsWins()
        {
            using var dir = new Folder();
            for (int round = 0; round < 3; round++)
            {
                string name = dir.At("ring" + round);
                var peers = new List<Peer>();
                for (int i = 0; i < 5; i++)
                {
                    peers.Add(Peer.Start("racer", name));
                }
                peers.ForEach(p => p.Expect("ready"));
                peers.ForEach(p => p.Tell("go"));
                int made = 0;
                foreach (Peer p in peers)
                {
                    string said = p.Hear();
                    made += said == "made" ? 1 : 0;
                    Check.That(said == "made" || said == "AlreadyExists", "a creator said " + said);
                }
                Check.Equal(1, made, "how many made it");
                peers.ForEach(p => p.Tell("leave"));
                peers.ForEach(p => p.Finish());
                dir.Holds();
            }
        }

        [Helper("racer")]
        private static void Racer(string[] arguments)
        {
            // So that what is compiled at the first call does not keep them apart.
            Rings.Hold(arguments[0] + "-" + System.Diagnostics.Process.GetCurrentProcess().Id, How.Create, Role.Producer).Release();
            Peer.Say("ready");
            Peer.Told();
            Attachment? a = null;
            string said;
            try
            {
                a = Rings.Hold(arguments[0], How.Create, Role.Consumer);
                said = "made";
            }
            catch (RamwayException e)
            {
                said = e.Kind.ToString();
            }
            Peer.Say(said);
            Peer.Told();
            a?.Release();
        }

        /// <summary>Two processes open or create, again and again: each time both get in, to one and the same ring.</summary>
        [Test]
        private static void TwoWhoOpenOrCreateMeet()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            using Peer p = Peer.Start("meeter", name);
            for (int round = 0; round < 200; round++)
            {
                p.Tell("go");
                Attachment tx = Rings.Hold(name, How.OpenOrCreate, Role.Producer, Rings.Waiting(30));
                p.Expect("in");
                Check.That(tx.Link.PeerAlive(Role.Producer), "round " + round + ": it is in another ring");
                p.Tell("out");
                tx.Release();
            }
            p.Finish();
            dir.Holds();
        }

        [Helper("meeter")]
        private static void Meeter(string[] arguments)
        {
            while (Peer.Told() == "go")
            {
                Attachment rx = Rings.Hold(arguments[0], How.OpenOrCreate, Role.Consumer, Rings.Waiting(30));
                Peer.Say("in");
                Peer.Told();
                rx.Release();
            }
        }
    }
}
