using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>Handlers and what follows a task, on the threads that receive.</summary>
    internal static class RpcInlineTests
    {
        private const uint Echo = 1, Where = 2, Fault = 3, Throws = 4, Pool = 5, Busy = 6, Sized = 7;

        /// <summary>A server with inline handlers, and one of the pool.</summary>
        private sealed class InlineServer : IDisposable
        {
            private readonly Folder folder = new Folder();
            private readonly Task serving;

            internal InlineServer(RpcServerOptions? options = null)
            {
                options ??= new RpcServerOptions();
                options.HandshakeTimeout = Wait.Long;
                Server = RpcServer.Bind(folder.At("server"), options);
                Server.InlineMethod(Echo, r =>
                {
                    r.ReplyMeta = r.Meta;
                    return r.Body;
                });
                Server.InlineMethod(Where, r => Bytes(Thread.CurrentThread.Name ?? ""));
                Server.InlineMethod(Fault, r => throw new RpcFault(77, "wörds"));
                Server.InlineMethod(Throws, r => throw new InvalidOperationException("a mistake"));
                Server.Method(Pool, (RpcRequest r) => Bytes(Thread.CurrentThread.IsThreadPoolThread ? "pool" : ""));
                Server.InlineMethod(Busy, r =>
                {
                    Begun.Set();
                    Check.That(Go.Wait(Wait.Long), "the test does not go on");
                    return Bytes(r.IsCancelled ? "cancelled" : "not cancelled");
                });
                Server.InlineMethod(Sized, r => new byte[BitConverter.ToInt32(r.Body.Span)]);
                Server.InlineMethod("Store.Get", r => r.Body);
                serving = Server.ServeAsync();
            }

            internal RpcServer Server { get; }

            internal ManualResetEventSlim Begun { get; } = new ManualResetEventSlim();

            internal ManualResetEventSlim Go { get; } = new ManualResetEventSlim();

            internal RpcClient Connect() => RpcClient.Connect(folder.At("server"));

            public void Dispose()
            {
                Go.Set();
                Server.Dispose();
                Check.That(serving.Wait(Wait.Long), "the server does not end");
                folder.Dispose();
            }
        }

        private static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);

        private static string Text(RpcReply reply) => Encoding.UTF8.GetString(reply.Body.Span);

        [Test(Seconds = 240)]
        internal static void AnInlineHandlerRunsWhereRequestsAreRead()
        {
            using var server = new InlineServer(new RpcServerOptions { Capacity = 4096 });
            using RpcClient client = server.Connect();
            Check.Equal("ramway rpc server", Text(client.Call(Where)), "the thread of an inline handler");
            Check.Equal("pool", Text(client.Call(Pool)), "the thread of another one");
            RpcReply reply = client.Call(Echo, Bytes("body"), new RpcCallOptions { Meta = Bytes("meta") });
            Check.Equal("body", Text(reply), "the body");
            Check.Same(Bytes("meta"), reply.Meta.Span, "the metadata");
            Check.Equal("by name", Text(client.Call(Rpc.MethodId("Store.Get"), Bytes("by name"))), "by name");
            Check.That(client.Describe().Any(m => m.Name == "Store.Get"), "it is described");
            for (int i = 0; i < 20_000; i++)
            {
                Check.Equal(i, BitConverter.ToInt32(client.Call(Echo, BitConverter.GetBytes(i)).Body.Span), "a reply");
            }
            // Asked for as a stream it is one of one element.
            using RpcStream stream = client.Stream(Echo, Bytes("one"));
            Check.Equal("one", string.Join(",", stream.Select(Text)), "the stream");
        }

        [Test(Seconds = 240)]
        internal static void WhatAnInlineHandlerThrowsIsTheCallsError()
        {
            using var server = new InlineServer(new RpcServerOptions { Capacity = 4096 });
            using RpcClient client = server.Connect();
            RpcException e = RpcTests.Fails(RpcStatus.Application, () => client.Call(Fault));
            Check.Equal((77u, "wörds"), (e.Code, e.Text), "the application's error");
            e = RpcTests.Fails(RpcStatus.HandlerFailed, () => client.Call(Throws));
            Check.Equal("a mistake", e.Text, "a handler that throws");
            Check.That(server.Server.LastHandlerFailure is InvalidOperationException, "it is kept for logs");
            RpcTests.Fails(RpcStatus.ReplyTooLarge, () => client.Call(Sized, BitConverter.GetBytes(1 << 20)));
            Check.Equal("still", Text(client.Call(Echo, Bytes("still"))), "the next call");
        }

        [Test(Seconds = 240)]
        internal static void NamesOfInlineHandlersAreTakenAsOthersAre()
        {
            using var folder = new Folder();
            using RpcServer server = RpcServer.Bind(folder.At("server"));
            server.InlineMethod(1, r => r.Body);
            Check.Fails(ErrorKind.AlreadyExists, () => server.InlineMethod(1, r => r.Body));
            Check.Fails(ErrorKind.AlreadyExists, () => server.Method(1, (RpcRequest r) => r.Body));
            Check.Fails(ErrorKind.InvalidArgument, () => server.InlineMethod(0xFFFF0000, r => r.Body));
            server.InlineMethod("Store.Get", r => r.Body);
            Check.Fails(ErrorKind.AlreadyExists, () => server.Method(Rpc.MethodId("Store.Get"), (RpcRequest r) => r.Body));
        }

        [Test(Seconds = 240)]
        internal static void WhileAnInlineHandlerRunsNothingElseIsReadAndNothingIsLost()
        {
            using var server = new InlineServer();
            using RpcClient client = server.Connect();
            using RpcPending busy = client.Start(Busy);
            RpcPending[] behind = Enumerable.Range(0, 500).Select(i => client.Start(Echo, BitConverter.GetBytes(i))).ToArray();
            Check.That(server.Begun.Wait(Wait.Long), "the handler does not begin");
            var soon = new RpcCallOptions { Timeout = TimeSpan.FromMilliseconds(5) };
            RpcTests.Fails(ErrorKind.TimedOut, () => client.Call(Echo, default, soon));
            // The client's side of a cancelled call is over at once, the server's when the handler has returned.
            busy.Cancel();
            RpcTests.Fails(ErrorKind.Interrupted, () => busy.Wait());
            server.Go.Set();
            for (int i = 0; i < behind.Length; i++)
            {
                Check.Equal(i, BitConverter.ToInt32(behind[i].Wait(Wait.Long).Body.Span), "a reply");
            }
            client.Ping(Wait.Long);
            Check.Equal(0, client.InFlight, "in flight");
        }

        [Test(Seconds = 240)]
        internal static void AServerDrainsWhileAnInlineHandlerRuns()
        {
            using var server = new InlineServer();
            using RpcClient client = server.Connect();
            using RpcPending busy = client.Start(Busy);
            Check.That(server.Begun.Wait(Wait.Long), "the handler does not begin");
            Task ends = Task.Run(() => server.Server.Shutdown(Wait.Long));
            server.Go.Set();
            Check.Equal("not cancelled", Text(busy.Wait(Wait.Long)), "the call that was under way");
            Check.That(ends.Wait(Wait.Long), "the server does not end");
        }

        /// <summary>In any of the ways that could keep the thread from receiving the next reply.</summary>
        [Test(Seconds = 240)]
        internal static async Task WhatFollowsATaskMayBlock()
        {
            using var server = new InlineServer();
            using RpcClient client = server.Connect();
            int there = 0;
            for (int i = 0; i < 3000; i++)
            {
                await client.CallAsync(Echo, Bytes("first")).ConfigureAwait(false);
                there += Thread.CurrentThread.Name == "ramway rpc client" ? 1 : 0;
                if (i % 300 == 0)
                {
                    // A blocking call; a task that is waited for; one of another thread; one of the pool that awaits.
                    Check.Equal("a", Text(client.Call(Echo, Bytes("a"))), "a blocking call");
                    Check.Equal("b", Text(client.CallAsync(Echo, Bytes("b")).Result), "a task that is waited for");
                    Check.Equal("c", Text(Task.Run(() => client.Call(Echo, Bytes("c"))).Result), "a call elsewhere");
                    Check.Equal("d", Text(Task.Run(() => client.CallAsync(Echo, Bytes("d"))).Result), "a task elsewhere");
                    using RpcPending pending = client.Start(Echo, Bytes("e"));
                    Check.Equal("e", Text(pending.WaitAsync().Result), "a pending call that is waited for");
                    using RpcStream stream = client.Stream(Echo, Bytes("f"));
                    Check.Equal("f", Text(stream.NextAsync().AsTask().Result!), "a stream");
                }
            }
            Check.That(there > 0, "no task was completed where its reply was received");
        }

        [Test(Seconds = 240)]
        internal static void ThreadsAwaitBesideOneThatBlocks()
        {
            using var server = new InlineServer();
            using RpcClient client = server.Connect();
            async Task Loop(int id)
            {
                for (int i = 0; i < 2000; i++)
                {
                    int sent = id << 16 | i;
                    RpcReply reply = await client.CallAsync(Echo, BitConverter.GetBytes(sent)).ConfigureAwait(false);
                    Check.Equal(sent, BitConverter.ToInt32(reply.Body.Span), "a reply");
                    if (i % 500 == id)
                    {
                        // Until another thread has got its reply.
                        Task.Run(() => client.Call(Echo)).Wait();
                    }
                }
            }
            var loops = Enumerable.Range(0, 4).Select(Loop).ToList();
            loops.Add(Task.Run(() =>
            {
                for (int i = 0; i < 2000; i++)
                {
                    Check.Equal(i, BitConverter.ToInt32(client.Call(Echo, BitConverter.GetBytes(i)).Body.Span), "a blocking call");
                }
            }));
            Check.That(Task.WhenAll(loops).Wait(Wait.Long), "not all calls end");
            Task.WhenAll(loops).GetAwaiter().GetResult();
        }

        [Test(Seconds = 240)]
        internal static async Task WhatFollowsATaskMayCloseTheClient()
        {
            using var server = new InlineServer();
            for (int i = 0; i < 20; i++)
            {
                RpcClient client = server.Connect();
                await client.CallAsync(Echo).ConfigureAwait(false);
                client.Dispose();
                RpcTests.Fails(ErrorKind.Detached, () => client.CallAsync(Echo).GetAwaiter().GetResult());
            }
        }

        [Test(Seconds = 240)]
        internal static async Task WhoCancelsDoesNotRunWhatFollows()
        {
            using var server = new InlineServer();
            using RpcClient client = server.Connect();
            await client.CallAsync(Echo).ConfigureAwait(false);
            using var source = new CancellationTokenSource();
            Task<RpcReply> busy = client.CallAsync(Busy, cancellationToken: source.Token);
            Check.That(server.Begun.Wait(Wait.Long), "the handler does not begin");
            int canceller = 0, follower = 0;
            Task followed = busy.ContinueWith(_ => follower = Environment.CurrentManagedThreadId,
                TaskContinuationOptions.ExecuteSynchronously);
            using var done = new ManualResetEventSlim();
            var thread = new Thread(() =>
            {
                canceller = Environment.CurrentManagedThreadId;
                source.Cancel();
                // Until then no other thread gets its number.
                done.Wait();
            });
            thread.Start();
            await followed;
            done.Set();
            thread.Join();
            Check.That(busy.IsCanceled && canceller != follower, "what follows ran where it was cancelled");
        }
    }
}
