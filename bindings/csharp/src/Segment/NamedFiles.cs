using Ramway.Sys;

namespace Ramway
{
    // The file behind a segment: what may be opened, on which file systems, and whether a name still leads to it.
    internal sealed partial class Named
    {
        /// <summary>Refuses file systems that cannot do what segments rest on.</summary>
        internal static void CheckFileSystem(int fd, bool allowDisk)
        {
            int result = FileSystem.Of(fd, out FileSystem.Numbers numbers);
            if (result < 0)
            {
                throw Errors.Os(result, "asking for the file system's type");
            }
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
            int result = Files.Stat(fd, out Stat stat);
            if (result < 0)
            {
                throw Errors.Os(result, "looking at the file");
            }
            byte[] page = new byte[Layout.HeaderSize];
            result = Files.ReadAt(fd, page, 0);
            if (result < 0)
            {
                throw Errors.Os(result, "reading the header page");
            }
            size = (ulong)stat.Size;
            return page;
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
            if (result < 0)
            {
                throw Errors.Os(result, "looking at the name");
            }
            if (!stat.IsRegular)
            {
                throw NotRegular(stat);
            }
            int fd = Files.OpenAt(name.Dir, name.File, writable);
            if (fd == -Errno.ENOENT)
            {
                return -1;
            }
            if (fd < 0)
            {
                throw Errors.Os(fd, "opening the file");
            }
            result = Files.Stat(fd, out stat);
            if (result >= 0 && stat.IsRegular)
            {
                return fd;
            }
            Files.Close(fd);
            throw result < 0 ? Errors.Os(result, "looking at the file") : NotRegular(stat);
        }

        private static RamwayException NotRegular(in Stat stat) =>
            Errors.Fail(ErrorKind.InvalidArgument, "this is " + stat.Describe() + ", not a segment; it is left as it is");

        /// <summary>Whether the name still leads to this file.</summary>
        internal static bool LeadsTo(int dir, string file, in FileId id) =>
            Files.StatAt(dir, file, out Stat stat) >= 0 && stat.Id.Equals(id);

        /// <summary>
        /// Unlinks a dead segment's name, and a dead listener's socket with it: 0 or a negated errno. The caller holds byte 0
        /// exclusively.
        /// </summary>
        internal static int Remove(int dir, string file, string path, SegmentKind kind)
        {
            if (kind == SegmentKind.Listener)
            {
                // Whatever comes of it, the segment goes.
                string socket = Names.SocketOf(file);
                SocketName.RemoveDead(dir, socket, path.Substring(0, path.LastIndexOf('/') + 1) + socket, out _, out _);
            }
            int result = Files.Unlink(dir, file);
            return result == -Errno.ENOENT ? 0 : result;
        }
    }
}
