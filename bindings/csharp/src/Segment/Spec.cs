using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// Where a block's data lies: out of <see cref="Header.Check"/>, inside the segment, mappable here, and consistent. A capacity
    /// of 0: this block does not exist.
    /// </summary>
    internal struct Geometry
    {
        internal ulong DataOffset;
        internal ulong Capacity;
        /// <summary>A region's as it was asked for, 1 to Capacity; 0 in a ring.</summary>
        internal ulong Length;
        /// <summary>A ring's or topic's; 0 in a region.</summary>
        internal uint Align;
        /// <summary>A topic's slots for subscribers, 1 to Facts.TopicSlotsMax; else 0, as the next two.</summary>
        internal uint Slots;
        /// <summary>Its creator's flags, all of them known.</summary>
        internal uint Flags;
        /// <summary>Where its subscribers' area begins: between the header page and the data.</summary>
        internal ulong SubsOffset;

        /// <summary>The length of the subscribers' area in bytes.</summary>
        internal ulong AreaLength => Facts.OffSubsSlots + Facts.SlotSize * (ulong)Slots;

        /// <summary>The same in whole pages: the file has all of the last one, because the data begins on a page.</summary>
        internal long MappedArea => (long)(AreaLength + (ulong)Memory.PageSize - 1) & -Memory.PageSize;
    }

    /// <summary>What a new segment is to hold.</summary>
    internal sealed class Spec
    {
        // More than any file system holds, and far from an overflow of what is added up here.
        private const ulong CapacityMax = 1ul << 61;

        private Spec(SegmentKind kind, long granule)
        {
            Kind = kind;
            Size = (ulong)Math.Max(granule, Facts.HeaderSize);
        }

        internal SegmentKind Kind { get; }

        internal uint Flags { get; private set; }

        /// <summary>What a reader must know to use it.</summary>
        internal uint FeaturesRequired { get; set; } = Facts.FeaturesKnown;

        /// <summary>All zero for a segment without a name: only files can outlive a boot.</summary>
        internal byte[] BootId { get; private set; } = new byte[16];

        /// <summary>The whole segment's length in bytes.</summary>
        internal ulong Size { get; private set; }

        internal Geometry[] Blocks { get; } = new Geometry[2];

        /// <summary>A ring. granule is the (huge) page that the data's offset and capacity are multiples of.</summary>
        internal static Spec Ring(long capacity, int align, long granule) =>
            Rings(SegmentKind.Ring, new[] { capacity }, align, granule);

        /// <summary>The ring that options ask for.</summary>
        internal static Spec Ring(RingOptions o, long granule) =>
            Ring(o.Capacity == 0 ? (long)Facts.CapacityDefault : o.Capacity, o.Align, granule);

        /// <summary>
        /// A bus: toPeer is what the listener sends into, fromPeer what it receives from. A capacity of 0 leaves that direction
        /// out.
        /// </summary>
        internal static Spec Bus(long toPeer, long fromPeer, int align)
        {
            if (toPeer == 0 && fromPeer == 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a bus needs a capacity other than 0 in one direction");
            }
            return Rings(SegmentKind.Bus, new[] { toPeer, fromPeer }, align, Memory.PageSize);
        }

        /// <summary>A region of length bytes, more than 0.</summary>
        internal static Spec Region(long length, long granule)
        {
            if (length <= 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a region of " + length + " bytes: expected at least 1");
            }
            var s = new Spec(SegmentKind.Region, granule);
            ulong mask = (ulong)granule - 1;
            ulong capacity = ((ulong)length + mask) & ~mask;
            if (capacity > CapacityMax)
            {
                throw TooBig((ulong)length);
            }
            s.Blocks[0] = new Geometry { DataOffset = s.Size, Capacity = capacity, Length = (ulong)length };
            s.Size += capacity;
            return s;
        }

        /// <summary>A topic: 0 stands for the default of capacity, align and slots. Each of its parts begins on a granule.</summary>
        internal static Spec Topic(long capacity, int align, int slots, uint flags, long granule)
        {
            align = align == 0 ? (int)Facts.TopicAlignMin : align;
            slots = slots == 0 ? (int)Facts.TopicSlotsDefault : slots;
            CheckAlign(align, Facts.TopicAlignMin);
            if (slots < 1 || slots > Facts.TopicSlotsMax)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, slots + " slots for subscribers: expected 1 to " + Facts.TopicSlotsMax);
            }
            CheckCapacity(capacity);
            var s = new Spec(SegmentKind.Topic, granule);
            var g = new Geometry { Align = (uint)align, Slots = (uint)slots, Flags = flags, SubsOffset = s.Size };
            // A whole frame takes at most half of it.
            g.Capacity = RoundCapacity(Math.Max(capacity == 0 ? Facts.CapacityDefault : (ulong)capacity, 2ul * g.Align), granule);
            ulong mask = s.Size - 1;
            g.DataOffset = (s.Size + g.AreaLength + mask) & ~mask;
            s.Blocks[0] = g;
            s.Size = g.DataOffset + g.Capacity;
            return s;
        }

        /// <summary>The lock of a listening socket.</summary>
        internal static Spec Listener() => new Spec(SegmentKind.Listener, Memory.PageSize);

        /// <summary>Makes it a spec of a segment with a name.</summary>
        internal Spec Named(bool persistent)
        {
            BootId = Boot.Id;
            Flags = persistent ? Facts.FlagPersistent : 0;
            return this;
        }

        /// <summary>Refuses what no machine has.</summary>
        internal static RamwayException TooBig(ulong n) =>
            Errors.Fail(ErrorKind.NoSpace, "a capacity of " + n + " bytes is more than any machine has");

        private static Spec Rings(SegmentKind kind, long[] capacities, int align, long granule)
        {
            if (align == 0)
            {
                align = (int)Facts.AlignMin;
            }
            CheckAlign(align, Facts.AlignMin);
            var s = new Spec(kind, granule);
            for (int i = 0; i < capacities.Length; i++)
            {
                long asked = capacities[i];
                CheckCapacity(asked);
                s.Blocks[i] = new Geometry { DataOffset = s.Size, Align = (uint)align };
                if (asked == 0 && kind == SegmentKind.Bus)
                {
                    continue;
                }
                s.Blocks[i].Capacity = RoundCapacity((ulong)asked, granule);
                // Two of at most 2^61 and a page: no overflow.
                s.Size += s.Blocks[i].Capacity;
            }
            return s;
        }

        private static void CheckAlign(int align, uint least)
        {
            if (align < least || align > Facts.AlignMax || !Layout.IsPowerOfTwo((ulong)align))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "an alignment of " + align + ": expected a power of two from " + least +
                    " to " + Facts.AlignMax);
            }
        }

        private static void CheckCapacity(long asked)
        {
            if (asked < 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a capacity of " + asked + " bytes: expected 0 or more");
            }
        }

        /// <summary>What a ring gets for the capacity asked for: a power of two, at least a granule.</summary>
        private static ulong RoundCapacity(ulong asked, long granule)
        {
            if (asked > CapacityMax)
            {
                throw TooBig(asked);
            }
            ulong capacity = (ulong)granule;
            while (capacity < asked)
            {
                capacity *= 2;
            }
            return capacity;
        }
    }
}
