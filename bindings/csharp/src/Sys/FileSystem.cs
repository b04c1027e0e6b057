using System.Collections.Generic;

namespace Ramway.Sys
{
    /// <summary>What can be expected of a file system.</summary>
    internal enum Suitability
    {
        /// <summary>What segments are made for.</summary>
        Memory,
        /// <summary>Correct, but pages are written back, in an order of the kernel's.</summary>
        Disk,
        /// <summary>Shared mappings or locks do not reach everybody here.</summary>
        Unsuitable,
    }

    /// <summary>The file system that a file is on.</summary>
    internal static unsafe class FileSystem
    {
        internal const uint Tmpfs = 0x01021994;
        internal const uint Ramfs = 0x858458F6;
        internal const uint HugePages = 0x958458F6;

        /// <summary>What to advise where a directory will not do.</summary>
        internal const string GoodPlace = "/dev/shm or another tmpfs";

        // Segments are refused where shared mappings or locks do not reach everybody.
        private static readonly Dictionary<uint, string> Refused = new Dictionary<uint, string>
        {
            [0x6969] = "NFS",
            [0x01021997] = "9p",
            [0x65735546] = "FUSE or virtiofs",
            [0x794C7630] = "overlay",
            [0x517B] = "SMB",
            [0xFF534D42] = "SMB",
            [0xFE534D42] = "SMB",
            [0x00C36400] = "Ceph",
            [0x0BD00BD0] = "Lustre",
            [0x5346414F] = "AFS",
            [0x6B414653] = "AFS",
            [0x73757245] = "Coda",
            [0x786F4256] = "VirtualBox shared folder",
            [0xF15F] = "eCryptfs",
            [0x9FA0] = "kernel pseudo file system",
            [0x62656572] = "kernel pseudo file system",
            [0x27E0EB] = "kernel pseudo file system",
        };

        /// <summary>What statfs says.</summary>
        internal struct Numbers
        {
            internal uint Type;
            internal long BlockSize;
            internal ulong Blocks;
            internal ulong AvailableBlocks;
            internal ulong FragmentSize;
        }

        /// <summary>statfs of an open file: 0 or a negated errno.</summary>
        internal static int Of(int fd, out Numbers numbers)
        {
            // The same layout on x86-64 and aarch64: f_type, f_bsize, f_blocks, f_bfree, f_bavail, f_files, f_ffree, f_fsid,
            // f_namelen, f_frsize, of 8 bytes each.
            ulong* raw = stackalloc ulong[32];
            int result;
            do
            {
                result = Libc.Result(Libc.fstatfs(fd, raw));
            }
            while (result == -Errno.EINTR);
            numbers = new Numbers
            {
                Type = (uint)raw[0],
                BlockSize = (long)raw[1],
                Blocks = raw[2],
                AvailableBlocks = raw[4],
                FragmentSize = raw[9],
            };
            return result;
        }

        /// <summary>Judges a file system by the type that statfs names, and gives that type's name if it is unsuitable.</summary>
        internal static Suitability Judge(uint type, out string name)
        {
            if (Refused.TryGetValue(type, out string? known))
            {
                name = known;
                return Suitability.Unsuitable;
            }
            name = "";
            return type == Tmpfs || type == Ramfs || type == HugePages ? Suitability.Memory : Suitability.Disk;
        }
    }
}
