using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Ramway
{
    /// <summary>Several messages that are released together. After Dispose, using it is an ObjectDisposedException.</summary>
    /// <remarks>
    /// <code>
    /// using Batch batch = receiver.RecvBatch(64);
    /// foreach (Message message in batch)
    /// {
    ///     total += message.Length;
    /// }
    /// </code>
    /// </remarks>
    public readonly ref struct Batch
    {
        private readonly Receiver? receiver;
        private readonly uint lease;
        private readonly int count;

        internal Batch(Receiver receiver, uint lease, int count)
        {
            this.receiver = receiver;
            this.lease = lease;
            this.count = count;
        }

        /// <summary>The number of messages, at least 1.</summary>
        public int Count
        {
            get
            {
                Check();
                return count;
            }
        }

        /// <summary>Message number index, from 0 to Count - 1. Its Dispose does nothing: it is released with the batch.</summary>
        public Message this[int index]
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get
            {
                Check();
                if ((uint)index >= (uint)count)
                {
                    ThrowOutOfRange();
                }
                return new Message(receiver!, lease, index | Message.OfBatch);
            }
        }

        /// <summary>For foreach: the messages, which are released with the batch and not before.</summary>
        public Enumerator GetEnumerator()
        {
            Check();
            return new Enumerator(receiver!, lease, count);
        }

        /// <summary>Gives all messages back at once. The second time it does nothing.</summary>
        public void Dispose() => receiver?.Release(lease);

        private void Check()
        {
            if (receiver == null || !receiver.Holds(lease))
            {
                throw new ObjectDisposedException(nameof(Batch), "ramway: batch used after its Dispose");
            }
        }

        private static void ThrowOutOfRange() => throw new ArgumentOutOfRangeException("index");

        /// <summary>For foreach.</summary>
        public ref struct Enumerator
        {
            private readonly Receiver receiver;
            private readonly uint lease;
            private readonly int count;
            private int index;

            internal Enumerator(Receiver receiver, uint lease, int count)
            {
                this.receiver = receiver;
                this.lease = lease;
                this.count = count;
                index = -1;
            }

            /// <summary>The message.</summary>
            public Message Current
            {
                [MethodImpl(MethodImplOptions.AggressiveInlining)]
                get => new Message(receiver, lease, index | Message.OfBatch);
            }

            /// <summary>Goes to the next one.</summary>
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            public bool MoveNext() => ++index < count;
        }
    }

    public unsafe partial class Receiver
    {
        /// <summary>Takes what there is besides the first frame, gives all out and leaves the guard.</summary>
        private Batch Gather(int max)
        {
            if (this is Subscriber topic)
            {
                int taken = 1;
                return new Batch(this, topic.TakeMore(max, ref taken), taken);
            }
            int count = GatherRing(max);
            return new Batch(this, guard.LeaveOut(), count);
        }

        /// <summary>
        /// What a ring has besides the first frame; how many frames are out then. Not inlined, so that its variables stay in registers.
        /// </summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private int GatherRing(int max)
        {
            Frame[] all = frames;
            byte* bytes = data;
            ulong position = head, end = tail, wrap = this.wrap, extra = frameExtra, mask = alignMask, step = 0;
            int count = 1;
            // Whatever ends it is found again by the next call, and thrown.
            for (; count < max; count++)
            {
                if (position == end)
                {
                    head = position;
                    if (!CheckTail())
                    {
                        break;
                    }
                    end = tail;
                }
                if (count == all.Length)
                {
                    Grow(max);
                    all = frames;
                }
                // The rules of ParseRing.
                byte* at = bytes + (position & wrap);
                ulong word = Volatile.Read(ref *(ulong*)at), tag = Volatile.Read(ref *(ulong*)(at + 8));
                ulong length = (uint)word, size = (extra + length) & ~mask;
                if (size > end - position || length > Facts.MessageMax)
                {
                    break;
                }
                Step(ref step, size);
                position += step;
                ref Frame frame = ref all[count];
                frame.Data = at + Facts.FrameHeader;
                frame.Tag = tag;
                frame.Length = (int)length;
                frame.TypeId = (uint)(word >> 32);
            }
            head = position;
            return count;
        }

        /// <summary>
        /// Makes step the size of this frame, by a branch: where it is that of the frame before, which the processor foresees, it need
        /// not wait for this frame's length to know where the next one is. Receiving 32 B takes three quarters of the time (decision 39).
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private protected static void Step(ref ulong step, ulong size)
        {
            if (size != step)
            {
                step = size;
            }
        }
    }
}
