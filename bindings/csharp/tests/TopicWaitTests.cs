using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>Sleeping and waking, cancelling, and closing of a topic's sides.</summary>
    internal static class TopicWaitTests
    {
        [Test(Seconds = 120)]
        private static void EverySubscriberUnderLoad()
        {
            const int count = 20_000;
            foreach (WaitMode wait in new[] { WaitMode.Hybrid, WaitMode.Block })
            {
                using var folder = new Folder();
                string name = folder.At("topic");
                using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 65536, Wait = wait });
                var readers = new List<Beside>();
                foreach (Policy policy in new[] { Policy.Reliable, Policy.Reliable, Policy.Lossy, Policy.Latest })
                {
                    Subscriber subscriber = Subscriber.Open(name, new TopicOptions { Policy = policy, Wait = wait });
                    readers.Add(new Beside(() =>
                    {
                        using Subscriber closing = subscriber;
                        ulong sum = 0, received = 0;
                        foreach (Message m in subscriber.ReadAll(Wait.Long))
                        {
                            sum += 1 + m.Lost;
                            received++;
                            Check.Equal(sum, m.Seq, policy + ": received and lost");
                            Mixed.Verify(m, (int)m.Tag - 1 & int.MaxValue, publisher.MaxMessageLength);
                        }
                        Check.Equal((ulong)count, sum, policy + ": the last one is among them");
                        Check.That(policy != Policy.Reliable || received == count, "a reliable one loses nothing");
                    }));
                }
                for (int seq = 0; seq < count; seq++)
                {
                    Mixed.Send(publisher, seq, publisher.MaxMessageLength, seq % 3 != 1);
                }
                publisher.Dispose();
                foreach (Beside reader in readers)
                {
                    Check.Equal(null, reader.End(), "a reader");
                }
            }
        }

        [Test]
        private static void ManySleepersAreWokenByOneMessage()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            var sleepers = Enumerable.Range(0, 8).Select(i =>
            {
                Subscriber one = Subscriber.Open(name, new TopicOptions { Policy = (Policy)(i % 3), Wait = WaitMode.Block });
                return new Beside(() =>
                {
                    for (ulong next = 1; next <= 20;)
                    {
                        using Message m = i % 2 == 0 ? one.Recv(Wait.Long) : one.RecvAsync().AsTask().Result.View;
                        // On a busy machine the newest may be a later one.
                        Check.That(m.Seq == next || one.Policy == Policy.Latest && m.Seq > next, "number " + next + ", found " + m.Seq);
                        next = m.Seq + 1;
                    }
                    one.Dispose();
                });
            }).ToList();
            var watch = Stopwatch.StartNew();
            for (int round = 1; round <= 20; round++)
            {
                Thread.Sleep(10);
                publisher.Send(1, default);
            }
            foreach (Beside sleeper in sleepers)
            {
                Check.Equal(null, sleeper.End(), "a sleeper");
            }
            // A lost wake-up costs 100 ms.
            Check.That(watch.Elapsed < Wait.Long, "in time");
        }

        [Test]
        private static void ASleepingSubscriberIsCalledOffAtOnce()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            foreach (Policy policy in new[] { Policy.Reliable, Policy.Lossy, Policy.Latest })
            {
                using Subscriber subscriber = Subscriber.Open(name, new TopicOptions { Policy = policy, Wait = WaitMode.Block });
                // Another one that sleeps on the same word, and goes on sleeping.
                using Subscriber other = Subscriber.Open(name, new TopicOptions { Policy = policy, Wait = WaitMode.Block });
                TopicTests.All(subscriber);
                TopicTests.All(other);
                var others = new Beside(() => other.Recv(Wait.Long).Dispose());
                using var source = new CancellationTokenSource();
                var sleeping = new Beside(() => Check.Throws<OperationCanceledException>(() => subscriber.Recv(null, source.Token)));
                Thread.Sleep(30);
                source.Cancel();
                Check.Equal(null, sleeping.End(), "cancelled");
                using var again = new CancellationTokenSource(20);
                Check.Throws<OperationCanceledException>(() => subscriber.RecvAsync(again.Token).AsTask().GetAwaiter().GetResult());
                Check.That(!subscriber.WaitToReadAsync().IsCompleted, "it waits");
                publisher.Send(1, default);
                Check.Equal(null, others.End(), "the other one was woken by the message alone");
            }
        }

        [Test]
        private static void DisposeEndsAWait()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            foreach (bool asynchronous in new[] { false, true })
            {
                Subscriber subscriber = Subscriber.Open(name);
                var waits = new Beside(() =>
                {
                    if (asynchronous)
                    {
                        subscriber.RecvAsync().AsTask().GetAwaiter().GetResult();
                    }
                    else
                    {
                        subscriber.Recv();
                    }
                });
                Thread.Sleep(30);
                subscriber.Dispose();
                Check.Equal(ErrorKind.Detached, waits.Kind(), "the wait");
                Check.Equal(0, publisher.Subscribers().Count, "it has left");
            }
        }

        [Test]
        private static void ABlockedPublisherCanBeCalledOff()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            using Subscriber slow = Subscriber.Open(name);
            while (publisher.TrySend(1, new byte[500]))
            {
            }
            using var source = new CancellationTokenSource(20);
            Check.Throws<OperationCanceledException>(() => publisher.Send(1, new byte[500], null, source.Token));
            ValueTask later = publisher.SendAsync(1, new byte[500]);
            Check.That(!later.IsCompleted, "it waits for room");
            slow.RecvBatch(2).Dispose();
            Check.That(later.AsTask().Wait(Wait.Long), "room is told");
            while (publisher.TrySend(1, new byte[500]))
            {
            }
            var waits = new Beside(() => publisher.Send(1, new byte[500], Wait.Long));
            Thread.Sleep(30);
            publisher.Dispose();
            Check.Equal(ErrorKind.Detached, waits.Kind(), "a close ends it");
        }

        [Test]
        private static void WaitingForSubscribers()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            publisher.WaitForSubscribers(0, TimeSpan.Zero);
            using Subscriber lossy = Subscriber.Open(name, TopicTests.By(Policy.Lossy));
            Check.Fails(ErrorKind.TimedOut, () => publisher.WaitForSubscribers(1, TimeSpan.FromMilliseconds(20)));
            Check.That(!publisher.PeerAlive, "nobody who is waited for");
            using Subscriber one = Subscriber.Open(name);
            publisher.WaitForSubscribers(1, Wait.Long);
            Check.That(publisher.PeerAlive && publisher.PeerEpoch == publisher.WaitForPeer(Wait.Long), "one");
            ValueTask two = publisher.WaitForSubscribersAsync(2);
            Check.That(!two.IsCompleted, "not yet");
            using Subscriber other = Subscriber.Open(name);
            Check.That(two.AsTask().Wait(Wait.Long), "two");
            // And the other way round.
            publisher.Dispose();
            ValueTask<uint> peer = one.WaitForPeerAsync();
            Check.That(!peer.IsCompleted, "its successor");
            using Publisher next = Publisher.Open(name);
            Check.Equal(2u, peer.AsTask().GetAwaiter().GetResult(), "the epoch");
        }

        [Test]
        private static void AViewOutlivesItsSubscribersClose()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Capacity = 4096 });
            Subscriber subscriber = Subscriber.Open(name);
            publisher.Send(1, 7, new byte[] { 42 });
            using (Message m = subscriber.Recv(Wait.Long))
            {
                subscriber.Dispose();
                // The publisher waits for its end.
                while (publisher.TrySend(1, new byte[500]))
                {
                }
                Check.Equal(42, (int)m.Data[0], "intact");
                Check.Equal(1, publisher.Subscribers().Count, "its slot still gates");
            }
            Check.Equal(0, publisher.Subscribers().Count, "then it has left");
            publisher.Send(1, new byte[500], Wait.Long);
        }

        [Test]
        private static void ForgottenSidesOfATopicAreClosed()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Subscriber keeps = Subscriber.Create(name);
            Forget(name);
            Wait.Until("both are collected", () =>
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                return !keeps.PeerAlive;
            });
            Check.Fails(ErrorKind.Closed, () => Check.Equal("last1", TopicTests.All(keeps), "what was committed"));
            using Publisher next = Publisher.Open(name);
            Check.Equal(1, next.Subscribers().Count, "the forgotten subscriber has left");
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Forget(string name)
        {
            Subscriber forgotten = Subscriber.Open(name);
            Publisher publisher = Publisher.Open(name);
            Check.Equal(2, publisher.Subscribers().Count, "both");
            using (Slot slot = publisher.Reserve(4))
            {
                Encoding.UTF8.GetBytes("last").CopyTo(slot.Data);
                slot.CommitUnflushed(1);
            }
            GC.KeepAlive(forgotten);
        }

        [Test]
        private static void WithoutMembarrier()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name, new TopicOptions { Wait = WaitMode.Block });
            var readers = new[] { true, false }.Select(membarrier =>
            {
                Subscriber one = Subscriber.Open(name, new TopicOptions { Membarrier = membarrier, Wait = WaitMode.Block });
                return new Beside(() =>
                {
                    using Subscriber closing = one;
                    ulong n = 0;
                    foreach (Message m in one.ReadAll(Wait.Long))
                    {
                        Check.Equal(++n, m.Seq, "in order");
                    }
                    Check.Equal(3000ul, n, "all");
                });
            }).ToList();
            TopicTests.Numbers(publisher, 1, 3000, 100);
            publisher.Dispose();
            readers.ForEach(r => Check.Equal(null, r.End(), "a reader"));
        }

        [Test]
        private static async Task AnAsynchronousLoopEndsWhenItIsCancelled()
        {
            using var folder = new Folder();
            string name = folder.At("topic");
            using Publisher publisher = Publisher.Create(name);
            foreach (Policy policy in new[] { Policy.Reliable, Policy.Lossy, Policy.Latest })
            {
                using Subscriber subscriber = Subscriber.Open(name, TopicTests.By(policy));
                using var stop = new CancellationTokenSource();
                ulong last = 0;
                Task loop = Task.Run(async () =>
                {
                    await foreach (MessageLease m in subscriber.ReadAllAsync(stop.Token))
                    {
                        Volatile.Write(ref last, m.Seq);
                    }
                });
                publisher.Send(1, default);
                Wait.Until("received", () => Volatile.Read(ref last) == publisher.Seq);
                var watch = Stopwatch.StartNew();
                stop.Cancel();
                try
                {
                    await loop;
                    Check.That(false, "it was not cancelled");
                }
                catch (OperationCanceledException)
                {
                }
                // Not after the poll interval; a busy machine is given as long.
                Check.That(watch.Elapsed < TimeSpan.FromSeconds(5), "at once");
            }
        }
    }
}
