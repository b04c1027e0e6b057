using System;
using System.Collections.Generic;
using System.Diagnostics;

namespace Ramway.Tests
{
    /// <summary>A time-out is how long a call waits at least: whatever it waits for, and however.</summary>
    internal static class LimitTests
    {
        /// <summary>The errors that say that a time is over.</summary>
        private static bool IsOver(Exception e) =>
            e is RamwayException error && (error.Kind == ErrorKind.TimedOut || error.Kind == ErrorKind.NotFound) ||
            e is RpcException call && (call.Status == RpcStatus.TimedOut || call.Kind == ErrorKind.TimedOut);

        /// <summary>Times that a clock of whole milliseconds, or of ticks of 4 ms, would count wrongly.</summary>
        private static void NoneTooShort(string what, Action<TimeSpan> wait)
        {
            for (int i = 0; i < 12; i++)
            {
                TimeSpan time = TimeSpan.FromTicks(7_001 * i);
                long began = Stopwatch.GetTimestamp();
                try
                {
                    wait(time);
                    throw new CheckException(what + ": nothing was over");
                }
                catch (Exception e) when (IsOver(e))
                {
                }
                long took = Stopwatch.GetTimestamp() - began, least = time.Ticks * (Stopwatch.Frequency / 10_000_000);
                Check.That(took >= least, what + ": " + took + " ticks, told to wait " + least);
            }
        }

        [Test]
        private static void NoWaitEndsBeforeItsTime()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                using var folder = new Folder();
                var (tx, rx) = Ring.Pair(new RingOptions { Capacity = 4096, Wait = mode });
                using Sender sender = tx;
                using Receiver receiver = rx;
                NoneTooShort(mode + " Recv", time => receiver.Recv(time).Dispose());
                NoneTooShort(mode + " RecvBatch", time => receiver.RecvBatch(8, time).Dispose());
                sender.Send(1, new byte[4080]);
                NoneTooShort(mode + " Send", time => sender.Send(1, 0, default, time));
                NoneTooShort(mode + " Reserve", time => sender.Reserve(8, time).Dispose());

                string name = folder.At("topic");
                var options = new TopicOptions { Capacity = 4096, Wait = mode };
                using Publisher publisher = Publisher.Create(name, options);
                NoneTooShort(mode + " WaitForSubscribers", time => publisher.WaitForSubscribers(1, time));
                foreach (Policy policy in new[] { Policy.Latest, Policy.Lossy, Policy.Reliable })
                {
                    using Subscriber early = Subscriber.Open(name, new TopicOptions { Policy = policy, Wait = mode });
                    NoneTooShort(mode + " Recv of " + policy, time => early.Recv(time).Dispose());
                }
                using Subscriber behind = Subscriber.Open(name, new TopicOptions { Policy = Policy.Reliable });
                byte[] half = new byte[publisher.MaxMessageLength];
                while (publisher.TrySend(1, half))
                {
                }
                NoneTooShort(mode + " publish", time => publisher.Send(1, 0, half, time));

                using Region region = Region.Create(folder.At("region"), 4096, new RegionOptions { Wait = mode });
                NoneTooShort(mode + " Region.Wait", time => region.Wait(time));
            }
        }

        [Test]
        private static void NoConnectingEndsBeforeItsTime()
        {
            using var folder = new Folder();
            using Listener listener = Listener.Bind(folder.At("quiet"));
            NoneTooShort("Accept", time => listener.Accept(time));
            NoneTooShort("Connect, no answer", time => Bus.Connect(listener.Path, new ConnectOptions { Timeout = time }));
            NoneTooShort("Connect, nobody", time => Bus.Connect(folder.At("no"), new ConnectOptions { Timeout = time }));
            NoneTooShort("Open", time => Receiver.Open(folder.At("no"), new RingOptions { Timeout = time }));
        }

        [Test]
        private static void NoCallEndsBeforeItsTime()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            NoneTooShort("Call", time => client.Call(TestServer.Gate, default, new RpcCallOptions { Timeout = time }));
            using RpcPending pending = client.Start(TestServer.Gate, default);
            NoneTooShort("RpcPending.Wait", time => pending.Wait(time));
            server.Opened.TrySetResult(true);
            pending.Wait(Wait.Long);
        }
    }
}
