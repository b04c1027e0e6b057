using System;

namespace Ramway
{
    /// <summary>A reply, or an element of a stream. It is a copy and belongs to whoever has it.</summary>
    public sealed class RpcReply
    {
        private readonly byte[] payload;
        private readonly int metaLength;

        /// <summary>Of a payload behind its header: metadata, zeros, the body.</summary>
        internal RpcReply(byte[] payload, int metaLength)
        {
            this.payload = payload;
            this.metaLength = metaLength;
        }

        /// <summary>The reply's bytes.</summary>
        public ReadOnlyMemory<byte> Body => payload.AsMemory((int)RpcFrames.BodyAt(metaLength) - Facts.RpcHeader);

        /// <summary>The reply's metadata: bytes that the application defines, empty if there are none.</summary>
        public ReadOnlyMemory<byte> Meta => payload.AsMemory(0, metaLength);

        /// <summary>What it counts for while nobody has taken it: its payload, header included.</summary>
        internal long Held => Facts.RpcHeader + payload.Length;
    }
}
