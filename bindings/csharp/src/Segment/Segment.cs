using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>A side of a ring.</summary>
    internal enum Role : byte
    {
        Producer = 0,
        Consumer = 1,
    }

    /// <summary>What may happen to a name.</summary>
    internal enum How : byte
    {
        Create,
        Open,
        OpenOrCreate,
    }

    internal static class Words
    {
        internal static Role Other(this Role role) => role == Role.Producer ? Role.Consumer : Role.Producer;

        /// <summary>The byte of a named segment that the holder of the role locks exclusively.</summary>
        internal static long LockByte(this Role role) => role == Role.Producer ? Named.ByteProducer : Named.ByteConsumer;

        internal static string Verb(this How how)
        {
            switch (how)
            {
                case How.Create:
                    return "creating";
                case How.Open:
                    return "opening";
                default:
                    return "opening or creating";
            }
        }
    }

    /// <summary>
    /// Tells one side that the other one lives, and releases the segment at the end. No method may be called after Close; the
    /// others may be called from several threads at once.
    /// </summary>
    internal interface ILink
    {
        /// <summary>Whether Closed and PeerDead are forever; on a named ring a successor may attach.</summary>
        bool Final { get; }

        /// <summary>
        /// Whether the other role is held by somebody alive. A question for the slow path: it is one system call. It says yes where
        /// it cannot know.
        /// </summary>
        bool PeerAlive(Role me);

        /// <summary>
        /// Whether a named segment has lost its name, so that no successor can ever attach. One system call.
        /// </summary>
        bool Vanished();

        /// <summary>
        /// Lets the role go and closes the descriptors; on a named segment the last one out removes the name if nothing is
        /// undelivered. To be called once, after the closed flag is set, the peer is woken and all is unmapped.
        /// </summary>
        void Close();
    }

    /// <summary>For two threads of one process: only the closed flag tells.</summary>
    internal sealed class NoLink : ILink
    {
        internal static readonly NoLink Instance = new NoLink();

        public bool Final => true;

        public bool PeerAlive(Role me) => true;

        public bool Vanished() => false;

        public void Close()
        {
        }
    }

    /// <summary>The header page in memory.</summary>
    internal static unsafe class Segment
    {
        /// <summary>How many bytes of the header page are mapped: the header's size, or a page where that is larger.</summary>
        internal static readonly int HeaderLength = Math.Max(Memory.PageSize, Layout.HeaderSize);

        /// <summary>Maps the header page of a file that holds at least <see cref="HeaderLength"/> bytes.</summary>
        internal static byte* MapHeader(int fd, bool writable)
        {
            int error = Memory.Map(fd, 0, HeaderLength, writable, out byte* page);
            if (error < 0)
            {
                throw Errors.Os(error, "mapping the header page");
            }
            return page;
        }

        /// <summary>A private copy of a mapped header page, for <see cref="Header.Check"/>.</summary>
        internal static byte[] SnapshotHeader(byte* page)
        {
            byte[] copied = new byte[Layout.HeaderSize];
            fixed (byte* to = copied)
            {
                for (int i = 0; i < Layout.HeaderSize; i += 8)
                {
                    // Inside the mapping and aligned; others may write meanwhile, hence an atomic load. Each word stands for
                    // itself.
                    *(ulong*)(to + i) = Volatile.Read(ref *(ulong*)(page + i));
                }
            }
            return copied;
        }

        /// <summary>Refuses what this way of opening has no use for, and would ignore.</summary>
        internal static void CheckHow(How how, SegmentOptions o)
        {
            if (o.Discard && how != How.Create)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "Discard applies to Create only; Open and OpenOrCreate take what is there");
            }
            if (how == How.Open && (o.Persistent || o.Mode != 0))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, (o.Persistent ? "Persistent" : "Mode") +
                    " applies to a new segment only, and Open makes none; leave it out, or use Create or OpenOrCreate");
            }
        }

        /// <summary>
        /// What the data's offset and capacity must be multiples of. The first that is asked of the options: what is wrong with
        /// them whatever is opened, it says.
        /// </summary>
        internal static long Granule(SegmentOptions o)
        {
            CheckWait(o.Wait);
            if (o.Mode < 0 || o.Mode > 0x1FF)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a mode of " + o.Mode + ": expected permission bits, 0 to 511 (0777 octal)");
            }
            if (o.Timeout < TimeSpan.Zero && o.Timeout != Timeout.InfiniteTimeSpan)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a timeout of " + o.Timeout +
                    ": expected none, a positive one, or Timeout.InfiniteTimeSpan");
            }
            if (o.NumaNode is int node)
            {
                Numa.Check(node);
            }
            return o.HugePages ? Placement.HugePageSize() : Memory.PageSize;
        }

        /// <summary>Refuses what is none of the modes.</summary>
        internal static void CheckWait(WaitMode mode)
        {
            if (Waiter.Refusal(mode) is string refusal)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, refusal);
            }
        }
    }
}
