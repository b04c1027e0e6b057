using System;

namespace Ramway
{
    /// <summary>What the two ends of a ring have in common.</summary>
    public abstract unsafe class RingEnd : IDisposable
    {
        private protected RingEnd()
        {
        }

        /// <summary>The number of bytes of the data area. A frame takes 16 bytes more than its payload, rounded up to Align.</summary>
        public long Capacity => throw new NotImplementedException();

        /// <summary>What every payload's address is a multiple of, in bytes.</summary>
        public int Align => throw new NotImplementedException();

        /// <summary>The longest payload that ever fits, in bytes: min(Capacity - 16, 2^31 - 17). It fits whenever the ring is empty.</summary>
        public int MaxMessageLength => throw new NotImplementedException();

        /// <summary>How often this role has been attached, this handle included; 1 is the first.</summary>
        public uint Epoch => throw new NotImplementedException();

        /// <summary>How often the other role has been attached; 0: never yet. A change means that a successor took over. 0 once the handle is closed.</summary>
        public uint PeerEpoch => throw new NotImplementedException();

        /// <summary>Whether the other role is attached and its process lives.</summary>
        public bool PeerAlive => throw new NotImplementedException();

        /// <summary>How blocking calls of this handle wait from now on.</summary>
        public WaitMode WaitMode { get => throw new NotImplementedException(); set => throw new NotImplementedException(); }

        /// <summary>Closes the handle.</summary>
        public void Dispose() => throw new NotImplementedException();
    }
}
