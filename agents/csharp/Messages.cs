using System;
using System.Runtime.CompilerServices;

namespace Ramway.Agents
{
    /// <summary>A message did not arrive as it was sent.</summary>
    internal sealed class BadException : Exception
    {
        internal BadException(long seq, string text)
            : base(text) => Seq = seq;

        internal long Seq { get; }
    }

    /// <summary>Message number seq.</summary>
    internal readonly ref struct Made
    {
        internal Made(uint typeId, ulong tag, ReadOnlySpan<byte> payload)
        {
            TypeId = typeId;
            Tag = tag;
            Payload = payload;
        }

        internal uint TypeId { get; }

        internal ulong Tag { get; }

        internal ReadOnlySpan<byte> Payload { get; }
    }

    /// <summary>How long each message is.</summary>
    internal readonly struct Sizes
    {
        private readonly bool ramp;

        internal Sizes(string text)
        {
            ramp = text == "ramp";
            Fixed = -1;
            if (text != "mixed" && !ramp)
            {
                Fixed = long.TryParse(text, out long number) && number >= 0
                    ? number
                    : throw new RefusedException("sizes is mixed, ramp or a number");
            }
        }

        /// <summary>The length of all, or -1.</summary>
        internal long Fixed { get; }

        internal long Length(long seq, long longest)
        {
            if (Fixed >= 0)
            {
                return Fixed;
            }
            if (ramp)
            {
                return seq % (longest + 1);
            }
            if (seq % 1000 == 999)
            {
                return longest;
            }
            if (seq % 100 == 0)
            {
                return 0;
            }
            long x = unchecked((uint)seq * 2_654_435_761u);
            return seq % 50 == 1 ? x % (longest + 1) : x % 257;
        }
    }

    /// <summary>Every message of a ring whose longest has so many bytes.</summary>
    internal sealed class Messages
    {
        private readonly Sizes sizes;
        private readonly long longest;

        /// <summary>Bytes 0, 1, …, 255, 0, …: every payload is a piece of it.</summary>
        private byte[] pattern = Array.Empty<byte>();

        internal Messages(Line line, long longest)
            : this(new Sizes(line.Maybe("sizes") ?? "mixed"), longest)
        {
        }

        internal Messages(Sizes sizes, long longest)
        {
            this.sizes = sizes;
            this.longest = longest;
        }

        private byte[] Pattern(long length)
        {
            if (pattern.Length < length + 256)
            {
                // Twice as much as now, unless that is more than any message of this ring needs.
                long most = Math.Max(length, Math.Min(2L * pattern.Length, longest));
                pattern = new byte[most + 256];
                for (int i = 0; i < pattern.Length; i++)
                {
                    pattern[i] = (byte)i;
                }
            }
            return pattern;
        }

        internal Made Make(long seq)
        {
            long length = sizes.Length(seq, longest);
            ReadOnlySpan<byte> payload = Pattern(length).AsSpan((int)(seq % 256), (int)length);
            return new Made((uint)(seq % 60_000), Tag(seq, payload), payload);
        }

        /// <summary>Says no to what came as message number seq and is not.</summary>
        internal void Check(long seq, uint typeId, ulong tag, ReadOnlySpan<byte> payload)
        {
            Made made = Make(seq);
            if (payload.Length != made.Payload.Length)
            {
                throw new BadException(seq, $"length {payload.Length} instead of {made.Payload.Length}, tag {tag:x16}");
            }
            if (typeId != made.TypeId)
            {
                throw new BadException(seq, $"type id {typeId} instead of {made.TypeId}");
            }
            // Of the bytes that came, so that each of them is read.
            if (Tag(seq, payload) != tag || tag != made.Tag)
            {
                throw new BadException(seq, $"tag {tag:x16} instead of {made.Tag:x16}");
            }
            if (!payload.SequenceEqual(made.Payload))
            {
                throw new BadException(seq, "the bytes");
            }
        }

        internal static ulong Tag(long seq, ReadOnlySpan<byte> payload) => (ulong)Crc32.Of(payload) << 32 | (uint)seq;

        /// <summary>The number that a tag says, of one that was made here.</summary>
        internal static long SeqOf(ulong tag) => (uint)tag;
    }

    /// <summary>The CRC-32 of zlib and gzip, eight bytes at a time.</summary>
    internal static class Crc32
    {
        private static readonly uint[][] Tables = MakeTables();

        private static uint[][] MakeTables()
        {
            var tables = new uint[8][];
            for (int t = 0; t < 8; t++)
            {
                tables[t] = new uint[256];
                for (uint i = 0; i < 256; i++)
                {
                    uint x = t == 0 ? i : tables[t - 1][i];
                    for (int bit = 0; bit < 8; bit++)
                    {
                        x = x >> 1 ^ (0xEDB88320u & (0u - (x & 1)));
                    }
                    tables[t][i] = x;
                }
            }
            return tables;
        }

        [MethodImpl(MethodImplOptions.AggressiveOptimization)]
        internal static uint Of(ReadOnlySpan<byte> bytes)
        {
            uint[] t0 = Tables[0], t1 = Tables[1], t2 = Tables[2], t3 = Tables[3];
            uint[] t4 = Tables[4], t5 = Tables[5], t6 = Tables[6], t7 = Tables[7];
            uint x = uint.MaxValue;
            while (bytes.Length >= 8)
            {
                x ^= (uint)(bytes[0] | bytes[1] << 8 | bytes[2] << 16 | bytes[3] << 24);
                x = t7[x & 0xFF] ^ t6[x >> 8 & 0xFF] ^ t5[x >> 16 & 0xFF] ^ t4[x >> 24]
                    ^ t3[bytes[4]] ^ t2[bytes[5]] ^ t1[bytes[6]] ^ t0[bytes[7]];
                bytes = bytes.Slice(8);
            }
            foreach (byte b in bytes)
            {
                x = t0[(x ^ b) & 0xFF] ^ x >> 8;
            }
            return ~x;
        }
    }
}
