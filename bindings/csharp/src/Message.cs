using System;

namespace Ramway
{
    /// <summary>A received message: a view of the shared memory, good until Dispose.</summary>
    public readonly unsafe ref struct Message
    {
        /// <summary>What the sender said the payload is.</summary>
        public uint TypeId => throw new NotImplementedException();

        /// <summary>The sender's tag, 0 if it gave none.</summary>
        public ulong Tag => throw new NotImplementedException();

        /// <summary>The number of bytes of payload.</summary>
        public int Length => throw new NotImplementedException();

        /// <summary>The payload in place.</summary>
        public ReadOnlySpan<byte> Data => throw new NotImplementedException();

        /// <summary>Where the payload is, for native code.</summary>
        public IntPtr Address => throw new NotImplementedException();

        /// <summary>Gives the message back.</summary>
        public void Dispose() => throw new NotImplementedException();
    }
}
