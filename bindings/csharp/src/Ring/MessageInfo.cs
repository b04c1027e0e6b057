namespace Ramway
{
    /// <summary>What a copied message was sent with.</summary>
    public readonly struct MessageInfo
    {
        internal MessageInfo(uint typeId, ulong tag, int length)
        {
            TypeId = typeId;
            Tag = tag;
            Length = length;
        }

        /// <summary>The sender's type id.</summary>
        public uint TypeId { get; }

        /// <summary>The sender's tag, 0 if it gave none.</summary>
        public ulong Tag { get; }

        /// <summary>The number of bytes of payload.</summary>
        public int Length { get; }
    }
}
