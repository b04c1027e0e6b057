using System;

namespace Ramway
{
    /// <summary>How to connect to a listener, and how the ends of the bus wait. A new object holds the defaults.</summary>
    public sealed class ConnectOptions
    {
        /// <summary>How long to wait for a listener that is not there yet, and for its answer.</summary>
        public TimeSpan? Timeout { get; set; }

        /// <summary>How the ends of the bus wait.</summary>
        public WaitMode Wait { get; set; }
    }
}
