using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>What belongs to both sides of RPC.</summary>
    public static class Rpc
    {
        /// <summary>The number of a method's name, the same in every language: FNV-1a of 32 bits over its UTF-8 bytes, kept below
        /// 0xFFFF0000.</summary>
        /// <param name="name">The name, such as "Store.Get".</param>
        public static uint MethodId(string name) =>
            RpcFrames.MethodId(Encoding.UTF8.GetBytes(name ?? throw new ArgumentNullException(nameof(name))));
    }

    /// <summary>
    /// Calls the methods of an <see cref="RpcServer"/>, of any language, in another process of this machine. For any number of threads
    /// and tasks at once.
    /// </summary>
    /// <remarks>
    /// <para>Replies may come in any order. At most <see cref="MaxInFlight"/> calls are under way; more wait here for their place, in
    /// their order. Nothing is repeated and no connection is made again by itself: <see cref="RpcException.MayHaveRun"/> says whether a
    /// failed call can be made again.</para>
    /// <para>Blocking calls need no thread beside their own: one of those that wait receives for all. The first asynchronous call starts a
    /// background thread that receives from then on, also for the blocking calls, which then take two wake-ups in place of one.
    /// A task that waits alone is completed on that thread, and what follows it runs there: it may block, then another thread receives.
    /// Where several wait, and where a call is cancelled, what follows runs in the thread pool.</para>
    /// <code>
    /// using var client = RpcClient.Connect("store");
    /// RpcReply reply = client.Call(Rpc.MethodId("Store.Get"), key);
    /// RpcReply other = await client.CallAsync(7, body, new RpcCallOptions { Timeout = TimeSpan.FromSeconds(1) });
    /// </code>
    /// </remarks>
    public sealed partial class RpcClient : IDisposable
    {
        private RpcClient(Bus bus, uint maxInFlight, RpcClientOptions options, string name)
        {
            this.bus = bus;
            this.name = name;
            tx = bus.Sender;
            rx = bus.Receiver;
            longest = tx.MaxMessageLength;
            MaxInFlight = (int)Math.Min(maxInFlight, int.MaxValue);
            ledger = new ClientLedger(maxInFlight,
                options.MaxBuffered == 0 ? Facts.RpcBytesFactor * rx.Capacity : options.MaxBuffered);
            pump = new PumpWait(options.Wait);
        }

        /// <summary>How many calls the server lets this client have in flight.</summary>
        public int MaxInFlight { get; }

        /// <summary>How many calls are in flight now: sent, and the server has not let go of them.</summary>
        public int InFlight
        {
            get
            {
                lock (gate)
                {
                    return ledger.InFlight;
                }
            }
        }

        /// <summary>The user that the server acted as when the connection was made, as the kernel recorded it.</summary>
        public uint PeerUid => bus.PeerUid;

        /// <summary>The server's process when the connection was made; 0 if it has no number in our PID namespace.</summary>
        public int PeerPid => bus.PeerPid;

        /// <summary>
        /// Connects to the server of that name (a name in RAMWAY_DIR, or a path with a '/'), waiting for one that is not there yet or
        /// does not accept. It blocks until the server has served us.
        /// </summary>
        /// <param name="name">The server's name or path.</param>
        /// <param name="options">How to connect; null: the defaults.</param>
        /// <param name="cancellationToken">Ends it at once.</param>
        /// <exception cref="RamwayException">
        /// As for <see cref="Bus.Connect"/>: NotFound, TimedOut and so on. AbiMismatch where a plain listener has the name; Busy where the
        /// server has as many clients as it takes.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public static RpcClient Connect(string name, RpcClientOptions? options = null, CancellationToken cancellationToken = default)
        {
            options ??= new RpcClientOptions();
            var connector = new Connector(name, options.ToConnect(), Facts.RpcFeatures);
            Bus bus = connector.Run(cancellationToken);
            return new RpcClient(bus, connector.MaxInFlight, options, name);
        }

        /// <summary><see cref="Connect"/> on a thread of its own, so that no thread of the pool is blocked.</summary>
        /// <param name="name">The server's name or path.</param>
        /// <param name="options">How to connect; null: the defaults.</param>
        /// <param name="cancellationToken">Ends it at once.</param>
        public static Task<RpcClient> ConnectAsync(string name, RpcClientOptions? options = null,
            CancellationToken cancellationToken = default) =>
            Task.Factory.StartNew(() => Connect(name, options, cancellationToken), cancellationToken,
                TaskCreationOptions.LongRunning | TaskCreationOptions.DenyChildAttach, TaskScheduler.Default);

        /// <summary>Sends a request and waits for its reply.</summary>
        /// <param name="method">The method's number, or <see cref="Rpc.MethodId"/> of its name.</param>
        /// <param name="body">The request; it is copied before this returns.</param>
        /// <param name="options">The time limit and metadata; null: the defaults.</param>
        /// <param name="cancellationToken">Cancels the call.</param>
        /// <exception cref="RpcException">The call has no reply: see <see cref="RpcException.Status"/> and <see
        /// cref="RpcException.Kind"/>.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled; an RpcException inside says whether the call may have
        /// run.</exception>
        public RpcReply Call(uint method, ReadOnlySpan<byte> body, RpcCallOptions? options = null,
            CancellationToken cancellationToken = default)
        {
            cancellationToken.ThrowIfCancellationRequested();
            ClientCall call = Begin(method, 0, body, options, null, false, true);
            using CancellationTokenRegistration registration = CancelWith(call, cancellationToken);
            try
            {
                Await(call, long.MaxValue);
            }
            catch (ThreadInterruptedException)
            {
                Cancel(call, Cancelled(call), true);
                throw;
            }
            return Result(call);
        }

        /// <summary>The same without a body.</summary>
        /// <param name="method">The method's number.</param>
        /// <param name="options">The time limit and metadata; null: the defaults.</param>
        /// <param name="cancellationToken">Cancels the call.</param>
        public RpcReply Call(uint method, RpcCallOptions? options = null, CancellationToken cancellationToken = default) =>
            Call(method, default, options, cancellationToken);

        /// <summary>Sends a request; the task is over when its reply is there. No thread waits but the client's own.</summary>
        /// <param name="method">The method's number, or <see cref="Rpc.MethodId"/> of its name.</param>
        /// <param name="body">The request; it is copied before this returns.</param>
        /// <param name="options">The time limit and metadata; null: the defaults.</param>
        /// <param name="cancellationToken">Cancels the call.</param>
        /// <exception cref="RpcException">As for <see cref="Call(uint, ReadOnlySpan{byte}, RpcCallOptions, CancellationToken)"/>, by the
        /// task.</exception>
        /// <exception cref="OperationCanceledException">Likewise; then the task is cancelled.</exception>
        public async Task<RpcReply> CallAsync(uint method, ReadOnlyMemory<byte> body = default, RpcCallOptions? options = null,
            CancellationToken cancellationToken = default)
        {
            cancellationToken.ThrowIfCancellationRequested();
            var waker = new TaskWaker();
            ClientCall call = Begin(method, 0, body.Span, options, waker, true, true);
            using CancellationTokenRegistration registration = CancelWith(call, cancellationToken);
            await waker.Task.ConfigureAwait(false);
            return Result(call);
        }

        /// <summary>
        /// Sends a request and gives the call that is under way, without waiting: it is sent when it has a place and room. While nobody
        /// waits for any call, and there was no asynchronous one, replies are received by <see cref="RpcPending.TryGet"/> only.
        /// </summary>
        /// <param name="method">The method's number, or <see cref="Rpc.MethodId"/> of its name.</param>
        /// <param name="body">The request; it is copied before this returns.</param>
        /// <param name="options">The time limit and metadata; null: the defaults.</param>
        /// <exception cref="RpcException">The request is too large, or the connection is over.</exception>
        public RpcPending Start(uint method, ReadOnlySpan<byte> body = default, RpcCallOptions? options = null) =>
            new RpcPending(this, Begin(method, 0, body, options, null, false));

        /// <summary>
        /// Sends a request whose reply is a stream. At most <see cref="RpcCallOptions.Window"/> elements are under way, so that a slow
        /// reader stops its own stream and no other call.
        /// </summary>
        /// <param name="method">The method's number, or <see cref="Rpc.MethodId"/> of its name.</param>
        /// <param name="body">The request; it is copied before this returns.</param>
        /// <param name="options">The time limit of the whole stream, metadata, and the window; null: the defaults.</param>
        /// <exception cref="RpcException">The request is too large, or the connection is over.</exception>
        public RpcStream Stream(uint method, ReadOnlySpan<byte> body = default, RpcCallOptions? options = null)
        {
            int window = (options ?? RpcCallOptions.Default).Window;
            if (window < 1)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, $"a window of {window} elements: expected at least 1");
            }
            return new RpcStream(this, Begin(method, (uint)window, body, options, null, false));
        }

        /// <summary>Waits until the server has answered: it is there and reads.</summary>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends it.</param>
        /// <exception cref="RpcException">It has not.</exception>
        public void Ping(TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            Call(Facts.MethodPing, default, new RpcCallOptions { Timeout = timeout }, cancellationToken);

        /// <summary><see cref="Ping"/> without a thread that waits.</summary>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends it.</param>
        public Task PingAsync(TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            CallAsync(Facts.MethodPing, default, new RpcCallOptions { Timeout = timeout }, cancellationToken);

        /// <summary>The numbers and names of the server's methods, in the order of the numbers.</summary>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends it.</param>
        /// <exception cref="RpcException">As for a call; Kind is Corrupt if the reply is no such list.</exception>
        public IReadOnlyList<RpcMethod> Describe(TimeSpan? timeout = null, CancellationToken cancellationToken = default) =>
            ParseMethods(Call(Facts.MethodDescribe, default, new RpcCallOptions { Timeout = timeout }, cancellationToken));

        /// <summary><see cref="Describe"/> without a thread that waits.</summary>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends it.</param>
        public async Task<IReadOnlyList<RpcMethod>> DescribeAsync(TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) =>
            ParseMethods(await CallAsync(Facts.MethodDescribe, default, new RpcCallOptions { Timeout = timeout }, cancellationToken)
                .ConfigureAwait(false));

        private static IReadOnlyList<RpcMethod> ParseMethods(RpcReply reply)
        {
            var methods = new List<RpcMethod>();
            foreach (string line in Encoding.UTF8.GetString(reply.Body.Span).Split('\n', StringSplitOptions.RemoveEmptyEntries))
            {
                int blank = line.IndexOf(' ');
                if (!uint.TryParse(blank < 0 ? line : line.Substring(0, blank), System.Globalization.NumberStyles.None,
                    System.Globalization.CultureInfo.InvariantCulture, out uint number))
                {
                    throw RpcException.Of(ErrorKind.Corrupt, "the server's list of methods has a line without a number", true);
                }
                methods.Add(new RpcMethod(number, blank < 0 ? null : line.Substring(blank + 1)));
            }
            return methods;
        }

        /// <summary>
        /// Ends the connection: calls under way end with Closed, and the server cancels what it runs of them. From any thread, and more
        /// than once.
        /// </summary>
        public void Dispose()
        {
            List<IWaker>? wakes;
            lock (gate)
            {
                disposed = true;
                End(ErrorKind.Closed, "the client was closed", true);
                wakes = ledger.TakeWakes();
                if (pumping)
                {
                    pump.Nudge();
                }
                else
                {
                    bus.Dispose();
                }
            }
            Run(wakes);
            lock (gate)
            {
                // Whoever receives closes the bus, at once: nothing it does blocks.
                while (pumping)
                {
                    Monitor.Wait(gate);
                }
            }
        }
    }
}
