using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A request as a handler gets it: a copy, so it may be kept. For any number of threads.</summary>
    public sealed class RpcRequest
    {
        private readonly ServerConnection connection;
        private readonly ServerCall call;

        internal RpcRequest(ServerConnection connection, ServerCall call, uint method, ReadOnlyMemory<byte> meta,
            ReadOnlyMemory<byte> body)
        {
            this.connection = connection;
            this.call = call;
            Method = method;
            Meta = meta;
            Body = body;
        }

        /// <summary>The method's number.</summary>
        public uint Method { get; }

        /// <summary>The request's bytes.</summary>
        public ReadOnlyMemory<byte> Body { get; }

        /// <summary>The request's metadata; empty if there are none.</summary>
        public ReadOnlyMemory<byte> Meta { get; }

        /// <summary>How much time the call has left, never negative; null: it has no limit.</summary>
        public TimeSpan? Remaining => call.Deadline == long.MaxValue
            ? (TimeSpan?)null
            : TimeSpan.FromTicks(Math.Max(call.Deadline - Clock.Nanoseconds, 0) / 100);

        /// <summary>Whether the call was cancelled, its time is over, or its client is gone: nobody waits for the reply.</summary>
        public bool IsCancelled => Volatile.Read(ref call.Cancelled) || call.Deadline <= Clock.Nanoseconds;

        /// <summary>Is cancelled when <see cref="IsCancelled"/> becomes true. A handler that ends by its
        /// <see cref="OperationCanceledException"/> has ended as it should.</summary>
        public CancellationToken CancellationToken => connection.TokenOf(call);

        /// <summary>The client's user, as the kernel recorded it when it connected.</summary>
        public uint PeerUid => connection.PeerUid;

        /// <summary>The client's process when it connected; 0 if it has no number in our PID namespace.</summary>
        public int PeerPid => connection.PeerPid;

        /// <summary>
        /// Metadata of the reply; by default none. Of a stream those of its next element, with which they are taken, or of its end.
        /// </summary>
        public ReadOnlyMemory<byte> ReplyMeta { get; set; }
    }

    /// <summary>What answers a method: one of the four.</summary>
    internal sealed class Handler
    {
        internal Handler(uint number, string? name)
        {
            Number = number;
            Name = name;
        }

        internal uint Number { get; }

        internal string? Name { get; }

        internal Func<RpcRequest, ReadOnlyMemory<byte>>? Reply, Inline;
        internal Func<RpcRequest, Task<ReadOnlyMemory<byte>>>? Later;
        internal Func<RpcRequest, IAsyncEnumerable<ReadOnlyMemory<byte>>>? Stream;
    }
}
