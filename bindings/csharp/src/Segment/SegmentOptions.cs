using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How a blocking call waits.</summary>
    public enum WaitMode
    {
        /// <summary>Spins for up to about 75 µs, less where waits have been long, and then sleeps.</summary>
        Hybrid = 0,
        /// <summary>Never sleeps in the kernel while the peer lives: the lowest latency, at the price of a processor.</summary>
        Spin = 1,
        /// <summary>Sleeps at once: the least work, at the price of a wake-up per wait.</summary>
        Block = 2,
    }

    /// <summary>
    /// How a named ring or region is to be made or opened, and how its handle waits. A new object holds the defaults.
    /// </summary>
    public abstract class SegmentOptions
    {
        private protected SegmentOptions()
        {
        }

        /// <summary>
        /// Lets Create throw away what dead processes left: undelivered messages, a persistent region. Never what live ones use.
        /// </summary>
        public bool Discard { get; set; }

        /// <summary>Makes a new segment keep its name when its last handle goes.</summary>
        public bool Persistent { get; set; }

        /// <summary>
        /// Accepts a file system that is not in memory. The kernel then writes the pages back as it likes, and a segment of
        /// another boot is never resumed.
        /// </summary>
        public bool AllowDisk { get; set; }

        /// <summary>Locks the data in memory. An error names RLIMIT_MEMLOCK if that is in the way.</summary>
        public bool LockMemory { get; set; }

        /// <summary>
        /// Puts the data into huge pages and checks that it is there: Unsupported names the setting in the way. The creator has
        /// to ask for them too; capacities are then at least a huge page.
        /// </summary>
        public bool HugePages { get; set; }

        /// <summary>Faults the whole data in now instead of on first use.</summary>
        public bool Prefault { get; set; }

        /// <summary>
        /// The NUMA node that the data is to be on; null, the default: wherever the kernel puts it. A new segment's is put there, an
        /// existing one's must be there (Unsupported). A node that does not exist is InvalidArgument.
        /// </summary>
        public int? NumaNode { get; set; }

        /// <summary>
        /// The permission bits of a new segment's file, whatever the umask; 0 is 0600 (octal). Both sides of a ring need to read
        /// and write. C# has no octal numbers: 0660 is <c>6 &lt;&lt; 6 | 6 &lt;&lt; 3</c>.
        /// </summary>
        public int Mode { get; set; }

        /// <summary>
        /// How long opening waits for a name that is not there yet, and for a role that is taken (a supervisor may be faster
        /// than the kernel is with a process that was killed). Zero, the default: not at all; <see
        /// cref="System.Threading.Timeout.InfiniteTimeSpan"/>: forever. Independently of it, races with others who are creating
        /// or removing the same name are retried for up to a second.
        /// </summary>
        public TimeSpan Timeout { get; set; }

        /// <summary>How blocking calls of the handle wait.</summary>
        public WaitMode Wait { get; set; }

        /// <summary>The permissions of a new segment's file.</summary>
        internal uint FileMode => Mode == 0 ? 0x180u : (uint)Mode & 0x1FF;

        /// <summary>
        /// Refuses what cannot be, and what this way of opening would ignore. Gives the granule: what the data's offset and capacity
        /// must be multiples of, in bytes.
        /// </summary>
        internal long Check(How how)
        {
            long granule = Check();
            if (Discard && how != How.Create)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "Discard applies to Create only; Open and OpenOrCreate take what is there");
            }
            if (how == How.Open && (Persistent || Mode != 0))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, (Persistent ? "Persistent" : "Mode") +
                    " applies to a new segment only, and Open makes none; leave it out, or use Create or OpenOrCreate");
            }
            return granule;
        }

        /// <summary>Likewise for all ways.</summary>
        internal long Check()
        {
            Waiter.Check(Wait);
            CheckMode(Mode);
            WaitLimit.Check(Timeout, "timeout");
            if (NumaNode is int node)
            {
                Numa.Check(node);
            }
            return HugePages ? Placement.HugePageSize() : Memory.PageSize;
        }

        /// <summary>Refuses what is not permission bits.</summary>
        internal static void CheckMode(int mode)
        {
            if (mode < 0 || mode > 0x1FF)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a mode of " + mode + ": expected permission bits, 0 to 511 (0777 octal)");
            }
        }
    }

    /// <summary>How a ring is to be made or opened, and how its handle waits. A new object holds the defaults.</summary>
    public sealed class RingOptions : SegmentOptions
    {
        internal static readonly RingOptions Default = new RingOptions();

        /// <summary>
        /// The ring's size in bytes, frame headers (16 bytes a message) included, rounded up to a power of two of at least a
        /// page; 0 is 1 MiB. An existing ring must have just this capacity if it is said here (InvalidArgument).
        /// </summary>
        public long Capacity { get; set; }

        /// <summary>
        /// What each payload's address is a multiple of, in bytes: a power of two from 16 to 4096; 0 is 16. An existing ring must
        /// have just this alignment if it is said here (InvalidArgument).
        /// </summary>
        public int Align { get; set; }

        /// <summary>
        /// Whether this process may use membarrier for this handle, which takes a fence off each message; true by default.
        /// Registering it takes up to 12 ms, once per process. RAMWAY_MEMBARRIER=0 in the environment stands for false.
        /// </summary>
        public bool Membarrier { get; set; } = true;
    }

    /// <summary>How a region is to be made or opened, and how its handle waits. A new object holds the defaults.</summary>
    public sealed class RegionOptions : SegmentOptions
    {
        internal static readonly RegionOptions Default = new RegionOptions();
    }
}
