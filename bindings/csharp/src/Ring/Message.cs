using System;
using System.Buffers;
using System.Runtime.CompilerServices;

namespace Ramway
{
    /// <summary>A received message: a view of the shared memory, good until Dispose.</summary>
    /// <remarks>
    /// After that every property of it, and of a copy of it, throws <see cref="ObjectDisposedException"/>. A Span that was taken
    /// from <see cref="Data"/> before must not be used any more: it shows what the sender writes there next. Being a ref struct, a
    /// message cannot be kept in a field or used after an await; for that there are <see cref="MessageLease"/> and <see
    /// cref="OwnedMessage"/>.
    /// <code>
    /// using Message message = receiver.Recv();
    /// Parse(message.Data);
    /// </code>
    /// </remarks>
    public readonly unsafe ref struct Message
    {
        // 16 bytes, which are returned in two registers: what is larger is put together in memory by stores of 4 and 8 bytes and
        // copied from there by loads of 16, which wait until the stores have left the processor.
        private readonly Receiver? receiver;
        private readonly uint lease;
        /// <summary>Of its frame; with the highest bit, it goes back with its batch.</summary>
        private readonly int index;

        internal const int OfBatch = int.MinValue;

        internal Message(Receiver receiver, uint lease, int index)
        {
            this.receiver = receiver;
            this.lease = lease;
            this.index = index;
        }

        /// <summary>The payload in place; its address is a multiple of the ring's alignment.</summary>
        public ReadOnlySpan<byte> Data
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get
            {
                ref readonly Receiver.Frame frame = ref Frame();
                return new ReadOnlySpan<byte>(frame.Data, frame.Length);
            }
        }

        /// <summary>What the sender said the payload is; below 0xFFFF0000 for an application's own.</summary>
        public uint TypeId => Frame().TypeId;

        /// <summary>The sender's tag, 0 if it gave none.</summary>
        public ulong Tag => Frame().Tag;

        /// <summary>Bytes of payload.</summary>
        public int Length => Frame().Length;

        /// <summary>A topic's message's number: the first has 1, and each one more than the one before. 0 in a ring.</summary>
        public ulong Seq => Frame().Stamp.Seq;

        /// <summary>
        /// When a topic's message was sent, by the publisher's wall clock, in UTC; null if the publisher does not say (<see
        /// cref="TopicOptions.Timestamps"/>), and in a ring.
        /// </summary>
        public DateTime? Time => Frame().Stamp.When;

        /// <summary>How many messages of a topic were lost right before this one; 0 in a ring, which loses none.</summary>
        public ulong Lost => Frame().Stamp.Lost;

        /// <summary>All of these.</summary>
        public MessageInfo Info
        {
            get
            {
                MessageInfo.Of(Frame(), out MessageInfo info);
                return info;
            }
        }

        /// <summary>Where the payload is.</summary>
        public IntPtr Address => (IntPtr)Frame().Data;

        /// <summary>Where it is that it can be written: where a topic's message lies in the log, a copy is made.</summary>
        internal byte* Writable
        {
            get
            {
                Frame();
                return receiver!.WritableAt(index & int.MaxValue);
            }
        }

        /// <summary>A copy of the payload.</summary>
        public byte[] ToArray() => Data.ToArray();

        /// <summary>Gives the message back. For a message of a <see cref="Batch"/>, and the second time, it does nothing.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Dispose()
        {
            if (receiver != null && index >= 0)
            {
                receiver.Release(lease);
            }
        }

        /// <summary>Ends the message as if it had not been received.</summary>
        internal void PutBack() => receiver!.PutBack(lease);

        /// <summary>The same message for other places than this stack.</summary>
        internal MessageLease ToLease() => new MessageLease(receiver!, lease);

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private ref readonly Receiver.Frame Frame()
        {
            if (receiver == null || !receiver.Holds(lease))
            {
                ThrowReleased();
            }
            return ref receiver!.FrameAt(index & int.MaxValue);
        }

        internal static void ThrowReleased() =>
            throw new ObjectDisposedException(nameof(Message), "ramway: message used after its Dispose");
    }

    /// <summary>What a copied message was sent with.</summary>
    public struct MessageInfo
    {
        // Each field is stored where the struct is to be: one that is put together elsewhere is copied by loads that are wider than
        // the stores before them, and wait for those.

        /// <summary>Of a message that was taken.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void Of(in Receiver.Frame frame, out MessageInfo info)
        {
            info.typeId = frame.TypeId;
            info.tag = frame.Tag;
            info.length = frame.Length;
            info.stamp.Seq = frame.Stamp.Seq;
            info.stamp.Time = frame.Stamp.Time;
            info.stamp.Lost = frame.Stamp.Lost;
        }

        /// <summary>The same in a ring, whose messages say no more.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void OfRing(in Receiver.Frame frame, out MessageInfo info)
        {
            info.typeId = frame.TypeId;
            info.tag = frame.Tag;
            info.length = frame.Length;
            info.stamp = default;
        }

        /// <summary>Of a topic's message that was read as the newest.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal static void Of(in FrameHead frame, out MessageInfo info)
        {
            info.typeId = frame.TypeId;
            info.tag = frame.Tag;
            info.length = (int)frame.Length;
            info.stamp.Seq = frame.Seq;
            info.stamp.Time = frame.Time;
            info.stamp.Lost = 0;
        }

        private uint typeId;
        private int length;
        private ulong tag;
        private MessageStamp stamp;

        /// <summary>The sender's type id.</summary>
        public readonly uint TypeId => typeId;

        /// <summary>The sender's tag, 0 if it gave none.</summary>
        public readonly ulong Tag => tag;

        /// <summary>The number of bytes of payload.</summary>
        public readonly int Length => length;

        /// <summary>A topic's message's number; 0 in a ring.</summary>
        public readonly ulong Seq => stamp.Seq;

        /// <summary>When a topic's message was sent, in UTC; null if the publisher does not say, and in a ring.</summary>
        public readonly DateTime? Time => stamp.When;

        /// <summary>How many messages of a topic were lost right before this one; 0 in a ring.</summary>
        public readonly ulong Lost => stamp.Lost;
    }

    /// <summary>What a topic's frame says besides what a ring's does, and the gap before it.</summary>
    internal struct MessageStamp
    {
        internal ulong Seq, Time, Lost;

        /// <summary>A tick is 100 ns. Anything may have been written there: what no DateTime holds is none.</summary>
        internal readonly DateTime? When => Time == 0 || Time / 100 > (ulong)(DateTime.MaxValue - DateTime.UnixEpoch).Ticks
            ? (DateTime?)null
            : DateTime.UnixEpoch.AddTicks((long)(Time / 100));
    }

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

        /// <summary>As <see cref="Message.Seq"/>.</summary>
        public ulong Seq => View.Seq;

        /// <summary>As <see cref="Message.Time"/>.</summary>
        public DateTime? Time => View.Time;

        /// <summary>As <see cref="Message.Lost"/>.</summary>
        public ulong Lost => View.Lost;

        /// <summary>All of these.</summary>
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

    /// <summary>
    /// A received message as memory that can be kept: the bytes in the ring, not a copy (of a topic's message, a copy: its log is
    /// mapped read-only). Until Dispose they stay, even if the
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

        /// <summary>All that it was sent with.</summary>
        public MessageInfo Info => info;

        /// <summary>As <see cref="Message.Seq"/>.</summary>
        public ulong Seq => info.Seq;

        /// <summary>As <see cref="Message.Time"/>.</summary>
        public DateTime? Time => info.Time;

        /// <summary>As <see cref="Message.Lost"/>.</summary>
        public ulong Lost => info.Lost;

        /// <inheritdoc/>
        public override Memory<byte> Memory => CreateMemory(info.Length);

        /// <inheritdoc/>
        public override Span<byte> GetSpan()
        {
            lock (counting)
            {
                Check();
                // Writable, as IMemoryOwner has it.
                return new Span<byte>(message.View.Writable, info.Length);
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
                return new MemoryHandle(message.View.Writable + elementIndex, default, this);
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
