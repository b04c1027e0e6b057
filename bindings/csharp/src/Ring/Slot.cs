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
        private readonly uint ticket;
        private readonly int length;

        internal Slot(Sender sender, uint ticket, int length)
        {
            this.sender = sender;
            this.ticket = ticket;
            this.length = length;
        }

        /// <summary>The room, aligned to the ring's alignment. It must not be used after the slot's end.</summary>
        public Span<byte> Data
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => new Span<byte>(Open().Payload, length);
        }

        /// <summary>Bytes of room.</summary>
        public int Length
        {
            get
            {
                Open();
                return length;
            }
        }

        /// <summary>Where the room is.</summary>
        public IntPtr Address => (IntPtr)Open().Payload;

        /// <summary>Sends the whole slot. It is at its end in any case.</summary>
        /// <exception cref="RamwayException">InvalidArgument for a reserved typeId, or what the handle is dead of.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Commit(uint typeId, ulong tag = 0) => Open().CommitSlot(ticket, length, length, typeId, tag, true);

        /// <summary>Sends the slot's first bytes. It is at its end in any case.</summary>
        /// <exception cref="RamwayException">As above, and InvalidArgument for a length beyond the slot's.</exception>
        public void Commit(uint typeId, ulong tag, int length) =>
            Open().CommitSlot(ticket, this.length, length, typeId, tag, true);

        /// <summary>
        /// Commit that is visible only after <see cref="Sender.Flush"/>, the next flushed message, or when the sender has to
        /// wait, finds the ring full, or closes.
        /// </summary>
        /// <exception cref="RamwayException">As for Commit.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void CommitUnflushed(uint typeId, ulong tag = 0) => Open().CommitSlot(ticket, length, length, typeId, tag, false);

        /// <summary>The same for the slot's first bytes.</summary>
        /// <exception cref="RamwayException">As for Commit.</exception>
        public void CommitUnflushed(uint typeId, ulong tag, int length) =>
            Open().CommitSlot(ticket, this.length, length, typeId, tag, false);

        /// <summary>Sends a message of Ramway's own.</summary>
        internal void CommitTensor(int length, ulong tag, bool flush = true) =>
            Open().EndSlot(ticket, length, Facts.TypeIdTensor, tag, flush);

        /// <summary>Sends the whole slot as a frame of Ramway's own.</summary>
        internal void CommitOwn(uint typeId, ulong tag) => Open().EndSlot(ticket, length, typeId, tag, true);

        /// <summary>Gives the slot up; nothing of it remains. After a commit, and the second time, it does nothing.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Dispose()
        {
            if (sender != null && sender.Holds(ticket))
            {
                sender.CloseSlot(ticket);
            }
        }

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private Sender Open()
        {
            if (sender == null || !sender.Holds(ticket))
            {
                ThrowCommitted();
            }
            return sender!;
        }

        internal static void ThrowCommitted() =>
            throw new ObjectDisposedException(nameof(Slot), "ramway: slot used after its commit or Dispose");
    }

    public unsafe partial class Sender
    {
        /// <summary>Opens a slot of length bytes, and waits for room without a limit.</summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        public Slot Reserve(int length)
        {
            // A negative length is a huge one here.
            uint ticket = EnterOut();
            if (guard.IsShut || !Fits((uint)length))
            {
                MakeRoom(0, length, null, default);
                guard.LeaveOut();
            }
            return new Slot(this, ticket, length);
        }

        /// <summary>
        /// The same, and waits for room no longer than the time-out (null: without a limit) and until the token is cancelled,
        /// which is checked only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As for Send, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Slot Reserve(int length, TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            uint ticket = EnterOut();
            if (guard.IsShut || !Fits((uint)length))
            {
                MakeRoom(0, length, timeout, cancellationToken);
                guard.LeaveOut();
            }
            return new Slot(this, ticket, length);
        }

        /// <summary>Opens a slot without waiting; false if there is no room now.</summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        public bool TryReserve(int length, out Slot slot)
        {
            uint ticket = EnterOut();
            if (guard.IsShut || !Fits((uint)length))
            {
                if (!TryMakeRoom(0, length))
                {
                    slot = default;
                    return false;
                }
                guard.LeaveOut();
            }
            slot = new Slot(this, ticket, length);
            return true;
        }

        /// <summary>Commits the slot with a type id of the application's.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void CommitSlot(uint ticket, int room, int length, uint typeId, ulong tag, bool flush)
        {
            if ((uint)length > (uint)room || typeId >= Facts.TypeIdReserved)
            {
                throw Unfit(ticket, room, length, typeId);
            }
            EndSlot(ticket, length, typeId, tag, flush);
        }

        /// <summary>Ends the slot with a message. Nobody unmaps while it is out.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void EndSlot(uint ticket, int length, uint typeId, ulong tag, bool flush)
        {
            if (guard.IsDead)
            {
                throw DeadSlot(ticket);
            }
            if (flush)
            {
                CommitAndFlush((uint)length, typeId, tag);
            }
            else
            {
                Commit((uint)length, typeId, tag);
            }
            CloseSlot(ticket);
        }

        /// <summary>Ends the slot, as it is.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void CloseSlot(uint ticket)
        {
            guard.End(ticket);
            if (guard.IsShut)
            {
                // Which flushes.
                FinishClose();
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private RamwayException Unfit(uint ticket, int room, int length, uint typeId)
        {
            CloseSlot(ticket);
            return typeId >= Facts.TypeIdReserved
                ? ReservedType(typeId)
                : Fail(ErrorKind.InvalidArgument, length + " bytes committed of a slot of " + room);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private RamwayException DeadSlot(uint ticket)
        {
            CloseSlot(ticket);
            return Fail(dead);
        }
    }
}
