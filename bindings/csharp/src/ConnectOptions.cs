using System;
using System.Collections.Generic;

namespace Ramway
{
    /// <summary>How to connect to a <see cref="Listener"/>. A new object holds the defaults.</summary>
    public sealed class ConnectOptions
    {
        /// <summary>
        /// How long to wait for a listener that is not there yet, does not accept, or is flooded: 10 s by default; <see
        /// cref="System.Threading.Timeout.InfiniteTimeSpan"/>: for ever.
        /// </summary>
        public TimeSpan Timeout { get; set; } = TimeSpan.FromSeconds(10);

        /// <summary>Other users whose listeners will do; without it, only those of our own effective user.</summary>
        public IReadOnlyCollection<uint> TrustUids { get; set; } = Array.Empty<uint>();

        /// <summary>How both ends wait.</summary>
        public WaitMode Wait { get; set; }

        /// <summary>As <see cref="RingOptions.NoMembarrier"/>.</summary>
        public bool NoMembarrier { get; set; }
    }
}
