using System;

namespace Ramway
{
    /// <summary>What a listener gives those who connect. A new object holds the defaults.</summary>
    public sealed class ListenerOptions
    {
        /// <summary>The size of both rings of every bus in bytes; 0 is 1 MiB.</summary>
        public long Capacity { get; set; }

        /// <summary>How the ends of every bus wait.</summary>
        public WaitMode Wait { get; set; }
    }
}
