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
        internal const uint Echo = 1, Sized = 2, Fault = 3, Count = 4, Gate = 5, Throws = 6, Who = 7, Left = 8, Hold = 9;

        private readonly Folder? _folder;
        private readonly Task _serving;
        private int _begun, _ended;

        /// <param name="options">Its limits.</param>
        /// <param name="name">Its name; null: one of its own.</param>
        internal TestServer(RpcServerOptions? options = null, string? name = null)
        {
            _folder = name == null ? new Folder() : null;
            Name = name ?? _folder!.At("server");
            options ??= new RpcServerOptions();
            // A connector that is slow for want of a processor is not what these tests are about.
            options.HandshakeTimeout = Wait.Long;
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
            Server.Method(Left, (RpcRequest r) => BitConverter.GetBytes(r.Remaining?.Ticks ?? -1));
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
                    // Of every other element.
                    request.ReplyMeta = i % 2 == 0 ? BitConverter.GetBytes(i) : default;
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

        /// <summary>Waits until nothing is in flight, at the client and at the server.</summary>
        internal void Settle(RpcClient client)
        {
            // Somebody has to receive.
            Wait.Until("nothing is in flight", () =>
            {
                client.Ping(Wait.Long);
                return client.InFlight == 0;
            });
            Wait.Until("no handler runs", () => Running == 0);
        }

        internal static byte[] CountOf(int count, int size) =>
            BitConverter.GetBytes(count).Concat(BitConverter.GetBytes(size)).ToArray();

        public void Dispose()
        {
            Opened.TrySetResult(true);
            Server.Dispose();
            Check.That(_serving.Wait(Wait.Long), "the server does not end");
            _folder?.Dispose();
        }
    }
}
