using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What rings, regions and listeners ask of a named segment.</summary>
    internal static unsafe class Attach
    {
        /// <summary>See <see cref="Attachment.Named"/>.</summary>
        internal static Attachment Ring(string name, How how, RingOptions o, Role role)
        {
            string tried = how.Verb() + " the ring";
            Spec spec;
            try
            {
                Libc.RequireSupported();
                long granule = Segment.Granule(o);
                Segment.CheckHow(how, o);
                // Checked here although an existing ring may need none of it: a mistake shows on the first run.
                spec = Spec.Ring(o.Capacity == 0 ? Layout.DefaultCapacity : o.Capacity, o.Align, granule).Named(o.Persistent);
            }
            catch (RamwayException e)
            {
                throw Errors.About(e, tried, name);
            }
            Geometry wanted = spec.Blocks[0];
            OpenSegment opened = new Named(name, how, SegmentKind.Ring, spec, role.LockByte(), false, o,
                h => CheckRing(o, wanted, h)).Open();
            try
            {
                return Attachment.Over(opened.File, Layout.Block0, opened.Header.Blocks[0], opened.Link, o);
            }
            catch (RamwayException e)
            {
                opened.Drop();
                throw Errors.About(e, tried, name);
            }
        }

        /// <summary>Refuses a ring of another capacity or alignment than was asked for.</summary>
        internal static void CheckRing(RingOptions o, in Geometry wanted, Header h)
        {
            if (o.Capacity != 0 && h.Blocks[0].Capacity != wanted.Capacity)
            {
                throw Differs("capacity", wanted.Capacity, h.Blocks[0].Capacity);
            }
            if (o.Align != 0 && h.Blocks[0].Align != wanted.Align)
            {
                throw Differs("alignment", wanted.Align, h.Blocks[0].Align);
            }
        }

        private static RamwayException Differs(string what, ulong wanted, ulong found) =>
            Errors.Fail(ErrorKind.InvalidArgument, "it exists, and its " + what + " is " + found + " bytes, not the " + wanted +
                " asked for; leave it out to take what is there");

        /// <summary>
        /// Creates or opens a named region and maps it. length is in bytes: what a new one gets and, if it is not 0, what an existing
        /// one must have. A read-only handle can only be opened.
        /// </summary>
        internal static RegionMapping Region(string name, How how, long length, RegionOptions o, bool readOnly)
        {
            string tried = how.Verb() + " the region";
            Spec? spec = null;
            try
            {
                Libc.RequireSupported();
                long granule = Segment.Granule(o);
                Segment.CheckHow(how, o);
                if (how != How.Open)
                {
                    spec = Spec.Region(length, granule).Named(o.Persistent);
                }
            }
            catch (RamwayException e)
            {
                throw Errors.About(e, tried, name);
            }
            OpenSegment opened = new Named(name, how, SegmentKind.Region, spec, Named.NoRole, readOnly, o, h =>
            {
                if (length != 0 && h.Blocks[0].Length != (ulong)length)
                {
                    throw Errors.Fail(ErrorKind.InvalidArgument, "it exists with a length of " + h.Blocks[0].Length +
                        " bytes, not the " + length + " asked for");
                }
            }).Open();
            try
            {
                RegionMapping m = RegionMapping.Map(opened, readOnly, o);
                // A mapping keeps the memory; only rings map theirs again.
                Files.Close(opened.File);
                return m;
            }
            catch (RamwayException e)
            {
                opened.Drop();
                throw Errors.About(e, tried, name);
            }
        }

        /// <summary>
        /// Makes the segment of a listener (kind 4, byte 1) under its own name or path, removing a dead one with its socket:
        /// AlreadyExists if somebody listens there. Closing the link removes the segment if it is the last one. Whoever
        /// can open the file can lock it and so keep the next listener out: our user only. Nothing but locks is shared through it,
        /// so that a disk will do.
        /// </summary>
        internal static NamedLink LockListener(string name)
        {
            var o = new RegionOptions { AllowDisk = true };
            OpenSegment opened = new Named(name, How.Create, SegmentKind.Listener, Spec.Listener().Named(false), Named.ByteListener,
                false, o).Open();
            Files.Close(opened.File);
            return opened.Link;
        }

        /// <summary>
        /// Whether somebody holds the lock of a listener's segment in a directory; null if the file may not be asked.
        /// </summary>
        internal static bool? ListenerLives(int dir, string file)
        {
            int result = Files.StatAt(dir, file, out Stat stat);
            if (result == -Errno.ENOENT || result >= 0 && !stat.IsRegular)
            {
                return false;
            }
            int fd = result < 0 ? result : Files.OpenAt(dir, file, false);
            if (fd < 0)
            {
                return null;
            }
            result = Lock.HeldByAnother(fd, Named.ByteListener, out LockMode mode);
            Files.Close(fd);
            return result < 0 ? (bool?)null : mode != LockMode.Unlocked;
        }
    }

    /// <summary>A named region that this process uses.</summary>
    internal sealed unsafe class RegionMapping
    {
        private RegionMapping(byte* header, byte* data, in Geometry g, bool readOnly, ILink link)
        {
            Header = header;
            Data = data;
            Length = (long)g.Length;
            Capacity = (long)g.Capacity;
            ReadOnly = readOnly;
            Link = link;
        }

        /// <summary>The header page, mapped apart from the data.</summary>
        internal byte* Header { get; }

        /// <summary>Capacity bytes, mapped once.</summary>
        internal byte* Data { get; }

        /// <summary>As it was asked for, 1 to Capacity.</summary>
        internal long Length { get; }

        internal long Capacity { get; }

        /// <summary>Neither the data nor the header page can be written, so no waiter's bit can be set either.</summary>
        internal bool ReadOnly { get; }

        internal ILink Link { get; }

        /// <summary>The region's words in shared memory.</summary>
        internal RegionBlock* Block => (RegionBlock*)(Header + Layout.Block0);

        internal static RegionMapping Map(OpenSegment s, bool readOnly, RegionOptions o)
        {
            Geometry g = s.Header.Blocks[0];
            byte* page = Segment.MapHeader(s.File, !readOnly);
            byte* data = null;
            try
            {
                int error = Memory.Map(s.File, (long)g.DataOffset, (long)g.Capacity, !readOnly, out data);
                if (error < 0)
                {
                    throw Errors.Os(error, "mapping the region's data");
                }
                Placement.Place(data, (long)g.Capacity, 1, !readOnly, o, "placing the region's data");
                return new RegionMapping(page, data, g, readOnly, s.Link);
            }
            catch
            {
                if (data != null)
                {
                    Memory.Unmap(data, (long)g.Capacity);
                }
                Memory.Unmap(page, Segment.HeaderLength);
                throw;
            }
        }

        /// <summary>
        /// Unmaps the region and lets the name go. To be called once, when nobody uses the memory any more.
        /// </summary>
        internal void Release()
        {
            Memory.Unmap(Data, Capacity);
            Memory.Unmap(Header, Segment.HeaderLength);
            Link.Close();
        }
    }
}
