using System;

namespace Ramway
{
    /// <summary>Room for one message, to be written in place and then committed.</summary>
    public unsafe ref struct Slot
    {
        /// <summary>The room.</summary>
        public Span<byte> Data => throw new NotImplementedException();

        /// <summary>Where the room is, for native code.</summary>
        public IntPtr Address => throw new NotImplementedException();

        /// <summary>Sends the slot.</summary>
        public void Commit(uint typeId, ulong tag = 0) => throw new NotImplementedException();

        /// <summary>Sends the first bytes of the slot.</summary>
        public void Commit(int length, uint typeId, ulong tag = 0) => throw new NotImplementedException();

        /// <summary>Commits the slot; it is visible only after Flush, or the next flushed message.</summary>
        public void CommitUnflushed(uint typeId, ulong tag = 0) => throw new NotImplementedException();

        /// <summary>Commits the first bytes of the slot; visible only after Flush, or the next flushed message.</summary>
        public void CommitUnflushed(int length, uint typeId, ulong tag = 0) => throw new NotImplementedException();

        internal void CommitTensor(int length, ulong tag, bool flush = true) => throw new NotImplementedException();

        /// <summary>Gives the slot up unless it was committed; nothing of it remains.</summary>
        public void Dispose() => throw new NotImplementedException();
    }
}
