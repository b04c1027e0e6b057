using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>The receiving end of a ring; one per ring, in the whole system.</summary>
    public sealed unsafe partial class Receiver : RingEnd
    {
        internal Receiver(Attachment a, RingOptions o) => throw new NotImplementedException();

        /// <summary>Creates a ring and is its receiver.</summary>
        public static Receiver Create(string name, RingOptions? options = null) => throw new NotImplementedException();

        /// <summary>Opens a ring and is its receiver.</summary>
        public static Receiver Open(string name, RingOptions? options = null) => throw new NotImplementedException();

        /// <summary>OpenOrCreates a ring and is its receiver.</summary>
        public static Receiver OpenOrCreate(string name, RingOptions? options = null) => throw new NotImplementedException();

        /// <summary>The next message, and waits for it.</summary>
        public Message Recv(TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>The next message unless there is none now: then false.</summary>
        public bool TryRecv(out Message message) => throw new NotImplementedException();

        /// <summary>Up to max messages, those that are there, and waits for the first one.</summary>
        public Batch RecvBatch(int max, TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>Up to max messages unless there is none now: then false.</summary>
        public bool TryRecvBatch(int max, out Batch batch) => throw new NotImplementedException();

        /// <summary>Copies the next message and releases it: the number of bytes.</summary>
        public int RecvInto(Span<byte> buffer, out MessageInfo info, TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>Copies the next message and releases it, unless there is none now: then false.</summary>
        public bool TryRecvInto(Span<byte> buffer, out int length, out MessageInfo info) => throw new NotImplementedException();

        /// <summary>The next message as memory that may be kept, and passed to other threads, until it is disposed.</summary>
        public OwnedMessage RecvMemory(TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>Waits without holding a thread: true when a message is there, false when the sender has closed and all was received.</summary>
        public ValueTask<bool> WaitToReadAsync(CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>The messages one after another, each released when the next one is asked for.</summary>
        public IAsyncEnumerable<OwnedMessage> ReadAllAsync(CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>How many bytes, frame headers and padding included, are published and not released.</summary>
        public long Length => throw new NotImplementedException();
    }
}
