using System;
using System.Buffers;
using System.Runtime.CompilerServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>The receiving end of a ring; one per ring, in the whole system.</summary>
    /// <remarks>
    /// A received message is a view of the shared memory, and one message or batch is out at a time: its Dispose gives it back,
    /// and the next receive before that is Busy. If this process is killed before the release, the next receiver gets the message
    /// again.
    /// <para>
    /// A peer that is not trusted can change what a view shows while it is read. <see cref="RecvInto(Span{byte}, out MessageInfo,
    /// TimeSpan?, CancellationToken)"/> copies first.
    /// </para>
    /// <para>
    /// One thread at a time may use it, see <see cref="RingEnd"/>. No call allocates or enters the kernel unless it waits, wakes
    /// somebody who does, or fails. A Receiver that becomes garbage without Dispose is closed.
    /// </para>
    /// <code>
    /// using var receiver = Receiver.Open("ticks");
    /// foreach (Message message in receiver.ReadAll())
    /// {
    ///     total += message.Length;
    /// }
    /// </code>
    /// </remarks>
    public sealed unsafe partial class Receiver : RingEnd
    {
        /// <summary>A message as it lies in the ring, its numbers read once and checked.</summary>
        internal struct Frame
        {
            internal byte* Data;
            internal ulong Tag;
            internal int Length;
            internal uint TypeId;
        }

        // head is where the next frame begins; from released, which the shared word holds, to head is out.
        // Invariant: released <= head <= tail and tail - released <= capacity, wrapping.
        private ulong head, released;
        /// <summary>The shared one as last seen.</summary>
        private ulong tail;
        /// <summary>Where the ring is so empty that a waiting sender is woken: three quarters of it.</summary>
        private readonly ulong wakeBelow;
        /// <summary>The sender's epoch whose close an earlier receiver has seen, or 0: that one is not delivered again.</summary>
        private readonly uint oldClose;
        /// <summary>What is out: one message, or those of the batch.</summary>
        private Frame[] frames = new Frame[1];

        /// <summary>
        /// Takes the consumer's role of an attachment (ABI.md, section 6). After an exception the attachment is still the
        /// caller's.
        /// </summary>
        internal Receiver(Attachment attachment, RingOptions options)
            : base(attachment, Role.Consumer, options)
        {
            wakeBelow = capacity - capacity / 4;
            // Acquire: pairs with the producer's publish, and with the last consumer's release.
            released = head = Volatile.Read(ref ring->Head);
            tail = Volatile.Read(ref ring->Tail);
            if (!Layout.PositionsAgree(tail, head, capacity, (uint)Align))
            {
                throw Fail(ErrorKind.Corrupt);
            }
            attachment.CloseFile();
            uint seen = Volatile.Read(ref mine->CloseSeen);
            if (SenderClosed(out uint closer) && closer == seen)
            {
                oldClose = closer;
            }
            Announce(attachment);
        }

        /// <summary>Gives the next message, and waits for it without a limit.</summary>
        /// <exception cref="RamwayException">
        /// After the last message: Closed if the sender closed, PeerDead if it died (within 200 ms after the kernel let go of its
        /// files). On a named ring both end when a successor attaches, so calling again is meaningful; a sender that never
        /// attached is waited for. Busy, Corrupt, Detached.
        /// </exception>
        public Message Recv()
        {
            uint ticket = EnterOut();
            if (!gate.IsShut && (head != tail || Poll()) && Parse(ref frames[0]))
            {
                return new Message(this, ticket, 0);
            }
            return RecvSlow(null, default);
        }

        /// <summary>
        /// The same, and waits no longer than the time-out (null: without a limit) and until the token is cancelled, which is
        /// looked at only if the call has to wait.
        /// </summary>
        /// <exception cref="RamwayException">As above, and TimedOut.</exception>
        /// <exception cref="OperationCanceledException">The token was cancelled.</exception>
        public Message Recv(TimeSpan? timeout = null, CancellationToken cancellationToken = default)
        {
            Patience.Check(timeout);
            uint ticket = EnterOut();
            if (!gate.IsShut && (head != tail || Poll()) && Parse(ref frames[0]))
            {
                return new Message(this, ticket, 0);
            }
            return RecvSlow(timeout, cancellationToken);
        }

        /// <summary>Receives without waiting; false if there is no message now.</summary>
        /// <exception cref="RamwayException">As for <see cref="Recv()"/>.</exception>
        public bool TryRecv(out Message message)
        {
            uint ticket = EnterOut();
            if (!gate.IsShut && (head != tail || Look()) && Parse(ref frames[0]))
            {
                message = new Message(this, ticket, 0);
                return true;
            }
            if (TryNext())
            {
                message = new Message(this, gate.LeaveOut(), 0);
                return true;
            }
            message = default;
            return false;
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private Message RecvSlow(TimeSpan? timeout, CancellationToken token)
        {
            NextOrThrow(timeout, token);
            return new Message(this, gate.LeaveOut(), 0);
        }

        /// <summary>Takes the next frame out of the ring, inside the gate, or leaves it and throws.</summary>
        private void NextOrThrow(TimeSpan? timeout, CancellationToken token)
        {
            Exception? e;
            gate.Enter();
            try
            {
                e = Next(true, Patience.Of(timeout, token));
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

        /// <summary>Likewise without waiting; false, outside of the gate: there is no message now.</summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private bool TryNext()
        {
            gate.Enter();
            Exception? e = Next(false, Patience.Endless);
            if (e == null)
            {
                return true;
            }
            LeaveEmpty();
            return e == NotNow ? false : throw e;
        }

        /// <summary>Takes the next frame out of the ring, into the first of the frames.</summary>
        private Exception? Next(bool patient, in Patience patience)
        {
            if (gate.IsShut)
            {
                return Refused();
            }
            if (!Ready(out Exception? e))
            {
                e ??= patient ? Until(patience) : Glance();
            }
            if (e != null)
            {
                return Ending(e);
            }
            return Parse(ref frames[0]) ? null : Corrupt();
        }

        /// <summary>
        /// The first looks of a wait, which cost less than the general wait: an answer that comes within a microsecond is found
        /// here. False: nothing came, or what came is wrong, which <see cref="Next"/> finds out.
        /// </summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private bool Poll()
        {
            ulong now = Volatile.Read(ref ring->Tail);
            if (now == tail && wait.Near > 0)
            {
                Cpu.Pauses();
                for (int looks = wait.Near; ; looks--)
                {
                    now = Volatile.Read(ref ring->Tail);
                    if (now != tail || looks == 0)
                    {
                        break;
                    }
                    Cpu.Pause();
                }
            }
            return now != tail && Believe(now);
        }

        /// <summary>One look.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool Look()
        {
            ulong now = Volatile.Read(ref ring->Tail);
            return now != tail && Believe(now);
        }

        /// <summary>
        /// Checks a shared tail that moved, once, and takes it: it may only move forward, up to released + capacity, in whole
        /// alignment steps.
        /// </summary>
        private bool Believe(ulong now)
        {
            ulong moved = now - tail;
            if (moved > capacity - (tail - released) || (moved & alignMask) != 0)
            {
                return false;
            }
            tail = now;
            return true;
        }

        /// <summary>
        /// Reads the frame at head, which lies before tail, and steps over it. False: no correct sender wrote it.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool Parse(ref Frame frame)
        {
            // A frame's first 16 bytes are within the published bytes, which are a positive multiple of align; and aligned.
            byte* at = data + (head & wrap);
            // Each number is read exactly once, so that a peer that rewrites it cannot pass the check with one value and be used
            // with another.
            ulong word = Volatile.Read(ref *(ulong*)at), tag = Volatile.Read(ref *(ulong*)(at + 8));
            ulong length = (uint)word, size = (Layout.FrameHeader + length + alignMask) & ~alignMask;
            if (size > tail - head || length > Layout.MessageMax)
            {
                return false;
            }
            head += size;
            frame.Data = at + Layout.FrameHeader;
            frame.Tag = tag;
            frame.Length = (int)length;
            frame.TypeId = (uint)(word >> 32);
            return true;
        }

        /// <summary>A frame that is out; the caller has asked <see cref="RingEnd.Holds"/>.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal ref readonly Frame FrameAt(int index) => ref frames[index];

        /// <summary>
        /// Releases every frame that is out, and wakes the sender if it sleeps and a quarter of the ring is free or the ring is
        /// drained. (Otherwise the wake-up is put off, not dropped: one of the two comes true before this side can find the ring
        /// empty, and a close wakes in any case.)
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void GiveBack()
        {
            ulong end = head;
            // Release: our reads of the frames go before the position that lets the sender overwrite them.
            Publish(&ring->Head, end);
            released = end;
            // By the tail last seen, which may be behind: then this says "free" too often, never too rarely.
            if (tail - end <= wakeBelow && PeerStirs())
            {
                Stirred();
            }
        }

        /// <summary>Ends what is out by this ticket, in any state of the handle; once, then it does nothing.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal void Release(uint ticket)
        {
            if (!gate.Holds(ticket))
            {
                return;
            }
            // Nobody unmaps while something is out.
            if (gate.IsShut)
            {
                ReleaseShut();
            }
            else
            {
                GiveBack();
            }
            gate.End(ticket);
            if (gate.IsShut)
            {
                FinishClose();
            }
        }

        /// <summary>Ends what is out by this ticket without releasing it: the next receive gives it again.</summary>
        internal void PutBack(uint ticket)
        {
            if (gate.Holds(ticket))
            {
                head = released;
                gate.End(ticket);
                if (gate.IsShut)
                {
                    FinishClose();
                }
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private void ReleaseShut()
        {
            if (gate.IsDead)
            {
                // Not published by a dead handle.
                head = released;
            }
            else
            {
                GiveBack();
            }
        }

        private protected override ulong* Position(out ulong seen)
        {
            seen = tail;
            return &ring->Tail;
        }

        private protected override bool Ready(out Exception? e)
        {
            e = null;
            if (head != tail)
            {
                return true;
            }
            ulong now = Volatile.Read(ref ring->Tail);
            if (now == tail)
            {
                return false;
            }
            if (!Believe(now))
            {
                e = Corrupt();
                return false;
            }
            return true;
        }

        /// <summary>
        /// What a receive that does not wait does where nothing is there: the closed flag every time, system calls for the
        /// sender's life every 100 ms.
        /// </summary>
        private Exception? Glance() => Decide(Moment(), out Exception? e) ? null : e ?? NotNow;

        private protected override RamwayException? Ended(bool look)
        {
            uint epoch = Volatile.Read(ref peer->Epoch);
            if (PeerClosed())
            {
                return Over(ErrorKind.Closed, epoch);
            }
            return look ? Life(epoch, !final && (epoch == 0 || epoch == oldClose)) : null;
        }

        private protected override bool PeerClosed()
        {
            uint epoch = Volatile.Read(ref peer->Epoch);
            return epoch != 0 && (final || epoch != oldClose) && (Volatile.Read(ref peer->Flags) & Layout.RoleClosed) != 0;
        }

        /// <summary>Records an end that is about to be returned.</summary>
        private Exception Ending(Exception e)
        {
            if (!(e is RamwayException end) || end.Kind != ErrorKind.Closed && end.Kind != ErrorKind.PeerDead)
            {
                return e;
            }
            if (end.Kind == ErrorKind.Closed && SenderClosed(out uint epoch))
            {
                // Release: whoever sees this close as delivered sees head where it was when it was.
                Volatile.Write(ref mine->CloseSeen, epoch);
            }
            if (final)
            {
                Die(end.Kind);
            }
            return e;
        }

        /// <summary>
        /// Whether the sender has closed, and its epoch: the closer's only if it is the same before and after its flag was seen.
        /// </summary>
        private bool SenderClosed(out uint epoch)
        {
            epoch = Volatile.Read(ref peer->Epoch);
            return (Volatile.Read(ref peer->Flags) & Layout.RoleClosed) != 0 && Volatile.Read(ref peer->Epoch) == epoch;
        }

        /// <summary>
        /// How many bytes, frame headers and padding included, are published and not released. It may have changed when it
        /// returns. 0 once the handle is closed.
        /// </summary>
        public long PendingBytes
        {
            get
            {
                bool wasOut = EnterBeside();
                // Clamped, because the peer could write anything.
                long bytes = gate.IsClosed ? 0 : (long)Math.Min(Volatile.Read(ref ring->Tail) - released, capacity);
                LeaveBeside(wasOut);
                return bytes;
            }
        }

        /// <summary>
        /// Nothing more will be received: a sender that waits for room must not wait for the end of a message that is kept.
        /// </summary>
        private protected override void CloseBeside() => AnnounceClose();

        private protected override void LetGo(bool abandoned, bool keepMapped)
        {
            AnnounceClose();
            Finish(keepMapped);
        }
    }
}
