using System;
using System.Runtime.CompilerServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    // How a subscriber reads under each policy (ABI.md, section 19).
    public sealed unsafe partial class Subscriber
    {
        /// <summary>What an attempt to take a frame came to.</summary>
        private enum Outcome : byte
        {
            None,
            Whole,
            Overtaken,
            Ejected,
            /// <summary>No correct publisher wrote this.</summary>
            Wrong,
            /// <summary>For the caller's buffer.</summary>
            TooLong,
            NoMemory,
        }

        private readonly Copies copies = new Copies();
        /// <summary>The caller's buffer, which the next message is copied to if it fits; null: to the copies.</summary>
        private byte* into;
        private ulong intoRoom;
        /// <summary>Those of what is out, in the order of the frames; as long as those.</summary>
        private MessageStamp[] stamps = new MessageStamp[1];
        /// <summary>Why the last attempt took nothing.</summary>
        private Outcome outcome;
        // As it was before what is out was taken.
        private ulong expectedBefore, lostBefore, seenBefore;

        internal MessageStamp StampOf(int index) => stamps[index];

        internal void GrowStamps(int length) => Array.Resize(ref stamps, length);

        /// <summary>Takes the next message that is intact, as number index of what is out.</summary>
        internal bool TakeAt(int index)
        {
            if (index == 0)
            {
                expectedBefore = expected;
                lostBefore = lost;
            }
            return copiesOut ? TakeCopy(index) : TakeInPlace(index);
        }

        /// <summary>Takes what there is besides the first message of a batch, and gives the batch's ticket.</summary>
        internal uint TakeMore(int max, ref int count)
        {
            int n = count;
            // Whatever ends it is found again by the next call, and thrown.
            while (n < max && (head != tail || CheckTail()))
            {
                if (n == frames.Length)
                {
                    Grow(max);
                }
                if (!(copiesOut ? TakeCopy(n) : TakeInPlace(n)))
                {
                    break;
                }
                n++;
            }
            count = n;
            return guard.LeaveOut();
        }

        /// <summary>The message where it lies: nobody overwrites it before it is released.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool TakeInPlace(int index)
        {
            byte* at = data + (head & wrap);
            // Each number once, as in a ring; in variables of their own, which stay in registers.
            ulong word = Volatile.Read(ref *(ulong*)at), tag = Volatile.Read(ref *(ulong*)(at + 8));
            ulong seq = Volatile.Read(ref *(ulong*)(at + Facts.TopicFrameSeq));
            ulong time = Volatile.Read(ref *(ulong*)(at + Facts.TopicFrameTime));
            ulong length = (uint)word, size = (frameExtra + length) & ~alignMask, gap = seq - expected;
            if (size > tail - head || length > Facts.TopicMessageMax || gap > seq || seq == ulong.MaxValue)
            {
                outcome = Outcome.Wrong;
                return false;
            }
            head += size;
            ref Frame frame = ref frames[index];
            frame.Data = at + Facts.TopicFrameHeader;
            frame.Tag = tag;
            frame.Length = (int)length;
            frame.TypeId = (uint)(word >> 32);
            ref MessageStamp stamp = ref stamps[index];
            stamp.Seq = seq;
            stamp.Time = time;
            stamp.Lost = gap;
            expected = seq + 1;
            if (gap != 0)
            {
                CountLost(gap);
            }
            return true;
        }

        /// <summary>Says what the frame is.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void Describe(int index, in FrameHead found, byte* payload, ulong expected)
        {
            ref Frame frame = ref frames[index];
            frame.Data = payload;
            frame.Tag = found.Tag;
            frame.Length = (int)found.Length;
            frame.TypeId = found.TypeId;
            stamps[index] = new MessageStamp(found.Seq, found.Time, found.Seq - expected);
        }

        /// <summary>Expects what follows the message taken last, and counts what was lost before it.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private void MoveOn(ulong seq)
        {
            ulong gap = seq - expected;
            expected = seq + 1;
            if (gap != 0)
            {
                CountLost(gap);
            }
        }

        private void CountLost(ulong gap)
        {
            lost += gap;
            if (slot != null)
            {
                // For those who watch.
                Volatile.Write(ref slot->Lost, lost);
            }
        }

        /// <summary>The message as a copy, which was whole until after it was made.</summary>
        private bool TakeCopy(int index)
        {
            if (policy == Policy.Latest && index > 0)
            {
                return false;
            }
            for (int i = 0; i < Facts.OvertakenMax; i++)
            {
                ulong at = head, end = tail;
                if (policy == Policy.Latest)
                {
                    at = log.LastAndTail(out end);
                }
                outcome = CopyFrame(index, at, end, expected, into, intoRoom, out FrameHead found);
                if (outcome == Outcome.Whole)
                {
                    if (policy == Policy.Latest)
                    {
                        See(at);
                    }
                    else
                    {
                        head = at + log.SizeOf(found);
                    }
                    MoveOn(found.Seq);
                    return true;
                }
                if (outcome != Outcome.Overtaken || policy != Policy.Latest && !Resume())
                {
                    return false;
                }
            }
            return false;
        }

        /// <summary>Whether messages are copied as they come: then also to the caller's buffer at once.</summary>
        internal bool CopiesOut => copiesOut;

        /// <summary>Takes the next message straight into a buffer; false where it does not wait and there is none.</summary>
        internal bool TakeInto(Span<byte> buffer, in WaitLimit limit, out MessageInfo info)
        {
            bool open = Enter();
            fixed (byte* to = buffer)
            {
                into = to;
                intoRoom = (ulong)buffer.Length;
                bool taken;
                try
                {
                    taken = open && HasFrame() || TakeSlow(limit);
                }
                finally
                {
                    into = null;
                }
                if (!taken)
                {
                    info = default;
                    return false;
                }
                if (frames[0].Data == to)
                {
                    info = new MessageInfo(frames[0], stamps[0]);
                    GiveBack();
                    guard.Leave();
                    return true;
                }
            }
            Copy(buffer, out info);
            return true;
        }

        /// <summary>Where the message begins that was read last as the newest.</summary>
        private void See(ulong at)
        {
            seenBefore = tail;
            head = released = tail = at;
        }

        /// <summary>
        /// Goes on at a frame that is intact, with half of the capacity to spare: at the very oldest it would be overtaken again at once.
        /// What lies before it was overwritten; its number tells how many. False: there is none yet, or something is wrong.
        /// </summary>
        private bool Resume()
        {
            ulong next = log.Oldest(capacity / Facts.ResumeFraction, out ulong end), moved = end - tail;
            if (next == end)
            {
                ulong last = Volatile.Read(ref log.Block->Last);
                next = Layout.IsTopicPosition(last, align) && end - last <= capacity ? last : next;
            }
            if (moved >> 63 != 0 || (moved & alignMask) != 0)
            {
                outcome = Outcome.Wrong;
                return false;
            }
            // Never back.
            next = (next - head) >> 63 != 0 ? head : next;
            released = released == head ? next : released;
            head = next;
            tail = end;
            return head != tail;
        }

        /// <summary>
        /// Copies the frame at a position to the caller's room, or where that is null or too small to the copies, and says whether it was
        /// whole until after that. No number of it is used before it was found intact. expected: 0 for the newest, of which is said what
        /// it is where it does not fit.
        /// </summary>
        private Outcome CopyFrame(int index, ulong at, ulong end, ulong expected, byte* to, ulong room, out FrameHead found)
        {
            if (!Layout.IsTopicPosition(at, align))
            {
                found = default;
                return Outcome.Wrong;
            }
            byte* frame = data + (at & wrap);
            found = new FrameHead(frame);
            bool kept = gates && expected != 0;
            Outcome since = Since(at, kept);
            if (since != Outcome.Whole)
            {
                return since;
            }
            if (!log.IsPlausible(found, end - at) || found.Seq < expected)
            {
                return Outcome.Wrong;
            }
            byte* payload = frame + Facts.TopicFrameHeader;
            bool newestInto = to != null && expected == 0;
            if (to == null || found.Length > room)
            {
                if (newestInto)
                {
                    return Outcome.TooLong;
                }
                if (index == 0)
                {
                    copies.Clear();
                }
                to = copies.Room((long)found.Length, payload, align);
                if (to == null)
                {
                    return Outcome.NoMemory;
                }
            }
            if (!newestInto)
            {
                Describe(index, found, to, expected == 0 ? found.Seq : expected);
            }
            // A publisher that writes meanwhile makes this a mix of old and new bytes, which the check below throws away.
            Buffer.MemoryCopy(payload, to, found.Length, found.Length);
            return Since(at, kept);
        }

        /// <summary>Whether what was read at a position is still intact; kept: as long as the slot gates, it is.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private Outcome Since(ulong at, bool kept)
        {
            Cpu.LoadFence();
            if (kept)
            {
                return (Volatile.Read(ref slot->State) & Facts.SlotEjected) != 0 ? Outcome.Ejected : Outcome.Whole;
            }
            return Volatile.Read(ref log.Block->Claim) - at > capacity ? Outcome.Overtaken : Outcome.Whole;
        }

        private bool IsEjected => gates && copiesOut && Since(0, true) == Outcome.Ejected;

        /// <summary>Copies the newest message. Overtaken: there is none, or it is overwritten too fast.</summary>
        private Outcome ReadNewest(byte* to, ulong room, out MessageInfo info)
        {
            info = default;
            for (int i = 0; i < Facts.OvertakenMax; i++)
            {
                ulong at = log.LastAndTail(out ulong end);
                if (at == end)
                {
                    return Outcome.Overtaken;
                }
                Outcome o = CopyFrame(0, at, end, 0, to, room, out FrameHead found);
                if (o == Outcome.Overtaken)
                {
                    continue;
                }
                if (o == Outcome.Whole || o == Outcome.TooLong)
                {
                    info = new MessageInfo(found);
                }
                if (o == Outcome.Whole && policy == Policy.Latest)
                {
                    // It was seen: a wait is for a newer one.
                    See(at);
                    expected = Math.Max(expected, found.Seq + 1);
                }
                return o;
            }
            return Outcome.Overtaken;
        }

        /// <summary>The error of an attempt that is not made again.</summary>
        private RamwayException Untakeable(Outcome o) => o switch
        {
            Outcome.TooLong => Fail(ErrorKind.TooLarge, "the newest message does not fit into the buffer; it is still there"),
            Outcome.NoMemory => Fail(ErrorKind.NoSpace, "there is no memory for a copy of the message; it is still there"),
            _ => Corrupt(),
        };

        private protected override Exception? Untaken()
        {
            switch (outcome)
            {
                case Outcome.Overtaken:
                    return null;
                case Outcome.Ejected:
                    return Rejoin();
                default:
                    return Untakeable(outcome);
            }
        }

        /// <summary>Begins anew after having been ejected, at the oldest message that it has not received; nothing is out.</summary>
        private Exception? Rejoin()
        {
            try
            {
                join.Rejoin(expected);
            }
            catch (RamwayException)
            {
                return Corrupt();
            }
            head = released = tail = join.Cursor;
            expected = join.Expected;
            laggedBy = join.Lost;
            lagged = true;
            if (laggedBy != 0)
            {
                CountLost(laggedBy);
            }
            return null;
        }

        private RamwayException Lagging()
        {
            lagged = false;
            RamwayException e = Fail(ErrorKind.Lagged, null);
            e.Lost = laggedBy;
            return e;
        }

        private protected override Exception? Take(in WaitLimit limit)
        {
            for (;;)
            {
                Exception? e = Obtain(limit);
                if (e != null)
                {
                    return e;
                }
                if (TakeAt(0))
                {
                    return null;
                }
                e = Untaken();
                if (e == null && outcome == Outcome.Overtaken)
                {
                    // Faster than this side can read, or writing what no publisher writes. There is something all the time, so no
                    // wait finds out that this one is called off.
                    e = limit.IsNone ? NotNow : CalledOff(limit);
                    Thread.Yield();
                }
                if (e != null)
                {
                    return e;
                }
            }
        }

        /// <summary>What is polled while waiting.</summary>
        private protected override ulong* Position(out ulong seen)
        {
            // Before the first message was read as the newest, whatever stands there now.
            seen = tail == Facts.NoPosition ? Volatile.Read(ref *tailWord) : tail;
            return tailWord;
        }

        private protected override Exception? Ready()
        {
            if (lagged)
            {
                return Lagging();
            }
            if (head != tail)
            {
                return null;
            }
            ulong now = Volatile.Read(ref *tailWord);
            if (now == tail)
            {
                return NotNow;
            }
            if (IsEjected)
            {
                return Rejoin() ?? Lagging();
            }
            return AcceptTopic(now) ? null : policy == Policy.Latest ? NotNow : Corrupt();
        }

        /// <summary>Takes a shared position that has moved, if there is something to receive and it can be so.</summary>
        internal bool AcceptTopic(ulong now)
        {
            if (lagged)
            {
                return false;
            }
            if (policy == Policy.Latest)
            {
                // Acquire, after last: tail is not older. Equal: there is no message yet.
                return now != Volatile.Read(ref log.Block->Tail);
            }
            if (gates)
            {
                return !IsEjected && AcceptTail(now);
            }
            // A lossy one may be any number of laps behind.
            ulong moved = now - tail;
            if (moved >> 63 != 0 || (moved & alignMask) != 0)
            {
                return false;
            }
            tail = now;
            return true;
        }

        private protected override void StepBack()
        {
            if (policy == Policy.Latest)
            {
                head = released = tail = seenBefore;
            }
            base.StepBack();
            expected = expectedBefore;
            lost = lostBefore;
        }

        private protected override ulong Unread()
        {
            ulong last = log.LastAndTail(out ulong end);
            return policy != Policy.Latest ? end - released : last == tail ? 0 : end - last;
        }

        internal override byte* WritableAt(int index)
        {
            ref Frame frame = ref frames[index];
            if (frame.Data >= data && frame.Data < data + 2 * capacity)
            {
                copies.Clear();
                byte* to = copies.Room(frame.Length, frame.Data, align);
                if (to == null)
                {
                    throw new OutOfMemoryException("ramway: no memory for a copy of a message");
                }
                Buffer.MemoryCopy(frame.Data, to, frame.Length, frame.Length);
                frame.Data = to;
            }
            return frame.Data;
        }
    }
}
