using System;
using System.Collections.Generic;
using System.Linq;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Tests
{
    /// <summary>The programs of README.md about RPC, line by line, run.</summary>
    internal static class ReadmeRpcTests
    {
        private static readonly SortedDictionary<string, string> Store =
            new SortedDictionary<string, string> { ["a"] = "first", ["b"] = "second" };

        private static readonly List<string> Shown = new List<string>();

        private static byte[]? Find(string key) => Store.TryGetValue(key, out string? value) ? Encoding.UTF8.GetBytes(value) : null;

        private static void Show(ReadOnlySpan<byte> data) => Shown.Add(Encoding.UTF8.GetString(data));

        private static void ServeStore(string name, CancellationToken stopping)
        {
            using RpcServer server = RpcServer.Bind(name);
            server.Method("Store.Get", (RpcRequest request) =>               // on the thread pool; an exception is HandlerFailed
                Find(Encoding.UTF8.GetString(request.Body.Span)) ?? throw new RpcFault(404, "no such key"));
            server.Method(7, async (RpcRequest request) =>                   // a handler that awaits holds no thread
            {
                await Task.Delay(1, request.CancellationToken);              // cancelled, or its time is over, or its client is gone
                return request.Body;
            });
            server.InlineMethod(8, (RpcRequest request) => request.Body);    // where requests are read: for what takes microseconds
            server.Stream("Store.Keys", Keys);
            server.Serve(stopping);                                          // until the token, then it drains
        }

        private static async IAsyncEnumerable<ReadOnlyMemory<byte>> Keys(RpcRequest request)
        {
            foreach (string key in Store.Keys)
            {
                await Task.Yield();
                yield return Encoding.UTF8.GetBytes(key);                    // asked for one at a time, as fast as the client reads
            }
        }

        private static async Task CallStore(string name, CancellationToken token)
        {
            using RpcClient client = await RpcClient.ConnectAsync(name, cancellationToken: token);
            uint get = Rpc.MethodId("Store.Get");
            RpcReply reply = client.Call(get, Encoding.UTF8.GetBytes("a"));                  // blocks
            Show(reply.Body.Span);
            var second = new RpcCallOptions { Timeout = TimeSpan.FromSeconds(10) };
            Show((await client.CallAsync(7, Encoding.UTF8.GetBytes("b"), second, token)).Body.Span);
            await foreach (RpcReply key in client.Stream(Rpc.MethodId("Store.Keys")))        // leaving the loop cancels the call
            {
                Show(key.Body.Span);
            }
            try
            {
                await client.CallAsync(get, Encoding.UTF8.GetBytes("z"), second, token);
            }
            catch (RpcException e) when (e.Status == RpcStatus.Application)
            {
                Show(Encoding.UTF8.GetBytes(e.Code + " " + e.Text + " " + e.MayHaveRun));
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

        private sealed class StoreService : BackgroundService
        {
            private readonly string _name;

            public StoreService(string name) => _name = name;

            protected override async Task ExecuteAsync(CancellationToken stopping)
            {
                using RpcServer server = RpcServer.Bind(_name, new RpcServerOptions { DrainTimeout = TimeSpan.FromSeconds(3) });
                server.Method(1, (RpcRequest request) => request.Body);
                await server.ServeAsync(stopping);                           // StopAsync drains: what runs has 3 s
            }
        }

        [Test(Seconds = 240)]
        internal static async Task AStoreIsServedAndCalled()
        {
            using var folder = new Folder();
            using var stop = new CancellationTokenSource();
            var serving = new Beside(() => ServeStore(folder.At("store"), stop.Token));
            await CallStore(folder.At("store"), stop.Token);
            Check.Equal("first b a b 404 no such key True", string.Join(" ", Shown), "what was shown");
            stop.Cancel();
            Check.Equal(null, serving.End(), "the server");
        }

        [Test(Seconds = 240)]
        internal static async Task AHostServes()
        {
            using var folder = new Folder();
            var service = new StoreService(folder.At("store"));
            service.Start();
            using (RpcClient client = await RpcClient.ConnectAsync(folder.At("store")))
            {
                Check.Equal(3, (await client.CallAsync(1, new byte[3])).Body.Length, "a call");
                await service.StopAsync();
                RpcTests.Fails(ErrorKind.Closed, () => client.Call(1));
            }
            folder.Holds();
        }
    }
}
