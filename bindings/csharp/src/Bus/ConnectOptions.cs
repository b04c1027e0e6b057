using System;
using System.Collections.Generic;

namespace Ramway
{
    /// <summary>How to connect to a <see cref="Listener"/>. A new object holds the defaults.</summary>
    public sealed class ConnectOptions
    {
        private IReadOnlyCollection<uint> _allowUids = Array.Empty<uint>();

        /// <summary>
        /// How long to wait for a listener that is not there yet, does not accept, or is flooded: 10 s by default; <see
        /// cref="System.Threading.Timeout.InfiniteTimeSpan"/>: forever.
        /// </summary>
        public TimeSpan Timeout { get; set; } = TimeSpan.FromSeconds(10);

        /// <summary>Other users whose listeners will do; without it, only those of our own effective user.</summary>
        /// <exception cref="ArgumentNullException">There is no null here: an empty collection allows nobody else.</exception>
        public IReadOnlyCollection<uint> AllowUids
        {
            get => _allowUids;
            set => _allowUids = value ?? throw new ArgumentNullException(nameof(AllowUids));
        }

        /// <summary>How both ends wait.</summary>
        public WaitMode Wait { get; set; }

        /// <summary>As <see cref="RingOptions.Membarrier"/>.</summary>
        public bool Membarrier { get; set; } = true;
    }
}
