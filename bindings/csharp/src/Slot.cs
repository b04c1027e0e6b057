using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Ramway
{
    /// <summary>
    /// Room for one message, to be written in place and then committed; good until then, or until Dispose, which gives it up
    /// without a trace. It holds whatever an earlier message left there. One slot is open at a time.
    /// </summary>
    /// <remarks>
    /// After its end every member of it, and of a copy of it, throws <see cref="ObjectDisposedException"/>, but for Dispose.
    /// <code>
    /// using Slot slot = sender.Reserve(100);
    /// int length = Draw(slot.Data);
    /// slot.Commit(7, 0, length);
    /// </code>
    /// </remarks>
    public readonly unsafe ref struct Slot
    {
        private readonly Sender? sender;
        private readonly uint lease;

        internal Slot(Sender sender, uint lease)
        {
            this.sender = sender;
            this.lease = lease;
        }

        /// <summary>The room, aligned to the ring's alignment. It must not be used after the slot's end.</summary>
        public Span<byte> Data
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get
            {
                Sender s = Open();
                return new Span<byte>(s.Payload, s.room);
            }
        }

        /// <summary>Bytes of room.</summary>
        public int Length => Open().room;

        /// <summary>Where the room is.</summary>
        public IntPtr Address => (IntPtr)Open().Payload;

        /// <summary>Sends the whole slot. It is at its end in any case.</summary>
        /// <exception cref="RamwayException">InvalidArgument for a reserved typeId, or what the handle is dead of.</exception>
        public void Commit(uint typeId, ulong tag = 0)
        {
            Sender s = Open();
            s.CommitSlot(lease, s.room, typeId, tag, true);
        }

        /// <summary>Sends the slot's first bytes. It is at its end in any case.</summary>
        /// <exception cref="RamwayException">As above, and InvalidArgument for a length beyond the slot's.</exception>
        public void Commit(uint typeId, ulong tag, int length) => Open().CommitSlot(lease, length, typeId, tag, true);

        /// <summary>
        /// Commit that is visible only after <see cref="Sender.Flush"/>, the next flushed message, or when the sender has to
        /// wait, finds the ring full, or closes.
        /// </summary>
        /// <exception cref="RamwayException">As for Commit.</exception>
        public void CommitUnflushed(uint typeId, ulong tag = 0)
        {
            Sender s = Open();
            s.CommitSlot(lease, s.room, typeId, tag, false);
        }

        /// <summary>The same for the slot's first bytes.</summary>
        /// <exception cref="RamwayException">As for Commit.</exception>
        public void CommitUnflushed(uint typeId, ulong tag, int length) =>
            Open().CommitSlot(lease, length, typeId, tag, false);

        /// <summary>Sends a message of Ramway's own.</summary>
        internal void CommitTensor(int length, ulong tag, bool flush = true) =>
            Open().CommitSlot(lease, length, Layout.TypeIdTensor, tag, flush, true);

        /// <summary>Gives the slot up; nothing of it remains. After a commit, and the second time, it does nothing.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Dispose()
        {
            if (sender != null && sender.lease == lease)
            {
                sender.EndSlot(lease, -1, 0, 0, false);
            }
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private Sender Open()
        {
            if (sender == null || sender.lease != lease)
            {
                ThrowCommitted();
            }
            return sender!;
        }

        internal static void ThrowCommitted() =>
            throw new ObjectDisposedException(nameof(Slot), "ramway: slot used after its commit or Dispose");
    }

    public sealed unsafe partial class Sender
    {
        /// <summary>
        /// Opens a slot of so many bytes, and waits for room like <see cref="Send(uint, ReadOnlySpan{byte}, ulong, TimeSpan?,
        /// CancellationToken)"/>.
        /// </summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Slot Reserve(int length, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            // A negative length is a huge one here.
            if (!gate.Enter() || !Fits((uint)length))
            {
                MakeRoomOrThrow(0, length, timeout, cancellationToken);
            }
            return OpenSlot(length);
        }

        /// <summary>Opens a slot without waiting; false if there is no room now.</summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        public bool TryReserve(int length, out Slot slot)
        {
            if ((!gate.Enter() || !Fits((uint)length)) && !TryMakeRoom(0, length))
            {
                slot = default;
                return false;
            }
            slot = OpenSlot(length);
            return true;
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private Slot OpenSlot(int length)
        {
            uint number = ++lease;
            room = length;
            gate.Leave();
            return new Slot(this, number);
        }

        /// <summary>Commits a slot with a type id of the application's.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void CommitSlot(uint number, int length, uint typeId, ulong tag, bool flush, bool own = false)
        {
            if (typeId >= Layout.TypeIdReserved && !own)
            {
                EndSlot(number, -1, 0, 0, false);
                throw ReservedType(typeId);
            }
            if (gate.Enter() && lease == number && (uint)length <= (uint)room)
            {
                lease++;
                room = -1;
                Commit((uint)length, typeId, tag);
                if (flush)
                {
                    FlushCommitted();
                }
                gate.Leave();
                return;
            }
            gate.Leave();
            RejectSlot(number, length, typeId, tag, flush);
        }

        /// <summary>A slot that cannot be committed straight away.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private void RejectSlot(uint number, int length, uint typeId, ulong tag, bool flush)
        {
            int most = room;
            if (lease == number && (uint)length > (uint)most)
            {
                EndSlot(number, -1, 0, 0, false);
                throw Fail(ErrorKind.InvalidArgument, length + " bytes committed of a slot of " + most);
            }
            EndSlot(number, length, typeId, tag, flush);
        }

        /// <summary>
        /// Ends a slot in any state of the handle, with a message (the length fits) or, with a length of -1, without. Then a close
        /// that has waited for it goes on.
        /// </summary>
        internal void EndSlot(uint number, int length, uint typeId, ulong tag, bool flush)
        {
            RamwayException? e;
            if (gate.Enter() || !gate.IsClosed)
            {
                e = Last(number, length, typeId, tag, flush);
                gate.Leave();
            }
            else
            {
                gate.Leave();
                lock (closing)
                {
                    // The close flushes.
                    e = Last(number, length, typeId, tag, false);
                    if (deferred)
                    {
                        LetGo(false, false);
                    }
                }
            }
            if (e != null)
            {
                throw e;
            }
        }

        private RamwayException? Last(uint number, int length, uint typeId, ulong tag, bool flush)
        {
            if (lease != number)
            {
                return length < 0 ? null : Fail(ErrorKind.Detached);
            }
            lease++;
            room = -1;
            if (length < 0)
            {
                return null;
            }
            if (gate.IsDead)
            {
                return Fail(dead);
            }
            Commit((uint)length, typeId, tag);
            if (flush)
            {
                FlushCommitted();
            }
            return null;
        }
    }
}
