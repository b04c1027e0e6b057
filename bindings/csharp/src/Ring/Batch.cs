using System;
using System.Runtime.CompilerServices;

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
}
