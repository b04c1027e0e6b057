using System;
using System.Buffers;

namespace Ramway
{
    /// <summary>A received message that may be kept, and passed to other threads, until it is disposed.</summary>
    public sealed class OwnedMessage : IMemoryOwner<byte>
    {
        /// <summary>What the sender said the payload is.</summary>
        public uint TypeId => throw new NotImplementedException();

        /// <summary>The sender's tag, 0 if it gave none.</summary>
        public ulong Tag => throw new NotImplementedException();

        /// <summary>The number of bytes of payload.</summary>
        public int Length => throw new NotImplementedException();

        /// <summary>The payload in place.</summary>
        public Memory<byte> Memory => throw new NotImplementedException();

        /// <summary>Gives the message back.</summary>
        public void Dispose() => throw new NotImplementedException();
    }
}
