using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>Ends, storms and full rings, with real processes where one of them has to die.</summary>
    internal static class RpcLifeTests
    {
        [Helper("rpc-server")]
        private static void ServerProcess(string[] arguments)
        {
            using var server = new TestServer(null, arguments[0]);
            Peer.Say("serving");
            while (Peer.Told() is string line && line.Length != 0)
            {
                if (line == "running")
                {
                    Peer.Say(server.Running.ToString());
                }
            }
        }

        /// <summary>Has calls and streams under way until it is told to go, or killed.</summary>
        [Helper("rpc-client")]
        private static void ClientProcess(string[] arguments)
        {
            using RpcClient client = RpcClient.Connect(arguments[0]);
            List<RpcPending> calls = Enumerable.Range(0, 5).Select(_ => client.Start(TestServer.Hold)).ToList();
            using RpcStream stream = client.Stream(TestServer.Count, TestServer.CountOf(1_000_000, 8));
            client.Ping();
            Peer.Say("calling");
            Peer.Told();
            GC.KeepAlive(calls);
        }

        private static Peer Serving(string name)
        {
            Peer peer = Peer.Start("rpc-server", name);
            peer.Expect("serving");
            return peer;
        }

        [Test(Seconds = 300)]
        internal static void AKilledServerIsPeerDeadToWhatIsInFlight()
        {
            using var folder = new Folder();
            string name = folder.At("server");
            using Peer first = Serving(name);
            using RpcClient client = RpcClient.Connect(name, new RpcClientOptions { Timeout = Wait.Long });
            using RpcClient tasks = RpcClient.Connect(name);
            List<RpcPending> calls = Enumerable.Range(0, 5).Select(_ => client.Start(TestServer.Hold)).ToList();
            List<Task<RpcReply>> more = Enumerable.Range(0, 5).Select(_ => tasks.CallAsync(TestServer.Hold)).ToList();
            RpcStream stream = client.Stream(TestServer.Count, TestServer.CountOf(1_000_000, 8));
            client.Ping();
            var blocked = new Beside(() => RpcTests.Fails(ErrorKind.PeerDead, () => client.Call(TestServer.Hold)));
            first.Kill();
            foreach (RpcPending call in calls)
            {
                Check.That(RpcTests.Fails(ErrorKind.PeerDead, () => call.Wait()).MayHaveRun, "it may have run");
            }
            foreach (Task<RpcReply> call in more)
            {
                Check.That(RpcTests.Fails(ErrorKind.PeerDead, () => call.GetAwaiter().GetResult()).MayHaveRun, "it may have run");
            }
            Check.Equal(null, blocked.End(), "the blocked caller");
            Check.That(RpcTests.Fails(ErrorKind.PeerDead, () => stream.Count()).MayHaveRun, "the stream");
            Check.That(!RpcTests.Fails(ErrorKind.PeerDead, () => client.Call(TestServer.Echo)).MayHaveRun, "a call after that");
            // Nothing connects again by itself; the next server of the name serves the next client.
            using Peer second = Serving(name);
            using RpcClient next = RpcClient.Connect(name);
            next.Ping();
            next.Dispose();
            second.Finish();
        }

        [Test(Seconds = 300)]
        internal static void AKilledClientsCallsAreCancelled()
        {
            using var server = new TestServer();
            using RpcClient honest = server.Connect();
            using (Peer victim = Peer.Start("rpc-client", server.Name))
            {
                victim.Expect("calling");
                Check.Equal(2, server.Server.Clients, "clients");
                victim.Kill();
            }
            Wait.Until("its calls are cancelled", () => server.Running == 0 && server.Server.Clients == 1);
            honest.Ping();
            using Peer next = Peer.Start("rpc-client", server.Name);
            next.Expect("calling");
            // One that closes is no different.
            next.Finish();
            Wait.Until("its calls are cancelled", () => server.Running == 0 && server.Server.Clients == 1);
        }

        [Test(Seconds = 300)]
        internal static void AStoppedClientStopsNobodyElse()
        {
            using var server = new TestServer();
            using Peer stopped = Peer.Start("rpc-client", server.Name);
            stopped.Expect("calling");
            RingHelpers.Stop(stopped);
            using RpcClient client = server.Connect();
            Check.Equal(2000, client.Stream(TestServer.Count, TestServer.CountOf(2000, 100)).Count(), "elements");
            RingHelpers.Continue(stopped);
            stopped.Finish();
        }

        [Test(Seconds = 300)]
        internal static void AClosedClientEndsItsCallsAndWhoeverWaits()
        {
            using var server = new TestServer();
            RpcClient client = server.Connect();
            Beside[] waiting = Enumerable.Range(0, 4).Select(_ => new Beside(
                () => RpcTests.Fails(ErrorKind.Closed, () => client.Call(TestServer.Hold)))).ToArray();
            Wait.Until("they run", () => server.Running == 4);
            client.Dispose();
            foreach (Beside thread in waiting)
            {
                Check.Equal(null, thread.End(), "a caller");
            }
            Wait.Until("they are cancelled", () => server.Running == 0 && server.Server.Clients == 0);
            client = server.Connect();
            Task<RpcReply> task = client.CallAsync(TestServer.Hold);
            Wait.Until("it runs", () => server.Running == 1);
            client.Dispose();
            RpcTests.Fails(ErrorKind.Closed, () => task.GetAwaiter().GetResult());
            Wait.Until("it is cancelled", () => server.Running == 0);
        }

        [Test(Seconds = 300)]
        internal static void ADrainEndsWhatRunsAndRefusesWhatIsNew()
        {
            var server = new TestServer();
            using RpcClient client = server.Connect();
            List<RpcPending> calls = Enumerable.Range(0, 3).Select(_ => client.Start(TestServer.Gate, new byte[] { 7 })).ToList();
            Wait.Until("they run", () => server.Running == 3);
            var down = new Beside(() => server.Server.Shutdown());
            // It has begun when a call says so.
            Wait.Until("it drains", () =>
            {
                try
                {
                    client.Call(TestServer.Echo);
                    return false;
                }
                catch (RpcException e)
                {
                    Check.Equal((RpcStatus.Draining, false), (e.Status!.Value, e.MayHaveRun), "a new call");
                    return true;
                }
            });
            client.Ping();
            Check.Equal(10, client.Describe().Count, "describe while it drains");
            Check.Fails(ErrorKind.NotFound, () => server.Connect(new RpcClientOptions { Timeout = TimeSpan.FromMilliseconds(50) }));
            server.Opened.SetResult(true);
            foreach (RpcPending call in calls)
            {
                Check.Equal(7, (int)call.Wait().Body.Span[0], "what ran has its reply");
            }
            Check.Equal(null, down.End(), "the shutdown");
            Check.That(!RpcTests.Fails(ErrorKind.Closed, () => client.Call(TestServer.Echo)).MayHaveRun, "closed: not run");
            server.Dispose();
        }

        [Test(Seconds = 300)]
        internal static void ADrainsLimitCancels()
        {
            var server = new TestServer();
            using RpcClient client = server.Connect();
            List<RpcPending> calls = Enumerable.Range(0, 3).Select(_ => client.Start(TestServer.Gate)).ToList();
            RpcStream stream = client.Stream(TestServer.Count, TestServer.CountOf(1000, 8), new RpcCallOptions { Window = 4 });
            Wait.Until("they run", () => server.Running == 4);
            server.Server.Shutdown(TimeSpan.FromMilliseconds(50));
            foreach (RpcPending call in calls)
            {
                RpcTests.Fails(RpcStatus.Cancelled, () => call.Wait());
            }
            int received = 0;
            RpcTests.Fails(RpcStatus.Cancelled, () =>
            {
                while (stream.Next(out _))
                {
                    received++;
                }
            });
            Check.Equal(4, received, "elements before");
            RpcTests.Fails(ErrorKind.Closed, () => client.Call(TestServer.Echo));
            server.Dispose();
        }

        [Test(Seconds = 300)]
        internal static void AClientThatDoesNotReadIsAbandonedByADrain()
        {
            var server = new TestServer(new RpcServerOptions { Capacity = 4096 });
            using RawPeer peer = RawPeer.Client(server.Name);
            // The replies fill the ring, and one is parked.
            for (ulong id = 1; id <= 3; id++)
            {
                peer.Call(id, TestServer.Sized, 0, BitConverter.GetBytes(2000));
            }
            using RpcClient honest = server.Connect();
            honest.Ping();
            server.Server.Shutdown(TimeSpan.FromMilliseconds(50));
            Check.Equal(ErrorKind.PeerDead, peer.End(), "what has no reply may have run");
            RpcTests.Fails(ErrorKind.Closed, () => honest.Ping());
            server.Dispose();
        }

        [Test(Seconds = 300)]
        internal static void ATokenShutsAServerDown()
        {
            using var folder = new Folder();
            using RpcServer server = RpcServer.Bind(folder.At("server"));
            server.Method(1, (RpcRequest r) => r.Body);
            using var stop = new CancellationTokenSource();
            var serving = new Beside(() => server.Serve(stop.Token));
            using (RpcClient client = RpcClient.Connect(folder.At("server")))
            {
                client.Call(1);
                stop.Cancel();
                Check.Equal(null, serving.End(), "Serve returns");
                RpcTests.Fails(ErrorKind.Closed, () => client.Call(1));
            }
            folder.Holds();
        }

        [Test(Seconds = 300)]
        internal static void BothRingsFullIsNoDeadlock()
        {
            using var server = new TestServer(new RpcServerOptions { Capacity = 4096, MaxBytes = 1 << 20 });
            using RpcClient client = server.Connect(new RpcClientOptions { MaxBuffered = 1 << 20 });
            foreach (bool threaded in new[] { false, true })
            {
                if (threaded)
                {
                    client.CallAsync(TestServer.Echo).Wait();
                }
                List<RpcPending> calls = Enumerable.Range(0, 100).Select(i => client.Start(TestServer.Echo, Patterned(i))).ToList();
                for (int i = 0; i < calls.Count; i++)
                {
                    Check.Same(Patterned(i), calls[i].Wait().Body.Span, "reply " + i);
                }
            }
            server.Settle(client);
        }

        private static byte[] Patterned(int i) => Enumerable.Repeat((byte)i, 4000 - i).ToArray();

        [Test(Seconds = 300)]
        internal static void TenThousandCallsAreInFlight()
        {
            using var server = new TestServer(new RpcServerOptions { MaxInFlight = 10_001, MaxBytes = 64 << 20 });
            using RpcClient client = server.Connect();
            Task<RpcReply>[] calls = Enumerable.Range(0, 10_000)
                .Select(i => client.CallAsync(TestServer.Gate, BitConverter.GetBytes(i))).ToArray();
            Wait.Until("all of them run", () => server.Running == 10_000);
            Check.Equal(10_000, client.InFlight, "in flight");
            client.Ping();
            server.Opened.SetResult(true);
            Check.That(Task.WaitAll(calls, Wait.Long), "all have their reply");
            Check.That(calls.Select((c, i) => BitConverter.ToInt32(c.Result.Body.Span) == i).All(same => same), "each its own");
        }

        [Test(Seconds = 300)]
        internal static void ACancelStormLeavesNothing()
        {
            using var server = new TestServer(new RpcServerOptions { MaxInFlight = 64 });
            using RpcClient client = server.Connect();
            for (int round = 0; round < 20; round++)
            {
                // More than may be in flight: the rest is withdrawn.
                List<RpcPending> calls = Enumerable.Range(0, 20 * (round % 8)).Select(_ => client.Start(TestServer.Gate)).ToList();
                List<RpcStream> streams = Enumerable.Range(0, 5).Select(_ => client.Stream(TestServer.Count,
                    TestServer.CountOf(1_000_000, 100), new RpcCallOptions { Window = 2 })).ToList();
                if (round % 2 == 1)
                {
                    streams[0].TryNext(out _);
                }
                calls.ForEach(call => call.Dispose());
                streams.ForEach(stream => stream.Dispose());
            }
            server.Settle(client);
            client.Call(TestServer.Echo);
        }

        [Test(Seconds = 300)]
        internal static void ADeadlineStormLeavesNothing()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            foreach (uint method in new[] { TestServer.Echo, TestServer.Gate })
            {
                foreach (double micros in new[] { 1.0, 50, 500, 5000 })
                {
                    var options = new RpcCallOptions { Timeout = TimeSpan.FromTicks((long)(10 * micros)) };
                    Task[] calls = Enumerable.Range(0, 200).Select(_ => (Task)client.CallAsync(method, default, options)).ToArray();
                    int ok = 0, late = 0;
                    foreach (Task call in calls)
                    {
                        try
                        {
                            call.GetAwaiter().GetResult();
                            ok++;
                        }
                        catch (RpcException e)
                        {
                            Check.That(e.IsTimedOut || e.Status == RpcStatus.Cancelled, "a late call ends so: " + e.Message);
                            late++;
                        }
                    }
                    Check.Equal((200, 0), (ok + late, method == TestServer.Gate ? ok : 0), "each ends once");
                }
            }
            server.Settle(client);
        }

        [Test(Seconds = 300)]
        internal static void AHundredThousandCancellationsRaceWithTheirReplies()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            // The client's own thread receives while this one cancels.
            client.CallAsync(TestServer.Echo).Wait();
            int replied = 0, cancelled = 0;
            for (int i = 0; i < 100_000; i++)
            {
                using RpcPending call = client.Start(TestServer.Echo);
                Thread.SpinWait(i % 200);
                call.Cancel();
                try
                {
                    call.Wait();
                    replied++;
                }
                catch (RpcException e) when (e.Kind == ErrorKind.Interrupted)
                {
                    cancelled++;
                }
            }
            Check.Equal(100_000, replied + cancelled, "each ends once");
            server.Settle(client);
            client.Call(TestServer.Echo);
        }
    }
}
