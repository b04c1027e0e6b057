using System;
using System.Runtime.CompilerServices;
using System.Threading;

namespace Ramway
{
    /// <summary>
    /// Messages that are written in place, one after another, and become visible together: at <see cref="Flush"/>, or when the
    /// ring is full and <see cref="Add(uint, int)"/> has to wait. Made by <see cref="Sender.StartBatch"/>.
    /// </summary>
    /// <remarks>
    /// The same as <see cref="Slot.CommitUnflushed(uint, ulong)"/> and <see cref="Sender.Flush"/>, but the sender's position stays
    /// in a register from message to message, which is faster for small ones. Dispose gives up what was not flushed. Until then
    /// nothing else can be sent. It must not be copied (pass it by reference): each copy goes on from its own
    /// position, and writes over what the others wrote; after a flush of one of them the others are refused.
    /// <code>
    /// BatchWriter batch = sender.StartBatch();
    /// foreach (Tick tick in ticks)
    /// {
    ///     tick.WriteTo(batch.Add(7, Tick.Size));
    /// }
    /// batch.Flush();
    /// batch.Dispose();
    /// </code>
    /// </remarks>
    public unsafe ref struct BatchWriter
    {
        private readonly Sender? sender;
        // Another one after each flush: a copy that was left behind must not write over what is published.
        private uint ticket;
        private readonly uint maxLength;
        private readonly ulong wrap, alignMask, header;
        private readonly byte* data;
        // The sender's, ahead of its own. Nothing that is not inlined gets a pointer to this struct, or they would be stored for
        // each message.
        private ulong tail, limit, tag;
        // Of a topic where the last message begins, and the number of the next one; in a ring 0.
        private ulong start, seq;
        private readonly bool stamps;

        internal BatchWriter(Sender sender, uint ticket, byte* data, ulong capacity, ulong alignMask, ulong header, uint maxLength,
            ulong tail, ulong limit, ulong seq, bool stamps)
        {
            this.sender = sender;
            this.ticket = ticket;
            this.data = data;
            this.alignMask = alignMask;
            this.header = header;
            this.maxLength = maxLength;
            this.seq = seq;
            this.stamps = stamps;
            start = 0;
            this.tail = tail;
            this.limit = limit;
            wrap = capacity - 1;
            tag = 0;
        }

        /// <summary>
        /// Adds a message, and gives its bytes, to be written before the next call; they hold whatever an earlier message left
        /// there. Waits for room without a limit; before it waits, all before it is flushed.
        /// </summary>
        /// <exception cref="RamwayException">
        /// As for <see cref="Sender.Send(uint, ReadOnlySpan{byte})"/>. Then this message was not added, and those before it stay.
        /// </exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public Span<byte> Add(uint typeId, int length) => Add(typeId, 0, length);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As above.</exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public Span<byte> Add(uint typeId, ulong tag, int length)
        {
            Sender s = Open();
            if (MustStop(s, typeId, length))
            {
                limit = s.MakeRoomInBatch(new Sender.Ahead(tail, this.tag, start, seq), typeId, length, WaitLimit.Forever);
                ticket = s.Ticket;
            }
            return Put(s, typeId, tag, length);
        }

        /// <summary>
        /// The same, and waits for room no longer than the time-out (null: without a limit) and until the token is cancelled,
        /// which is checked only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Span<byte> Add(uint typeId, ulong tag, int length, TimeSpan? timeout, CancellationToken cancellationToken = default)
        {
            WaitLimit.Check(timeout);
            Sender s = Open();
            if (MustStop(s, typeId, length))
            {
                limit = s.MakeRoomInBatch(new Sender.Ahead(tail, this.tag, start, seq), typeId, length,
                    WaitLimit.Of(timeout, cancellationToken));
                ticket = s.Ticket;
            }
            return Put(s, typeId, tag, length);
        }

        /// <summary>Whether the sender has to be asked before this message can be written.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool MustStop(Sender s, uint typeId, int length) =>
            (uint)length > maxLength || Size(length) > limit - tail || typeId >= Facts.TypeIdReserved || s.MustStop;

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private ulong Size(int length) => (header + (ulong)(uint)length + alignMask) & ~alignMask;

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private Span<byte> Put(Sender s, uint typeId, ulong tag, int length)
        {
            byte* frame = data + (tail & wrap);
            // Plain stores: nobody reads them before tail is published.
            ((ulong*)frame)[0] = (uint)length | (ulong)typeId << 32;
            ((ulong*)frame)[1] = tag;
            if (seq != 0)
            {
                ((ulong*)frame)[2] = seq++;
                ((ulong*)frame)[3] = stamps ? s.TimeToStamp : 0;
                start = tail;
            }
            tail += Size(length);
            this.tag = tag;
            return new Span<byte>(frame + header, length);
        }

        /// <summary>Makes every message so far visible. Never waits.</summary>
        /// <exception cref="RamwayException">What the handle is dead of.</exception>
        public void Flush() => ticket = Open().FlushBatch(new Sender.Ahead(tail, tag, start, seq));

        /// <summary>Ends the batch. What was not flushed is given up.</summary>
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
                ThrowEnded();
            }
            return sender!;
        }

        private static void ThrowEnded() =>
            throw new ObjectDisposedException(nameof(BatchWriter),
                "ramway: batch used after its Dispose, or a copy of it after another one was flushed");
    }

    public unsafe partial class Sender
    {
        /// <summary>Begins messages that are written in place and published together. What was committed unflushed goes first.</summary>
        /// <exception cref="RamwayException">Busy, Detached, or what the handle is dead of.</exception>
        public BatchWriter StartBatch()
        {
            uint ticket = EnterOut();
            if (guard.IsShut)
            {
                RamwayException e = Refused();
                LeaveEmpty();
                throw e;
            }
            FlushCommitted();
            return new BatchWriter(this, ticket, data, capacity, alignMask, header, maxLength, tail, limit, SeqToWrite, TimeToStamp != 0);
        }

        /// <summary>How far a batch is ahead of its sender.</summary>
        internal readonly struct Ahead
        {
            internal readonly ulong Tail, Tag, Start, Seq;

            internal Ahead(ulong tail, ulong tag, ulong start, ulong seq)
            {
                Tail = tail;
                Tag = tag;
                Start = start;
                Seq = seq;
            }
        }

        /// <summary>The number of a topic's next message; 0 in a ring.</summary>
        private protected virtual ulong SeqToWrite => 0;

        /// <summary>What a topic's message says of when it was sent.</summary>
        internal virtual ulong TimeToStamp => 0;

        /// <summary>Takes a topic's numbers over from a batch, or back.</summary>
        private protected virtual void Renumber(ulong start, ulong seq)
        {
        }

        /// <summary>Whether a batch has to stop: this handle was closed or is dead, or the peer's flags have changed.</summary>
        internal bool MustStop
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => guard.IsShut || Volatile.Read(ref peer->Flags) != peerFlags;
        }

        /// <summary>Makes room for a message of a batch that ends at a position. How far the batch may go then.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal ulong MakeRoomInBatch(in Ahead batch, uint typeId, int length, in WaitLimit limit)
        {
            CheckAhead(batch.Tail);
            ulong before = tail, seq = SeqToWrite;
            Exception? e;
            guard.Enter();
            try
            {
                Resume(batch);
                e = RoomFor(typeId, length, limit);
            }
            finally
            {
                // What was flushed to make room is sent; the rest is still the batch's.
                if (published != tail)
                {
                    tail = before;
                    Renumber(batch.Start, seq);
                }
                guard.LeaveOut();
            }
            if (e != null)
            {
                throw e;
            }
            if (published == batch.Tail)
            {
                guard.Renew();
            }
            return this.limit;
        }

        /// <summary>Makes a batch visible up to where it ends.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        internal uint FlushBatch(in Ahead batch)
        {
            if (guard.IsDead)
            {
                throw Fail(dead);
            }
            CheckAhead(batch.Tail);
            Resume(batch);
            FlushCommitted();
            return guard.Renew();
        }

        /// <summary>The ticket of the batch or slot that is out.</summary>
        internal uint Ticket => guard.Ticket;

        /// <summary>Refuses a position behind what was flushed, which would take published messages back.</summary>
        private void CheckAhead(ulong end)
        {
            if (end - tail > capacity)
            {
                throw new InvalidOperationException("ramway: a copy of a BatchWriter is used that is behind what was flushed");
            }
        }

        private void Resume(in Ahead batch)
        {
            if (batch.Tail != tail)
            {
                tail = batch.Tail;
                lastTag = batch.Tag;
                Renumber(batch.Start, batch.Seq);
            }
        }
    }
}
