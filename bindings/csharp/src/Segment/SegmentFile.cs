using System;
using System.Threading;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>The file behind a segment: what may be opened, on which file systems, its header page, and its space.</summary>
    internal static unsafe class SegmentFile
    {
        /// <summary>How many bytes of the header page are mapped: the header's size, or a page where that is larger.</summary>
        internal static readonly int HeaderLength = Math.Max(Memory.PageSize, Facts.HeaderSize);

        /// <summary>Refuses file systems that cannot do what segments rest on.</summary>
        internal static void CheckFileSystem(int fd, bool allowDisk)
        {
            Errors.Check(FileSystem.Of(fd, out FileSystem.Numbers numbers), "asking for the file system's type");
            Suitability found = FileSystem.Judge(numbers.Type, out string type);
            if (found == Suitability.Unsuitable)
            {
                throw Errors.Fail(ErrorKind.Unsupported, "this is a file system of type " + type +
                    ", where shared mappings or locks cannot be relied on; use " + FileSystem.GoodPlace);
            }
            if (found == Suitability.Disk && !allowDisk)
            {
                throw Errors.Fail(ErrorKind.Unsupported, "this is a file system on a disk, whose pages are written back; use " +
                    FileSystem.GoodPlace + ", or AllowDisk");
            }
        }

        /// <summary>
        /// Reads a file's first page (zero beyond its end) and its length. No mapping: a truncated file is an error and not a
        /// signal.
        /// </summary>
        internal static byte[] ReadPage(int fd, out ulong size)
        {
            Errors.Check(Files.Stat(fd, out Stat stat), "reading the file's length");
            byte[] page = new byte[Facts.HeaderSize];
            Errors.Check(Files.ReadAt(fd, page, 0), "reading the header page");
            size = (ulong)stat.Size;
            return page;
        }

        /// <summary>Maps the header page of a file that holds at least <see cref="HeaderLength"/> bytes.</summary>
        internal static byte* MapHeader(int fd, bool writable)
        {
            Errors.Check(Memory.Map(fd, 0, HeaderLength, 1, writable, out byte* page), "mapping the header page");
            return page;
        }

        /// <summary>A private copy of the header page of memory that a peer sent, for <see cref="Header.Check"/>.</summary>
        internal static byte[] SnapshotHeader(int fd)
        {
            byte[] copied = new byte[Facts.HeaderSize];
            byte* page = MapHeader(fd, false);
            fixed (byte* to = copied)
            {
                for (int i = 0; i < Facts.HeaderSize; i += 8)
                {
                    // Inside the mapping and aligned; others may write meanwhile, hence an atomic load. Each word stands for
                    // itself.
                    *(ulong*)(to + i) = Volatile.Read(ref *(ulong*)(page + i));
                }
            }
            Memory.Unmap(page, HeaderLength);
            return copied;
        }

        /// <summary>
        /// Opens a regular file without side effects on anything else. -1: nothing has this name.
        /// </summary>
        internal static int OpenRegular(SegmentName name, bool writable, out Stat stat)
        {
            int result = Files.StatAt(name.Dir, name.File, out stat);
            if (result == -Errno.ENOENT)
            {
                return -1;
            }
            Errors.Check(result, "checking what has the name");
            CheckRegular(stat);
            int fd = Files.OpenAt(name.Dir, name.File, writable);
            if (fd == -Errno.ENOENT)
            {
                return -1;
            }
            Errors.Check(fd, "opening the file");
            try
            {
                Errors.Check(Files.Stat(fd, out stat), "checking what was opened");
                CheckRegular(stat);
                return fd;
            }
            catch
            {
                Files.Close(fd);
                throw;
            }
        }

        private static void CheckRegular(in Stat stat)
        {
            if (!stat.IsRegular)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "this is " + stat.Describe() + ", not a segment; it is left as it is");
            }
        }

        /// <summary>Whether the name still leads to this file.</summary>
        internal static bool LeadsTo(int dir, string file, in FileId id) =>
            Files.StatAt(dir, file, out Stat stat) >= 0 && stat.Id.Equals(id);

        /// <summary>
        /// Takes the space of a new segment's header page and data, sizes the file and writes the header page. What lies between the
        /// two, where pages are huge, stays a hole.
        /// </summary>
        internal static Header Fill(int file, Spec spec, int? node)
        {
            if (spec.Size > 1ul << 62)
            {
                throw Spec.TooBig(spec.Size);
            }
            Space.Allocate(file, 0, Facts.HeaderSize);
            foreach (Geometry g in spec.Blocks)
            {
                if (node.HasValue)
                {
                    Numa.Prefer(file, (long)g.DataOffset, (long)g.Capacity, node.Value);
                }
                if (g.Slots != 0)
                {
                    Space.Allocate(file, (long)g.SubsOffset, (long)g.AreaLength);
                }
                Space.Allocate(file, (long)g.DataOffset, (long)g.Capacity);
            }
            Errors.Check(Files.Truncate(file, (long)spec.Size), "sizing the file");
            byte[] page = Header.Format(spec);
            Errors.Check(Files.WriteAt(file, page, 0), "writing the header page");
            return Header.Check(page, spec.Size, spec.FeaturesRequired);
        }
    }
}
