using System;
using System.Runtime.InteropServices;

namespace Ramway
{
    /// <summary>What a segment holds.</summary>
    public enum SegmentKind
    {
        /// <summary>Shared bytes.</summary>
        Region = 1,
        /// <summary>Messages, one way.</summary>
        Ring = 2,
        /// <summary>The two rings of a connection; it never has a name.</summary>
        Bus = 3,
        /// <summary>The lock of a listener.</summary>
        Listener = 4,
    }

    /// <summary>
    /// The bytes of a segment: docs/ABI.md as C# types. Nothing here maps memory or decides what to trust.
    /// </summary>
    internal static class Layout
    {
        /// <summary>The first eight bytes of every segment, "RAMWAY\r\n", as a little-endian number.</summary>
        internal const ulong Magic = 0x0A0D_5941_574D_4152;
        /// <summary>Written in the creator's byte order, so that a reader of the other order sees it swapped.</summary>
        internal const uint ByteOrder = 0x0A0B0C0D;
        internal const uint ByteOrderSwapped = 0x0D0C0B0A;
        /// <summary>A reader refuses any other major version and accepts any minor one.</summary>
        internal const ushort VersionMajor = 1;
        internal const ushort VersionMinor = 0;
        /// <summary>The required feature bits that this version knows.</summary>
        internal const uint FeaturesKnown = 0;

        /// <summary>The length of the header page in bytes; data begins here or later.</summary>
        internal const int HeaderSize = 4096;
        /// <summary>Where the blocks begin in the header page.</summary>
        internal const int Block0 = 0x400;
        internal const int Block1 = 0x800;

        /// <summary>The length of what precedes every payload: len uint, type id uint, tag ulong.</summary>
        internal const int FrameHeader = 16;
        internal const int AlignMin = 16;
        internal const int AlignMax = 4096;
        /// <summary>Type ids from here up are Ramway's own.</summary>
        internal const uint TypeIdReserved = 0xFFFF0000;
        /// <summary>The type id of a tensor.</summary>
        internal const uint TypeIdTensor = 0xFFFF0001;
        /// <summary>No message is longer, whatever the capacity.</summary>
        internal const uint MessageMax = (1u << 31) - 17;
        /// <summary>The capacity of a ring if nobody says otherwise, in bytes.</summary>
        internal const long DefaultCapacity = 1 << 20;

        /// <summary>In the segment's flags: the last one out leaves the name in place.</summary>
        internal const uint FlagPersistent = 1;

        /// <summary>The bits of a role's flags.</summary>
        internal const uint RoleMembarrierCapable = 1;
        internal const uint RoleFenceFree = 2;
        internal const uint RoleClosed = 4;

        /// <summary>Where the fields of the segment header are, from the segment's start.</summary>
        internal const int OffMagic = 0x00;
        internal const int OffByteOrder = 0x08;
        internal const int OffVersionMajor = 0x0C;
        internal const int OffVersionMinor = 0x0E;
        internal const int OffKind = 0x10;
        internal const int OffFlags = 0x14;
        internal const int OffFeaturesRequired = 0x18;
        internal const int OffFeaturesOptional = 0x1C;
        internal const int OffSize = 0x20;
        internal const int OffCreated = 0x28;
        internal const int OffBootId = 0x30;

        /// <summary>Where the fields of a block are, from the block's start: the geometry's, then a ring's.</summary>
        internal const int OffDataOffset = 0x000;
        internal const int OffCapacity = 0x008;
        internal const int OffLen = 0x010;
        internal const int OffAlign = 0x018;
        internal const int OffTail = 0x080;
        internal const int OffHead = 0x100;
        internal const int OffProducer = 0x180;
        internal const int OffConsumer = 0x200;
        internal const int OffLastTag0 = 0x088;
        internal const int OffLastTag1 = 0x098;
        /// <summary>A region's word.</summary>
        internal const int OffNotify = 0x080;

        /// <summary>Where the words of a role are, from the role's start.</summary>
        internal const int OffRoleWait = 0;
        internal const int OffRoleFlags = 4;
        internal const int OffRoleEpoch = 8;
        internal const int OffRoleCloseSeen = 12;

        /// <summary>Where a block begins in the header page.</summary>
        internal static int BlockOffset(int block) => block == 0 ? Block0 : Block1;

        internal static string NameOf(SegmentKind kind) => kind switch
        {
            SegmentKind.Region => "region",
            SegmentKind.Ring => "ring",
            SegmentKind.Bus => "bus",
            SegmentKind.Listener => "listener",
            _ => "segment of unknown kind",
        };

        /// <summary>Where the positions of a new ring with this alignment begin.</summary>
        internal static ulong FirstPosition(uint align) => (ulong)align - FrameHeader;

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
            return (FrameHeader + length + mask) & ~mask;
        }

        /// <summary>The longest payload that a ring of this capacity can ever hold.</summary>
        internal static uint MaxMessageLength(ulong capacity) =>
            capacity < FrameHeader ? 0 : (uint)Math.Min(capacity - FrameHeader, MessageMax);

        internal static bool IsPowerOfTwo(ulong n) => n != 0 && (n & (n - 1)) == 0;
    }

    /// <summary>The end and the tag of a published frame.</summary>
    [StructLayout(LayoutKind.Explicit, Size = 16)]
    internal struct TagRecord
    {
        [FieldOffset(0)] internal ulong End;
        [FieldOffset(8)] internal ulong Tag;
    }

    /// <summary>What one side of a ring says of itself. Every word is accessed atomically.</summary>
    [StructLayout(LayoutKind.Explicit, Size = 128)]
    internal struct RoleLine
    {
        /// <summary>The futex: 1 while the holder sleeps or is about to.</summary>
        [FieldOffset(Layout.OffRoleWait)] internal uint Wait;
        /// <summary><see cref="Layout.RoleMembarrierCapable"/>, <see cref="Layout.RoleFenceFree"/>, <see cref="Layout.RoleClosed"/>.</summary>
        [FieldOffset(Layout.OffRoleFlags)] internal uint Flags;
        /// <summary>How often the role was attached; 0 = never.</summary>
        [FieldOffset(Layout.OffRoleEpoch)] internal uint Epoch;
        /// <summary>Consumer only: the producer's epoch whose orderly close was delivered.</summary>
        [FieldOffset(Layout.OffRoleCloseSeen)] internal uint CloseSeen;
    }

    /// <summary>
    /// A ring's part of the header page, as it lies in shared memory. Every word but the geometry's is accessed atomically; the
    /// geometry is read once, by <see cref="Header.Check"/>, out of a copy.
    /// </summary>
    [StructLayout(LayoutKind.Explicit, Size = 0x280)]
    internal struct RingBlock
    {
        [FieldOffset(Layout.OffTail)] internal ulong Tail;
        [FieldOffset(Layout.OffLastTag0)] internal TagRecord LastTag0;
        [FieldOffset(Layout.OffLastTag1)] internal TagRecord LastTag1;
        [FieldOffset(Layout.OffHead)] internal ulong Head;
        [FieldOffset(Layout.OffProducer)] internal RoleLine Producer;
        [FieldOffset(Layout.OffConsumer)] internal RoleLine Consumer;
    }

    /// <summary>A region's part of the header page.</summary>
    [StructLayout(LayoutKind.Explicit, Size = 0x100)]
    internal struct RegionBlock
    {
        /// <summary>Bit 0: a handle waits; the rest counts notifications.</summary>
        [FieldOffset(Layout.OffNotify)] internal int Notify;
    }
}
