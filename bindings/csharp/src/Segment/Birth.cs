using System;
using System.Security.Cryptography;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// A segment that is whole and locked but has no name yet; kept when somebody else was faster, for the next attempt.
    /// </summary>
    internal sealed class Birth
    {
        // What the file is called meanwhile where the file system knows no files without a name; empty where it does.
        private string _dotName = "";
        private int _dir = -1;

        internal OpenSegment? Segment { get; private set; }

        /// <summary>Throws away what has not got its name.</summary>
        internal void Drop()
        {
            if (Segment == null)
            {
                return;
            }
            if (_dotName.Length != 0)
            {
                Files.Unlink(_dir, _dotName);
                ForgetDotName();
            }
            // Nothing leads to the file, so the last one out finds nothing to remove.
            Segment.Drop();
            Segment = null;
        }

        /// <summary>What got its name is its user's.</summary>
        internal OpenSegment Take()
        {
            OpenSegment s = Segment!;
            Segment = null;
            return s;
        }

        private void ForgetDotName()
        {
            Files.Close(_dir);
            _dir = -1;
            _dotName = "";
        }

        /// <summary>Makes the segment appear under its name: 0 or a negated errno.</summary>
        internal int GiveName(SegmentName name)
        {
            if (_dotName.Length == 0)
            {
                return Files.LinkUnnamed(Segment!.File, name.Dir, name.File);
            }
            int result = Files.RenameNew(name.Dir, _dotName, name.File);
            if (result >= 0)
            {
                // It has its own name now: nothing to unlink.
                ForgetDotName();
            }
            return result;
        }

        /// <summary>Makes the whole of the segment, without a name if mayBeUnnamed and the system can.</summary>
        internal void Build(SegmentName name, Spec spec, SegmentKind kind, long roleByte, SegmentOptions o, bool mayBeUnnamed = true)
        {
            int file = -1, own = -1;
            string dotName = "";
            if (mayBeUnnamed)
            {
                file = Files.CreateUnnamed(name.Dir);
                // Without /proc a file cannot be opened twice, or named, but by a name.
                if (file >= 0 && (own = Files.Reopen(file)) < 0)
                {
                    Files.Close(file);
                }
            }
            if (own < 0)
            {
                CreateDotName(name.Dir, out file, out own, out dotName);
            }
            int linkDir = -1;
            try
            {
                int result = Files.Stat(file, out Stat stat);
                if (result < 0)
                {
                    throw Errors.Os(result, "looking at the new file");
                }
                // Locked before it is filled in. `ramway clean`, which takes away what has a dot-name and no lock, may be faster.
                result = Lock.Try(own, Named.ByteInUse, LockMode.Shared);
                if (result < 0)
                {
                    throw Errors.Os(result, "locking byte 0 of the segment");
                }
                if (result == 0)
                {
                    throw Vanished();
                }
                linkDir = Duplicate(name.Dir);
                var link = new NamedLink(own, linkDir, name.File, stat.Id);
                if (roleByte != Named.NoRole)
                {
                    link.TakeRole(roleByte, kind);
                }
                Header header = Fill(file, spec, o);
                if (dotName.Length != 0)
                {
                    _dir = Duplicate(name.Dir);
                    _dotName = dotName;
                }
                Segment = new OpenSegment(file, header, link);
            }
            catch
            {
                if (dotName.Length != 0)
                {
                    Files.Unlink(name.Dir, dotName);
                }
                Files.Close(file);
                Files.Close(own);
                if (linkDir >= 0)
                {
                    Files.Close(linkDir);
                }
                throw;
            }
        }

        /// <summary>Whether this is what <see cref="CreateDotName"/> calls a file.</summary>
        internal static bool IsDotName(string file)
        {
            const string before = ".ramway-", after = ".new";
            if (file.Length != before.Length + 16 + after.Length || !file.StartsWith(before, StringComparison.Ordinal) ||
                !file.EndsWith(after, StringComparison.Ordinal))
            {
                return false;
            }
            foreach (char c in file.AsSpan(before.Length, 16))
            {
                if (!Uri.IsHexDigit(c))
                {
                    return false;
                }
            }
            return true;
        }

        internal static Again Vanished() => Again.Raced("the new segment vanished before it had its name");

        private static int Duplicate(int fd)
        {
            int copy = Files.Dup(fd);
            return copy >= 0 ? copy : throw Errors.Os(copy, "duplicating a descriptor");
        }

        /// <summary>
        /// Makes a file under a name that nobody takes for a segment, and opens it a second time for the locks.
        /// </summary>
        private static void CreateDotName(int dir, out int file, out int own, out string name)
        {
            Span<byte> random = stackalloc byte[8];
            RandomNumberGenerator.Fill(random);
            name = ".ramway-" + BitConverter.ToUInt64(random).ToString("x16") + ".new";
            file = Files.CreateNew(dir, name);
            if (file < 0)
            {
                throw Errors.Os(file, "making a file");
            }
            own = Files.OpenAt(dir, name, true);
            if (own == -Errno.ENOENT)
            {
                // `ramway clean` was faster than the lock.
                Files.Close(file);
                throw Vanished();
            }
            if (own < 0)
            {
                Files.Unlink(dir, name);
                Files.Close(file);
                throw Errors.Os(own, "opening the new file a second time");
            }
        }

        /// <summary>Gives a new file its permissions, its space and its header page.</summary>
        private static Header Fill(int file, Spec spec, SegmentOptions o)
        {
            int result = Files.Chmod(file, o.FileMode);
            if (result < 0)
            {
                throw Errors.Os(result, "setting the file's mode");
            }
            Allocate(file, spec, o.NumaNode);
            result = Files.Truncate(file, (long)spec.Size);
            if (result < 0)
            {
                throw Errors.Os(result, "sizing the file");
            }
            byte[] page = Header.Format(spec);
            result = Files.WriteAt(file, page, 0);
            if (result < 0)
            {
                throw Errors.Os(result, "writing the header page");
            }
            return Header.Check(page, spec.Size);
        }

        /// <summary>
        /// Takes the space of the header page and of the data. What lies between them, where pages are huge, stays a hole.
        /// </summary>
        internal static void Allocate(int file, Spec spec, int? node)
        {
            if (spec.Size > 1ul << 62)
            {
                throw Spec.TooBig(spec.Size);
            }
            Space.Allocate(file, 0, Layout.HeaderSize);
            foreach (Geometry g in spec.Blocks)
            {
                if (node.HasValue)
                {
                    Numa.Prefer(file, (long)g.DataOffset, (long)g.Capacity, node.Value);
                }
                Space.Allocate(file, (long)g.DataOffset, (long)g.Capacity);
            }
        }
    }
}
