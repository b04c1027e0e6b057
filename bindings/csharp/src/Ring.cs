using System;

namespace Ramway
{
    /// <summary>Rings without a name.</summary>
    public static class Ring
    {
        /// <summary>Both ends of a new ring for two threads of this process.</summary>
        public static (Sender Sender, Receiver Receiver) Pair(RingOptions? options = null) => throw new NotImplementedException();
    }
}
