using System;
using System.Threading;
using Microsoft.Win32.SafeHandles;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>Rings whose descriptor is handed to another process (ABI.md, section 11, at its end).</summary>
    internal static class Unnamed
    {
        // How long others may hold byte 0 for a moment.
        private const long RaceTimeout = 1_000_000_000;
        private const double PauseMax = 10;

        /// <summary>New memory with an empty ring; no role is taken.</summary>
        internal static SafeFileHandle Create(RingOptions o, bool inheritable)
        {
            Libc.RequireSupported();
            Segment.CheckHow(How.Open, o);
            Spec spec = Spec.Ring(o.Capacity == 0 ? Layout.DefaultCapacity : o.Capacity, o.Align, Segment.Granule(o)).Named(false);
            int fd = Memfd.Unsealed("ramway-ring");
            if (fd < 0)
            {
                throw Errors.Os(fd, "making memory");
            }
            var handle = new SafeFileHandle((IntPtr)fd, true);
            try
            {
                Birth.Allocate(fd, spec, o.NumaNode);
                int result = Files.Truncate(fd, (long)spec.Size);
                if (result >= 0)
                {
                    result = Files.WriteAt(fd, Header.Format(spec), 0);
                }
                if (result >= 0 && inheritable)
                {
                    result = Files.MakeInheritable(fd);
                }
                return result >= 0 ? handle : throw Errors.Os(result, "filling the memory");
            }
            catch
            {
                handle.Dispose();
                throw;
            }
        }

        /// <summary>Attaches to a role of the ring behind a descriptor, which stays the caller's.</summary>
        internal static Attachment Attach(int fd, RingOptions o, Role role)
        {
            try
            {
                return AttachOnce(fd, o, role);
            }
            catch (RamwayException e)
            {
                throw Errors.About(e, "attaching to the ring of descriptor " + fd, null);
            }
        }

        private static Attachment AttachOnce(int fd, RingOptions o, Role role)
        {
            Libc.RequireSupported();
            Segment.CheckHow(How.Open, o);
            long granule = Segment.Granule(o);
            Geometry wanted = Spec.Ring(o.Capacity == 0 ? Layout.DefaultCapacity : o.Capacity, o.Align, granule).Blocks[0];
            int result = Files.Stat(fd, out Stat stat);
            if (result < 0)
            {
                throw Errors.Os(result, "looking at the descriptor");
            }
            if (!stat.IsRegular)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "this is " + stat.Describe() + ", not the memory of a ring");
            }
            if (stat.Links != 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    "this descriptor leads to a file that has a name: open the ring by its name");
            }
            Named.CheckFileSystem(fd, false);
            Header h = Header.Check(Named.ReadPage(fd, out ulong size), size);
            if (h.Kind != SegmentKind.Ring)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "this is a " + Layout.NameOf(h.Kind) + ", not a ring");
            }
            Ramway.Attach.CheckRing(o, wanted, h);
            // A duplicate would share the locks of all who inherited the descriptor.
            int own = Files.Reopen(fd);
            if (own < 0)
            {
                throw Errors.Os(own, "opening /proc/self/fd/" + fd + " for the locks (is /proc mounted?)");
            }
            var link = new UnnamedLink(own);
            int file = -1;
            try
            {
                Wait(link, o, role);
                file = Files.Dup(fd);
                return file >= 0
                    ? Attachment.Over(file, Layout.Block0, h.Blocks[0], link, o)
                    : throw Errors.Os(file, "duplicating a descriptor");
            }
            catch
            {
                if (file >= 0)
                {
                    Files.Close(file);
                }
                link.Close();
                throw;
            }
        }

        /// <summary>Takes the locks, as the options' Timeout says.</summary>
        private static void Wait(UnnamedLink link, RingOptions o, Role role)
        {
            bool forever = o.Timeout == Timeout.InfiniteTimeSpan;
            long start = Clock.Nanoseconds;
            long limit = forever || o.Timeout.Ticks > long.MaxValue / 200 ? long.MaxValue : o.Timeout.Ticks * 100;
            for (double pause = 0.1; ; pause = Math.Min(2 * pause, PauseMax))
            {
                RamwayException? e = link.Take(role, out bool race);
                if (e == null)
                {
                    return;
                }
                long left = (race ? Math.Max(limit, RaceTimeout) : limit) - (Clock.Nanoseconds - start);
                if (left <= 0)
                {
                    throw e;
                }
                Futex.Sleep(Math.Max(1, Math.Min((long)(pause * 1e6), left)));
            }
        }
    }

    /// <summary>The locks of one handle on a ring without a name.</summary>
    internal sealed class UnnamedLink : ILink
    {
        private readonly int _lock;

        internal UnnamedLink(int @lock) => _lock = @lock;

        public bool Final => false;

        /// <summary>Locks byte 0 and the role's: null, or what to say if there is no time left.</summary>
        internal RamwayException? Take(Role role, out bool race)
        {
            race = true;
            int got = Lock.Try(_lock, Named.ByteInUse, LockMode.Shared);
            if (got == 0)
            {
                return Errors.Fail(ErrorKind.TimedOut,
                    "somebody holds byte 0 of the ring exclusively, over and over until the deadline");
            }
            if (got > 0)
            {
                race = false;
                got = Lock.Try(_lock, role.LockByte(), LockMode.Exclusive);
            }
            if (got < 0)
            {
                throw Errors.Os(got, "locking the ring");
            }
            return got > 0 ? null : Errors.Fail(ErrorKind.Busy, NamedLink.RoleTaken(role.LockByte(), SegmentKind.Ring));
        }

        public bool PeerAlive(Role me) =>
            Lock.HeldByAnother(_lock, me.Other().LockByte(), out LockMode mode) < 0 || mode != LockMode.Unlocked;

        /// <summary>It never had a name.</summary>
        public bool Vanished() => false;

        public void Close()
        {
            // Closing ends the locks as well, but not before a child that is between fork and exec has closed its copy.
            foreach (long at in new[] { Named.ByteProducer, Named.ByteConsumer, Named.ByteInUse })
            {
                Lock.Unlock(_lock, at);
            }
            Files.Close(_lock);
        }
    }
}
