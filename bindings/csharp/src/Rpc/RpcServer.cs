using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// Answers the calls of <see cref="RpcClient"/>s, of any language, in other processes of this machine.
    /// </summary>
    /// <remarks>
    /// <para>Handlers run on the thread pool, at most <see cref="RpcServerOptions.MaxHandlers"/> at a time, and those of <see
    /// cref="InlineMethod(uint, Func{RpcRequest, ReadOnlyMemory{byte}})"/> where requests are read. They get copies. What a handler
    /// throws is <see cref="RpcStatus.HandlerFailed"/> to its client, an <see cref="RpcFault"/> is <see
    /// cref="RpcStatus.Application"/>. A handler whose call was cancelled or whose time is over is told by the request's token;
    /// its place is free when it has ended.</para>
    /// <para>Nothing grows without a bound: calls in flight and copied bytes are limited for each client, and what is beyond is answered
    /// with Overloaded. A client that breaks the protocol is dropped, and no other one notices.</para>
    /// <code>
    /// using var server = RpcServer.Bind("store");
    /// server.Method("Store.Get", request =&gt; Find(request.Body.Span));
    /// server.Serve(stop);
    /// </code>
    /// </remarks>
    public sealed class RpcServer : IDisposable
    {
        // What cancelled handlers get on top of a drain's time, to end and have their replies written.
        private const long Grace = 1_000_000_000;

        private readonly RpcServerOptions options;
        private readonly Permits permits;
        private readonly Listener listener;
        private readonly SortedDictionary<uint, Handler> methods = new SortedDictionary<uint, Handler>();
        private readonly TaskCompletionSource<bool> stopped =
            new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);

        // Taken while a connection's lock is held, never the other way round.
        private readonly object gate = new object();
        private readonly List<ServerConnection> connections = new List<ServerConnection>();
        private readonly List<ServerPump> pumps = new List<ServerPump>();
        private Thread? accepting;
        private long version;
        private bool draining;
        private RamwayException? lastFailure;
        private Exception? lastHandlerFailure;
        private byte[] description = Array.Empty<byte>();

        private RpcServer(string name, RpcServerOptions options)
        {
            this.options = options = options.Copy();
            ListenOptions listen = options.ToListen();
            permits = new Permits(options.MaxClients, true);
            Pool = new HandlerPool(options.Handlers, call => ThreadPool.UnsafeQueueUserWorkItem(RunCall, call));
            listener = Listener.BindFor(permits, name, listen, () => listen.Plan(name).ForRpc((uint)options.MaxInFlight));
        }

        /// <summary>The socket's path, which clients can be given in place of the name.</summary>
        public string Path => listener.Path;

        /// <summary>How many clients are connected.</summary>
        public int Clients
        {
            get
            {
                lock (gate)
                {
                    return connections.Count;
                }
            }
        }

        /// <summary>
        /// Why a client was not accepted or was dropped, the last time that happened, for logs; null if it has not.
        /// </summary>
        public RamwayException? LastFailure => Volatile.Read(ref lastFailure) ?? listener.LastRefusal;

        /// <summary>What a handler threw last that it did not mean to, for logs; null if none has.</summary>
        public Exception? LastHandlerFailure => Volatile.Read(ref lastHandlerFailure);

        internal HandlerPool Pool { get; }

        internal bool IsDraining => Volatile.Read(ref draining);

        /// <summary>What describe replies with.</summary>
        internal ReadOnlyMemory<byte> Description => description;

        /// <summary>
        /// Listens at a name in RAMWAY_DIR, or at a path (with a '/'). Clients that connect wait until <see cref="Serve"/> or <see
        /// cref="ServeAsync"/>.
        /// </summary>
        /// <param name="name">The name or path.</param>
        /// <param name="options">What clients get; null: the defaults.</param>
        /// <exception cref="RamwayException">As for <see cref="Listener.Bind"/>; InvalidArgument for a limit that cannot be.</exception>
        public static RpcServer Bind(string name, RpcServerOptions? options = null) =>
            new RpcServer(name ?? throw new ArgumentNullException(nameof(name)), options ?? new RpcServerOptions());

        /// <summary>A handler for a method, which gives the reply. To be said before the server serves.</summary>
        /// <param name="number">The method's number, below 0xFFFF0000.</param>
        /// <param name="handler">It runs on the thread pool. What it returns is not copied before it is sent: it must not be written
        /// any more.</param>
        /// <exception cref="RamwayException">AlreadyExists if the number has a handler, InvalidArgument for a reserved number.</exception>
        /// <exception cref="InvalidOperationException">The server serves already.</exception>
        public RpcServer Method(uint number, Func<RpcRequest, ReadOnlyMemory<byte>> handler) =>
            Add(new Handler(number, null) { Reply = NotNull(handler) });

        /// <summary>The same for a handler that awaits: it holds no thread meanwhile, nor a place of MaxHandlers.</summary>
        /// <param name="number">The method's number, below 0xFFFF0000.</param>
        /// <param name="handler">What gives the reply.</param>
        public RpcServer Method(uint number, Func<RpcRequest, Task<ReadOnlyMemory<byte>>> handler) =>
            Add(new Handler(number, null) { Later = NotNull(handler) });

        /// <summary>The same by name: the number is <see cref="Rpc.MethodId"/> of it.</summary>
        /// <param name="name">The name, without control characters.</param>
        /// <param name="handler">What gives the reply.</param>
        public RpcServer Method(string name, Func<RpcRequest, ReadOnlyMemory<byte>> handler) =>
            Add(new Handler(Rpc.MethodId(name), name) { Reply = NotNull(handler) });

        /// <summary>The same by name, for a handler that awaits.</summary>
        /// <param name="name">The name, without control characters.</param>
        /// <param name="handler">What gives the reply.</param>
        public RpcServer Method(string name, Func<RpcRequest, Task<ReadOnlyMemory<byte>>> handler) =>
            Add(new Handler(Rpc.MethodId(name), name) { Later = NotNull(handler) });

        /// <summary>
        /// A handler that runs on the thread that reads what its client asks, in place of one of the thread pool: the cheapest way to
        /// answer, for what takes microseconds. Until it returns no other call of the clients of this thread (up to 63) is begun, and
        /// neither a cancellation nor the end of another call's time is seen. It must not block, and must not shut the server down.
        /// </summary>
        /// <param name="number">The method's number, below 0xFFFF0000.</param>
        /// <param name="handler">What gives the reply, which must not be written any more.</param>
        /// <exception cref="RamwayException">As for a method.</exception>
        /// <exception cref="InvalidOperationException">The server serves already.</exception>
        public RpcServer InlineMethod(uint number, Func<RpcRequest, ReadOnlyMemory<byte>> handler) =>
            Add(new Handler(number, null) { Inline = NotNull(handler) });

        /// <summary>The same by name: the number is <see cref="Rpc.MethodId"/> of it.</summary>
        /// <param name="name">The name, without control characters.</param>
        /// <param name="handler">What gives the reply.</param>
        public RpcServer InlineMethod(string name, Func<RpcRequest, ReadOnlyMemory<byte>> handler) =>
            Add(new Handler(Rpc.MethodId(name), name) { Inline = NotNull(handler) });

        /// <summary>
        /// A handler whose reply is a stream. It is asked for an element only when the one before was sent, and the client takes elements
        /// as fast as it reads: a stream that waits for its reader holds no place. A client that asks for one reply gets HandlerFailed.
        /// </summary>
        /// <param name="number">The method's number, below 0xFFFF0000.</param>
        /// <param name="handler">What gives the elements. An element must stay as it is until the next one is asked for. The
        /// enumeration gets the request's token.</param>
        /// <exception cref="RamwayException">As for a method.</exception>
        /// <exception cref="InvalidOperationException">The server serves already.</exception>
        public RpcServer Stream(uint number, Func<RpcRequest, IAsyncEnumerable<ReadOnlyMemory<byte>>> handler) =>
            Add(new Handler(number, null) { Stream = NotNull(handler) });

        /// <summary>The same by name.</summary>
        /// <param name="name">The name, without control characters.</param>
        /// <param name="handler">What gives the elements.</param>
        public RpcServer Stream(string name, Func<RpcRequest, IAsyncEnumerable<ReadOnlyMemory<byte>>> handler) =>
            Add(new Handler(Rpc.MethodId(name), name) { Stream = NotNull(handler) });

        private static T NotNull<T>(T handler)
            where T : class => handler ?? throw new ArgumentNullException(nameof(handler));

        private RpcServer Add(Handler handler)
        {
            if (handler.Number >= Facts.MethodReserved)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    "method 0x" + handler.Number.ToString("x") + " is Ramway's own: applications use numbers below 0xffff0000");
            }
            foreach (char c in handler.Name ?? "")
            {
                if (char.IsControl(c))
                {
                    throw Errors.Fail(ErrorKind.InvalidArgument, "a method's name with a control character in it");
                }
            }
            lock (gate)
            {
                if (accepting != null)
                {
                    throw new InvalidOperationException("ramway: methods are added before the server serves");
                }
                if (methods.TryGetValue(handler.Number, out Handler? other))
                {
                    throw Errors.Fail(ErrorKind.AlreadyExists, "method " + handler.Number + " has a handler already" +
                        (other.Name == null ? "" : ", by the name '" + other.Name + "'") + ": pick another number or name");
                }
                methods.Add(handler.Number, handler);
            }
            return this;
        }

        /// <summary>The handler of a method. Nothing is added once the server serves.</summary>
        internal Handler? Find(uint number) => methods.TryGetValue(number, out Handler? handler) ? handler : null;

        /// <summary>Serves until the server is shut down, and blocks meanwhile.</summary>
        /// <param name="cancellationToken">Shuts it down: running handlers have <see cref="RpcServerOptions.DrainTimeout"/>.</param>
        /// <exception cref="InvalidOperationException">It serves already.</exception>
        public void Serve(CancellationToken cancellationToken = default) =>
            ServeAsync(cancellationToken).GetAwaiter().GetResult();

        /// <summary>The same as a task, which is over when the server is shut down.</summary>
        /// <param name="cancellationToken">Shuts it down: running handlers have <see cref="RpcServerOptions.DrainTimeout"/>. The task
        /// ends as it does after <see cref="Shutdown"/>, not as cancelled.</param>
        /// <exception cref="InvalidOperationException">It serves already.</exception>
        public async Task ServeAsync(CancellationToken cancellationToken = default)
        {
            lock (gate)
            {
                if (accepting != null)
                {
                    throw new InvalidOperationException("ramway: the server serves already");
                }
                var text = new StringBuilder();
                foreach (Handler handler in methods.Values)
                {
                    text.Append(new RpcMethod(handler.Number, handler.Name)).Append('\n');
                }
                description = Encoding.UTF8.GetBytes(text.ToString());
                accepting = new Thread(Accept) { IsBackground = true, Name = "ramway rpc accept" };
                accepting.Start();
            }
            // A thread of its own: who cancels does not wait for the drain.
            using CancellationTokenRegistration registration = cancellationToken.Register(() =>
                new Thread(() => Shutdown(options.DrainTimeout)) { IsBackground = true, Name = "ramway rpc drain" }.Start());
            await stopped.Task.ConfigureAwait(false);
        }

        private void Accept()
        {
            while (true)
            {
                Bus bus;
                try
                {
                    bus = listener.Accept();
                }
                catch (RamwayException e) when (e.Kind == ErrorKind.Detached)
                {
                    return;
                }
                catch (RamwayException e)
                {
                    // No memory or descriptors: the client was told, and the next call accepts no one for a while.
                    Volatile.Write(ref lastFailure, e);
                    continue;
                }
                var connection = new ServerConnection(this, bus, options);
                lock (gate)
                {
                    connections.Add(connection);
                    if (!pumps.Exists(pump => pump.TryAdd(connection)))
                    {
                        var pump = new ServerPump(this, options.Wait);
                        pump.TryAdd(connection);
                        pumps.Add(pump);
                    }
                }
            }
        }

        private static void RunCall(object? call) => ((ServerCall)call!).Connection!.Run((ServerCall)call);

        internal void Corrupt(ServerConnection connection, string what) => Volatile.Write(ref lastFailure,
            Errors.Fail(ErrorKind.Corrupt, "serving", listener.Path, "the client with process " + connection.PeerPid + " sent " + what +
                ", which no correct client does: it is dropped"));

        internal void Corrupt(RamwayException e) => Volatile.Write(ref lastFailure, e);

        internal void HandlerFailed(Exception e) => Volatile.Write(ref lastHandlerFailure, e);

        internal void Gone(ServerConnection connection)
        {
            // Before it is counted no more: who sees by Clients that there is a place finds it free.
            permits.Return();
            lock (gate)
            {
                connections.Remove(connection);
            }
            Changed();
        }

        /// <summary>A shutdown that waits is to check again.</summary>
        internal void Changed()
        {
            lock (gate)
            {
                version++;
                Monitor.PulseAll(gate);
            }
        }

        /// <summary>
        /// Takes no new call (Draining), waits for the running ones, cancels those that are left when the limit is over, gives these a
        /// second to end, and closes. A client that does not read its replies until then, or whose handler does not end, is told PeerDead
        /// in place of Closed. From any thread; a second call waits for the first.
        /// </summary>
        /// <param name="limit">How long running handlers have; null: as long as they take; zero: they are cancelled at once.</param>
        public void Shutdown(TimeSpan? limit = null)
        {
            WaitLimit.Check(limit, "limit");
            bool first, served;
            lock (gate)
            {
                first = !draining;
                draining = true;
                served = accepting != null;
            }
            if (!first)
            {
                stopped.Task.Wait();
                return;
            }
            listener.Dispose();
            accepting?.Join();
            if (served && !WaitIdle(WaitLimit.Of(limit)))
            {
                ServerConnection[] left;
                lock (gate)
                {
                    left = connections.ToArray();
                }
                foreach (ServerConnection connection in left)
                {
                    connection.CancelAll();
                }
                WaitIdle(WaitLimit.In(Grace));
            }
            ServerPump[] all;
            lock (gate)
            {
                all = pumps.ToArray();
            }
            foreach (ServerPump pump in all)
            {
                pump.Stop();
            }
            stopped.TrySetResult(true);
        }

        /// <summary>Waits until no client has a call without a reply. False: the time is over.</summary>
        private bool WaitIdle(WaitLimit limit)
        {
            while (true)
            {
                long seen;
                ServerConnection[] all;
                lock (gate)
                {
                    seen = version;
                    all = connections.ToArray();
                }
                if (Array.TrueForAll(all, connection => connection.IsIdle))
                {
                    return true;
                }
                lock (gate)
                {
                    while (version == seen)
                    {
                        long left = limit.Left;
                        if (left <= 0)
                        {
                            return false;
                        }
                        Monitor.Wait(gate, (int)Math.Min(left / 1_000_000 + 1, 3_600_000));
                    }
                }
                if (limit.Passed)
                {
                    return false;
                }
            }
        }

        /// <summary><see cref="Shutdown"/> without any time for running handlers.</summary>
        public void Dispose() => Shutdown(TimeSpan.Zero);
    }
}
