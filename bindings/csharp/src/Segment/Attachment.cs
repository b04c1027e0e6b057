using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// All that a handle stands on: mapped memory whose geometry was checked, and the role, held until Release.
    /// </summary>
    internal sealed unsafe class Attachment
    {
        private readonly Geometry geometry;
        private readonly int blockOffset;
        /// <summary>How often the data is mapped, back to back: 2 for a ring, 1 for a region.</summary>
        private readonly int copies;
        private byte* header;
        private byte* area;
        private byte* data;
        private int file;

        private Attachment(int file, int blockOffset, in Geometry geometry, int copies, ILink link, string name)
        {
            this.file = file;
            this.blockOffset = blockOffset;
            this.geometry = geometry;
            this.copies = copies;
            Link = link;
            Name = name;
        }

        /// <summary>The ring's words in the header page, shared.</summary>
        internal RingBlock* Ring => (RingBlock*)(header + blockOffset);

        /// <summary>The topic's words in the header page, shared; only its publisher may write them.</summary>
        internal TopicBlock* Topic => (TopicBlock*)(header + blockOffset);

        /// <summary>A topic's subscribers' area, shared.</summary>
        internal SubscribersArea* Area => (SubscribersArea*)area;

        /// <summary>A topic's slots for subscribers, Geometry.Slots of them, shared.</summary>
        internal SubscriberSlot* Slots => (SubscriberSlot*)(area + Facts.OffSubsSlots);

        /// <summary>What its header page said, checked.</summary>
        internal ref readonly Geometry Geometry => ref geometry;

        /// <summary>The region's words in the header page, shared.</summary>
        internal RegionBlock* Region => (RegionBlock*)(header + blockOffset);

        /// <summary>
        /// Capacity bytes, of a ring or topic mapped twice back to back, readable and (but for a read-only region, and for a topic's
        /// subscriber) writable. A receiver's
        /// too: the type of a view that lives longer (<see cref="System.Memory{T}"/>) is writable, and a stray write to memory that
        /// is not would end the process.
        /// </summary>
        internal byte* Data => data;

        /// <summary>Where the data begins in the file, in bytes.</summary>
        internal long DataOffset => (long)geometry.DataOffset;

        /// <summary>In bytes, whole pages; of a ring a power of two.</summary>
        internal ulong Capacity => geometry.Capacity;

        /// <summary>A region's length as it was asked for, 1 to Capacity; 0 in a ring.</summary>
        internal long Length => (long)geometry.Length;

        /// <summary>A ring's, a power of two from 16 to 4096; 0 in a region.</summary>
        internal uint Align => geometry.Align;

        /// <summary>How the handle is tied to its peer.</summary>
        internal ILink Link { get; }

        /// <summary>For messages; empty for a ring without a name.</summary>
        internal string Name { get; }

        /// <summary>
        /// Creates or opens a named ring, takes the role and maps the ring. It blocks as the options' Timeout says, and up to a
        /// second in races with others.
        /// </summary>
        internal static Attachment Named(string name, How how, RingOptions o, Role role) =>
            Errors.During(how.Verb() + " the ring", name, () =>
            {
                // Checked here although an existing ring may need none of it: a mistake shows on the first run.
                Spec spec = Spec.Ring(o, o.Check(how)).Named(o.Persistent);
                OpenSegment s = new Named(name, how, spec, role.LockByte(), o, h => CheckRing(o, spec, h)).Open();
                return Map(s.File, Facts.Block0, s.Header.Blocks[0], 2, Access.All, s.Link, o, name);
            });

        /// <summary>
        /// Creates or opens a named topic and maps it: for its publisher, whose role it takes, or for a subscriber. It blocks as for a
        /// ring.
        /// </summary>
        internal static Attachment NamedTopic(string name, How how, TopicOptions o, bool publishes) =>
            Errors.During(how.Verb() + " the topic", name, () =>
            {
                Spec spec = o.Check(how, publishes).Named(o.Persistent);
                long role = publishes ? Facts.BytePublisher : SegmentLink.NoRole;
                OpenSegment s = new Named(name, how, spec, role, o, h => o.Compare(spec, h, publishes), o.ReadOnly).Open();
                s.Link.ServeTopic();
                // The data is the publisher's alone: a stray write through a view would reach every other subscriber.
                return Map(s.File, Facts.Block0, s.Header.Blocks[0], 2,
                    publishes ? Access.All : o.ReadOnly ? Access.None : Access.Area, s.Link, o, name);
            });

        /// <summary>Refuses a ring of another capacity or alignment than was asked for.</summary>
        internal static void CheckRing(RingOptions o, Spec spec, Header found)
        {
            Geometry wanted = spec.Blocks[0], there = found.Blocks[0];
            bool capacity = o.Capacity != 0 && there.Capacity != wanted.Capacity;
            if (capacity || o.Align != 0 && there.Align != wanted.Align)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "it exists, and its " + (capacity
                    ? "capacity is " + there.Capacity + " bytes, not the " + wanted.Capacity
                    : "alignment is " + there.Align + " bytes, not the " + wanted.Align) +
                    " asked for; leave it out to take what is there");
            }
        }

        /// <summary>
        /// Creates or opens a named region and maps it. length is in bytes: what a new one gets and, if it is not 0, what an existing
        /// one must have. A read-only handle can only be opened.
        /// </summary>
        internal static Attachment NamedRegion(string name, How how, long length, RegionOptions o, bool readOnly) =>
            Errors.During(how.Verb() + " the region", name, () =>
            {
                long granule = o.Check(how);
                Spec spec = Spec.Region(how == How.Open ? 1 : length, granule).Named(o.Persistent);
                OpenSegment s = new Named(name, how, spec, SegmentLink.NoRole, o, h => CheckRegion(length, h), readOnly).Open();
                Attachment a = Map(s.File, Facts.Block0, s.Header.Blocks[0], 1, readOnly ? Access.None : Access.All, s.Link, o, name);
                // A mapping keeps the memory; nothing maps a region again.
                a.CloseFile();
                return a;
            });

        private static void CheckRegion(long wanted, Header found)
        {
            ulong length = found.Blocks[0].Length;
            if (wanted != 0 && length != (ulong)wanted)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "it exists with a length of " + length + " bytes, not the " + wanted +
                    " asked for");
            }
        }

        /// <summary>
        /// Maps the header page and a ring's data of a segment in memory without a name, which was checked: blockOffset is
        /// Facts.Block0 or Block1, g what Header.Check said of it. The file stays the caller's: it is duplicated. The link is the
        /// attachment's, also after an exception.
        /// </summary>
        internal static Attachment Memory(int fd, int blockOffset, in Geometry g, ILink link, RingOptions o, string name = "") =>
            Map(Files.Dup(fd), blockOffset, g, 2, Access.All, link, o, name);

        /// <summary>What is mapped for writing.</summary>
        private enum Access
        {
            None,
            /// <summary>A topic's subscribers' area alone.</summary>
            Area,
            All,
        }

        /// <summary>Maps the data copies times. The file (or the negated errno in its place) and the link are taken over.</summary>
        private static Attachment Map(int file, int blockOffset, in Geometry g, int copies, Access access, ILink link,
            SegmentOptions o, string name)
        {
            bool writable = access == Access.All;
            var a = new Attachment(file, blockOffset, g, copies, link, name);
            try
            {
                Errors.Check(file, "duplicating a descriptor");
                a.header = SegmentFile.MapHeader(file, writable);
                if (g.Slots != 0)
                {
                    Errors.Check(Sys.Memory.Map(file, (long)g.SubsOffset, g.MappedArea, 1, access != Access.None, out a.area),
                        "mapping the subscribers' area");
                }
                Errors.Check(Sys.Memory.Map(file, (long)g.DataOffset, (long)g.Capacity, copies, writable, out a.data),
                    "mapping the segment's data");
                Placement.Place(a.data, (long)g.Capacity, copies, writable, o, "placing the segment's data");
                return a;
            }
            catch
            {
                a.Release();
                throw;
            }
        }

        /// <summary>Gives the file's descriptor back where no further mapping will be made.</summary>
        internal void CloseFile()
        {
            if (file >= 0)
            {
                Files.Close(file);
                file = -1;
            }
        }

        /// <summary>
        /// Unmaps the memory and releases the role, in this order. To be called once, when nobody uses the memory any more; with
        /// keepMapped the data may still be read, and stays until the process ends.
        /// </summary>
        internal void Release(bool keepMapped = false)
        {
            if (data != null && !keepMapped)
            {
                Sys.Memory.Unmap(data, copies * (long)Capacity);
            }
            if (area != null)
            {
                Sys.Memory.Unmap(area, geometry.MappedArea);
            }
            if (header != null)
            {
                Sys.Memory.Unmap(header, SegmentFile.HeaderLength);
            }
            data = area = header = null;
            CloseFile();
            Link.Close();
        }
    }
}
