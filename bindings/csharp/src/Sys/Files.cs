using System;

namespace Ramway.Sys
{
    /// <summary>What makes a file the same file.</summary>
    internal readonly struct FileId : IEquatable<FileId>
    {
        private readonly ulong device;

        internal FileId(ulong device, ulong inode)
        {
            this.device = device;
            Inode = inode;
        }

        internal ulong Inode { get; }

        public bool Equals(FileId other) => device == other.device && Inode == other.Inode;

        public override bool Equals(object? other) => other is FileId id && Equals(id);

        public override int GetHashCode() => HashCode.Combine(device, Inode);
    }

    /// <summary>What the system says of a file.</summary>
    internal struct Stat
    {
        internal FileId Id;
        internal uint Mode;
        internal uint Uid;
        internal ulong Links;
        internal long Size;

        private uint Type => Mode & 0xF000;

        /// <summary>Whether a file may be opened at all: anything else can have side effects on open.</summary>
        internal bool IsRegular => Type == 0x8000;

        internal bool IsSocket => Type == 0xC000;

        internal bool IsLink => Type == 0xA000;

        /// <summary>The set-id and permission bits.</summary>
        internal uint Permissions => Mode & 0xFFF;

        /// <summary>The kind of file in words.</summary>
        internal string Describe() => Type switch
        {
            0x8000 => "a regular file",
            0x4000 => "a directory",
            0xA000 => "a symbolic link",
            0x1000 => "a FIFO",
            0xC000 => "a socket",
            0x2000 => "a device",
            0x6000 => "a device",
            _ => "a file of unknown type",
        };
    }

    /// <summary>
    /// Files by descriptor and by name within a directory that is held open. Every descriptor is close-on-exec, and every call
    /// that a signal can interrupt is made again. Results are 0 or a descriptor, or a negated errno.
    /// </summary>
    internal static unsafe class Files
    {
        /// <summary>In place of a directory: paths are relative to the working directory.</summary>
        internal const int WorkingDirectory = -100;

        internal const int CloseOnExec = 0x80000;
        internal const int PathOnly = 0x200000;
        internal static readonly int NoFollow = Libc.IsArm64 ? 0x8000 : 0x20000;
        internal static readonly int DirectoryOnly = Libc.IsArm64 ? 0x4000 : 0x10000;

        private const int ReadWrite = 2;
        private const int Create = 0x40;
        private const int Exclusive = 0x80;
        private const int NoTerminal = 0x100;
        private const int NonBlocking = 0x800;
        private static readonly int Unnamed = 0x400000 | DirectoryOnly;

        private const int SymlinkNoFollow = 0x100;
        private const int SymlinkFollow = 0x400;
        private const int EmptyPath = 0x1000;
        private const int DuplicateCloseOnExec = 1030;
        private const int SetDescriptorFlags = 2;

        /// <summary>openat, with the flags of this class.</summary>
        internal static int OpenWith(int dir, string name, int flags, uint mode = 0)
        {
            byte[] path = Libc.CString(name);
            return Libc.Retry(() => Libc.openat(dir, path, flags | CloseOnExec, mode));
        }

        /// <summary>
        /// Closes a descriptor. What it says cannot be acted on: the descriptor is gone in any case.
        /// </summary>
        internal static void Close(int fd) => Libc.close(fd);

        /// <summary>Another descriptor of the same description.</summary>
        internal static int Dup(int fd) => Libc.Result(Libc.fcntl(fd, DuplicateCloseOnExec, 0L));

        /// <summary>Lets programs that this process starts have a descriptor, under the same number.</summary>
        internal static int MakeInheritable(int fd) => Libc.Result(Libc.fcntl(fd, SetDescriptorFlags, 0L));

        /// <summary>fstat.</summary>
        internal static int Stat(int fd, out Stat stat) => StatOf(fd, "", EmptyPath, out stat);

        /// <summary>What is at a name; a symbolic link is not followed. ENOENT: nothing.</summary>
        internal static int StatAt(int dir, string name, out Stat stat) => StatOf(dir, name, SymlinkNoFollow, out stat);

        private static int StatOf(int dir, string name, int flags, out Stat stat)
        {
            // newfstatat, because the C library's fstatat is no symbol of its older versions. The layout is the machine's.
            long number = Libc.IsArm64 ? 79 : 262;
            byte* raw = stackalloc byte[256];
            long result;
            fixed (byte* path = Libc.CString(name))
            {
                do
                {
                    result = Libc.Result(Libc.syscall(number, dir, (long)path, (long)raw, flags, 0, 0));
                }
                while (result == -Errno.EINTR);
            }
            stat = default;
            if (result < 0)
            {
                return (int)result;
            }
            stat.Id = new FileId(*(ulong*)raw, *(ulong*)(raw + 8));
            stat.Size = *(long*)(raw + 48);
            if (Libc.IsArm64)
            {
                stat.Mode = *(uint*)(raw + 16);
                stat.Links = *(uint*)(raw + 20);
                stat.Uid = *(uint*)(raw + 24);
            }
            else
            {
                stat.Links = *(ulong*)(raw + 16);
                stat.Mode = *(uint*)(raw + 24);
                stat.Uid = *(uint*)(raw + 28);
            }
            return 0;
        }

        /// <summary>
        /// Opens a directory to name things in it. Unless follow is set, a symbolic link at the end of the path is ENOTDIR or
        /// ELOOP.
        /// </summary>
        internal static int OpenDir(string path, bool follow) =>
            OpenWith(WorkingDirectory, path, PathOnly | DirectoryOnly | (follow ? 0 : NoFollow));

        /// <summary>
        /// Opens what <see cref="StatAt"/> called a regular file. If it was exchanged meanwhile, the open neither blocks nor
        /// follows a link nor takes a terminal; the caller checks again what it got.
        /// </summary>
        internal static int OpenAt(int dir, string name, bool writable) =>
            OpenWith(dir, name, (writable ? ReadWrite : 0) | NoFollow | NonBlocking | NoTerminal);

        /// <summary>Makes a file with a name that nothing has yet.</summary>
        internal static int CreateNew(int dir, string name) =>
            OpenWith(dir, name, Create | Exclusive | ReadWrite | NoFollow, 0x180);

        /// <summary>
        /// Makes a file in the directory's file system that has no name yet; an error where that cannot be.
        /// </summary>
        internal static int CreateUnnamed(int dir) => OpenWith(dir, ".", Unnamed | ReadWrite, 0x180);

        /// <summary>A short path to an open file. Needs /proc.</summary>
        internal static string ProcPath(int fd) => "/proc/self/fd/" + fd;

        /// <summary>Another open file description of the same file, which need not have a name. Needs /proc.</summary>
        internal static int Reopen(int fd) => OpenWith(WorkingDirectory, ProcPath(fd), ReadWrite);

        /// <summary>Gives a file without a name its name; EEXIST if the name is taken.</summary>
        internal static int LinkUnnamed(int fd, int dir, string name)
        {
            int result = Link(WorkingDirectory, ProcPath(fd), dir, name, SymlinkFollow);
            // Without /proc; this way needs a capability on most kernels.
            return result == -Errno.ENOENT || result == -Errno.EACCES ? Link(fd, "", dir, name, EmptyPath) : result;
        }

        private static int Link(int oldDir, string oldName, int newDir, string newName, int flags)
        {
            byte[] from = Libc.CString(oldName), to = Libc.CString(newName);
            return Libc.Retry(() => Libc.linkat(oldDir, from, newDir, to, flags));
        }

        /// <summary>Renames within a directory; EEXIST if the new name is taken.</summary>
        internal static int RenameNew(int dir, string from, string to)
        {
            const int noReplace = 1;
            long number = Libc.IsArm64 ? 276 : 316;
            long result;
            fixed (byte* old = Libc.CString(from), fresh = Libc.CString(to))
            {
                do
                {
                    result = Libc.Result(Libc.syscall(number, dir, (long)old, dir, (long)fresh, noReplace, 0));
                }
                while (result == -Errno.EINTR);
            }
            if (result != -Errno.EINVAL && result != -Errno.ENOSYS && result != -Errno.EOPNOTSUPP)
            {
                return (int)result;
            }
            // A file system that knows no such thing: two steps, between which the file has both names.
            int linked = Link(dir, from, dir, to, 0);
            return linked < 0 ? linked : Unlink(dir, from);
        }

        /// <summary>Removes a name.</summary>
        internal static int Unlink(int dir, string name)
        {
            byte[] path = Libc.CString(name);
            return Libc.Retry(() => Libc.unlinkat(dir, path, 0));
        }

        /// <summary>Sets a file's permissions exactly, whatever the umask.</summary>
        internal static int Chmod(int fd, uint mode) => Libc.Retry(() => Libc.fchmod(fd, mode & 0x1FF));

        /// <summary>Makes a directory for its owner alone; that it exists already is fine.</summary>
        internal static int MakeDir(string path)
        {
            byte[] name = Libc.CString(path);
            int result = Libc.Retry(() => Libc.mkdir(name, 0x1C0));
            return result == -Errno.EEXIST ? 0 : result;
        }

        /// <summary>Sets a file's length.</summary>
        internal static int Truncate(int fd, long length) => Libc.Retry(() => Libc.ftruncate(fd, length));

        /// <summary>
        /// Reads at an offset until the buffer is full or the file ends, and says how much there was.
        /// </summary>
        internal static int ReadAt(int fd, Span<byte> buffer, long offset)
        {
            fixed (byte* at = buffer)
            {
                return Transfer(fd, at, buffer.Length, offset, false);
            }
        }

        /// <summary>Writes all bytes at an offset.</summary>
        internal static int WriteAt(int fd, ReadOnlySpan<byte> bytes, long offset)
        {
            fixed (byte* at = bytes)
            {
                int done = Transfer(fd, at, bytes.Length, offset, true);
                return done < 0 ? done : done < bytes.Length ? -Errno.EIO : 0;
            }
        }

        private static int Transfer(int fd, byte* at, int length, long offset, bool write)
        {
            for (int done = 0; ;)
            {
                var left = (UIntPtr)(length - done);
                long n = done == length ? 0 : Libc.Result((long)(write
                    ? Libc.pwrite(fd, at + done, left, offset + done)
                    : Libc.pread(fd, at + done, left, offset + done)));
                if (n == 0)
                {
                    return done;
                }
                if (n > 0)
                {
                    done += (int)n;
                }
                else if (n != -Errno.EINTR)
                {
                    return (int)n;
                }
            }
        }

        /// <summary>A small file of the kernel's as text; empty if it cannot be read.</summary>
        /// <remarks>By hand: File.ReadAllText throws where there is none, which is ordinary here, and locks what it reads.</remarks>
        internal static string ReadText(string path)
        {
            int fd = OpenWith(WorkingDirectory, path, 0);
            if (fd < 0)
            {
                return "";
            }
            byte[] text = new byte[4096];
            int length = 0;
            try
            {
                // Such files are made while they are read, a page at a time: only an empty piece is the end.
                for (int n; (n = ReadSome(fd, text.AsSpan(length))) > 0;)
                {
                    length += n;
                    if (length == text.Length)
                    {
                        Array.Resize(ref text, 2 * length);
                    }
                }
            }
            finally
            {
                Close(fd);
            }
            return System.Text.Encoding.UTF8.GetString(text, 0, length);
        }

        private static int ReadSome(int fd, Span<byte> into)
        {
            fixed (byte* at = into)
            {
                long n;
                do
                {
                    n = Libc.Result((long)Libc.read(fd, at, (UIntPtr)into.Length));
                }
                while (n == -Errno.EINTR);
                return (int)n;
            }
        }
    }
}
