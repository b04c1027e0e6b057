using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>A server of this process with the methods that tests call.</summary>
    internal sealed class TestServer : IDisposable
    {
        internal const uint Echo = 1, Sized = 2, Fault = 3, Count = 4, Gate = 5, Throws = 6, Who = 7, Async = 8, Hold = 9;

        private readonly Folder _folder = new Folder();
        private readonly Task _serving;
        private int _begun, _ended;

        internal TestServer(RpcServerOptions? options = null)
        {
            Name = _folder.At("server");
            Server = RpcServer.Bind(Name, options);
            Register();
            _serving = Server.ServeAsync();
        }

        internal RpcServer Server { get; }

        internal string Name { get; }

        /// <summary>What handlers of Gate and Hold wait for.</summary>
        internal readonly TaskCompletionSource<bool> Opened =
            new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);

        internal int Begun => Volatile.Read(ref _begun);

        internal int Running => Begun - Volatile.Read(ref _ended);

        internal RpcClient Connect(RpcClientOptions? options = null) => RpcClient.Connect(Name, options);

        private void Register()
        {
            Server.Method(Echo, (RpcRequest r) =>
            {
                r.ReplyMeta = r.Meta;
                return r.Body;
            });
            Server.Method(Sized, (RpcRequest r) => new byte[BitConverter.ToInt32(r.Body.Span)]);
            Server.Method(Fault, (Func<RpcRequest, ReadOnlyMemory<byte>>)(r => throw new RpcFault(77, "wörds")));
            Server.Stream(Count, CountUp);
            Server.Method(Gate, WaitAtGate);
            Server.Method(Throws, (Func<RpcRequest, ReadOnlyMemory<byte>>)(r => throw new InvalidOperationException("a mistake")));
            Server.Method(Who, (RpcRequest r) => BitConverter.GetBytes(r.PeerPid));
            Server.Method("Store.Get", async (RpcRequest r) =>
            {
                await Task.Yield();
                return r.Body;
            });
            Server.Method(Hold, (RpcRequest r) =>
            {
                Interlocked.Increment(ref _begun);
                r.CancellationToken.WaitHandle.WaitOne();
                Interlocked.Increment(ref _ended);
                return default(ReadOnlyMemory<byte>);
            });
        }

        private async Task<ReadOnlyMemory<byte>> WaitAtGate(RpcRequest request)
        {
            Interlocked.Increment(ref _begun);
            try
            {
                await Task.WhenAny(Opened.Task, Task.Delay(-1, request.CancellationToken));
                request.CancellationToken.ThrowIfCancellationRequested();
                return request.Body;
            }
            finally
            {
                Interlocked.Increment(ref _ended);
            }
        }

        private async IAsyncEnumerable<ReadOnlyMemory<byte>> CountUp(RpcRequest request)
        {
            Interlocked.Increment(ref _begun);
            try
            {
                int count = BitConverter.ToInt32(request.Body.Span);
                int size = BitConverter.ToInt32(request.Body.Span.Slice(4));
                for (int i = 0; i < count; i++)
                {
                    byte[] element = new byte[size];
                    BitConverter.TryWriteBytes(element, i);
                    Interlocked.Increment(ref Elements);
                    yield return element;
                }
                await Task.Yield();
                request.ReplyMeta = new byte[] { 9 };
            }
            finally
            {
                Interlocked.Increment(ref _ended);
            }
        }

        /// <summary>How many elements handlers of Count have made.</summary>
        internal int Elements;

        internal static byte[] CountOf(int count, int size) =>
            BitConverter.GetBytes(count).Concat(BitConverter.GetBytes(size)).ToArray();

        public void Dispose()
        {
            Opened.TrySetResult(true);
            Server.Dispose();
            Check.That(_serving.Wait(Wait.Long), "the server does not end");
            _folder.Dispose();
        }
    }

    internal static class RpcTests
    {
        private static byte[] Bytes(string text) => Encoding.UTF8.GetBytes(text);

        private static string Text(RpcReply reply) => Encoding.UTF8.GetString(reply.Body.Span);

        [Test]
        internal static void ACallGetsItsReply()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            Check.Equal("hello", Text(client.Call(TestServer.Echo, Bytes("hello"))), "echo");
            RpcReply reply = client.Call(TestServer.Echo, Bytes("x"), new RpcCallOptions { Meta = Bytes("trace") });
            Check.Equal("trace", Encoding.UTF8.GetString(reply.Meta.Span), "the metadata");
            Check.Equal(0, client.Call(TestServer.Echo).Body.Length, "an empty body");
            Check.Equal(0, client.InFlight, "in flight");
            Check.Equal(1, server.Server.Clients, "clients");
        }

        [Test]
        internal static async Task ATaskGetsItsReply()
        {
            using var server = new TestServer();
            using RpcClient client = await RpcClient.ConnectAsync(server.Name);
            Check.Equal("hello", Text(await client.CallAsync(TestServer.Echo, Bytes("hello"))), "echo");
            Check.Equal("again", Text(await client.CallAsync(Rpc.MethodId("Store.Get"), Bytes("again"))), "by name");
            // A blocking call beside the client's own thread.
            Check.Equal("block", Text(client.Call(TestServer.Echo, Bytes("block"))), "echo");
        }

        [Test]
        internal static void AStreamGivesItsElementsInOrder()
        {
            using var server = new TestServer();
            using RpcClient client = server.Connect();
            int next = 0;
            foreach (RpcReply element in client.Stream(TestServer.Count, TestServer.CountOf(1000, 100)))
            {
                Check.Equal(next++, BitConverter.ToInt32(element.Body.Span), "the element");
            }
            Check.Equal(1000, next, "elements");
        }
    }
}
