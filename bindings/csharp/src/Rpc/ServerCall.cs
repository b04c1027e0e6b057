using System;
using System.Collections.Generic;
using System.Threading;

namespace Ramway
{
    /// <summary>How far a call is at its server.</summary>
    internal enum CallState
    {
        /// <summary>It waits for a handler's place, at first or for its next element.</summary>
        Waiting,
        /// <summary>Its handler runs.</summary>
        Running,
        /// <summary>A stream that waits for credit or room. It has no place.</summary>
        Paused,
        /// <summary>Its final REPLY is written or parked.</summary>
        Over,
    }

    /// <summary>A call as its server keeps it. Under the lock of its connection.</summary>
    internal sealed class ServerCall : IHasDeadline
    {
        private CancellationTokenSource? source;

        internal ServerCall(ulong id, uint window, long deadline)
        {
            Id = id;
            Window = Credit = window;
            Deadline = deadline;
        }

        internal ulong Id { get; }

        /// <summary>0: one reply; else a stream.</summary>
        internal uint Window { get; }

        public long Deadline { get; }

        public int HeapIndex { get; set; } = -1;

        internal CallState State;

        /// <summary>How many elements may be sent now.</summary>
        internal uint Credit;

        /// <summary>Its handler was called.</summary>
        internal bool Begun;

        /// <summary>It was cancelled, or its time was over (which TimedOut says) before or while its handler ran.</summary>
        internal bool Cancelled, TimedOut;

        /// <summary>Bytes of its request that count for its client.</summary>
        internal long RequestBytes;

        /// <summary>An element that waits for credit.</summary>
        internal ReplyFrame? Held;

        /// <summary>Its connection; null in tests of the ledger.</summary>
        internal ServerConnection? Connection;

        /// <summary>What answers it, and with what.</summary>
        internal Handler? Handler;
        internal RpcRequest? Request;
        internal IAsyncEnumerator<ReadOnlyMemory<byte>>? Elements;

        /// <summary>Its place among those that wait for a handler's; the pool's own.</summary>
        internal LinkedListNode<ServerCall>? PoolNode;

        /// <summary>What tells the handler.</summary>
        internal CancellationToken Token
        {
            get
            {
                if (source == null)
                {
                    source = new CancellationTokenSource();
                    if (Cancelled)
                    {
                        source.Cancel();
                    }
                }
                return source.Token;
            }
        }

        /// <summary>Tells the handler, if it listens. Its code runs on the pool: it must not hold up the pump, nor see its lock.</summary>
        internal void Cancel()
        {
            Cancelled = true;
            if (source != null && !source.IsCancellationRequested)
            {
                ThreadPool.UnsafeQueueUserWorkItem(told =>
                {
                    try
                    {
                        ((CancellationTokenSource)told!).Cancel();
                    }
                    catch (AggregateException)
                    {
                        // What a handler registered and threw is nobody's to handle; its call ends in any case.
                    }
                }, source);
            }
        }
    }

    /// <summary>A REPLY that is to be written.</summary>
    internal sealed class ReplyFrame
    {
        internal ReplyFrame(ServerCall call, in ReplyHeader header, ReadOnlyMemory<byte> meta, ReadOnlyMemory<byte> body)
        {
            Call = call;
            Header = header;
            Meta = meta;
            Body = body;
        }

        internal ServerCall Call { get; }

        internal ReplyHeader Header { get; }

        internal ReadOnlyMemory<byte> Meta { get; private set; }

        internal ReadOnlyMemory<byte> Body { get; private set; }

        internal bool IsFinal => !Header.Element;

        /// <summary>Of its payload. Longer than an int where no ring can hold it.</summary>
        internal long Length => RpcFrames.PayloadLength(Meta.Length, Body.Length);

        /// <summary>What it refers to is the handler's: from here on it is a copy.</summary>
        internal void Copy()
        {
            Meta = Meta.ToArray();
            Body = Body.ToArray();
        }
    }
}
