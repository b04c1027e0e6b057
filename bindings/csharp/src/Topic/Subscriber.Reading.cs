using System;
using System.Buffers;
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
        /// <summary>Why the last attempt took nothing.</summary>
        private Outcome outcome;
        /// <summary>Where the newest message began that was read before what is out.</summary>
        private ulong seenBefore;

        /// <summary>Takes the next message that is intact as the one that is out.</summary>
        internal bool TakeFirst() => copiesOut ? TakeCopy(0) : TakeInPlace();

        /// <summary>Takes what there is besides the first message of a batch, and gives the batch's ticket.</summary>
        internal uint TakeMore(int max, ref int count)
        {
            int n = count, before = 0;
            // Whatever ends it is found again by the next call, and thrown.
            while (n != before && n < max && (head != tail || CheckTail()))
            {
                if (n == frames.Length)
                {
                    Grow(max);
                }
                before = n;
                n = !copiesOut ? TakeInPlace(n, Math.Min(max, frames.Length)) : TakeCopy(n) ? n + 1 : n;
            }
            count = n;
            return guard.LeaveOut();
        }

        /// <summary>Takes the message where it lies: nobody overwrites it before it is released.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private bool TakeInPlace()
        {
            ulong size = Parse(data + (head & wrap), tail - head, expected, ref frames[0], out ulong seq);
            if (size == 0)
            {
                return false;
            }
            head += size;
            expected = seq + 1;
            return true;
        }

        /// <summary>
        /// The same of several, as numbers from up to below to of what is out; says how far it came. Not inlined, so that its variables
        /// stay in registers: else a batch takes 1.8 times as long.
        /// </summary>
        [MethodImpl(MethodImplOptions.NoInlining)]
        private int TakeInPlace(int from, int to)
        {
            ulong position = head, end = tail, next = expected, step = 0;
            Frame[] all = frames;
            int n = from;
            for (; n < to && position != end; n++)
            {
                ulong size = Parse(data + (position & wrap), end - position, next, ref all[n], out ulong seq);
                if (size == 0)
                {
                    break;
                }
                Step(ref step, size);
                position += step;
                next = seq + 1;
            }
            head = position;
            expected = next;
            return n;
        }

        /// <summary>
        /// Reads a frame that has so many published bytes from it on, and gives its size and number. 0: no correct publisher wrote it.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private ulong Parse(byte* at, ulong published, ulong next, ref Frame frame, out ulong seq)
        {
            // Each number once, as in a ring; in variables of their own, which stay in registers.
            ulong word = Volatile.Read(ref *(ulong*)at), tag = Volatile.Read(ref *(ulong*)(at + 8));
            seq = Volatile.Read(ref *(ulong*)(at + Facts.TopicFrameSeq));
            ulong time = Volatile.Read(ref *(ulong*)(at + Facts.TopicFrameTime));
            ulong length = (uint)word, size = (frameExtra + length) & ~alignMask, gap = seq - next;
            if (size > published || length > Facts.TopicMessageMax || gap > seq || seq == ulong.MaxValue)
            {
                outcome = Outcome.Wrong;
                return 0;
            }
            frame.Data = at + Facts.TopicFrameHeader;
            frame.Tag = tag;
            frame.Length = (int)length;
            frame.TypeId = (uint)(word >> 32);
            frame.Stamp.Seq = seq;
            frame.Stamp.Time = time;
            frame.Stamp.Lost = gap;
            if (gap != 0)
            {
                CountLost(gap);
            }
            return size;
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
            frame.Stamp.Seq = found.Seq;
            frame.Stamp.Time = found.Time;
            frame.Stamp.Lost = found.Seq - expected;
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
                outcome = CopyFrame(index, at, end, expected, out FrameHead found);
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

        /// <summary>
        /// Takes the next message, inside the guard, straight into a buffer if it fits there; false, outside: it does not wait and
        /// there is none.
        /// </summary>
        internal bool TakeTo(Span<byte> buffer, in WaitLimit limit, out bool there)
        {
            there = false;
            bool open = Enter();
            fixed (byte* to = buffer)
            {
                into = to;
                intoRoom = (ulong)buffer.Length;
                try
                {
                    if (!(open && (limit.IsNone ? HasFrameNow() : HasFrame())) && !TakeSlow(limit))
                    {
                        return false;
                    }
                }
                finally
                {
                    into = null;
                }
                there = frames[0].Data == to;
                return true;
            }
        }

        /// <summary>
        /// Receives the next message straight into a writer's room if it fits there. The writer is asked for as much as the message
        /// takes, which another one may have replaced since.
        /// </summary>
        internal Message RecvTo(IBufferWriter<byte> writer, in WaitLimit limit, out bool there)
        {
            int length = LengthOfNext(limit);
            TakeTo(length == 0 ? default : writer.GetSpan(length), limit, out there);
            return new Message(this, guard.LeaveOut(), 0);
        }

        /// <summary>Waits for a message, and gives its length; 0 where it was overwritten meanwhile.</summary>
        private int LengthOfNext(in WaitLimit limit)
        {
            Enter();
            try
            {
                Exception? e = Obtain(limit);
                if (e != null)
                {
                    throw e;
                }
                ulong at = head, end = tail;
                if (policy == Policy.Latest)
                {
                    at = log.LastAndTail(out end);
                }
                return ReadHead(at, end, gates, 0, out FrameHead found) == Outcome.Whole ? (int)found.Length : 0;
            }
            finally
            {
                guard.Leave();
            }
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
        /// Reads the header of the frame at a position, and says whether it was intact. No number of it is used before. kept: as long as
        /// the slot gates, it is. expected: the lowest number that it can have.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private Outcome ReadHead(ulong at, ulong end, bool kept, ulong expected, out FrameHead found)
        {
            if (!Layout.IsTopicPosition(at, align))
            {
                found = default;
                return Outcome.Wrong;
            }
            found = new FrameHead(data + (at & wrap));
            Outcome since = Since(at, kept);
            return since == Outcome.Whole && (!log.IsPlausible(found, end - at) || found.Seq < expected) ? Outcome.Wrong : since;
        }

        /// <summary>
        /// Copies a payload, and says whether the frame at a position was whole until after that. A publisher that writes meanwhile makes
        /// this a mix of old and new bytes, which is thrown away.
        /// </summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        private Outcome CopyOut(ulong at, bool kept, ulong length, byte* to)
        {
            Buffer.MemoryCopy(data + (at & wrap) + Facts.TopicFrameHeader, to, length, length);
            return Since(at, kept);
        }

        /// <summary>
        /// Takes the frame at a position as a copy: in the caller's room if there is one and it fits, else in memory of this handle.
        /// </summary>
        private Outcome CopyFrame(int index, ulong at, ulong end, ulong expected, out FrameHead found)
        {
            bool kept = gates && expected != 0;
            Outcome o = ReadHead(at, end, kept, expected, out found);
            if (o != Outcome.Whole)
            {
                return o;
            }
            byte* to = into;
            if (to == null || found.Length > intoRoom)
            {
                if (index == 0)
                {
                    copies.Clear();
                }
                to = copies.Room((long)found.Length, data + (at & wrap) + Facts.TopicFrameHeader, align);
                if (to == null)
                {
                    return Outcome.NoMemory;
                }
            }
            Describe(index, found, to, expected == 0 ? found.Seq : expected);
            return CopyOut(at, kept, found.Length, to);
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

        /// <summary>
        /// Copies the newest message to the caller's room, or where that is null takes it as a copy. Overtaken: there is none, or it is
        /// overwritten too fast.
        /// </summary>
        private Outcome ReadNewest(byte* to, ulong room, out MessageInfo info)
        {
            for (int i = 0; i < Facts.OvertakenMax; i++)
            {
                ulong at = log.LastAndTail(out ulong end);
                if (at == end)
                {
                    break;
                }
                FrameHead found;
                Outcome o = to == null ? CopyFrame(0, at, end, 0, out found) : ReadHead(at, end, false, 0, out found);
                if (to != null && o == Outcome.Whole)
                {
                    o = found.Length > room ? Outcome.TooLong : CopyOut(at, false, found.Length, to);
                }
                if (o == Outcome.Overtaken)
                {
                    continue;
                }
                if (o != Outcome.Whole && o != Outcome.TooLong)
                {
                    info = default;
                    return o;
                }
                MessageInfo.Of(found, out info);
                if (o == Outcome.Whole && policy == Policy.Latest)
                {
                    // It was seen: a wait is for a newer one.
                    See(at);
                    expected = Math.Max(expected, found.Seq + 1);
                }
                return o;
            }
            info = default;
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
                if (TakeFirst())
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
            burst = moved;
            return true;
        }

        private protected override void StepBack(int count)
        {
            if (policy == Policy.Latest)
            {
                head = released = tail = seenBefore;
            }
            base.StepBack(count);
            expected = frames[0].Stamp.Seq - frames[0].Stamp.Lost;
            for (int i = 0; i < count; i++)
            {
                lost -= frames[i].Stamp.Lost;
            }
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
