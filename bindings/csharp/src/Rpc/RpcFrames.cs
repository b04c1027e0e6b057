using System;
using System.Buffers.Binary;

namespace Ramway
{
    /// <summary>
    /// The bytes of RPC frames (ABI.md, section 20): what is written before a body, and how a received frame is checked. A
    /// received frame lies in memory that the other side can write: its header is copied first, and lengths are checked on the copy.
    /// </summary>
    internal static class RpcFrames
    {
        private const uint FnvBasis = 0x811C9DC5;
        private const uint FnvPrime = 0x01000193;

        /// <summary>FNV-1a of 32 bits, kept below the methods of Ramway's own.</summary>
        internal static uint MethodId(ReadOnlySpan<byte> name)
        {
            uint hash = FnvBasis;
            foreach (byte b in name)
            {
                hash = unchecked((hash ^ b) * FnvPrime);
            }
            return hash >= Facts.MethodReserved ? hash - Facts.MethodReserved : hash;
        }

        /// <summary>Where a body begins that follows this many bytes of metadata, from the payload's start.</summary>
        internal static long BodyAt(long meta) => (2L * Facts.RpcHeader - 1 + meta) & -Facts.RpcHeader;

        /// <summary>The length of a payload.</summary>
        internal static long PayloadLength(int meta, int body) => BodyAt(meta) + body;

        /// <summary>Writes metadata, the zeros after them, and the body behind a header.</summary>
        internal static void Fill(Span<byte> payload, ReadOnlySpan<byte> meta, ReadOnlySpan<byte> body)
        {
            int at = (int)BodyAt(meta.Length);
            meta.CopyTo(payload.Slice(Facts.RpcHeader));
            payload.Slice(Facts.RpcHeader + meta.Length, at - Facts.RpcHeader - meta.Length).Clear();
            body.CopyTo(payload.Slice(at));
        }

        internal static uint Get(ReadOnlySpan<byte> header, int at) => BinaryPrimitives.ReadUInt32LittleEndian(header.Slice(at));

        internal static void Put(Span<byte> header, int at, uint value) =>
            BinaryPrimitives.WriteUInt32LittleEndian(header.Slice(at), value);

        /// <summary>The number of a CREDIT; 0: no correct client sends this.</summary>
        internal static uint DecodeCredit(ReadOnlySpan<byte> payload) => payload.Length == sizeof(uint) ? Get(payload, 0) : 0;
    }

    /// <summary>A CALL's header.</summary>
    internal struct CallHeader
    {
        /// <summary>Microseconds that the call has left; 0: no limit.</summary>
        internal uint TimeoutUs;
        /// <summary>Bytes of metadata; of a decoded header it fits into the payload.</summary>
        internal uint MetaLength;
        internal uint Method;
        /// <summary>0: one reply; else how many elements of its stream may be under way.</summary>
        internal uint Window;

        internal readonly void Encode(Span<byte> to)
        {
            RpcFrames.Put(to, Facts.CallOffTimeoutUs, TimeoutUs);
            RpcFrames.Put(to, Facts.CallOffMetaLen, MetaLength);
            RpcFrames.Put(to, Facts.CallOffMethod, Method);
            RpcFrames.Put(to, Facts.CallOffWindow, Window);
        }

        /// <summary>Of a payload of this length that begins with these bytes; false: no correct client sends it.</summary>
        internal static bool Decode(ReadOnlySpan<byte> from, int length, out CallHeader header)
        {
            header = default;
            if (length < Facts.RpcHeader)
            {
                return false;
            }
            header.TimeoutUs = RpcFrames.Get(from, Facts.CallOffTimeoutUs);
            header.MetaLength = RpcFrames.Get(from, Facts.CallOffMetaLen);
            header.Method = RpcFrames.Get(from, Facts.CallOffMethod);
            header.Window = RpcFrames.Get(from, Facts.CallOffWindow);
            return RpcFrames.BodyAt(header.MetaLength) <= length;
        }

        /// <summary>The time that a call has left, as CALL says it: rounded up, at least 1 µs; 0 where it has no limit or a longer
        /// one than can be said.</summary>
        internal static uint Timeout(long leftNanos)
        {
            if (leftNanos == long.MaxValue)
            {
                return 0;
            }
            long micros = Math.Max(leftNanos / 1000 + (leftNanos % 1000 > 0 ? 1 : 0), 1);
            return micros > uint.MaxValue ? 0 : (uint)micros;
        }
    }

    /// <summary>A REPLY's header.</summary>
    internal struct ReplyHeader
    {
        /// <summary>Ok of an element.</summary>
        internal RpcStatus Status;
        /// <summary>An element of a stream; else the final REPLY.</summary>
        internal bool Element;
        /// <summary>The application's number.</summary>
        internal uint Code;
        /// <summary>Bytes of metadata; of a decoded header it fits into the payload.</summary>
        internal uint MetaLength;

        internal readonly void Encode(Span<byte> to)
        {
            RpcFrames.Put(to, Facts.ReplyOffStatus, (uint)Status);
            RpcFrames.Put(to, Facts.ReplyOffFlags, Element ? Facts.RpcElement : 0);
            RpcFrames.Put(to, Facts.ReplyOffCode, Code);
            RpcFrames.Put(to, Facts.ReplyOffMetaLen, MetaLength);
        }

        /// <summary>Of a payload of this length that begins with these bytes; false: no correct server sends it.</summary>
        internal static bool Decode(ReadOnlySpan<byte> from, int length, out ReplyHeader header)
        {
            header = default;
            if (length < Facts.RpcHeader)
            {
                return false;
            }
            uint status = RpcFrames.Get(from, Facts.ReplyOffStatus), flags = RpcFrames.Get(from, Facts.ReplyOffFlags);
            header.Status = (RpcStatus)status;
            header.Element = flags == Facts.RpcElement;
            header.Code = RpcFrames.Get(from, Facts.ReplyOffCode);
            header.MetaLength = RpcFrames.Get(from, Facts.ReplyOffMetaLen);
            return status <= (uint)RpcStatus.HandlerFailed && (flags & ~Facts.RpcElement) == 0 &&
                (!header.Element || header.Status == RpcStatus.Ok) &&
                (header.Code == 0 || header.Status == RpcStatus.Application) &&
                RpcFrames.BodyAt(header.MetaLength) <= length;
        }
    }
}
