using System;
using System.Buffers.Binary;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// What a header page that may be trusted says. Checking works on a private copy, so each number is read once and what was
    /// checked is what is used.
    /// </summary>
    internal sealed class Header
    {
        private Header()
        {
        }

        internal SegmentKind Kind { get; private set; }

        internal ushort Major { get; private set; }

        internal ushort Minor { get; private set; }

        internal uint Flags { get; private set; }

        internal uint FeaturesRequired { get; private set; }

        internal uint FeaturesOptional { get; private set; }

        internal ulong Size { get; private set; }

        internal ulong CreatedNs { get; private set; }

        internal byte[] BootId { get; } = new byte[16];

        /// <summary>The rings, or the region or topic in block 0.</summary>
        internal Geometry[] Blocks { get; } = new Geometry[2];

        internal bool Persistent => (Flags & Facts.FlagPersistent) != 0;

        /// <summary>Nobody uses this named segment and nobody may resume it.</summary>
        internal bool OfAnotherBoot
        {
            get
            {
                ReadOnlySpan<byte> own = BootId, now = Boot.Id, unknown = stackalloc byte[16];
                // All zero on either side: not known, so not held against it.
                return !own.SequenceEqual(unknown) && !now.SequenceEqual(unknown) && !own.SequenceEqual(now);
            }
        }

        /// <summary>Refuses a segment of another kind.</summary>
        internal void Require(SegmentKind kind)
        {
            if (Kind != kind)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "this is a " + Layout.NameOf(Kind) + ", not a " + Layout.NameOf(kind));
            }
        }

        /// <summary>
        /// Makes the header page of a new segment. Rings begin empty at their first position, everything else is 0.
        /// </summary>
        internal static byte[] Format(Spec s)
        {
            byte[] page = new byte[Facts.HeaderSize];
            Put64(page, Facts.OffMagic, Facts.Magic);
            Put32(page, Facts.OffByteOrder, Facts.ByteOrder);
            BinaryPrimitives.WriteUInt16LittleEndian(page.AsSpan(Facts.OffVersionMajor), Facts.VersionMajor);
            BinaryPrimitives.WriteUInt16LittleEndian(page.AsSpan(Facts.OffVersionMinor),
                s.Kind == SegmentKind.Topic ? Facts.VersionMinorTopic : Facts.VersionMinor);
            Put32(page, Facts.OffKind, (uint)s.Kind);
            Put32(page, Facts.OffFlags, s.Flags);
            Put32(page, Facts.OffFeaturesRequired, s.FeaturesRequired);
            Put64(page, Facts.OffSize, s.Size);
            // A tick is 100 ns.
            Put64(page, Facts.OffCreatedNs, (ulong)(DateTime.UtcNow - DateTime.UnixEpoch).Ticks * 100);
            s.BootId.CopyTo(page, Facts.OffBootId);
            for (int i = 0; i < s.Blocks.Length; i++)
            {
                Geometry g = s.Blocks[i];
                int block = Layout.BlockOffset(i);
                if (g.DataOffset == 0)
                {
                    continue;
                }
                Put64(page, block + Facts.OffDataOffset, g.DataOffset);
                Put64(page, block + Facts.OffCapacity, g.Capacity);
                Put64(page, block + Facts.OffLen, g.Length);
                Put32(page, block + Facts.OffAlign, g.Align);
                if (s.Kind == SegmentKind.Topic)
                {
                    FormatTopic(page, block, g);
                }
                else if (s.Kind != SegmentKind.Region)
                {
                    Put64(page, block + Facts.OffTail, Layout.FirstPosition(g.Align));
                    Put64(page, block + Facts.OffHead, Layout.FirstPosition(g.Align));
                }
            }
            return page;
        }

        private static void FormatTopic(byte[] page, int block, in Geometry g)
        {
            Put32(page, block + Facts.OffTopicSlots, g.Slots);
            Put32(page, block + Facts.OffTopicFlags, g.Flags);
            Put64(page, block + Facts.OffTopicSubsOffset, g.SubsOffset);
            ulong first = Layout.FirstTopicPosition(g.Align);
            Put64(page, block + Facts.OffTopicTail, first);
            Put64(page, block + Facts.OffTopicLast, first);
            Put64(page, block + Facts.OffTopicClaim, first);
            for (int i = 0; i < Facts.TopicChunks; i++)
            {
                Put64(page, block + Facts.OffTopicStarts + 8 * i, first);
            }
        }

        /// <summary>
        /// Decides whether a header page may be trusted, in the order of ABI.md, section 16. page holds the file's first
        /// Facts.HeaderSize bytes (zero beyond its end), fileSize is its length in bytes. Nothing is allocated for what it claims.
        /// featuresKnown are the required features that the caller can use.
        /// </summary>
        internal static Header Check(byte[] page, ulong fileSize, uint featuresKnown = Facts.FeaturesKnown)
        {
            if (Get64(page, Facts.OffMagic) != Facts.Magic)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "this is not a Ramway segment (other first bytes); it is left as it is");
            }
            if (fileSize < Facts.HeaderSize)
            {
                throw Corrupt("the segment is cut off after " + fileSize + " bytes, less than its header page");
            }
            uint order = Get32(page, Facts.OffByteOrder);
            if (order == Facts.ByteOrderSwapped)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the segment was made on a machine of the other byte order");
            }
            if (order != Facts.ByteOrder)
            {
                throw Corrupt("the segment's byte order mark is 0x" + order.ToString("x8"));
            }
            var h = new Header
            {
                Kind = (SegmentKind)Get32(page, Facts.OffKind),
                Major = BinaryPrimitives.ReadUInt16LittleEndian(page.AsSpan(Facts.OffVersionMajor)),
                Minor = BinaryPrimitives.ReadUInt16LittleEndian(page.AsSpan(Facts.OffVersionMinor)),
                Flags = Get32(page, Facts.OffFlags),
                FeaturesRequired = Get32(page, Facts.OffFeaturesRequired),
                FeaturesOptional = Get32(page, Facts.OffFeaturesOptional),
                Size = Get64(page, Facts.OffSize),
                CreatedNs = Get64(page, Facts.OffCreatedNs),
            };
            Array.Copy(page, Facts.OffBootId, h.BootId, 0, 16);
            if (h.Major != Facts.VersionMajor)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the segment has version " + h.Major + "." + h.Minor +
                    " of the format, this side speaks " + Facts.VersionMajor + "." + Facts.VersionMinorTopic);
            }
            uint unknown = Get32(page, Facts.OffFeaturesRequired) & ~featuresKnown;
            if (unknown == Facts.FeatureRpc)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the segment is an RPC's bus, which only an RPC client opens");
            }
            if (unknown != 0)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the segment needs features 0x" + unknown.ToString("x") +
                    ", which this version does not know");
            }
            if (h.Kind < SegmentKind.Region || h.Kind > SegmentKind.Topic)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the segment is of kind " + (uint)h.Kind +
                    ", which this version does not know");
            }
            if (h.Size != fileSize)
            {
                throw Corrupt("the segment says that it has " + h.Size + " bytes, the file has " + fileSize);
            }
            h.CheckBlocks(page);
            return h;
        }

        /// <summary>Fills in the blocks that the segment's kind has.</summary>
        private void CheckBlocks(byte[] page)
        {
            switch (Kind)
            {
                case SegmentKind.Region:
                    Blocks[0] = CheckRegion(page);
                    break;
                case SegmentKind.Ring:
                    Blocks[0] = CheckRing(page, 0);
                    break;
                case SegmentKind.Topic:
                    Blocks[0] = CheckTopic(page);
                    break;
                case SegmentKind.Bus:
                    Blocks[0] = CheckRing(page, 0);
                    Blocks[1] = CheckRing(page, 1);
                    Geometry a = Blocks[0], b = Blocks[1];
                    // Each end was checked to be within the segment: no overflow.
                    if (a.Capacity != 0 && b.Capacity != 0 &&
                        a.DataOffset < b.DataOffset + b.Capacity && b.DataOffset < a.DataOffset + a.Capacity)
                    {
                        throw Corrupt("the two rings of the bus overlap");
                    }
                    break;
            }
        }

        /// <summary>Reads a block's geometry and checks that the data lies inside the segment and can be mapped here.</summary>
        private Geometry CheckRange(byte[] page, int block)
        {
            int at = Layout.BlockOffset(block);
            var g = new Geometry
            {
                DataOffset = Get64(page, at + Facts.OffDataOffset),
                Capacity = Get64(page, at + Facts.OffCapacity),
                Length = Get64(page, at + Facts.OffLen),
                Align = Get32(page, at + Facts.OffAlign),
            };
            ulong end = unchecked(g.DataOffset + g.Capacity);
            if (g.DataOffset < Facts.HeaderSize || g.DataOffset % Facts.HeaderSize != 0 || end < g.DataOffset || end > Size)
            {
                throw Corrupt("block " + block + " claims " + g.Capacity + " bytes at " + g.DataOffset +
                    ", which do not lie in a segment of " + Size + " bytes");
            }
            ulong pageSize = (ulong)Memory.PageSize;
            if (g.Capacity != 0 && (g.DataOffset % pageSize != 0 || g.Capacity % pageSize != 0))
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the data (" + g.Capacity + " bytes at " + g.DataOffset +
                    ") cannot be mapped with this machine's pages of " + pageSize + " bytes");
            }
            return g;
        }

        private Geometry CheckRing(byte[] page, int block)
        {
            if (Kind == SegmentKind.Bus && Get64(page, Layout.BlockOffset(block) + Facts.OffCapacity) == 0)
            {
                return default;
            }
            Geometry g = CheckRange(page, block);
            if (g.Capacity < Facts.HeaderSize || !Layout.IsPowerOfTwo(g.Capacity))
            {
                throw Corrupt("ring " + block + " has a capacity of " + g.Capacity +
                    " bytes, not a power of two of at least a page");
            }
            if (g.Align < Facts.AlignMin || g.Align > Facts.AlignMax || !Layout.IsPowerOfTwo(g.Align) || g.Align > g.Capacity)
            {
                throw Corrupt("ring " + block + " has an alignment of " + g.Align);
            }
            g.Length = 0;
            return g;
        }

        private Geometry CheckRegion(byte[] page)
        {
            Geometry g = CheckRange(page, 0);
            if (g.Length == 0 || g.Length > g.Capacity)
            {
                throw Corrupt("the region claims " + g.Length + " bytes in a capacity of " + g.Capacity);
            }
            g.Align = 0;
            return g;
        }

        private Geometry CheckTopic(byte[] page)
        {
            Geometry g = CheckRange(page, 0);
            if (g.Capacity < Facts.HeaderSize || !Layout.IsPowerOfTwo(g.Capacity))
            {
                throw Corrupt("the topic has a capacity of " + g.Capacity + " bytes, not a power of two of at least a page");
            }
            if (g.Align < Facts.TopicAlignMin || g.Align > Facts.AlignMax || !Layout.IsPowerOfTwo(g.Align) || g.Align > g.Capacity / 2)
            {
                throw Corrupt("the topic has an alignment of " + g.Align);
            }
            g.Slots = Get32(page, Facts.Block0 + Facts.OffTopicSlots);
            if (g.Slots < 1 || g.Slots > Facts.TopicSlotsMax)
            {
                throw Corrupt("the topic has " + g.Slots + " slots for subscribers, expected 1 to " + Facts.TopicSlotsMax);
            }
            g.SubsOffset = Get64(page, Facts.Block0 + Facts.OffTopicSubsOffset);
            ulong end = unchecked(g.SubsOffset + g.AreaLength);
            if (g.SubsOffset < Facts.HeaderSize || g.SubsOffset % Facts.HeaderSize != 0 || end < g.SubsOffset || end > g.DataOffset)
            {
                throw Corrupt("the topic's subscribers' area of " + g.AreaLength + " bytes at " + g.SubsOffset +
                    " does not lie between the header page and the data at " + g.DataOffset);
            }
            if (g.SubsOffset % (ulong)Memory.PageSize != 0)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the topic's subscribers' area at " + g.SubsOffset +
                    " cannot be mapped with this machine's pages of " + Memory.PageSize + " bytes");
            }
            g.Flags = Get32(page, Facts.Block0 + Facts.OffTopicFlags);
            uint unknown = g.Flags & ~Facts.TopicFlagsKnown;
            if (unknown != 0)
            {
                throw Errors.Fail(ErrorKind.AbiMismatch, "the topic was made with flags 0x" + unknown.ToString("x") +
                    ", which this version does not know");
            }
            g.Length = 0;
            return g;
        }

        private static RamwayException Corrupt(string text) => Errors.Fail(ErrorKind.Corrupt, text);

        private static uint Get32(byte[] page, int at) => BinaryPrimitives.ReadUInt32LittleEndian(page.AsSpan(at));

        private static ulong Get64(byte[] page, int at) => BinaryPrimitives.ReadUInt64LittleEndian(page.AsSpan(at));

        private static void Put32(byte[] page, int at, uint value) =>
            BinaryPrimitives.WriteUInt32LittleEndian(page.AsSpan(at), value);

        private static void Put64(byte[] page, int at, ulong value) =>
            BinaryPrimitives.WriteUInt64LittleEndian(page.AsSpan(at), value);
    }
}
