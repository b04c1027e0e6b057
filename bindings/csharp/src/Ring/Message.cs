using System;
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

        /// <summary>All three of these.</summary>
        public MessageInfo Info
        {
            get
            {
                ref readonly Receiver.Frame frame = ref Frame();
                return new MessageInfo(frame.TypeId, frame.Tag, frame.Length);
            }
        }

        /// <summary>Where the payload is.</summary>
        public IntPtr Address => (IntPtr)Frame().Data;

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
}
