using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What a ring still holds for its next receiver, and a topic for its durable subscribers.</summary>
    internal static class Undelivered
    {
        // At most so much of a ring is read at a time.
        private const int WindowMax = 1 << 20;

        /// <summary>A ring's words in a copy of the header page.</summary>
        internal readonly struct RingWords
        {
            internal readonly ulong Tail;
            internal readonly ulong Head;
            /// <summary>An orderly close that no receiver has seen: it is delivered like a message.</summary>
            internal readonly bool UnseenClose;

            internal RingWords(byte[] page, int block)
            {
                ReadOnlySpan<byte> at = page.AsSpan(Layout.BlockOffset(block));
                Tail = BinaryPrimitives.ReadUInt64LittleEndian(at.Slice(Facts.OffTail));
                Head = BinaryPrimitives.ReadUInt64LittleEndian(at.Slice(Facts.OffHead));
                uint flags = BinaryPrimitives.ReadUInt32LittleEndian(at.Slice(Facts.OffProducer + Facts.OffRoleFlags));
                uint epoch = BinaryPrimitives.ReadUInt32LittleEndian(at.Slice(Facts.OffProducer + Facts.OffRoleEpoch));
                uint seen = BinaryPrimitives.ReadUInt32LittleEndian(at.Slice(Facts.OffConsumer + Facts.OffRoleCloseSeen));
                UnseenClose = (flags & Facts.RoleClosed) != 0 && epoch != 0 && seen != epoch;
            }

            /// <summary>Positions that contradict each other count as well: what is not understood is not thrown away.</summary>
            internal bool HasMessages(in Geometry g) =>
                Tail != Head || !Layout.PositionsAgree(Tail, Head, g.Capacity, g.Align);
        }

        /// <summary>Each ring of a segment, by a copy of its header page.</summary>
        private static IEnumerable<(Geometry, RingWords)> Rings(byte[] page, Header h)
        {
            for (int i = 0; i < h.Blocks.Length; i++)
            {
                if (h.Kind != SegmentKind.Region && h.Kind != SegmentKind.Topic && h.Blocks[i].Capacity != 0)
                {
                    yield return (h.Blocks[i], new RingWords(page, i));
                }
            }
        }

        /// <summary>Whether the last one out leaves the name in place. What cannot be read stays.</summary>
        internal static bool MustStay(int file, byte[] page, Header h)
        {
            bool stays = h.Persistent || h.Kind == SegmentKind.Topic && TopicToKeep(file, page, h.Blocks[0], out _) != null;
            foreach ((Geometry g, RingWords words) in Rings(page, h))
            {
                stays |= words.HasMessages(g) || words.UnseenClose;
            }
            return stays;
        }

        /// <summary>
        /// Why a segment that nobody uses is nevertheless not to be thrown away; null if it may be. damaged: nobody can resume it.
        /// </summary>
        internal static string? ReasonToKeep(int file, Header h, out bool damaged)
        {
            damaged = false;
            byte[] page = SegmentFile.ReadPage(file, out _);
            if (h.Kind == SegmentKind.Topic && TopicToKeep(file, page, h.Blocks[0], out damaged) is string kept)
            {
                return kept;
            }
            foreach ((Geometry g, RingWords words) in Rings(page, h))
            {
                if (words.HasMessages(g))
                {
                    try
                    {
                        Count(file, g, words.Tail, words.Head, out ulong messages, out ulong bytes);
                        return "it holds " + messages + " undelivered messages (" + bytes + " bytes)";
                    }
                    catch (RamwayException e) when (e.Kind == ErrorKind.Corrupt)
                    {
                        damaged = true;
                        return "it is damaged: " + e.Text;
                    }
                }
                if (words.UnseenClose)
                {
                    return "it holds the end of a stream that no receiver has seen";
                }
            }
            return h.Persistent ? "it is persistent" : null;
        }

        /// <summary>
        /// Why a topic that nobody uses is not to be thrown away; null if it may be. History alone keeps no topic: what a durable
        /// subscriber is still to receive does.
        /// </summary>
        private static string? TopicToKeep(int file, byte[] page, in Geometry g, out bool damaged)
        {
            TopicWords words = TopicSurvey.WordsIn(page);
            damaged = !words.Agree(g);
            if (damaged)
            {
                return $"it is damaged: the positions {words.Last}, {words.Tail} and {words.Claim} contradict each other";
            }
            string? unseen = null;
            foreach (SubscriberSlot slot in TopicSurvey.SlotsIn(file, g))
            {
                if ((slot.State & Facts.SlotDurable) == 0)
                {
                    continue;
                }
                if (slot.Cursor != words.Tail)
                {
                    return $"the durable subscriber '{TopicSurvey.LabelOf(slot)}' has {UndeliveredTo(file, g, words, slot.Cursor)}";
                }
                if (words.Closed && slot.CloseSeen != words.Epoch)
                {
                    unseen = $"it holds the end of a stream that the durable subscriber '{TopicSurvey.LabelOf(slot)}' has not seen";
                }
            }
            return unseen;
        }

        /// <summary>What a durable subscriber has not received, in words.</summary>
        private static string UndeliveredTo(int file, in Geometry g, in TopicWords words, ulong cursor)
        {
            try
            {
                Count(file, g, words.Tail, cursor, out ulong messages, out ulong bytes);
                if (unchecked(words.Claim - cursor) <= g.Capacity)
                {
                    return messages + " undelivered messages (" + bytes + " bytes)";
                }
            }
            catch (RamwayException e) when (e.Kind == ErrorKind.Corrupt)
            {
                // What the publisher has overwritten cannot be counted any more.
            }
            return "undelivered messages, of which some are lost";
        }

        /// <summary>
        /// Walks the frames from head to tail, trusting no length: how many messages, and their payloads' bytes. It reads the file
        /// in pieces: no mapping, so a truncated file is an error and not a signal. Of a topic head is a subscriber's cursor.
        /// </summary>
        internal static void Count(int file, in Geometry g, ulong tail, ulong head, out ulong messages, out ulong bytes)
        {
            messages = bytes = 0;
            bool topic = g.Slots != 0;
            if (topic
                ? !Layout.IsTopicPosition(head, g.Align) || unchecked(tail - head) > g.Capacity
                : !Layout.PositionsAgree(tail, head, g.Capacity, g.Align))
            {
                throw Errors.Fail(ErrorKind.Corrupt, "the positions " + head + " and " + tail + " contradict each other");
            }
            byte[] window = new byte[Math.Min(WindowMax, g.Capacity)];
            // Where the window lies in the ring's data, and how much of it was read.
            ulong from = 0, filled = 0, pending = unchecked(tail - head);
            for (ulong done = 0; done < pending;)
            {
                // A frame's header never straddles the end of the data: it takes 16 bytes at a multiple of 16.
                ulong at = unchecked(head + done) & (g.Capacity - 1);
                if (at < from || at + Facts.FrameHeader > from + filled)
                {
                    int want = (int)Math.Min((ulong)window.Length, g.Capacity - at);
                    int n = Errors.Check(Files.ReadAt(file, window.AsSpan(0, want), (long)(g.DataOffset + at)), "reading the ring");
                    if (n < Facts.FrameHeader)
                    {
                        throw Errors.Fail(ErrorKind.Corrupt, "the file ends before the frame at " + at);
                    }
                    from = at;
                    filled = (ulong)n;
                }
                ulong length = BinaryPrimitives.ReadUInt32LittleEndian(window.AsSpan((int)(at - from)));
                ulong size = topic ? Layout.TopicFrameSize(length, g.Align) : Layout.FrameSize(length, g.Align);
                if (length > (topic ? Facts.TopicMessageMax : Facts.MessageMax) || size > pending - done)
                {
                    throw Errors.Fail(ErrorKind.Corrupt, "the frame at " + at + " claims " + length + " bytes, " +
                        (pending - done) + " are published");
                }
                messages++;
                bytes += length;
                done += size;
            }
        }
    }
}
