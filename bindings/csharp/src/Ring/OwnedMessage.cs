using System;
using System.Buffers;

namespace Ramway
{
    /// <summary>
    /// A received message as memory that can be kept: the bytes in the ring, not a copy. Until Dispose they stay, even if the
    /// Receiver is closed, and nothing else can be received. Once it is disposed, <see cref="MemoryManager{T}.Memory"/>'s Span
    /// throws <see cref="ObjectDisposedException"/>.
    /// </summary>
    /// <remarks>
    /// It may be used and disposed from any thread, by one at a time. Memory that is pinned keeps the message until it is
    /// unpinned. What is written into the memory, nobody sees but a later receiver of the same message, if this process dies
    /// before the release.
    /// </remarks>
    public sealed unsafe class OwnedMessage : MemoryManager<byte>
    {
        private readonly MessageLease message;
        private readonly MessageInfo info;
        private readonly object counting = new object();
        private int pins;
        private bool disposed;

        internal OwnedMessage(MessageLease message)
        {
            this.message = message;
            info = message.Info;
        }

        /// <summary>What the sender said the payload is; below 0xFFFF0000 for an application's own.</summary>
        public uint TypeId => info.TypeId;

        /// <summary>The sender's tag, 0 if it gave none.</summary>
        public ulong Tag => info.Tag;

        /// <summary>Bytes of payload.</summary>
        public int Length => info.Length;

        /// <inheritdoc/>
        public override Memory<byte> Memory => CreateMemory(info.Length);

        /// <inheritdoc/>
        public override Span<byte> GetSpan()
        {
            lock (counting)
            {
                Check();
                // The mapping is writable, as IMemoryOwner has it.
                return new Span<byte>((void*)message.Address, info.Length);
            }
        }

        /// <inheritdoc/>
        public override MemoryHandle Pin(int elementIndex = 0)
        {
            if ((uint)elementIndex > (uint)info.Length)
            {
                throw new ArgumentOutOfRangeException(nameof(elementIndex));
            }
            lock (counting)
            {
                Check();
                pins++;
                return new MemoryHandle((byte*)message.Address + elementIndex, default, this);
            }
        }

        /// <inheritdoc/>
        public override void Unpin()
        {
            lock (counting)
            {
                if (pins > 0 && --pins == 0 && disposed)
                {
                    message.Dispose();
                }
            }
        }

        /// <summary>Gives the message back, or, while memory of it is pinned, as soon as that is unpinned.</summary>
        public void Dispose() => ((IDisposable)this).Dispose();

        /// <inheritdoc/>
        protected override void Dispose(bool disposing)
        {
            lock (counting)
            {
                if (!disposed)
                {
                    disposed = true;
                    if (pins == 0)
                    {
                        message.Dispose();
                    }
                }
            }
        }

        private void Check()
        {
            if (disposed)
            {
                Message.ThrowReleased();
            }
        }
    }
}
