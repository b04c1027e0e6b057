using System;
using System.Runtime.CompilerServices;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What precedes a payload of a topic, each number read once.</summary>
    internal readonly unsafe struct FrameHead
    {
        internal readonly ulong Length, Tag, Seq, Time;
        internal readonly uint TypeId;

        /// <summary>Each load is an acquire: what is loaded after it is not older.</summary>
        [MethodImpl(MethodImplOptions.AggressiveInlining)]
        internal FrameHead(byte* at)
        {
            ulong word = Volatile.Read(ref *(ulong*)at);
            Length = (uint)word;
            TypeId = (uint)(word >> 32);
            Tag = Volatile.Read(ref *(ulong*)(at + 8));
            Seq = Volatile.Read(ref *(ulong*)(at + Facts.TopicFrameSeq));
            Time = Volatile.Read(ref *(ulong*)(at + Facts.TopicFrameTime));
        }
    }

    /// <summary>A mapped topic, and what both of its sides read in it (ABI.md, section 19).</summary>
    internal sealed unsafe class TopicLog
    {
        /// <summary>How often something is read again before it is taken for the work of no correct publisher.</summary>
        internal const int Attempts = 100_000;

        internal readonly TopicBlock* Block;
        internal readonly SubscribersArea* Area;
        internal readonly SubscriberSlot* Slots;
        internal readonly Geometry Geometry;
        internal readonly SegmentLink Link;
        private readonly byte* data;
        private readonly ulong capacity;
        private readonly uint align;

        internal TopicLog(Attachment attachment)
        {
            Block = attachment.Topic;
            Area = attachment.Area;
            Slots = attachment.Slots;
            Geometry = attachment.Geometry;
            // Topics have names, so this is what ties a handle to them.
            Link = (SegmentLink)attachment.Link;
            data = attachment.Data;
            capacity = attachment.Capacity;
            align = attachment.Align;
        }

        internal bool LossyOnly => (Geometry.Flags & Facts.TopicLossyOnly) != 0;

        internal bool MayEject => (Geometry.Flags & Facts.TopicMayEject) != 0;

        /// <summary>The subscribers' word.</summary>
        internal ulong Word => (ulong)Volatile.Read(ref Area->Word);

        /// <summary>How often a subscriber has come or gone.</summary>
        internal uint Changes => (uint)(Word >> 32);

        /// <summary>Says that one came, went, or chose its cursor anew, after its slot says so. A full fence.</summary>
        internal void CountChange() => Interlocked.Add(ref Area->Word, (long)Facts.WordChange);

        /// <summary>Wakes the publisher, whether it sleeps or not.</summary>
        internal void WakePublisher()
        {
            Volatile.Write(ref Area->Wait, 0);
            Futex.WakeAll(&Area->Wait);
        }

        /// <summary>Whether the subscriber of a slot lives. A system call.</summary>
        internal bool LivesIn(int slot) => Link.LivesAt(Facts.ByteSlot + slot);

        /// <summary>The header of the frame at any position: it lies in the mapping where a frame can begin.</summary>
        internal FrameHead HeadAt(ulong position) => new FrameHead(data + (position & (capacity - 1)));

        internal ulong SizeOf(in FrameHead head) => Layout.TopicFrameSize(head.Length, align);

        /// <summary>
        /// Whether a frame lies within the left bytes that are published, and has a number that another can follow. More than the
        /// capacity is not left of a frame that is intact: it would lead out of the log.
        /// </summary>
        internal bool IsPlausible(in FrameHead head, ulong left) =>
            left <= capacity && head.Length <= Facts.TopicMessageMax && SizeOf(head) <= left && unchecked(head.Seq + 1) > 1;

        /// <summary>
        /// Whether the frame at a position may be overwritten already, or at any moment. What was read of the frame before is from
        /// before.
        /// </summary>
        internal bool IsOvertaken(ulong position)
        {
            Cpu.LoadFence();
            return unchecked(Volatile.Read(ref Block->Claim) - position) > capacity;
        }

        /// <summary>
        /// The header of the frame at any position, and where it ends; false if it is none, or was overtaken. kept: a slot keeps it, so
        /// that the claim, which goes beyond what a slot lets the publisher write, says nothing.
        /// </summary>
        private bool FrameAt(ulong position, ulong tail, bool kept, out FrameHead head, out ulong end)
        {
            end = 0;
            head = default;
            if (!Layout.IsTopicPosition(position, align))
            {
                return false;
            }
            head = HeadAt(position);
            if (!kept && IsOvertaken(position) || !IsPlausible(head, unchecked(tail - position)))
            {
                return false;
            }
            end = unchecked(position + SizeOf(head));
            return true;
        }

        /// <summary>The number of the frame at a position that may be anything; 0 where there can be none before tail.</summary>
        internal ulong SeqAt(ulong position, ulong tail)
        {
            ulong published = unchecked(tail - position);
            return !Layout.IsTopicPosition(position, align) || published == 0 || published > capacity ? 0 : HeadAt(position).Seq;
        }

        /// <summary>Where the newest frame begins, and the end of what is published: equal before the first.</summary>
        internal ulong LastAndTail(out ulong tail)
        {
            // Acquire, in this order: tail is not older than last.
            ulong last = Volatile.Read(ref Block->Last);
            tail = Volatile.Read(ref Block->Tail);
            return last;
        }

        /// <summary>The newest frame and where it ends; false before the first. Corrupt if the publisher writes what none writes.</summary>
        internal bool Newest(out FrameHead head, out ulong end)
        {
            for (int i = 0; i < Attempts; i++)
            {
                ulong last = LastAndTail(out ulong tail);
                if (last == tail)
                {
                    head = default;
                    end = tail;
                    return false;
                }
                if (FrameAt(last, tail, false, out head, out end))
                {
                    return true;
                }
                // Not a yield: a publisher that overtakes runs, and so many yields on a busy machine take minutes.
                Thread.SpinWait(1);
            }
            throw Errors.Fail(ErrorKind.Corrupt, null);
        }

        /// <summary>The oldest frame that is noted and at most within bytes behind the claim, else tail, which is given too.</summary>
        internal ulong Oldest(ulong within, out ulong tail)
        {
            // Acquire, in this order: an entry that is not beyond tail was published, and the claim is not older than it.
            tail = Volatile.Read(ref Block->Tail);
            Span<ulong> entries = stackalloc ulong[Facts.TopicChunks + 1];
            LoadEntries(entries);
            ulong claim = Volatile.Read(ref Block->Claim), most = 0;
            foreach (ulong entry in entries)
            {
                ulong behind = unchecked(tail - entry);
                if (Layout.IsTopicPosition(entry, align) && behind <= capacity && unchecked(claim - entry) <= within && behind > most)
                {
                    most = behind;
                }
            }
            return unchecked(tail - most);
        }

        /// <summary>
        /// Where frames begin by the publisher's notes. The newest one is among them: it is always intact, and nothing else may be
        /// where messages are long.
        /// </summary>
        private void LoadEntries(Span<ulong> entries)
        {
            for (int i = 0; i < Facts.TopicChunks; i++)
            {
                entries[i] = Volatile.Read(ref Block->Starts[i]);
            }
            entries[Facts.TopicChunks] = Volatile.Read(ref Block->Last);
        }

        /// <summary>The newest noted frame whose number is at most seq, else the oldest.</summary>
        private ulong NotedBefore(ulong seq)
        {
            ulong found = Oldest(capacity, out ulong tail), best = 0;
            Span<ulong> entries = stackalloc ulong[Facts.TopicChunks + 1];
            LoadEntries(entries);
            foreach (ulong entry in entries)
            {
                if (unchecked(tail - entry) <= capacity && FrameAt(entry, tail, false, out FrameHead head, out _) &&
                    head.Seq <= seq && head.Seq > best)
                {
                    found = entry;
                    best = head.Seq;
                }
            }
            return found;
        }

        /// <summary>Where to begin.</summary>
        internal readonly struct Choice
        {
            internal readonly ulong Cursor;
            /// <summary>Go on from there to the first frame with at least this number; 0: begin there.</summary>
            internal readonly ulong First;
            /// <summary>The number to expect, whatever is found; 0: that of the first frame.</summary>
            internal readonly ulong Expected;

            internal Choice(ulong cursor, ulong first = 0, ulong expected = 0)
            {
                Cursor = cursor;
                First = first;
                Expected = expected;
            }
        }

        /// <summary>The position to begin at.</summary>
        internal Choice Choose(Start from)
        {
            Newest(out FrameHead head, out ulong end);
            ulong newest = head.Seq, n = from.Number;
            var afterNewest = new Choice(end, 0, newest + 1);
            switch (from.At)
            {
                case Start.Place.Now:
                case Start.Place.History when n == 0:
                // A number from another topic of this name, or from the future.
                case Start.Place.AfterSeq when n >= newest:
                case Start.Place.Again when n > newest:
                    return afterNewest;
                case Start.Place.History when n < newest:
                    return new Choice(NotedBefore(newest - n + 1), newest - n + 1);
                case Start.Place.Again:
                    return new Choice(NotedBefore(n), n);
                case Start.Place.AfterSeq:
                    return new Choice(NotedBefore(n + 1), n + 1, n + 1);
                default:
                    return new Choice(Oldest(capacity, out _));
            }
        }

        /// <summary>
        /// Goes from a chosen position, which a slot keeps or whose frames are checked, to the first frame to read, and gives the number
        /// to expect there; false: overtaken.
        /// </summary>
        internal bool Settle(in Choice choice, bool kept, out ulong at, out ulong expected)
        {
            at = choice.Cursor;
            expected = choice.Expected;
            // A frame for each step is the most there can be, unless the publisher writes on meanwhile.
            for (ulong left = Math.Max(Attempts, capacity / align); left > 0 && Layout.IsTopicPosition(at, align); left--)
            {
                ulong tail = Volatile.Read(ref Block->Tail);
                if (at == tail)
                {
                    if (expected != 0 || NumberAt(tail, out expected))
                    {
                        return true;
                    }
                    expected = choice.Expected;
                    // Something has come since.
                    continue;
                }
                if (!FrameAt(at, tail, kept, out FrameHead head, out ulong end))
                {
                    if (!kept && IsOvertaken(at))
                    {
                        return false;
                    }
                    break;
                }
                if (head.Seq >= choice.First)
                {
                    expected = expected != 0 ? expected : head.Seq;
                    return true;
                }
                at = end;
            }
            throw Errors.Fail(ErrorKind.Corrupt, null);
        }

        /// <summary>The number of the message that is to come at tail: the one after the newest. False: it has come meanwhile.</summary>
        private bool NumberAt(ulong tail, out ulong seq)
        {
            bool some = Newest(out FrameHead head, out ulong end);
            seq = head.Seq + 1;
            // A publisher that was killed between its stores of tail and last leaves frames between the two.
            while (some && end != tail)
            {
                if (!FrameAt(end, tail, false, out head, out end))
                {
                    return false;
                }
                seq = head.Seq + 1;
            }
            return true;
        }
    }
}
