using System;
using System.Collections.Generic;
using System.Globalization;

namespace Ramway.Sys
{
    /// <summary>Taking the space of a segment, after a check of what limits it.</summary>
    internal static unsafe class Space
    {
        // So long that a step's check of the limits costs little, so short that a full machine is noticed.
        private const long Step = 16 << 20;
        // Left to page tables, the process itself and everybody else, at most; of a small limit a 32nd part.
        private const ulong HeadroomMax = 16 << 20;
        private const int LimitOfFileSize = 1;
        private const ulong Unlimited = ulong.MaxValue;

        /// <summary>
        /// Takes the space of length bytes from offset in the file, growing it where it is shorter, after a check of every limit
        /// that a later page fault would meet as SIGBUS or the OOM killer: NoSpace says which. On an exception a part may be
        /// taken: throw the file away.
        /// </summary>
        internal static void Allocate(int fd, long offset, long length)
        {
            if (length == 0)
            {
                return;
            }
            long end = FileEnd(offset, length);
            FileSystem.Numbers first = NumbersOf(fd);
            bool inMemory = first.Type == FileSystem.Tmpfs || first.Type == FileSystem.Ramfs;
            List<MemoryGroup> groups = inMemory ? MemoryGroup.OfThisProcess() : new List<MemoryGroup>();
            for (long at = offset; at < end;)
            {
                // All that is still missing, so that what can never fit is refused before it has starved others.
                Check(fd, (ulong)(end - at), inMemory, groups);
                long step = Math.Min(end - at, Step);
                // On a signal the kernel gives the step's pages back, and it is made again; signals are rarer than steps.
                long from = at;
                Errors.Check(Libc.Retry(() => Libc.fallocate(fd, 0, from, step)),
                    "taking the segment's space: allocating " + length + " bytes (" + (at - offset) + " done)");
                at += step;
            }
        }

        /// <summary>
        /// Where length bytes from offset end, if a file may become that long: growing one beyond RLIMIT_FSIZE is not only an
        /// error but a deadly SIGXFSZ.
        /// </summary>
        private static long FileEnd(long offset, long length)
        {
            long end = unchecked(offset + length);
            if (offset < 0 || length < 0 || end < 0)
            {
                throw NoSpace(length + " bytes asked at offset " + offset + ": more than any file can hold");
            }
            ulong limit = SoftLimit(LimitOfFileSize);
            if ((ulong)end > limit)
            {
                throw NoSpace(end + " bytes asked, limited by RLIMIT_FSIZE (ulimit -f) = " + limit + " bytes");
            }
            return end;
        }

        /// <summary>A resource's soft limit, all ones where there is none or it cannot be asked for.</summary>
        internal static ulong SoftLimit(int resource)
        {
            ulong* limit = stackalloc ulong[2];
            return Libc.getrlimit(resource, limit) == 0 ? limit[0] : Unlimited;
        }

        /// <summary>
        /// NoSpace unless so many more bytes are available now. A limit that cannot be read (no /proc, a container that hides its
        /// group) does not limit.
        /// </summary>
        private static void Check(int fd, ulong needed, bool inMemory, List<MemoryGroup> groups)
        {
            FileSystem.Numbers fs = NumbersOf(fd);
            // A memfd, and a tmpfs mounted with size=0, count no blocks: no limit of the file system's.
            if (fs.Blocks > 0)
            {
                Compare(needed, fs.AvailableBlocks * fs.FragmentSize, "its file system's free space (df)");
            }
            if (!inMemory)
            {
                return;
            }
            string meminfo = Files.ReadText("/proc/meminfo");
            if (Field(meminfo, "MemTotal:", out ulong total) && Field(meminfo, "MemAvailable:", out ulong available))
            {
                Compare(needed, LessHeadroom(available << 10, total << 10), "the machine's MemAvailable (/proc/meminfo)");
            }
            foreach (MemoryGroup group in groups)
            {
                if (group.Available(out ulong limit, out ulong left))
                {
                    Compare(needed, LessHeadroom(left, limit), "the control group's limit (" + group.LimitFile + " = " + limit + ")");
                }
            }
        }

        private static FileSystem.Numbers NumbersOf(int fd)
        {
            Errors.Check(FileSystem.Of(fd, out FileSystem.Numbers numbers), "taking the segment's space: fstatfs of the segment");
            return numbers;
        }

        private static void Compare(ulong needed, ulong available, string limit)
        {
            if (needed > available)
            {
                throw NoSpace(needed + " bytes asked, " + available + " available, limited by " + limit);
            }
        }

        private static RamwayException NoSpace(string text) =>
            Errors.Fail(ErrorKind.NoSpace, "taking the segment's space: " + text);

        private static ulong LessHeadroom(ulong available, ulong total) =>
            available - Math.Min(available, Math.Min(total / 32, HeadroomMax));

        /// <summary>The number after the line that starts with exactly this word.</summary>
        internal static bool Field(string text, string name, out ulong value)
        {
            value = 0;
            foreach (string line in text.Split('\n'))
            {
                if (line.StartsWith(name, StringComparison.Ordinal))
                {
                    string[] words = line.Split(new[] { ' ', '\t' }, StringSplitOptions.RemoveEmptyEntries);
                    if (words.Length > 1 && words[0] == name)
                    {
                        return ulong.TryParse(words[1], NumberStyles.None, CultureInfo.InvariantCulture, out value);
                    }
                }
            }
            return false;
        }
    }

    /// <summary>One memory control group that this process is in.</summary>
    internal sealed class MemoryGroup
    {
        private readonly bool v2;

        private MemoryGroup(string directory, bool v2)
        {
            Directory = directory;
            this.v2 = v2;
        }

        internal string Directory { get; }

        internal string LimitFile => Join(Directory, v2 ? "memory.max" : "memory.limit_in_bytes");

        internal static List<MemoryGroup> OfThisProcess() =>
            Parse(Files.ReadText("/proc/self/cgroup"), Files.ReadText("/proc/self/mountinfo"));

        /// <summary>The limit, and what is left of it; false where there is no limit.</summary>
        internal bool Available(out ulong limit, out ulong left)
        {
            left = 0;
            // Version 2 says "max", version 1 the largest multiple of a page, for none.
            if (!Number(LimitFile, out limit) || limit >= 1ul << 60 ||
                !Number(Join(Directory, v2 ? "memory.current" : "memory.usage_in_bytes"), out ulong usage))
            {
                return false;
            }
            // Cached disk pages count as used, yet give way. Shared memory is not among them: it is on the anonymous lists.
            string stat = Files.ReadText(Join(Directory, "memory.stat"));
            foreach (string name in new[] { "inactive_file", "active_file" })
            {
                Space.Field(stat, (v2 ? "" : "total_") + name, out ulong cache);
                usage -= Math.Min(usage, cache);
            }
            left = limit - Math.Min(limit, usage);
            return true;
        }

        private static bool Number(string path, out ulong value) =>
            ulong.TryParse(Files.ReadText(path).Trim(), NumberStyles.None, CultureInfo.InvariantCulture, out value);

        /// <summary>The memory groups of a process, innermost first: each level has a limit of its own.</summary>
        internal static List<MemoryGroup> Parse(string cgroup, string mountinfo)
        {
            var groups = new List<MemoryGroup>();
            foreach (string line in cgroup.Split('\n'))
            {
                // `0::/path` (version 2) or `4:memory:/path`.
                string[] parts = line.Split(new[] { ':' }, 3);
                if (parts.Length != 3)
                {
                    continue;
                }
                bool v2 = parts[0] == "0" && parts[1].Length == 0;
                if (!v2 && Array.IndexOf(parts[1].Split(','), "memory") < 0 || !Mount(mountinfo, v2, out string root, out string mount))
                {
                    continue;
                }
                // Where the mount shows only a part of the tree and this process is outside of it, its root is all there is.
                string below = "";
                if (root == "/")
                {
                    below = parts[2];
                }
                else if (parts[2] == root || parts[2].StartsWith(root + "/", StringComparison.Ordinal))
                {
                    below = parts[2].Substring(root.Length);
                }
                for (string directory = Join(mount, below); ;)
                {
                    groups.Add(new MemoryGroup(directory, v2));
                    int slash = directory.LastIndexOf('/');
                    if (directory == mount || slash <= 0)
                    {
                        break;
                    }
                    directory = directory.Substring(0, slash);
                }
            }
            return groups;
        }

        /// <summary>The root within the hierarchy and the mount point of the memory controller.</summary>
        private static bool Mount(string mountinfo, bool v2, out string root, out string mount)
        {
            foreach (string line in mountinfo.Split('\n'))
            {
                int dash = line.IndexOf(" - ", StringComparison.Ordinal);
                if (dash < 0)
                {
                    continue;
                }
                string[] before = line.Substring(0, dash).Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries);
                string[] after = line.Substring(dash + 3).Split(new[] { ' ' }, StringSplitOptions.RemoveEmptyEntries);
                if (before.Length >= 5 && after.Length >= 3 &&
                    (v2 ? after[0] == "cgroup2" : after[0] == "cgroup" && Array.IndexOf(after[2].Split(','), "memory") >= 0))
                {
                    root = before[3];
                    mount = before[4];
                    return true;
                }
            }
            root = mount = "";
            return false;
        }

        /// <summary>Two parts of a path with one slash between them, and none at the end.</summary>
        private static string Join(string directory, string below)
        {
            string joined = directory.TrimEnd('/') + "/" + below.Trim('/');
            return joined.Length > 1 ? joined.TrimEnd('/') : joined;
        }
    }
}
