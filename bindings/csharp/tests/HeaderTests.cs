using System;
using System.Buffers.Binary;

namespace Ramway.Tests
{
    /// <summary>Every row of ABI.md, section 16, that concerns the header, and their order.</summary>
    internal static class HeaderTests
    {
        private const ulong Size = 12_288;

        /// <summary>The header page of a ring of 8192 bytes in a segment of 12288, and change writes over it.</summary>
        private static byte[] Page(Action<byte[]>? change = null)
        {
            byte[] page = Header.Format(Spec.Ring(8192, 16, 4096));
            change?.Invoke(page);
            return page;
        }

        private static Action<byte[]> Put16(int at, ushort v) => p => BinaryPrimitives.WriteUInt16LittleEndian(p.AsSpan(at), v);

        private static Action<byte[]> Put32(int at, uint v) => p => BinaryPrimitives.WriteUInt32LittleEndian(p.AsSpan(at), v);

        private static Action<byte[]> Put64(int at, ulong v) => p => BinaryPrimitives.WriteUInt64LittleEndian(p.AsSpan(at), v);

        private static void Refused(ErrorKind kind, string what, params Action<byte[]>[] changes)
        {
            byte[] page = Page();
            foreach (Action<byte[]> change in changes)
            {
                change(page);
            }
            try
            {
                Check.Fails(kind, () => Header.Check(page, Size));
            }
            catch (CheckException e)
            {
                throw new CheckException(what + ": " + e.Message);
            }
        }

        [Test]
        private static void WhatIsMadeIsAccepted()
        {
            Header h = Header.Check(Page(), Size);
            Check.Equal(SegmentKind.Ring, h.Kind, "kind");
            Check.Equal(8192ul, h.Blocks[0].Capacity, "capacity");
            Check.Equal(4096ul, h.Blocks[0].DataOffset, "data offset");
            Check.Equal(16u, h.Blocks[0].Align, "alignment");
            Check.That(!h.Persistent && !h.OfAnotherBoot, "flags and boot");
            Header.Check(Page(Put16(Facts.OffVersionMinor, 9)), Size);
            Header.Check(Page(Put32(Facts.OffFeaturesOptional, uint.MaxValue)), Size);
            Header.Check(Page(Put32(Facts.OffFlags, 0xFFFF_FFFE)), Size);
        }

        [Test]
        private static void EachFieldIsChecked()
        {
            Refused(ErrorKind.AbiMismatch, "magic", p => p[3] ^= 1);
            Refused(ErrorKind.AbiMismatch, "the other byte order", Put32(Facts.OffByteOrder, Facts.ByteOrderSwapped));
            Refused(ErrorKind.Corrupt, "no byte order", Put32(Facts.OffByteOrder, 0x01020304));
            Refused(ErrorKind.AbiMismatch, "version 2", Put16(Facts.OffVersionMajor, 2));
            Refused(ErrorKind.AbiMismatch, "version 0", Put16(Facts.OffVersionMajor, 0));
            Refused(ErrorKind.AbiMismatch, "a required feature", Put32(Facts.OffFeaturesRequired, 1u << 31));
            Refused(ErrorKind.AbiMismatch, "kind 0", Put32(Facts.OffKind, 0));
            Refused(ErrorKind.AbiMismatch, "kind 99", Put32(Facts.OffKind, 99));
            foreach (ulong size in new ulong[] { 0, 4096, 12_287, 12_289, ulong.MaxValue })
            {
                Refused(ErrorKind.Corrupt, "size " + size, Put64(Facts.OffSize, size));
            }
            const ulong most = ulong.MaxValue;
            foreach (ulong at in new ulong[] { 0, 1, 64, 4095, 8192, 12_288, 1ul << 40, most, most - 4095, most - 8191 })
            {
                Refused(ErrorKind.Corrupt, "data offset " + at, Put64(Facts.Block0 + Facts.OffDataOffset, at));
            }
            foreach (ulong capacity in new ulong[] { 0, 4096 + 8192, 16_384, 1ul << 30, 1ul << 63, ulong.MaxValue })
            {
                Refused(ErrorKind.Corrupt, "capacity " + capacity, Put64(Facts.Block0 + Facts.OffCapacity, capacity));
            }
            foreach (ulong capacity in new ulong[] { 1, 15, 16, 2048, 4097, 8191 })
            {
                Refused(ErrorKind.AbiMismatch, "capacity that is no page " + capacity, Put64(Facts.Block0 + Facts.OffCapacity, capacity));
            }
            foreach (uint align in new uint[] { 0, 1, 8, 15, 17, 24, 8192, 1u << 31, uint.MaxValue })
            {
                Refused(ErrorKind.Corrupt, "alignment " + align, Put32(Facts.Block0 + Facts.OffAlign, align));
            }
        }

        [Test]
        private static void TheFirstCheckThatFailsDecides()
        {
            Action<byte[]> order = Put32(Facts.OffByteOrder, 1), version = Put16(Facts.OffVersionMajor, 2);
            Action<byte[]> size = Put64(Facts.OffSize, 1);
            Refused(ErrorKind.AbiMismatch, "magic before the byte order", p => p[3] ^= 1, order);
            Refused(ErrorKind.Corrupt, "byte order before the version", version, order);
            Refused(ErrorKind.AbiMismatch, "version before the size", version, size);
            Refused(ErrorKind.AbiMismatch, "features before the size", Put32(Facts.OffFeaturesRequired, 1), size);
            Refused(ErrorKind.AbiMismatch, "kind before the size", Put32(Facts.OffKind, 99), size);
        }

        [Test]
        private static void TheFileMustBeAsLongAsItSays()
        {
            foreach (ulong size in new ulong[] { 0, 4095, 4096, 12_289 })
            {
                Check.Fails(ErrorKind.Corrupt, () => Header.Check(Page(), size));
            }
            Check.Fails(ErrorKind.AbiMismatch, () => Header.Check(new byte[4096], 0));
        }

        [Test]
        private static void TheRingsOfABus()
        {
            Spec s = Spec.Bus(8192, 4096, 64);
            byte[] bus = Header.Format(s);
            Header h = Header.Check(bus, s.Size);
            Check.Equal(8192ul, h.Blocks[0].Capacity, "block 0");
            Check.Equal(4096ul, h.Blocks[1].Capacity, "block 1");
            Check.Equal(12_288ul, h.Blocks[1].DataOffset, "where block 1 begins");
            // Neither may lie in the other.
            Put64(Facts.Block1 + Facts.OffDataOffset, 8192)(bus);
            Check.Fails(ErrorKind.Corrupt, () => Header.Check(bus, s.Size), "overlap");
            // One direction may be absent, whatever else its block says.
            s = Spec.Bus(0, 4096, 16);
            bus = Header.Format(s);
            Put64(Facts.Block0 + Facts.OffDataOffset, 1)(bus);
            Put32(Facts.Block0 + Facts.OffAlign, 3)(bus);
            h = Header.Check(bus, s.Size);
            Check.Equal(0ul, h.Blocks[0].Capacity, "a direction left out");
            Check.Equal(4096ul, h.Blocks[1].Capacity, "the other one");
            Check.Fails(ErrorKind.InvalidArgument, () => Spec.Bus(0, 0, 16));
            Check.Fails(ErrorKind.InvalidArgument, () => Spec.Bus(-1, 4096, 16));
        }

        [Test]
        private static void TheLengthOfARegion()
        {
            Spec s = Spec.Region(5000, 4096);
            byte[] region = Header.Format(s);
            Header h = Header.Check(region, s.Size);
            Check.Equal(5000ul, h.Blocks[0].Length, "length");
            Check.Equal(8192ul, h.Blocks[0].Capacity, "capacity");
            foreach (ulong length in new ulong[] { 0, 8193, ulong.MaxValue })
            {
                Put64(Facts.Block0 + Facts.OffLen, length)(region);
                Check.Fails(ErrorKind.Corrupt, () => Header.Check(region, s.Size));
            }
        }
    }
}
