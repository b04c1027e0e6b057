using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using Ramway.Sys;

namespace Ramway.Tests
{
    /// <summary>Names under contention: creators, openers and leavers at once, in threads and in processes of their own.</summary>
    internal static unsafe class ContentionTests
    {
        private const int Rounds = 300;

        /// <summary>
        /// Has eight threads attach at once, four in each role, and gives those that could. lost is what the others are told.
        /// </summary>
        private static List<Attachment> Race(string name, How how, ErrorKind lost)
        {
            var winners = new List<Attachment>();
            var wrong = new List<string>();
            List<Thread> threads = Enumerable.Range(0, 8).Select(i => new Thread(() =>
            {
                try
                {
                    Attachment a = Rings.Hold(name, how, (Role)(i % 2), Rings.Of(4096));
                    lock (winners)
                    {
                        winners.Add(a);
                    }
                }
                catch (RamwayException e)
                {
                    lock (wrong)
                    {
                        wrong.AddRange(e.Kind == lost ? new string[0] : new[] { e.ToString() });
                    }
                }
            })).ToList();
            threads.ForEach(t => t.Start());
            threads.ForEach(t => t.Join());
            Check.That(wrong.Count == 0, string.Join("\n", wrong));
            return winners;
        }

        [Test]
        private static void OfRacingThreadsOneCreates()
        {
            using var dir = new Folder();
            for (int round = 0; round < 50; round++)
            {
                List<Attachment> winners = Race(dir.At("ring"), How.Create, ErrorKind.AlreadyExists);
                winners.ForEach(a => a.Release());
                Check.Equal(1, winners.Count, "how many created it in round " + round);
                dir.Holds();
            }
        }

        /// <summary>
        /// Of many that open or create at once, one is the producer and one the consumer, of one and the same ring.
        /// </summary>
        [Test]
        private static void OneProducerAndOneConsumer()
        {
            using var dir = new Folder();
            for (int round = 0; round < 30; round++)
            {
                List<Attachment> holders = Race(dir.At("ring"), How.OpenOrCreate, ErrorKind.Busy);
                Check.Equal(2, holders.Count, "how many hold a role in round " + round);
                Rings.Put(holders[0], 9);
                Check.Equal(Layout.FrameSize(9, 16), holders[1].Ring->Tail, "what the other one sees");
                Rings.Drain(holders[0]);
                holders.ForEach(a => a.Release());
                dir.Holds();
            }
        }

        /// <summary>Openers in a world where the name comes and goes see a whole segment or none.</summary>
        [Test]
        private static void NobodyEverSeesHalfASegment()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            using Peer one = Peer.Start("come-and-go", name), other = Peer.Start("come-and-go", name);
            int opened = 0;
            for (int round = 0; round < Rounds || opened == 0; round++)
            {
                Attachment a;
                try
                {
                    a = Rings.Hold(name, How.Open, Role.Producer);
                }
                catch (RamwayException e)
                {
                    Check.Equal(ErrorKind.NotFound, e.Kind, e.ToString());
                    continue;
                }
                opened++;
                Check.That(a.Capacity == 4096 && !a.Link.Vanished(), "the name does not lead to what is open");
                a.Release();
            }
            foreach (Peer p in new[] { one, other })
            {
                p.Tell("enough");
                p.Finish();
            }
            dir.Holds();
        }

        [Helper("come-and-go")]
        private static void ComeAndGo(string[] arguments)
        {
            bool enough = false;
            var listener = new Thread(() =>
            {
                Peer.Told();
                Volatile.Write(ref enough, true);
            });
            listener.IsBackground = true;
            listener.Start();
            while (!Volatile.Read(ref enough))
            {
                try
                {
                    Rings.Hold(arguments[0], How.Create, Role.Consumer, Rings.Of(4096)).Release();
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.AlreadyExists)
                {
                    // The other one was faster, or somebody opened it.
                }
            }
        }

        /// <summary>
        /// Killed while it creates, opens, closes or removes: the next one can start, and nothing else is left.
        /// </summary>
        [Test]
        private static void ACreatorKilledAtAnyInstruction()
        {
            using var dir = new Folder();
            string name = dir.At("ring");
            for (int round = 0; round < 12; round++)
            {
                Peer p = Peer.Start("for-ever", name);
                p.Expect("ready");
                Futex.Sleep(1 + round * 268_000L);
                p.Kill();
                string[] names = dir.Names();
                Check.That(names.Length == 0 || names.Length == 1 && names[0] == "ring", "left: " + string.Join(" ", names));
                Attachment a = round % 2 == 0
                    ? Rings.Hold(name, How.OpenOrCreate, Role.Consumer, Rings.Waiting(30))
                    : Rings.Hold(name, How.Create, Role.Consumer, new RingOptions { Discard = true, Timeout = Wait.Long });
                Rings.Drain(a);
                a.Release();
                dir.Holds();
            }
        }

        [Helper("for-ever")]
        private static void ForEver(string[] arguments)
        {
            for (int i = 0; ; i++)
            {
                if (i == 3)
                {
                    // By now all of it is compiled.
                    Peer.Say("ready");
                }
                var o = new RingOptions { Discard = true, Capacity = 1 << 16 };
                Attachment tx = Rings.Hold(arguments[0], How.Create, Role.Producer, o);
                Rings.Put(tx, 100);
                Attachment rx = Rings.Hold(arguments[0], How.Open, Role.Consumer);
                Rings.Drain(rx);
                rx.Release();
                tx.Release();
            }
        }
    }
}
