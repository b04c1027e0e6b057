using System;

namespace Ramway
{
    /// <summary>
    /// A received message that may be kept in a field and used after an await, on any thread; good until Dispose. Otherwise it is
    /// as <see cref="Message"/>, and nothing is allocated for it.
    /// </summary>
    /// <remarks>
    /// While it is out, nothing else can be received. After Dispose every property of it, and of a copy of it, throws <see
    /// cref="ObjectDisposedException"/>.
    /// <code>
    /// await foreach (MessageLease message in receiver.ReadAllAsync(token))
    /// {
    ///     await stream.WriteAsync(message.Memory);
    /// }
    /// </code>
    /// </remarks>
    public readonly unsafe struct MessageLease : IDisposable
    {
        private readonly Receiver? receiver;
        private readonly uint lease;

        internal MessageLease(Receiver receiver, uint lease)
        {
            this.receiver = receiver;
            this.lease = lease;
        }

        /// <summary>The payload in place; its address is a multiple of the ring's alignment.</summary>
        public ReadOnlySpan<byte> Data => View.Data;

        /// <summary>What the sender said the payload is; below 0xFFFF0000 for an application's own.</summary>
        public uint TypeId => View.TypeId;

        /// <summary>The sender's tag, 0 if it gave none.</summary>
        public ulong Tag => View.Tag;

        /// <summary>Bytes of payload.</summary>
        public int Length => View.Length;

        /// <summary>All three of these.</summary>
        public MessageInfo Info => View.Info;

        /// <summary>Where the payload is.</summary>
        public IntPtr Address => View.Address;

        /// <summary>
        /// The payload as memory, for calls that want that. It allocates a small object, and throws like the message once that
        /// was released.
        /// </summary>
        public ReadOnlyMemory<byte> Memory => new OwnedMessage(this).Memory;

        /// <summary>A copy of the payload.</summary>
        public byte[] ToArray() => View.ToArray();

        /// <summary>Gives the message back. The second time it does nothing.</summary>
        public void Dispose() => receiver?.Release(lease);

        internal Message View
        {
            get
            {
                if (receiver == null)
                {
                    Message.ThrowReleased();
                }
                return new Message(receiver!, lease, 0);
            }
        }
    }
}
