using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    internal static class RpcTests
    {
        private static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);

        private static string Text(RpcReply reply) => Encoding.UTF8.GetString(reply.Body.Span);

        /// <summary>That a call fails in this way.</summary>
        internal static RpcException Fails(RpcStatus? status, ErrorKind? kind, Action call)
        {
            try
            {
                call();
            }
            catch (RpcException e)
            {
                Check.Equal((status, kind), (e.Status, e.Kind), "how the call ended (" + e.Message + ")");
                return e;
            }
            throw new CheckException("expected " + status + kind + ", but nothing failed");
        }

        internal static RpcException Fails(RpcStatus status, Action call) => Fails(status, null, call);

        internal static RpcException Fails(ErrorKind kind, Action call) => Fails(null, kind, call);

        private static RpcCallOptions Within(int milliseconds) =>
            new RpcCallOptions { Timeout = TimeSpan.FromMilliseconds(milliseconds) };

        [Test(Seconds = 240)]
        internal static void ACallGetsItsReply()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            Check.Equal("hello", Text(client.Call(TestServer.Echo, Bytes("hello"))), "echo");
            foreach (int length in new[] { 1, 15, 16, 17, 1000 })
            {
                byte[] meta = Enumerable.Range(0, length).Select(i => (byte)(i + 1)).ToArray();
                RpcReply reply = client.Call(TestServer.Echo, Bytes("x"), new RpcCallOptions { Meta = meta });
                Check.Same(meta, reply.Meta.Span, "the metadata");
                Check.Equal("x", Text(reply), "the body");
            }
            Check.Equal(0, client.Call(TestServer.Echo).Body.Length, "an empty body");
            Check.Equal("by name", Text(client.Call(Rpc.MethodId("Store.Get"), Bytes("by name"))), "by name");
            int pid = BitConverter.ToInt32(client.Call(TestServer.Who).Body.Span);
            Check.Equal((pid, client.PeerUid), (Process.GetCurrentProcess().Id, Ramway.Sys.Libc.geteuid()), "the peers");
            Check.Equal(pid, client.PeerPid, "the server's process");
            Check.Equal((0, 1024, 1), (client.InFlight, client.MaxInFlight, server.Server.Clients), "the numbers");
            Check.Equal(-1L, BitConverter.ToInt64(client.Call(TestServer.Left).Body.Span), "no time limit");
            long left = BitConverter.ToInt64(client.Call(TestServer.Left, Within(60_000)).Body.Span);
            Check.That(left > 0 && left <= 60_000 * TimeSpan.TicksPerMillisecond, "the time that is left: " + left);
        }

        [Test(Seconds = 240)]
        internal static async Task ATaskGetsItsReply()
        {
            using var server = new TestServer();
            using RpcClient client = await RpcClient.ConnectAsync(server.Name);
            Check.Equal("hello", Text(await client.CallAsync(TestServer.Echo, Bytes("hello"))), "echo");
            // A blocking call beside the client's own thread.
            Check.Equal("block", Text(client.Call(TestServer.Echo, Bytes("block"))), "echo");
            await client.PingAsync(Wait.Long);
            RpcReply[] replies = await Task.WhenAll(Enumerable.Range(0, 2000)
                .Select(i => client.CallAsync(i % 2 == 0 ? TestServer.Echo : Rpc.MethodId("Store.Get"), BitConverter.GetBytes(i))));
            Check.That(replies.Select((r, i) => BitConverter.ToInt32(r.Body.Span) == i).All(same => same), "each has its own reply");
        }

        [Test(Seconds = 240)]
        internal static void TheServerDescribesItself()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            client.Ping();
            IReadOnlyList<RpcMethod> methods = client.Describe();
            Check.Equal("1,2,3,4,5,6,7,8,9," + Rpc.MethodId("Store.Get") + " Store.Get", string.Join(",", methods), "the methods");
            Check.Equal("Store.Get", methods.Last().Name, "a name");
        }

        [Test(Seconds = 240)]
        internal static void ErrorsSayWhatHappenedAndWhetherItRan()
        {
            using var server = new TestServer(new RpcServerOptions { Capacity = 4096 });
            using RpcClient client = server.Connect();
            RpcException e = Fails(RpcStatus.Application, () => client.Call(TestServer.Fault));
            Check.Equal((77u, "wörds", true), (e.Code, e.Text, e.MayHaveRun), "the application's error");
            e = Fails(RpcStatus.HandlerFailed, () => client.Call(TestServer.Throws));
            Check.Equal(("a mistake", true), (e.Text, e.MayHaveRun), "a handler that throws");
            Check.That(server.Server.LastHandlerFailure is InvalidOperationException, "it is kept for logs");
            foreach (uint method in new[] { 0u, 99u, 0xFFFEFFFFu, 0xFFFF0002u, uint.MaxValue })
            {
                Check.That(!Fails(RpcStatus.NoSuchMethod, () => client.Call(method)).MayHaveRun, "method " + method);
            }
            e = Fails(RpcStatus.HandlerFailed, () => client.Call(TestServer.Count, new byte[16]));
            Check.That(e.Text.Contains("call it as one"), "a stream as a call: " + e.Text);
            Check.Equal(4096 - 32, client.Call(TestServer.Sized, BitConverter.GetBytes(4096 - 32)).Body.Length, "the longest reply");
            foreach (int length in new[] { 4096 - 31, 1 << 20 })
            {
                Check.That(Fails(RpcStatus.ReplyTooLarge, () => client.Call(TestServer.Sized, BitConverter.GetBytes(length))).MayHaveRun,
                    "a reply of " + length);
            }
            Check.Equal(4096 - 32, client.Call(TestServer.Echo, new byte[4096 - 32]).Body.Length, "the longest request");
            Check.That(!Fails(ErrorKind.TooLarge, () => client.Call(TestServer.Echo, new byte[4096 - 31])).MayHaveRun, "a longer one");
            Check.Equal("fine", Text(client.Call(TestServer.Echo, Bytes("fine"))), "none of this disturbs the next call");
        }

        [Test(Seconds = 240)]
        internal static void WhatCannotBeIsRefused()
        {
            using var server = new TestServer();
            Check.Fails(ErrorKind.AlreadyExists, () => RpcServer.Bind(server.Name));
            using var folder = new Folder();
            foreach (RpcServerOptions options in new[]
            {
                new RpcServerOptions { MaxClients = 0 }, new RpcServerOptions { MaxInFlight = 0 }, new RpcServerOptions { MaxBytes = -1 },
                new RpcServerOptions { MaxInFlight = (int)Facts.RpcInFlightMax + 1 }, new RpcServerOptions { MaxHandlers = -1 },
                new RpcServerOptions { Capacity = -1 }, new RpcServerOptions { Align = 3 }, new RpcServerOptions { Wait = (WaitMode)9 },
                new RpcServerOptions { DrainTimeout = TimeSpan.FromSeconds(-2) },
            })
            {
                Check.Fails(ErrorKind.InvalidArgument, () => RpcServer.Bind(folder.At("no"), options));
            }
            using (RpcServer idle = RpcServer.Bind(folder.At("idle")))
            {
                Func<RpcRequest, ReadOnlyMemory<byte>> echo = r => r.Body;
                idle.Method(1, echo).Method("A.B", echo);
                Check.Fails(ErrorKind.AlreadyExists, () => idle.Method(1, echo));
                Check.Fails(ErrorKind.AlreadyExists, () => idle.Method(Rpc.MethodId("A.B"), echo), "A.B");
                Check.Fails(ErrorKind.InvalidArgument, () => idle.Method(Facts.MethodReserved, echo));
                Check.Fails(ErrorKind.InvalidArgument, () => idle.Method("a\nb", echo));
            }
            folder.Holds();
            Check.Throws<InvalidOperationException>(() => server.Server.Method(99, (RpcRequest r) => r.Body));
            Check.Throws<InvalidOperationException>(() => server.Server.Serve());
            Check.Fails(ErrorKind.InvalidArgument, () => server.Connect(new RpcClientOptions { MaxBuffered = -1 }));
            using RpcClient client = server.Connect();
            Check.Fails(ErrorKind.InvalidArgument, () => client.Stream(TestServer.Count, default, new RpcCallOptions { Window = 0 }));
            Check.Fails(ErrorKind.InvalidArgument, () => client.Call(1, Within(-5)));
            client.Dispose();
            client.Dispose();
            Check.That(!Fails(ErrorKind.Detached, () => client.Call(1)).MayHaveRun, "a client that is closed");
        }

        [Test(Seconds = 240)]
        internal static void AStreamGivesItsElementsInOrder()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            int next = 0;
            foreach (RpcReply element in client.Stream(TestServer.Count, TestServer.CountOf(1000, 100)))
            {
                Check.Same(next % 2 == 0 ? BitConverter.GetBytes(next) : Array.Empty<byte>(), element.Meta.Span, "its metadata");
                Check.Equal(next++, BitConverter.ToInt32(element.Body.Span), "the element");
            }
            Check.Equal(1000, next, "elements");
            using RpcStream none = client.Stream(TestServer.Count, TestServer.CountOf(0, 8));
            Check.That(!none.Next(out _) && !none.Next(out _) && none.IsComplete, "a stream of nothing");
            Check.Same(new byte[] { 9 }, none.Meta.Span, "the metadata of its end");
            // One reply as a stream, and a failure as the end of one.
            RpcStream one = client.Stream(TestServer.Echo, Bytes("one"));
            Check.That(one.Next(out RpcReply? only) && Text(only) == "one" && !one.Next(out _), "one reply as a stream");
            Fails(RpcStatus.Application, () => client.Stream(TestServer.Fault).Next(out _));
            server.Settle(client);
        }

        [Test(Seconds = 240)]
        internal static async Task TasksReadStreamsTogether()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            await Task.WhenAll(Enumerable.Range(1, 8).Select(async window =>
            {
                int next = 0;
                RpcStream stream = client.Stream(TestServer.Count, TestServer.CountOf(300, 64), new RpcCallOptions { Window = window });
                await foreach (RpcReply element in stream)
                {
                    Check.Equal(next++, BitConverter.ToInt32(element.Body.Span), "the element");
                }
                Check.Equal(300, next, "elements");
            }));
            server.Settle(client);
        }

        [Test(Seconds = 240)]
        internal static void AReaderThatDoesNotReadStopsItsOwnStreamAlone()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            using RpcStream slow = client.Stream(TestServer.Count, TestServer.CountOf(1000, 8), new RpcCallOptions { Window = 4 });
            Wait.Until("the window is full", () =>
            {
                client.Ping(Wait.Long);
                return server.Elements >= 4;
            });
            for (int i = 0; i < 50; i++)
            {
                Check.Equal("x", Text(client.Call(TestServer.Echo, Bytes("x"))), "another call");
            }
            Check.Equal(300, client.Stream(TestServer.Count, TestServer.CountOf(300, 8)).Count(), "another stream");
            Check.That(server.Elements <= 306, "made: " + server.Elements);
            Check.Equal(1000, slow.Count(), "and it goes on");
            server.Settle(client);
        }

        [Test(Seconds = 240)]
        internal static void LeavingALoopOverAStreamCancelsIt()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            foreach (RpcReply element in client.Stream(TestServer.Count, TestServer.CountOf(1_000_000, 8)))
            {
                break;
            }
            server.Settle(client);
            RpcStream stream = client.Stream(TestServer.Count, TestServer.CountOf(1_000_000, 8));
            Check.That(stream.Next(out _), "an element");
            stream.Cancel();
            Fails(ErrorKind.Interrupted, () => stream.Next(out _));
            server.Settle(client);
        }

        [Test(Seconds = 240)]
        internal static void AStartedCallIsWaitedForPolledAndCancelled()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            using (RpcPending pending = client.Start(TestServer.Gate, Bytes("g")))
            {
                Check.Fails(ErrorKind.TimedOut, () => pending.Wait(TimeSpan.FromMilliseconds(20)));
                Check.That(!pending.TryGet(out _), "it is not there");
                using var source = new CancellationTokenSource();
                var beside = new Beside(() => Check.Throws<OperationCanceledException>(() => pending.Wait(null, source.Token)));
                source.Cancel();
                Check.Equal(null, beside.End(), "the wait that was called off");
                server.Opened.SetResult(true);
                Wait.Until("it is there", () => pending.TryGet(out _));
                Check.Equal("g", Text(pending.Wait()), "the reply, as often as it is asked for");
            }
            RpcPending cancelled = client.Start(TestServer.Hold);
            Wait.Until("it runs", () => server.Running == 1);
            cancelled.Cancel();
            Check.That(Fails(ErrorKind.Interrupted, () => cancelled.Wait()).MayHaveRun, "it was sent");
            server.Settle(client);
            cancelled.Dispose();
            client.Start(TestServer.Echo).Dispose();
            server.Settle(client);
        }

        private static void Forget(RpcClient client)
        {
            client.Start(TestServer.Hold);
            client.Stream(TestServer.Count, TestServer.CountOf(1_000_000, 8));
        }

        [Test(Seconds = 240)]
        internal static void WhatIsForgottenIsCancelled()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            var beside = new Beside(() => Forget(client));
            Check.Equal(null, beside.End(), "the other thread");
            Wait.Until("the collector finds it", () =>
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
                client.Ping(Wait.Long);
                return client.InFlight == 0;
            });
            server.Settle(client);
        }

        [Test(Seconds = 240)]
        internal static async Task ATokenCancelsACall()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            foreach (bool blocking in new[] { true, false })
            {
                using var source = new CancellationTokenSource();
                int began = server.Begun;
                Task call = blocking
                    ? Task.Factory.StartNew(() => client.Call(TestServer.Hold, null, source.Token), TaskCreationOptions.LongRunning)
                    : client.CallAsync(TestServer.Hold, default, null, source.Token);
                Wait.Until("it runs", () => server.Begun > began);
                source.Cancel();
                try
                {
                    await call;
                    throw new CheckException("it was not cancelled");
                }
                catch (OperationCanceledException e)
                {
                    Check.Equal(source.Token, e.CancellationToken, "the token");
                    Check.That(((RpcException)e.InnerException!).MayHaveRun, "it may have run");
                }
                Wait.Until("the handler ends", () => server.Running == 0);
                Check.Throws<OperationCanceledException>(() => client.Call(TestServer.Echo, null, source.Token));
            }
            server.Settle(client);
        }

        /// <summary>A call fails because its time was over, on this side, or on a busy server before it began.</summary>
        private static void TimesOut(Action call)
        {
            RpcException e = Check.Throws<RpcException>(call);
            Check.That(e.IsTimedOut && (e.Status == null || !e.MayHaveRun), "how the call ended: " + e.Message);
        }

        [Test(Seconds = 240)]
        internal static void ATimeLimitEndsACallOnBothSides()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            TimesOut(() => client.Call(TestServer.Hold, Within(50)));
            Wait.Until("its handler ends", () => server.Running == 0);
            Check.That(!Fails(ErrorKind.TimedOut, () => client.Call(TestServer.Hold, Within(0))).MayHaveRun, "no time at all");
            Task<RpcReply> task = client.CallAsync(TestServer.Hold, default, Within(50));
            TimesOut(() => task.GetAwaiter().GetResult());
            TimesOut(() => client.Stream(TestServer.Count, TestServer.CountOf(int.MaxValue, 8), Within(50)).Count());
            server.Settle(client);
            Check.Equal("in time", Text(client.Call(TestServer.Echo, Bytes("in time"), Within(30_000))), "one that has time");
        }

        [Test(Seconds = 240)]
        internal static void CallsBeyondTheLimitWaitForTheirPlace()
        {
            using var server = new TestServer(new RpcServerOptions { MaxInFlight = 3 });
            using RpcClient client = server.Connect();
            Check.Equal(3, client.MaxInFlight, "announced");
            List<RpcPending> calls = Enumerable.Range(0, 20).Select(i => client.Start(TestServer.Gate, BitConverter.GetBytes(i))).ToList();
            Wait.Until("three run", () => server.Running == 3);
            Check.Equal(3, client.InFlight, "in flight");
            // One that times out in the queue was not run.
            Check.That(!Fails(ErrorKind.TimedOut, () => client.Call(TestServer.Echo, Within(20))).MayHaveRun, "withdrawn");
            Check.Equal(3, server.Running, "still");
            server.Opened.SetResult(true);
            for (int i = 0; i < calls.Count; i++)
            {
                Check.Equal(i, BitConverter.ToInt32(calls[i].Wait().Body.Span), "its own reply");
            }
        }

        [Test(Seconds = 240)]
        internal static void AServerRefusesBytesBeyondItsLimit()
        {
            using var server = new TestServer(new RpcServerOptions { Capacity = 1 << 16, MaxBytes = 32768 });
            using RpcClient client = server.Connect();
            List<RpcPending> calls = Enumerable.Range(0, 64).Select(i => client.Start(TestServer.Gate, new byte[4000])).ToList();
            // Behind all of them: each was kept or refused.
            client.Ping();
            server.Opened.SetResult(true);
            int kept = 0;
            foreach (RpcPending call in calls)
            {
                try
                {
                    call.Wait();
                    kept++;
                }
                catch (RpcException e)
                {
                    Check.Equal((RpcStatus.Overloaded, false), (e.Status!.Value, e.MayHaveRun), "refused");
                }
            }
            Check.Equal(8, kept, "requests of 4000 bytes in 32768");
        }

        [Test(Seconds = 240)]
        internal static void AClientHoldsNoMoreThanItsBuffer()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect(new RpcClientOptions { MaxBuffered = 10_000 });
            RpcPending[] calls = { client.Start(TestServer.Sized, BitConverter.GetBytes(8000)), client.Start(TestServer.Sized,
                BitConverter.GetBytes(8000)) };
            int full = 0;
            Wait.Until("both have their outcome", () =>
            {
                client.Ping(Wait.Long);
                return client.InFlight == 0;
            });
            foreach (RpcPending call in calls)
            {
                try
                {
                    Check.Equal(8000, call.Wait().Body.Length, "the reply");
                }
                catch (RpcException e)
                {
                    Check.Equal((ErrorKind.TooLarge, true), (e.Kind!.Value, e.MayHaveRun), "the other");
                    full++;
                }
            }
            Check.Equal(1, full, "one of two fits");
            Check.Equal(8000, client.Call(TestServer.Sized, BitConverter.GetBytes(8000)).Body.Length, "what was taken counts no more");
        }

        [Test(Seconds = 240)]
        internal static void PlainAndRpcPeersRefuseEachOther()
        {
            using var server = new TestServer();
            Check.Fails(ErrorKind.AbiMismatch, () => Bus.Connect(server.Name));
            using var folder = new Folder();
            using Listener plain = Listener.Bind(folder.At("plain"));
            var accepted = new Beside(() => plain.Accept(Wait.Long).Dispose());
            Check.Fails(ErrorKind.AbiMismatch, () => RpcClient.Connect(folder.At("plain")));
            // Both serve the next one.
            Bus.Connect(folder.At("plain")).Dispose();
            Check.Equal(null, accepted.End(), "the plain listener");
            using RpcClient client = server.Connect();
            client.Ping();
        }

        [Test(Seconds = 240)]
        internal static void ClientsBeyondTheLimitAreRefused()
        {
            using var server = new TestServer(new RpcServerOptions { MaxClients = 2 });
            using RpcClient first = server.Connect();
            using (RpcClient second = server.Connect())
            {
                second.Ping();
                Check.Fails(ErrorKind.Busy, () => server.Connect());
                first.Ping();
            }
            Wait.Until("its place is free", () => server.Server.Clients == 1);
            using RpcClient third = server.Connect();
            third.Ping();
        }

        [Test(Seconds = 240)]
        internal static void ManyThreadsShareAClient()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            for (int round = 0; round < 2; round++)
            {
                Beside[] threads = Enumerable.Range(0, 8).Select(t => new Beside(() =>
                {
                    for (int i = 0; i < 100; i++)
                    {
                        byte[] body = BitConverter.GetBytes(t << 16 | i);
                        Check.Same(body, client.Call(i % 3 == 0 ? Rpc.MethodId("Store.Get") : TestServer.Echo, body).Body.Span, "a reply");
                    }
                })).ToArray();
                foreach (Beside thread in threads)
                {
                    Check.Equal(null, thread.End(), "a thread");
                }
                // Once without, and once with the client's own thread.
                client.CallAsync(TestServer.Echo).Wait();
            }
            Check.Equal(0, client.InFlight, "in flight");
        }

        [Test(Seconds = 240)]
        internal static void WithoutAKernelThatWaitsForManyThereIsAThreadForEachClient()
        {
            bool before = Poller.Refused;
            Poller.Refused = true;
            try
            {
                using var server = new TestServer(new RpcServerOptions { Capacity = 4096, MaxBytes = 1 << 20 });
                RpcClient[] clients = Enumerable.Range(0, 3).Select(_ => server.Connect()).ToArray();
                foreach (RpcClient client in clients)
                {
                    Check.Equal("x", Text(client.Call(TestServer.Echo, Bytes("x"))), "a call");
                    Task<RpcReply>[] calls = Enumerable.Range(0, 50)
                        .Select(_ => client.CallAsync(TestServer.Echo, new byte[3000])).ToArray();
                    Check.That(Task.WaitAll(calls, Wait.Long), "calls by which both rings are full");
                    Check.Equal(100, client.Stream(TestServer.Count, TestServer.CountOf(100, 1000)).Count(), "a stream");
                }
                foreach (RpcClient client in clients)
                {
                    client.Dispose();
                }
                Wait.Until("they are gone", () => server.Server.Clients == 0);
            }
            finally
            {
                Poller.Refused = before;
            }
        }

        [Test(Seconds = 240)]
        internal static void EveryWaitModeWorks()
        {
            foreach (WaitMode mode in RingHelpers.Modes)
            {
                using var server = new TestServer(new RpcServerOptions { Wait = mode });
                using RpcClient client = server.Connect(new RpcClientOptions { Wait = mode });
                for (int i = 0; i < 20; i++)
                {
                    Check.Equal("x", Text(client.Call(TestServer.Echo, Bytes("x"))), "blocking");
                }
                Check.Equal("y", Text(client.CallAsync(TestServer.Echo, Bytes("y")).Result), "a task");
            }
        }
    }
}
