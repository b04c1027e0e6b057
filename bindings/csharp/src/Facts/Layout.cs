using System;
using System.Runtime.InteropServices;

namespace Ramway
{
    /// <summary>
    /// What follows from the facts: sizes and positions of frames, and shared memory as C# types. Nothing here maps memory or
    /// decides what to trust.
    /// </summary>
    internal static class Layout
    {
        /// <summary>Where a block begins in the header page.</summary>
        internal static int BlockOffset(int block) => block == 0 ? Facts.Block0 : Facts.Block1;

        internal static string NameOf(SegmentKind kind) => kind switch
        {
            SegmentKind.Region => "region",
            SegmentKind.Ring => "ring",
            SegmentKind.Bus => "bus",
            SegmentKind.Listener => "listener",
            SegmentKind.Topic => "topic",
            _ => "segment of unknown kind",
        };

        /// <summary>Where the positions of a new ring with this alignment begin.</summary>
        internal static ulong FirstPosition(uint align) => (ulong)align - Facts.FrameHeader;

        /// <summary>
        /// Whether two positions could be those of a ring at rest: where frames can begin, and at most a capacity apart.
        /// </summary>
        internal static bool PositionsAgree(ulong tail, ulong head, ulong capacity, uint align)
        {
            ulong mask = (ulong)align - 1, first = FirstPosition(align);
            return (tail & mask) == first && (head & mask) == first && unchecked(tail - head) <= capacity;
        }

        /// <summary>How many bytes a frame takes with length bytes of payload. It cannot overflow for up to 2^32.</summary>
        internal static ulong FrameSize(ulong length, uint align)
        {
            ulong mask = (ulong)align - 1;
            return (Facts.FrameHeader + length + mask) & ~mask;
        }

        /// <summary>The longest payload that a ring of this capacity can ever hold.</summary>
        internal static uint MaxMessageLength(ulong capacity) =>
            capacity < Facts.FrameHeader ? 0 : (uint)Math.Min(capacity - Facts.FrameHeader, Facts.MessageMax);

        /// <summary>Where the positions of a new topic with this alignment begin.</summary>
        internal static ulong FirstTopicPosition(uint align) => (ulong)align - Facts.TopicFrameHeader;

        /// <summary>Whether a topic's frame can begin there.</summary>
        internal static bool IsTopicPosition(ulong position, uint align) =>
            (position & ((ulong)align - 1)) == FirstTopicPosition(align);

        /// <summary>How many bytes a topic's frame takes. It cannot overflow for up to 2^32.</summary>
        internal static ulong TopicFrameSize(ulong length, uint align)
        {
            ulong mask = (ulong)align - 1;
            return (Facts.TopicFrameHeader + length + mask) & ~mask;
        }

        /// <summary>
        /// The longest payload that a topic of this capacity can hold: a whole frame takes at most half of it, so that the last message
        /// stays intact while the next one is written.
        /// </summary>
        internal static uint MaxTopicMessageLength(ulong capacity) =>
            (uint)Math.Min(capacity / 2 - Facts.TopicFrameHeader, Facts.TopicMessageMax);

        internal static bool IsPowerOfTwo(ulong n) => n != 0 && (n & (n - 1)) == 0;
    }

    /// <summary>The end and the tag of a published frame.</summary>
    [StructLayout(LayoutKind.Explicit, Size = Facts.LastTagSize)]
    internal struct TagRecord
    {
        [FieldOffset(Facts.LastTagEnd)] internal ulong End;
        [FieldOffset(Facts.LastTagTag)] internal ulong Tag;
    }

    /// <summary>What one side of a ring says of itself. Every word is accessed atomically.</summary>
    [StructLayout(LayoutKind.Explicit, Size = Facts.LineSize)]
    internal struct RoleLine
    {
        /// <summary>The futex: 1 while the holder sleeps or is about to.</summary>
        [FieldOffset(Facts.OffRoleWait)] internal uint Wait;
        /// <summary><see cref="Facts.RoleMembarrierCapable"/>, <see cref="Facts.RoleFenceFree"/>, <see cref="Facts.RoleClosed"/>.</summary>
        [FieldOffset(Facts.OffRoleFlags)] internal uint Flags;
        /// <summary>How often the role was attached; 0 = never.</summary>
        [FieldOffset(Facts.OffRoleEpoch)] internal uint Epoch;
        /// <summary>Consumer only: the producer's epoch whose orderly close was delivered.</summary>
        [FieldOffset(Facts.OffRoleCloseSeen)] internal uint CloseSeen;
    }

    /// <summary>
    /// A ring's part of the header page, as it lies in shared memory. Every word but the geometry's is accessed atomically; the
    /// geometry is read once, by <see cref="Header.Check"/>, out of a copy.
    /// </summary>
    [StructLayout(LayoutKind.Explicit, Size = Facts.RingBlockSize)]
    internal struct RingBlock
    {
        [FieldOffset(Facts.OffTail)] internal ulong Tail;
        [FieldOffset(Facts.OffLastTags)] internal TagRecord LastTag0;
        [FieldOffset(Facts.OffLastTags + Facts.LastTagSize)] internal TagRecord LastTag1;
        [FieldOffset(Facts.OffHead)] internal ulong Head;
        [FieldOffset(Facts.OffProducer)] internal RoleLine Producer;
        [FieldOffset(Facts.OffConsumer)] internal RoleLine Consumer;
    }

    /// <summary>A region's part of the header page.</summary>
    [StructLayout(LayoutKind.Explicit, Size = Facts.RegionBlockSize)]
    internal struct RegionBlock
    {
        /// <summary>Bit 0: a handle waits; the rest counts notifications.</summary>
        [FieldOffset(Facts.OffNotify)] internal int Notify;
    }

    /// <summary>
    /// A topic's part of the header page, as it lies in shared memory. Every word but the geometry's is accessed atomically.
    /// </summary>
    [StructLayout(LayoutKind.Explicit, Size = Facts.TopicBlockSize)]
    internal unsafe struct TopicBlock
    {
        [FieldOffset(Facts.OffTopicTail)] internal ulong Tail;
        [FieldOffset(Facts.OffTopicLast)] internal ulong Last;
        [FieldOffset(Facts.OffTopicClaim)] internal ulong Claim;
        [FieldOffset(Facts.OffTopicStarts)] internal fixed ulong Starts[Facts.TopicChunks];
        /// <summary>Its futex word is not used: the publisher sleeps on a word of the subscribers' area.</summary>
        [FieldOffset(Facts.OffTopicPublisher)] internal RoleLine Publisher;
        [FieldOffset(Facts.OffTopicEjectAfter)] internal ulong EjectAfter;
    }

    /// <summary>The beginning of a topic's subscribers' area; the slots follow.</summary>
    [StructLayout(LayoutKind.Explicit, Size = Facts.OffSubsSlots)]
    internal struct SubscribersArea
    {
        /// <summary>The publisher's futex.</summary>
        [FieldOffset(Facts.OffSubsWait)] internal uint Wait;
        /// <summary>
        /// The subscribers' futex in its low half, changes in its high half: accessed as one word only. A long for Interlocked.
        /// </summary>
        [FieldOffset(Facts.OffSubsWord)] internal long Word;
    }

    /// <summary>A subscriber's slot. Every word is accessed atomically.</summary>
    [StructLayout(LayoutKind.Explicit, Size = Facts.SlotSize)]
    internal unsafe struct SubscriberSlot
    {
        [FieldOffset(Facts.OffSlotCursor)] internal ulong Cursor;
        /// <summary>A long for Interlocked: the epoch in its high half, <see cref="Facts.SlotActive"/> and the other bits below.</summary>
        [FieldOffset(Facts.OffSlotState)] internal long State;
        [FieldOffset(Facts.OffSlotFlags)] internal uint Flags;
        [FieldOffset(Facts.OffSlotCloseSeen)] internal uint CloseSeen;
        [FieldOffset(Facts.OffSlotLost)] internal ulong Lost;
        [FieldOffset(Facts.OffSlotEjectSeq)] internal ulong EjectSeq;
        [FieldOffset(Facts.OffSlotLabel)] internal fixed ulong Label[Facts.LabelMax / 8];
    }
}
