using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How far a subscriber is behind.</summary>
    public readonly struct Lag
    {
        internal Lag(long bytes, ulong messages)
        {
            Bytes = bytes;
            Messages = messages;
        }

        /// <summary>Published and not released, frame headers and padding included.</summary>
        public long Bytes { get; }

        /// <summary>Published and not received.</summary>
        public ulong Messages { get; }
    }

    /// <summary>A subscriber of a topic at one moment.</summary>
    public sealed class SubscriberInfo
    {
        /// <summary>Its slot's number.</summary>
        public int Slot { get; internal set; }

        /// <summary>How often that slot was taken.</summary>
        public uint Epoch { get; internal set; }

        /// <summary>How it reads.</summary>
        public Policy Policy { get; internal set; }

        /// <summary>Its label; empty if it has none.</summary>
        public string Label { get; internal set; } = "";

        /// <summary>Its cursor stays when it goes.</summary>
        public bool Durable { get; internal set; }

        /// <summary>Its process lives and has it open.</summary>
        public bool Alive { get; internal set; }

        /// <summary>The publisher has ejected it, and it has not begun anew.</summary>
        public bool Ejected { get; internal set; }

        /// <summary>How far a reliable one is behind; null under another policy, which does not say.</summary>
        public Lag? Lag { get; internal set; }

        /// <summary>How many messages it has lost.</summary>
        public ulong Lost { get; internal set; }

        /// <summary>
        /// For how long it has kept the publisher from going on without reading anything, as far as calls of the publisher have found
        /// it; zero if it does not, and to who only lists segments.
        /// </summary>
        public TimeSpan BlocksFor { get; internal set; }
    }

    /// <summary>A topic's words in a copy of the header page.</summary>
    internal readonly struct TopicWords
    {
        internal readonly ulong Tail, Last, Claim;
        internal readonly uint Epoch;
        /// <summary>The last publisher has closed in an orderly way.</summary>
        internal readonly bool Closed;

        internal TopicWords(ReadOnlySpan<byte> block)
        {
            Tail = BinaryPrimitives.ReadUInt64LittleEndian(block.Slice(Facts.OffTopicTail));
            Last = BinaryPrimitives.ReadUInt64LittleEndian(block.Slice(Facts.OffTopicLast));
            Claim = BinaryPrimitives.ReadUInt64LittleEndian(block.Slice(Facts.OffTopicClaim));
            Epoch = BinaryPrimitives.ReadUInt32LittleEndian(block.Slice(Facts.OffTopicPublisher + Facts.OffRoleEpoch));
            uint flags = BinaryPrimitives.ReadUInt32LittleEndian(block.Slice(Facts.OffTopicPublisher + Facts.OffRoleFlags));
            Closed = (flags & Facts.RoleClosed) != 0 && Epoch != 0;
        }

        /// <summary>Whether the positions could be those of a topic that nobody writes at this moment.</summary>
        internal bool Agree(in Geometry g) => Agree(Tail, Last, Claim, g);

        /// <summary>Likewise.</summary>
        internal static bool Agree(ulong tail, ulong last, ulong claim, in Geometry g) => unchecked(
            Layout.IsTopicPosition(tail, g.Align) && Layout.IsTopicPosition(last, g.Align) && tail - last <= g.Capacity &&
            claim - tail <= g.Capacity && claim - last <= g.Capacity &&
            (last != tail || tail == Layout.FirstTopicPosition(g.Align)));
    }

    /// <summary>A subscriber's label as a slot holds it: UTF-8, padded with zeros. All zero: none.</summary>
    internal unsafe struct SlotLabel
    {
        internal const int Words = Facts.LabelMax / 8;

        private fixed ulong words[Words];

        internal SlotLabel(ReadOnlySpan<byte> text)
        {
            fixed (ulong* at = words)
            {
                text.CopyTo(new Span<byte>(at, Facts.LabelMax));
            }
        }

        internal static SlotLabel Of(SubscriberSlot* slot)
        {
            var label = default(SlotLabel);
            for (int i = 0; i < Words; i++)
            {
                label.words[i] = Volatile.Read(ref slot->Label[i]);
            }
            return label;
        }

        internal void WriteTo(SubscriberSlot* slot)
        {
            for (int i = 0; i < Words; i++)
            {
                Volatile.Write(ref slot->Label[i], words[i]);
            }
        }

        internal bool IsNone => Equals(default);

        internal bool Equals(in SlotLabel other)
        {
            ulong differences = 0;
            for (int i = 0; i < Words; i++)
            {
                differences |= words[i] ^ other.words[i];
            }
            return differences == 0;
        }

        /// <summary>Anything may have been written there, control characters too: those are shown as U+FFFD.</summary>
        internal string Text()
        {
            fixed (ulong* at = words)
            {
                var bytes = new ReadOnlySpan<byte>(at, Facts.LabelMax);
                int end = bytes.IndexOf((byte)0);
                var text = new StringBuilder(Encoding.UTF8.GetString(end < 0 ? bytes : bytes.Slice(0, end)));
                for (int i = 0; i < text.Length; i++)
                {
                    text[i] = char.IsControl(text[i]) ? '\uFFFD' : text[i];
                }
                return text.ToString();
            }
        }
    }

    /// <summary>A topic's subscribers, as its publisher and those who only read its file see them.</summary>
    internal static unsafe class TopicSurvey
    {
        /// <summary>The topic's words in a copy of the header page.</summary>
        internal static TopicWords WordsIn(byte[] page) => new TopicWords(page.AsSpan(Facts.Block0));

        /// <summary>A copy of a topic's slots.</summary>
        internal static SubscriberSlot[] SlotsIn(int file, in Geometry g)
        {
            byte[] area = new byte[g.AreaLength];
            if (Errors.Check(Files.ReadAt(file, area, (long)g.SubsOffset), "reading the subscribers' area") < area.Length)
            {
                throw Errors.Fail(ErrorKind.Corrupt, "the file ends in the subscribers' area");
            }
            return MemoryMarshal.Cast<byte, SubscriberSlot>(area.AsSpan(Facts.OffSubsSlots)).ToArray();
        }

        /// <summary>The label in a copy of a slot.</summary>
        internal static string LabelOf(SubscriberSlot slot) => SlotLabel.Of(&slot).Text();

        /// <summary>Whether a process has the byte locked exclusively.</summary>
        internal static bool Lives(int file, long at)
        {
            Errors.Check(Lock.HeldExclusivelyByAnother(file, at, out LockMode mode), "asking for the topic's locks");
            return mode != LockMode.Unlocked;
        }

        /// <summary>
        /// Who has slot i; null if nobody has, and no durable subscriber's cursor is kept there. newest: the newest message's number.
        /// seqAt: the number of the frame at a position, 0 where there can be none.
        /// </summary>
        internal static SubscriberInfo? Of(SubscriberSlot* slot, int i, ulong tail, ulong newest, in Geometry g, Func<ulong, ulong> seqAt)
        {
            long state = Volatile.Read(ref slot->State);
            ulong cursor = Volatile.Read(ref slot->Cursor);
            bool reliable = (state & (Facts.SlotGating | Facts.SlotDurable | Facts.SlotEjected)) != 0;
            if (!reliable && (state & Facts.SlotActive) == 0)
            {
                return null;
            }
            var one = new SubscriberInfo
            {
                Slot = i,
                Epoch = (uint)(state >> 32),
                Policy = reliable ? Policy.Reliable
                    : (Volatile.Read(ref slot->Flags) & Facts.SlotFlagLatest) != 0 ? Policy.Latest : Policy.Lossy,
                Label = SlotLabel.Of(slot).Text(),
                Durable = (state & Facts.SlotDurable) != 0,
                Ejected = (state & Facts.SlotEjected) != 0,
                Lost = Volatile.Read(ref slot->Lost),
            };
            ulong bytes = unchecked(tail - cursor);
            if ((state & Facts.SlotGating) != 0 && bytes <= g.Capacity && Layout.IsTopicPosition(cursor, g.Align))
            {
                ulong next = seqAt(cursor);
                one.Lag = new Lag((long)bytes, next != 0 && next <= newest ? newest - next + 1 : 0);
            }
            return one;
        }

        /// <summary>What a topic's file says, from copies of its words.</summary>
        internal static void Fill(SegmentInfo info, int file, Geometry g)
        {
            // Before the positions: so no cursor is ahead of tail that was not when it was read.
            SubscriberSlot[] slots = SlotsIn(file, g);
            TopicWords words = WordsIn(SegmentFile.ReadPage(file, out _));
            ulong SeqAt(ulong position)
            {
                ulong published = unchecked(words.Tail - position);
                byte[] frame = new byte[Facts.TopicFrameHeader];
                return !Layout.IsTopicPosition(position, g.Align) || published == 0 || published > g.Capacity ||
                    Files.ReadAt(file, frame, (long)(g.DataOffset + (position & (g.Capacity - 1)))) < frame.Length
                    ? 0
                    : BinaryPrimitives.ReadUInt64LittleEndian(frame.AsSpan(Facts.TopicFrameSeq));
            }
            info.Seq = SeqAt(words.Last);
            // The publisher may have overwritten it meanwhile: then it is a later one's number, or none.
            if (unchecked(WordsIn(SegmentFile.ReadPage(file, out _)).Claim - words.Last) > g.Capacity)
            {
                info.Seq = 0;
            }
            var found = new List<SubscriberInfo>();
            fixed (SubscriberSlot* first = slots)
            {
                for (int i = 0; i < slots.Length; i++)
                {
                    SubscriberInfo? one = Of(first + i, i, words.Tail, info.Seq, g, SeqAt);
                    if (one != null)
                    {
                        one.Alive = Lives(file, Facts.ByteSlot + i);
                        found.Add(one);
                    }
                }
            }
            info.Subscribers = found;
        }
    }
}
