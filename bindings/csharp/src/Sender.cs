using System;
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Ramway
{
    /// <summary>The sending end of a ring; one per ring, in the whole system.</summary>
    public sealed unsafe partial class Sender : RingEnd
    {
        internal Sender(Attachment a, RingOptions o) => throw new NotImplementedException();

        /// <summary>Creates a ring and is its sender.</summary>
        public static Sender Create(string name, RingOptions? options = null) => throw new NotImplementedException();

        /// <summary>Opens a ring and is its sender.</summary>
        public static Sender Open(string name, RingOptions? options = null) => throw new NotImplementedException();

        /// <summary>OpenOrCreates a ring and is its sender.</summary>
        public static Sender OpenOrCreate(string name, RingOptions? options = null) => throw new NotImplementedException();

        /// <summary>Sends a message, and waits for room.</summary>
        public void Send(uint typeId, ReadOnlySpan<byte> data, ulong tag = 0, TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>Sends a message unless there is no room now: then false.</summary>
        public bool TrySend(uint typeId, ReadOnlySpan<byte> data, ulong tag = 0) => throw new NotImplementedException();

        /// <summary>Sends a message, and waits for room without holding a thread.</summary>
        public ValueTask SendAsync(uint typeId, ReadOnlyMemory<byte> data, ulong tag = 0, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>Opens a slot of so many bytes, and waits for room.</summary>
        public Slot Reserve(int length, TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>Opens a slot of so many bytes unless there is no room now: then false.</summary>
        public bool TryReserve(int length, out Slot slot) => throw new NotImplementedException();

        /// <summary>Makes every unflushed commit so far visible.</summary>
        public void Flush() => throw new NotImplementedException();

        /// <summary>Sends several messages, visible together where they fit together; how many were sent.</summary>
        public int SendBatch(uint typeId, IReadOnlyList<ReadOnlyMemory<byte>> messages, TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>Sends one message gathered from several pieces.</summary>
        public void SendVec(uint typeId, IReadOnlyList<ReadOnlyMemory<byte>> parts, ulong tag = 0, TimeSpan? timeout = null, CancellationToken cancellationToken = default) => throw new NotImplementedException();

        /// <summary>The tag of the last message that is visible to receivers; null before the first.</summary>
        public ulong? LastTag => throw new NotImplementedException();

        /// <summary>How many bytes, frame headers and padding included, the receiver has not released.</summary>
        public long Length => throw new NotImplementedException();

        /// <summary>Gives the role up without telling the receiver that this was all.</summary>
        public void Abandon() => throw new NotImplementedException();
    }
}
