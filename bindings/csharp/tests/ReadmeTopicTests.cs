using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>The programs of README.md about topics and about many sources, line by line, run.</summary>
    internal static class ReadmeTopicTests
    {
        private static readonly List<string> Shown = new List<string>();

        private static void Show(ulong seq, ulong lost, ReadOnlySpan<byte> data) =>
            Add(seq + "-" + lost + ":" + Encoding.UTF8.GetString(data));

        private static void Draw(ReadOnlySpan<byte> data) => Add(Encoding.UTF8.GetString(data));

        private static async Task Store(ulong seq, ReadOnlyMemory<byte> data)
        {
            await Task.Yield();
            Show(seq, 0, data.Span);
        }

        private static void Add(string what)
        {
            lock (Shown)
            {
                Shown.Add(what);
            }
        }

        private static int Count()
        {
            lock (Shown)
            {
                return Shown.Count;
            }
        }

        private static void ExpectShown(params string[] what)
        {
            lock (Shown)
            {
                Check.Equal(string.Join(" ", what), string.Join(" ", Shown), "what was shown");
                Shown.Clear();
            }
        }

        private static void PublishTicks(byte[] payload)
        {
            using var publisher = Publisher.OpenOrCreate("ticks", new TopicOptions { Capacity = 8 << 20, Timestamps = true });
            publisher.WaitForSubscribers(1, TimeSpan.FromSeconds(30));   // reliable ones; without, early messages are history
            publisher.Send(1, payload);                                  // and all that a Sender has: Reserve, StartBatch, SendAsync, ...
        }

        private static async Task Lossy(CancellationToken token)
        {
            using var subscriber = Subscriber.Open("ticks", new TopicOptions { Policy = Policy.Lossy, Start = Start.History(100) });
            await foreach (MessageLease message in subscriber.ReadAllAsync(token))
            {
                Show(message.Seq, message.Lost, message.Data);           // Lost: how many are missing right before this one
            }
        }

        private static void Newest(Subscriber ticks, CancellationToken token)
        {
            using var latest = Subscriber.Open("ticks", new TopicOptions { Policy = Policy.Latest });
            var value = new byte[latest.MaxMessageLength];
            if (latest.TryReadLatest(value, out MessageInfo info))       // the newest value at any time: no wait, no garbage
            {
                Draw(value.AsSpan(0, info.Length));
            }
            using Message newer = latest.WaitNewer(TimeSpan.FromSeconds(5), token);
            Draw(newer.Data);                                            // what came after it, or after that: the newest
            Check.That(ticks.Lag.Messages > 0, "the other one is behind");
        }

        private static async Task Ejected(Subscriber subscriber, CancellationToken token)
        {
            try
            {
                using MessageLease message = await subscriber.RecvAsync(token);
                Show(message.Seq, message.Lost, message.Data);
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Lagged)
            {
                Add("ejected, lost " + e.Lost);                          // the next call goes on after them
            }
        }

        // What the hosting package has under this name, as far as the page needs it.
        private abstract class BackgroundService
        {
            private readonly CancellationTokenSource _stopping = new CancellationTokenSource();
            private Task _running = Task.CompletedTask;

            protected abstract Task ExecuteAsync(CancellationToken stopping);

            internal void Start() => _running = Task.Run(() => ExecuteAsync(_stopping.Token));

            internal Task StopAsync()
            {
                _stopping.Cancel();
                return _running;
            }
        }

        private sealed class Recorder : BackgroundService
        {
            protected override async Task ExecuteAsync(CancellationToken stopping)
            {
                var options = new TopicOptions { Label = "recorder", Durable = true };
                using var subscriber = Subscriber.OpenOrCreate("ticks", options);
                try
                {
                    await foreach (MessageLease message in subscriber.ReadAllAsync(stopping))
                    {
                        await Store(message.Seq, message.Memory);        // to its end: what the loop leaves counts as received
                    }
                }
                catch (OperationCanceledException) when (stopping.IsCancellationRequested)
                {
                    // StopAsync. The wait ended at once; the next start goes on with the next message.
                }
            }
        }

        private delegate void Handle(int source, Message message);

        private static async Task Merge(IReadOnlyList<Receiver> sources, Handle handle, CancellationToken token)
        {
            var waits = sources.Select((s, i) => (Source: i, Ready: s.WaitToReadAsync(token).AsTask())).ToList();
            while (waits.Count > 0)
            {
                await Task.WhenAny(waits.Select(w => w.Ready));
                int first = waits.FindIndex(w => w.Ready.IsCompleted);
                (int source, Task<bool> ready) = waits[first];
                waits.RemoveAt(first);
                if (await ready)                                         // false: it has closed, and all of it was received
                {
                    Take(source, sources[source], handle, 64);
                    // Behind the others: whoever was served last goes last.
                    waits.Add((source, sources[source].WaitToReadAsync(token).AsTask()));
                }
            }
        }

        private static void Take(int number, Receiver source, Handle handle, int most)
        {
            try
            {
                while (most-- > 0 && source.TryRecv(out Message message))
                {
                    using (message)
                    {
                        handle(number, message);
                    }
                }
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Closed)
            {
                // The next wait for it gives false.
            }
        }

        [Test]
        private static async Task ATopicOfThreePrograms()
        {
            using var stop = new CancellationTokenSource(Wait.Long);
            using Subscriber reliable = Subscriber.OpenOrCreate("ticks", new TopicOptions { Capacity = 8 << 20 });
            PublishTicks(Encoding.UTF8.GetBytes("tick"));
            using Publisher publisher = Publisher.Open("ticks");
            Task lossy = Lossy(stop.Token);
            Wait.Until("the history", () => Count() == 1);
            ExpectShown("1-0:tick");
            TopicTests.Send(publisher, "tock");
            Wait.Until("the next", () => Count() == 1);
            ExpectShown("2-0:tock");
            var newest = new Beside(() => Newest(reliable, stop.Token));
            Wait.Until("the newest", () => Count() == 1);
            TopicTests.Send(publisher, "tack");
            Check.Equal(null, newest.End(), "the newest");
            Wait.Until("all", () => Count() == 3);
            lock (Shown)
            {
                Check.That(Shown[0] == "tock" && Shown.Contains("tack") && Shown.Contains("3-0:tack"), string.Join(" ", Shown));
                Shown.Clear();
            }
            await Ejected(reliable, stop.Token);
            ExpectShown("1-0:tick");
            publisher.Dispose();
            await lossy;
        }

        [Test]
        private static async Task ABackgroundServiceStopsAtOnceAndGoesOn()
        {
            var service = new Recorder();
            service.Start();
            using Publisher publisher = Publisher.Open("ticks", new TopicOptions { Timeout = Wait.Long });
            await publisher.WaitForSubscribersAsync(1);
            TopicTests.Send(publisher, "a");
            Wait.Until("stored", () => Count() == 1);
            var watch = Stopwatch.StartNew();
            await service.StopAsync();
            Check.That(watch.Elapsed < TimeSpan.FromSeconds(10), "it stopped after " + watch.Elapsed);
            TopicTests.Send(publisher, "b");
            var next = new Recorder();
            next.Start();
            Wait.Until("stored", () => Count() == 2);
            await next.StopAsync();
            ExpectShown("1-0:a", "2-0:b");
            publisher.Dispose();
            using Subscriber last = Subscriber.Open("ticks", new TopicOptions { Label = "recorder", Durable = true });
            last.Unsubscribe();
        }

        [Test]
        private static async Task AHundredSourcesAndOneBusy()
        {
            const int count = 100, each = 5;
            using var folder = new Folder();
            var sources = new List<Receiver>();
            var senders = new List<Sender>();
            for (int i = 0; i < count; i++)
            {
                string name = folder.At("source" + i);
                if (i % 2 == 0)
                {
                    senders.Add(Sender.Create(name, new RingOptions { Capacity = 4096 }));
                    sources.Add(Receiver.Open(name));
                }
                else
                {
                    senders.Add(Publisher.Create(name, new TopicOptions { Capacity = 4096 }));
                    sources.Add(Subscriber.Open(name));
                }
            }
            // The first in the list is the busy one: it has something all the time.
            bool stop = false;
            var busy = new Beside(() =>
            {
                while (!Volatile.Read(ref stop))
                {
                    senders[0].Send(1, new byte[100], Wait.Long);
                }
                senders[0].Dispose();
            });
            int[] received = new int[count];
            Task merged = Merge(sources, (source, message) => Interlocked.Increment(ref received[source]), CancellationToken.None);
            for (int round = 1; round <= each; round++)
            {
                senders.Skip(1).ToList().ForEach(s => s.Send(1, new byte[10], Wait.Long));
                // While the busy one goes on.
                Wait.Until("each quiet source is heard",
                    () => Enumerable.Range(1, count - 1).All(i => Volatile.Read(ref received[i]) >= round));
            }
            Check.That(received[0] > each, "the busy one: " + received[0]);
            Volatile.Write(ref stop, true);
            Check.Equal(null, busy.End(), "the busy one");
            senders.ForEach(s => s.Dispose());
            Check.That(merged.Wait(Wait.Long), "all have closed");
            await merged;
            sources.ForEach(s => s.Dispose());
        }

        [Test]
        private static async Task MergingIsCancelledAtOnce()
        {
            var pairs = Enumerable.Range(0, 10).Select(_ => Ring.Pair()).ToList();
            using var stop = new CancellationTokenSource();
            Task merged = Merge(pairs.Select(p => p.Receiver).ToList(), (source, message) => { }, stop.Token);
            stop.CancelAfter(30);
            try
            {
                await merged;
                Check.That(false, "it was cancelled");
            }
            catch (OperationCanceledException)
            {
            }
            pairs.ForEach(p =>
            {
                p.Sender.Dispose();
                p.Receiver.Dispose();
            });
        }
    }
}
