using System;

namespace Ramway
{
    /// <summary>How to connect to an <see cref="RpcServer"/>. A new object holds the defaults.</summary>
    public sealed class RpcClientOptions : ConnectingOptions
    {
        /// <summary>
        /// Bytes of replies that nobody has taken yet, all calls together; a reply beyond fails its call (TooLarge). A reply that a
        /// blocked thread or a task waits for is taken as it comes, if it is no longer than that. 0: 4 times the ring's capacity.
        /// </summary>
        public long MaxBuffered { get; set; }

        internal ConnectOptions ToConnect()
        {
            if (MaxBuffered < 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, $"a MaxBuffered of {MaxBuffered} bytes: expected 0 or more");
            }
            var options = new ConnectOptions();
            CopyTo(options);
            return options;
        }
    }

    /// <summary>How a call is made. A new object holds the defaults; it may be used for any number of calls.</summary>
    public sealed class RpcCallOptions
    {
        internal static readonly RpcCallOptions Default = new RpcCallOptions();

        /// <summary>The call's time limit; null: none. The server is told what is left of it when the call is sent.</summary>
        public TimeSpan? Timeout { get; set; }

        /// <summary>Metadata of the request: bytes that the application defines, such as a trace or a token.</summary>
        public ReadOnlyMemory<byte> Meta { get; set; }

        /// <summary>Of a stream: how many elements may be under way, at least 1; by default 16.</summary>
        public int Window { get; set; } = (int)Facts.RpcWindowDefault;
    }

    /// <summary>What an <see cref="RpcServer"/> allows its clients. A new object holds the defaults.</summary>
    public sealed class RpcServerOptions : ListeningOptions
    {
        /// <summary>How many clients there may be at a time; one beyond is refused (Busy). 128 by default.</summary>
        public int MaxClients { get; set; } = Facts.RpcClientsDefault;

        /// <summary>How many calls a client may have in flight, 1 to 1,048,576; 1024 by default.</summary>
        public int MaxInFlight { get; set; } = (int)Facts.RpcInFlightDefault;

        /// <summary>
        /// Bytes of requests and replies that are copied for one client. A request beyond is refused (Overloaded), a reply beyond
        /// becomes ReplyTooLarge. 0: 4 times the capacity.
        /// </summary>
        public long MaxBytes { get; set; }

        /// <summary>
        /// How many handlers run at a time on the thread pool, those of all clients together; others wait. One client has at most half
        /// of them while others wait. A handler that awaits something, or a stream that waits for its reader, does not count: of those
        /// there are at most as many as calls in flight. 0: 64, or 8 for each processor if that is more.
        /// </summary>
        public int MaxHandlers { get; set; }

        /// <summary>
        /// How long <see cref="RpcServer.Serve"/> and <see cref="RpcServer.ServeAsync"/> wait for running handlers once their token is
        /// cancelled: 5 s by default.
        /// </summary>
        public TimeSpan DrainTimeout { get; set; } = TimeSpan.FromSeconds(5);

        /// <summary>What the server goes by, whatever its owner does with this object.</summary>
        internal RpcServerOptions Copy() => (RpcServerOptions)MemberwiseClone();

        internal int Handlers => MaxHandlers == 0 ? Math.Max(64, 8 * Environment.ProcessorCount) : MaxHandlers;

        internal ListenOptions ToListen()
        {
            if (MaxClients < 1)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, $"at most {MaxClients} clients: expected at least 1");
            }
            if (MaxInFlight < 1 || MaxInFlight > Facts.RpcInFlightMax)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"{MaxInFlight} calls in flight: expected 1 to {Facts.RpcInFlightMax}");
            }
            if (MaxBytes < 0 || MaxHandlers < 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, MaxBytes < 0
                    ? $"a MaxBytes of {MaxBytes}: expected 0 or more"
                    : $"at most {MaxHandlers} handlers at a time: expected 0 or more");
            }
            WaitLimit.Check(DrainTimeout, "drain timeout");
            var options = new ListenOptions();
            CopyTo(options);
            return options;
        }
    }

    /// <summary>A method of a server, as <see cref="RpcClient.Describe"/> lists it.</summary>
    public readonly struct RpcMethod : IEquatable<RpcMethod>
    {
        internal RpcMethod(uint number, string? name)
        {
            Number = number;
            Name = name;
        }

        /// <summary>The method's number.</summary>
        public uint Number { get; }

        /// <summary>The name that it was registered by; null if it was registered by number.</summary>
        public string? Name { get; }

        /// <summary>Whether both are the same.</summary>
        public bool Equals(RpcMethod other) => Number == other.Number && Name == other.Name;

        /// <summary>Whether both are the same.</summary>
        public override bool Equals(object? obj) => obj is RpcMethod other && Equals(other);

        /// <summary>A hash of both.</summary>
        public override int GetHashCode() => HashCode.Combine(Number, Name);

        /// <summary>The number, and the name behind a blank.</summary>
        public override string ToString() => Name == null ? Number.ToString() : Number + " " + Name;
    }
}
