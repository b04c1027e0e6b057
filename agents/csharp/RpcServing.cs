using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway.Agents
{
    /// <summary>open rpc= role=server: the methods, and a server's commands.</summary>
    internal sealed class RpcServing
    {
        private readonly RpcServer server;
        private readonly Task serving;
        private readonly TaskCompletionSource<bool> gate =
            new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
        private Task? shutdown;
        private long began, ended, cancelled, elements;

        internal RpcServing(Line line, string name, int pid)
        {
            long capacity = line.Number("capacity", 65536);
            var options = new RpcServerOptions { Capacity = capacity, Align = (int)line.Number("align", 16), Wait = line.Wait() };
            options.MaxClients = (int)line.Number("max_clients", options.MaxClients);
            options.MaxInFlight = (int)line.Number("max_in_flight", options.MaxInFlight);
            options.MaxBytes = line.Number("max_bytes", options.MaxBytes);
            string bare = line.Text("bare");
            line.End();
            server = RpcServer.Bind(name, options);
            if (bare != "")
            {
                Bare(bare);
            }
            else
            {
                Methods();
            }
            serving = server.ServeAsync();
            Agent.Say($"attached pid={pid} capacity={capacity}");
        }

        /// <summary>What is measured: method 1 alone, and nothing that counts; a function, with bare=inline one that runs where
        /// requests are read, with bare=async a task.</summary>
        private void Bare(string how)
        {
            if (how == "async")
            {
                server.Method(1, async request =>
                {
                    await Task.CompletedTask;
                    return request.Body;
                });
            }
            else if (how == "inline")
            {
                server.InlineMethod(1, request => request.Body);
            }
            else
            {
                server.Method(1, request => request.Body);
            }
        }

        private void Methods()
        {
            server.Method(1, Counted(Echo));
            server.Method(2, Counted(Pattern));
            server.Method(3, Counted(r => throw new RpcFault(Number(r, 0), Encoding.UTF8.GetString(r.Body.Span.Slice(4)))));
            server.Stream(4, Count);
            server.Method(5, WaitAtGate);
            server.Method(6, Counted(r => throw new InvalidOperationException("method 6")));
            server.Method(7, Counted(Caller));
            server.Method("Agent.Sum", Counted(r => Words(Crc32.Of(r.Body.Span))));
        }

        /// <summary>Does what a server is told. False: it is no command of its own.</summary>
        internal bool Obey(Line line)
        {
            switch (line.Word)
            {
                case "served":
                    line.End();
                    long running = Interlocked.Read(ref began) - Interlocked.Read(ref ended);
                    Agent.Say($"served began={Interlocked.Read(ref began)} running={running} cancelled={Interlocked.Read(ref cancelled)} " +
                        $"elements={Interlocked.Read(ref elements)} clients={server.Clients}");
                    return true;
                case "gate":
                    line.End();
                    gate.TrySetResult(true);
                    Agent.Say("opened");
                    return true;
                case "shutdown":
                    TimeSpan limit = TimeSpan.FromMilliseconds(line.Number("limit", 0));
                    line.End();
                    ShutDown(limit);
                    Agent.Say("draining");
                    return true;
                case "join":
                    line.End();
                    Join();
                    Agent.Say("ended");
                    return true;
                case "close":
                    line.End();
                    ShutDown(TimeSpan.Zero);
                    Join();
                    return true;
                default:
                    return false;
            }
        }

        private void ShutDown(TimeSpan limit) =>
            shutdown ??= Task.Factory.StartNew(() => server.Shutdown(limit), TaskCreationOptions.LongRunning);

        private void Join()
        {
            shutdown?.GetAwaiter().GetResult();
            serving.GetAwaiter().GetResult();
        }

        private Func<RpcRequest, ReadOnlyMemory<byte>> Counted(Func<RpcRequest, ReadOnlyMemory<byte>> handler) => request =>
        {
            Interlocked.Increment(ref began);
            try
            {
                return handler(request);
            }
            finally
            {
                Interlocked.Increment(ref ended);
            }
        };

        private static ReadOnlyMemory<byte> Echo(RpcRequest request)
        {
            request.ReplyMeta = request.Meta;
            return request.Body;
        }

        private static ReadOnlyMemory<byte> Pattern(RpcRequest request)
        {
            byte[] reply = new byte[Number(request, 1)];
            RpcBytes.Fill(reply, Number(request, 0));
            return reply;
        }

        private static ReadOnlyMemory<byte> Caller(RpcRequest request)
        {
            TimeSpan? left = request.Remaining;
            return Words((uint)request.PeerPid, left == null ? 0 : (uint)Math.Max(Math.Ceiling(left.Value.TotalMilliseconds), 1));
        }

        private async Task<ReadOnlyMemory<byte>> WaitAtGate(RpcRequest request)
        {
            Interlocked.Increment(ref began);
            try
            {
                var stopped = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
                using (request.CancellationToken.Register(() => stopped.TrySetResult(true)))
                {
                    if (await Task.WhenAny(gate.Task, stopped.Task) != gate.Task)
                    {
                        Interlocked.Increment(ref cancelled);
                    }
                }
                request.CancellationToken.ThrowIfCancellationRequested();
                return Echo(request);
            }
            finally
            {
                Interlocked.Increment(ref ended);
            }
        }

        private async IAsyncEnumerable<ReadOnlyMemory<byte>> Count(RpcRequest request)
        {
            uint count = Number(request, 0), size = Number(request, 1), code = Number(request, 2), seq = Number(request, 3);
            bool complete = false;
            Interlocked.Increment(ref began);
            try
            {
                for (uint k = 0; k < count; k++)
                {
                    byte[] element = new byte[size];
                    RpcBytes.Fill(element, (long)seq + k);
                    Interlocked.Increment(ref elements);
                    yield return element;
                }
                complete = true;
            }
            finally
            {
                Interlocked.Add(ref cancelled, complete ? 0 : 1);
                Interlocked.Increment(ref ended);
            }
            await Task.CompletedTask;
            if (code != 0)
            {
                throw new RpcFault(code, "after " + count);
            }
        }

        private static uint Number(RpcRequest request, int index) =>
            BinaryPrimitives.ReadUInt32LittleEndian(request.Body.Span.Slice(4 * index));

        internal static byte[] Words(params uint[] words)
        {
            byte[] bytes = new byte[4 * words.Length];
            for (int i = 0; i < words.Length; i++)
            {
                BinaryPrimitives.WriteUInt32LittleEndian(bytes.AsSpan(4 * i), words[i]);
            }
            return bytes;
        }
    }

    /// <summary>The bytes of replies, elements and metadata.</summary>
    internal static class RpcBytes
    {
        /// <summary>Byte i is (first + i) mod 256.</summary>
        internal static void Fill(Span<byte> to, long first)
        {
            for (int i = 0; i < to.Length; i++)
            {
                to[i] = (byte)(first + i);
            }
        }

        internal static bool Are(ReadOnlySpan<byte> found, long first)
        {
            for (int i = 0; i < found.Length; i++)
            {
                if (found[i] != (byte)(first + i))
                {
                    return false;
                }
            }
            return true;
        }
    }
}
