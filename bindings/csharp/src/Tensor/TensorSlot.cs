using System;
using System.Runtime.InteropServices;
using System.Threading;

namespace Ramway
{
    /// <summary>
    /// Room for the elements of one tensor, to be written in place and then committed; the rules are those of a <see cref="Slot"/>.
    /// </summary>
    /// <remarks>
    /// <code>
    /// using TensorSlot slot = sender.ReserveTensor(ElementType.Float32, stackalloc long[] { 480, 640 });
    /// Draw(slot.Elements&lt;float&gt;());
    /// slot.Commit(number);
    /// </code>
    /// </remarks>
    public readonly ref struct TensorSlot
    {
        private readonly Slot slot;
        private readonly ElementType type;
        private readonly int offset;
        private readonly int length;

        internal TensorSlot(Slot slot, ElementType type, int offset, int length)
        {
            this.slot = slot;
            this.type = type;
            this.offset = offset;
            this.length = length;
        }

        /// <summary>The room for the elements' bytes, on a multiple of 64. It must not be used after the slot's end.</summary>
        /// <exception cref="ObjectDisposedException">The slot is at its end.</exception>
        public Span<byte> Data => slot.Data.Slice(offset, length);

        /// <summary>The same as elements.</summary>
        /// <typeparam name="T">What they are: see <see cref="ElementTypes.Of"/>.</typeparam>
        /// <exception cref="RamwayException"><see cref="ErrorKind.InvalidArgument"/> if the slot's type is not that of
        /// T.</exception>
        /// <exception cref="ObjectDisposedException">The slot is at its end.</exception>
        public Span<T> Elements<T>()
            where T : unmanaged
        {
            Span<byte> data = Data;
            TensorPlan.CheckElements<T>(type, data);
            return MemoryMarshal.Cast<byte, T>(data);
        }

        /// <summary>Sends the tensor. The slot is at its end in any case.</summary>
        /// <param name="tag">The application's: a number, a time stamp, a key.</param>
        /// <exception cref="RamwayException">What the handle is dead of.</exception>
        /// <exception cref="ObjectDisposedException">The slot is at its end.</exception>
        public void Commit(ulong tag = 0) => slot.CommitTensor(offset + length, tag);

        /// <summary>Commit that is visible only later: see <see cref="Slot.CommitUnflushed(uint, ulong)"/>.</summary>
        /// <param name="tag">The application's.</param>
        /// <exception cref="RamwayException">What the handle is dead of.</exception>
        /// <exception cref="ObjectDisposedException">The slot is at its end.</exception>
        public void CommitUnflushed(ulong tag = 0) => slot.CommitTensor(offset + length, tag, false);

        /// <summary>Gives the slot up unless it was committed; nothing of it remains.</summary>
        public void Dispose() => slot.Dispose();
    }

    public unsafe partial class Sender
    {
        /// <summary>Opens a slot for a tensor, and waits for room like <see cref="Reserve(int)"/>.</summary>
        /// <param name="type">What the elements are.</param>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">
        /// <see cref="ErrorKind.InvalidArgument"/> for more than 32 dimensions, a negative one, or if the product of those other
        /// than 0 and of the element's size is 2^63 or more; <see cref="ErrorKind.TooLarge"/> if the elements and 71 + 8 bytes a
        /// dimension are more than <see cref="RingEnd.MaxMessageLength"/>; the others of <see cref="Reserve(int)"/>.
        /// </exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public TensorSlot ReserveTensor(ElementType type, ReadOnlySpan<long> shape, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            int room = TensorRoom(type, shape, out int length);
            return OpenTensor(Reserve(room, timeout, cancellationToken), type, shape, length);
        }

        /// <summary><see cref="ReserveTensor"/> without waiting; false if there is no room now.</summary>
        /// <param name="type">What the elements are.</param>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="slot">The room.</param>
        /// <exception cref="RamwayException">As for <see cref="ReserveTensor"/>.</exception>
        public bool TryReserveTensor(ElementType type, ReadOnlySpan<long> shape, out TensorSlot slot)
        {
            int room = TensorRoom(type, shape, out int length);
            if (!TryReserve(room, out Slot reserved))
            {
                slot = default;
                return false;
            }
            slot = OpenTensor(reserved, type, shape, length);
            return true;
        }

        /// <summary>Sends a tensor by a copy of its elements' bytes, in C order, and waits for room like <see
        /// cref="Reserve(int)"/>.</summary>
        /// <param name="type">What the elements are.</param>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="data">The elements' bytes.</param>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">As for <see cref="ReserveTensor"/>, and <see cref="ErrorKind.InvalidArgument"/> if
        /// data is not as long as the shape says.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendTensor(ElementType type, ReadOnlySpan<long> shape, ReadOnlySpan<byte> data, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) => SendTensor(type, shape, 0, data, timeout, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <param name="type">What the elements are.</param>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="tag">The application's: a number, a time stamp, a key.</param>
        /// <param name="data">The elements' bytes.</param>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">As above.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendTensor(ElementType type, ReadOnlySpan<long> shape, ulong tag, ReadOnlySpan<byte> data,
            TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            CheckTensorData(type, shape, data.Length);
            using TensorSlot slot = ReserveTensor(type, shape, timeout, cancellationToken);
            data.CopyTo(slot.Data);
            slot.Commit(tag);
        }

        /// <summary>The same of elements whose type says what they are: see <see cref="ElementTypes.Of"/>.</summary>
        /// <typeparam name="T">What the elements are.</typeparam>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="elements">The elements.</param>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">As above.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendTensor<T>(ReadOnlySpan<long> shape, ReadOnlySpan<T> elements, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
            where T : unmanaged =>
            SendTensor(ElementTypes.Of<T>(), shape, 0, MemoryMarshal.AsBytes(elements), timeout, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <typeparam name="T">What the elements are.</typeparam>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="tag">The application's: a number, a time stamp, a key.</param>
        /// <param name="elements">The elements.</param>
        /// <param name="timeout">How long to wait; null: forever.</param>
        /// <param name="cancellationToken">Ends the wait at once.</param>
        /// <exception cref="RamwayException">As above.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void SendTensor<T>(ReadOnlySpan<long> shape, ulong tag, ReadOnlySpan<T> elements, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
            where T : unmanaged =>
            SendTensor(ElementTypes.Of<T>(), shape, tag, MemoryMarshal.AsBytes(elements), timeout, cancellationToken);

        /// <summary>Sends a tensor without waiting; false if there is no room now.</summary>
        /// <param name="type">What the elements are.</param>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="data">The elements' bytes.</param>
        /// <exception cref="RamwayException">As above.</exception>
        public bool TrySendTensor(ElementType type, ReadOnlySpan<long> shape, ReadOnlySpan<byte> data) =>
            TrySendTensor(type, shape, 0, data);

        /// <summary>The same with a tag.</summary>
        /// <param name="type">What the elements are.</param>
        /// <param name="shape">The outermost dimension first; without any it is one element.</param>
        /// <param name="tag">The application's: a number, a time stamp, a key.</param>
        /// <param name="data">The elements' bytes.</param>
        /// <exception cref="RamwayException">As above.</exception>
        public bool TrySendTensor(ElementType type, ReadOnlySpan<long> shape, ulong tag, ReadOnlySpan<byte> data)
        {
            CheckTensorData(type, shape, data.Length);
            if (!TryReserveTensor(type, shape, out TensorSlot slot))
            {
                return false;
            }
            data.CopyTo(slot.Data);
            slot.Commit(tag);
            return true;
        }

        private void CheckTensorData(ElementType type, ReadOnlySpan<long> shape, int given)
        {
            long bytes = TensorPlan.CheckedBytes(type, shape);
            if (bytes != given)
            {
                throw Fail(ErrorKind.InvalidArgument,
                    $"{given} bytes for {type.Name()} of the shape {TensorPlan.Describe(shape)}: that is {bytes}");
            }
        }

        /// <summary>What to reserve for a tensor, whose elements take length bytes.</summary>
        private int TensorRoom(ElementType type, ReadOnlySpan<long> shape, out int length)
        {
            long bytes = TensorPlan.CheckedBytes(type, shape);
            int header = TensorPlan.HeaderRoom(shape.Length);
            if (bytes > int.MaxValue - header)
            {
                throw Fail(ErrorKind.TooLarge,
                    $"a tensor of {bytes} bytes can never fit: a message has at most {MaxMessageLength}");
            }
            length = (int)bytes;
            return header + length;
        }

        private static TensorSlot OpenTensor(Slot slot, ElementType type, ReadOnlySpan<long> shape, int length) =>
            new TensorSlot(slot, type, TensorPlan.Write(slot.Data, type, shape), length);
    }
}
