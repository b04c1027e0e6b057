using System;
using System.Runtime.CompilerServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>The sending end of a ring; one per ring, in the whole system.</summary>
    /// <remarks>
    /// A message is visible to the receiver when the call that sends it returns, and is delivered even if this process is killed
    /// right after. No call allocates or enters the kernel unless it waits, wakes somebody who does, or fails.
    /// <para>
    /// One thread at a time may use it, see <see cref="RingEnd"/>. A Sender that becomes garbage without Dispose is closed, after
    /// what was committed has been flushed; at the end of the process it is not: then the receiver is told PeerDead.
    /// </para>
    /// <code>
    /// using var sender = Sender.Create("ticks", new RingOptions { Capacity = 1 &lt;&lt; 20 });
    /// sender.Send(7, payload);
    /// </code>
    /// </remarks>
    public sealed unsafe partial class Sender : RingEnd
    {
        /// <summary>No frame ends here, because positions are multiples of 16.</summary>
        private const ulong NoMark = 1;

        // tail is the end of the last committed frame, published the shared word: what was flushed.
        // Invariant: published <= tail and tail - head <= capacity, wrapping.
        private ulong tail, published;
        /// <summary>How far tail may go: the shared head as last seen, and a capacity.</summary>
        private ulong limit;
        /// <summary>The last committed frame's.</summary>
        private ulong lastTag;
        /// <summary>What a wait is for, in bytes.</summary>
        private ulong need;
        /// <summary>Which of the two marks is written next.</summary>
        private int mark;

        /// <summary>
        /// Takes the producer's role of an attachment (ABI.md, section 6). After an exception the attachment is still the
        /// caller's.
        /// </summary>
        internal Sender(Attachment attachment, RingOptions options)
            : base(attachment, Role.Producer, options)
        {
            // Acquire: pairs with the last producer's publish and the consumer's release.
            published = tail = Volatile.Read(ref ring->Tail);
            ulong head = Volatile.Read(ref ring->Head);
            limit = head + capacity;
            if (!Layout.PositionsAgree(tail, head, capacity, (uint)Align))
            {
                throw Fail(ErrorKind.Corrupt);
            }
            // Overwrite the mark that is not the last frame's, and forget one that a kill left ahead of tail: the next frame may
            // end right there.
            for (int i = 0; i < 2; i++)
            {
                if (Volatile.Read(ref MarkAt(i)->End) != tail)
                {
                    Volatile.Write(ref MarkAt(i)->End, NoMark);
                }
                else if (i == 0)
                {
                    mark = 1;
                }
            }
            attachment.CloseFile();
            Announce(attachment);
        }

        /// <summary>
        /// Sends a message, and waits for room without a limit. typeId is the application's, below 0xFFFF0000. What was
        /// committed unflushed goes first. After an exception nothing of this message was sent.
        /// </summary>
        /// <exception cref="RamwayException">
        /// TooLarge for more than <see cref="RingEnd.MaxMessageLength"/> bytes, InvalidArgument for a reserved typeId, Closed or
        /// PeerDead if there is no room and nobody left to make any (on a bus Closed as soon as the peer closed), Busy while a
        /// slot is open, Corrupt, Detached.
        /// </exception>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        public void Send(uint typeId, ReadOnlySpan<byte> data) => Send(typeId, 0, data);

        /// <summary>
        /// The same with a tag: a correlation id, a time stamp, a key. <see cref="LastTag"/> gives the last one back after a
        /// restart.
        /// </summary>
        public void Send(uint typeId, ulong tag, ReadOnlySpan<byte> data)
        {
            if (!Enter() || typeId >= Layout.TypeIdReserved || !Fits((uint)data.Length))
            {
                MakeRoomOrThrow(typeId, data.Length, null, default);
            }
            Put(typeId, data, tag);
        }

        /// <summary>
        /// The same, and waits for room no longer than the time-out (null: without a limit) and until the token is cancelled,
        /// which is looked at only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void Send(uint typeId, ReadOnlySpan<byte> data, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default) => Send(typeId, 0, data, timeout, cancellationToken);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public void Send(uint typeId, ulong tag, ReadOnlySpan<byte> data, TimeSpan? timeout = null,
            CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            if (!Enter() || typeId >= Layout.TypeIdReserved || !Fits((uint)data.Length))
            {
                MakeRoomOrThrow(typeId, data.Length, timeout, cancellationToken);
            }
            Put(typeId, data, tag);
        }

        /// <summary>
        /// Sends without waiting; false if there is no room now. Closed and PeerDead where there never will be any, as for Send.
        /// </summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        public bool TrySend(uint typeId, ReadOnlySpan<byte> data) => TrySend(typeId, 0, data);

        /// <summary>The same with a tag.</summary>
        /// <exception cref="RamwayException">As for Send.</exception>
        public bool TrySend(uint typeId, ulong tag, ReadOnlySpan<byte> data)
        {
            if ((!Enter() || typeId >= Layout.TypeIdReserved || !Fits((uint)data.Length)) &&
                !TryMakeRoom(typeId, data.Length))
            {
                return false;
            }
            Put(typeId, data, tag);
            return true;
        }

        /// <summary>Sends what there is room for, and leaves the gate.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void Put(uint typeId, ReadOnlySpan<byte> data, ulong tag)
        {
            data.CopyTo(new Span<byte>(Payload, data.Length));
            Commit((uint)data.Length, typeId, tag);
            FlushCommitted();
            gate.Leave();
        }

        /// <summary>
        /// Whether a payload of so many bytes can be written right now: the peer's flags are as last acted upon, and there is room
        /// by the position last seen.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal bool Fits(uint length) =>
            length <= maxLength && FrameSize(length) <= limit - tail && Volatile.Read(ref peer->Flags) == peerFlags;

        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private ulong FrameSize(ulong length) => (Layout.FrameHeader + length + alignMask) & ~alignMask;

        /// <summary>Makes room inside the gate, or leaves it and throws.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private void MakeRoomOrThrow(uint typeId, int length, TimeSpan? timeout, CancellationToken token)
        {
            Exception? e;
            gate.Enter();
            try
            {
                e = MakeRoom(typeId, length, true, Patience.Of(timeout, token));
            }
            catch
            {
                LeaveEmpty();
                throw;
            }
            if (e != null)
            {
                LeaveEmpty();
                throw e;
            }
        }

        /// <summary>Likewise without waiting; false, outside of the gate: there is no room now.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private bool TryMakeRoom(uint typeId, int length)
        {
            gate.Enter();
            Exception? e = MakeRoom(typeId, length, false, Patience.Endless);
            if (e == null)
            {
                return true;
            }
            LeaveEmpty();
            return e == NotNow ? false : throw e;
        }

        /// <summary>What there is to do where <see cref="Fits"/> said no, or the error there is to give.</summary>
        private Exception? MakeRoom(uint typeId, int length, bool patient, in Patience patience)
        {
            if (gate.IsShut)
            {
                return Refused();
            }
            if (length < 0)
            {
                return Fail(ErrorKind.InvalidArgument, "a message of " + length + " bytes");
            }
            if (typeId >= Layout.TypeIdReserved)
            {
                return ReservedType(typeId);
            }
            if (Volatile.Read(ref peer->Flags) != peerFlags)
            {
                PeerChanged();
                if (gate.IsShut)
                {
                    return Refused();
                }
            }
            if ((uint)length > maxLength)
            {
                return Fail(ErrorKind.TooLarge, "a message of " + length + " bytes can never fit: this ring of " + capacity +
                    " bytes takes at most " + maxLength + "; create it with a larger capacity or cut the message");
            }
            need = FrameSize((uint)length);
            if (Ready(out Exception? e) || e != null)
            {
                return e;
            }
            FlushCommitted();
            if (patient)
            {
                return Ending(Until(patience));
            }
            // The closed flag every time, system calls for the receiver's life every 100 ms.
            return Decide(Moment(), out e) ? null : Ending(e) ?? NotNow;
        }

        /// <summary>Records an end that is about to be returned.</summary>
        internal Exception? Ending(Exception? e)
        {
            if (final && e is RamwayException end && (end.Kind == ErrorKind.Closed || end.Kind == ErrorKind.PeerDead))
            {
                Die(end.Kind);
            }
            return e;
        }

        private RamwayException ReservedType(uint typeId) => Fail(ErrorKind.InvalidArgument,
            "type id 0x" + typeId.ToString("x") + " is Ramway's own: applications use ids below 0xffff0000");

        /// <summary>
        /// Where the next frame's payload goes, which fits: inside the mirrored 2 * capacity bytes, and nobody else's before they
        /// are published.
        /// </summary>
        internal byte* Payload
        {
            [MethodImpl(MethodImplOptions.AggressiveInlining)]
            get => data + (tail & wrap) + Layout.FrameHeader;
        }

        /// <summary>Makes so many bytes a message, not yet visible to the receiver.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void Commit(uint length, uint typeId, ulong tag)
        {
            ulong* frame = (ulong*)(data + (tail & wrap));
            // Plain stores: nobody reads them before tail is published.
            frame[0] = length | (ulong)typeId << 32;
            frame[1] = tag;
            if (lastTag != tag)
            {
                lastTag = tag;
            }
            tail += FrameSize(length);
        }

        /// <summary>Makes everything committed visible, and wakes the receiver if it sleeps.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void FlushCommitted()
        {
            ulong end = tail;
            if (end == published)
            {
                return;
            }
            if (lastTag != 0)
            {
                // No mark says "0".
                WriteMark();
            }
            Publish(&ring->Tail, end);
            published = end;
            if (PeerStirs())
            {
                Stirred();
            }
        }

        /// <summary>
        /// A kill between any two of the stores leaves this mark not matching tail, and the other one matching if it did. Only a
        /// later sender reads marks, after the role has passed to it. Volatile: in this order.
        /// </summary>
        private void WriteMark()
        {
            Mark* at = MarkAt(mark);
            mark ^= 1;
            Volatile.Write(ref at->End, tail);
            Volatile.Write(ref at->Tag, lastTag);
        }

        private Mark* MarkAt(int i) => i == 0 ? &ring->Mark0 : &ring->Mark1;

        private protected override ulong* Position(out ulong seen)
        {
            seen = limit - capacity;
            return &ring->Head;
        }

        /// <summary>
        /// Whether the bytes needed are free, after a look at the shared position. It is checked here, once, before it is
        /// believed: it may only move forward, up to what was published, in whole alignment steps.
        /// </summary>
        private protected override bool Ready(out Exception? e)
        {
            // Acquire: the consumer's last reads of the space it gave back come before our writes to it.
            ulong now = Volatile.Read(ref ring->Head), head = limit - capacity, moved = now - head;
            if (moved > published - head || (moved & alignMask) != 0)
            {
                e = Corrupt();
                return false;
            }
            limit = now + capacity;
            e = null;
            return need <= limit - tail;
        }

        private protected override RamwayException? Ended(bool look)
        {
            uint epoch = Volatile.Read(ref peer->Epoch);
            if (PeerClosed())
            {
                return Over(ErrorKind.Closed, epoch);
            }
            return look ? Life(epoch, !final && epoch == 0) : null;
        }

        private protected override void BeforeSeeking() => FlushCommitted();

        private protected override bool PeerClosed() =>
            (Volatile.Read(ref peer->Flags) & Layout.RoleClosed) != 0 && Volatile.Read(ref peer->Epoch) != 0;

        /// <summary>Makes every <see cref="Slot.CommitUnflushed(uint, ulong)"/> so far visible. Never waits.</summary>
        /// <exception cref="RamwayException">Detached, or what the handle is dead of.</exception>
        public void Flush()
        {
            bool wasOut = EnterBeside();
            RamwayException? e = gate.IsShut ? Refused() : null;
            if (e == null)
            {
                FlushCommitted();
            }
            LeaveBeside(wasOut);
            if (e != null)
            {
                throw e;
            }
        }

        /// <summary>
        /// The tag of the last message that is visible to receivers (0 if it was sent without one), by whichever sender of this
        /// ring; null before the first, and once the handle is closed. A restarted producer asks this where to go on.
        /// </summary>
        public ulong? LastTag
        {
            get
            {
                bool wasOut = EnterBeside();
                ulong? found = gate.IsClosed || published == Layout.FirstPosition((uint)Align) ? (ulong?)null : 0;
                for (int i = 0; found.HasValue && i < 2; i++)
                {
                    if (Volatile.Read(ref MarkAt(i)->End) == published)
                    {
                        found = Volatile.Read(ref MarkAt(i)->Tag);
                        break;
                    }
                }
                LeaveBeside(wasOut);
                return found;
            }
        }

        /// <summary>
        /// How many bytes, frame headers and padding included, the receiver has not released; what is committed but not flushed
        /// counts. It may have changed when it returns. 0 once the handle is closed.
        /// </summary>
        public long PendingBytes
        {
            get
            {
                bool wasOut = EnterBeside();
                // Clamped, because the peer could write anything.
                long bytes = gate.IsClosed ? 0 : (long)Math.Min(tail - Volatile.Read(ref ring->Head), capacity);
                LeaveBeside(wasOut);
                return bytes;
            }
        }

        /// <summary>
        /// Gives the role up without telling the receiver that this was all: it is told PeerDead, as if this process had been
        /// killed, so that half a stream does not pass for a whole one. What was committed is delivered; an open slot is not. On
        /// a pair (<see cref="Ring.Pair"/>) this is Dispose, because there only a close tells. Unlike Dispose it is for the thread that
        /// uses the sender: a slot of another thread would lose its memory.
        /// </summary>
        public void Abandon() => ShutDown(false, true);

        private protected override void LetGo(bool abandoned, bool keepMapped)
        {
            if (!gate.IsDead)
            {
                FlushCommitted();
            }
            if (!abandoned || OnlyCloseTells)
            {
                AnnounceClose();
            }
            Finish(keepMapped);
        }
    }
}
