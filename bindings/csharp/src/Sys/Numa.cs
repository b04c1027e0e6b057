using System;
using System.Globalization;

namespace Ramway.Sys
{
    /// <summary>Which NUMA node the pages of shared memory are on.</summary>
    internal static unsafe class Numa
    {
        private const string Online = "/sys/devices/system/node/online";
        /// <summary>One bit a node, for as many nodes as any kernel has.</summary>
        private const int Bits = 1024;
        private const int BindPolicy = 2;
        // Of get_mempolicy: a node, and that of the page at the address.
        private const int FlagNode = 1, FlagAddress = 2;
        private const int MapShared = 1;

        /// <summary>
        /// Tells the file that its pages belong on a node, before they are allocated: shared memory keeps the policy with the file,
        /// so that it holds for every process.
        /// </summary>
        internal static void Prefer(int fd, long offset, long length, int node)
        {
            Check(node);
            string what = "NumaNode: binding " + length + " bytes to node " + node;
            if (length == 0)
            {
                return;
            }
            // For the call alone: nothing reads or writes through it.
            long at = Errors.Check(Libc.Result((long)Libc.mmap(null, (UIntPtr)(ulong)length, 0, MapShared, fd, offset)), what);
            ulong* mask = stackalloc ulong[Bits / 64];
            for (int i = 0; i < Bits / 64; i++)
            {
                mask[i] = i == node / 64 ? 1ul << (node % 64) : 0;
            }
            // One more than its bits, which the kernel takes off.
            long result = Libc.Result(Libc.syscall(Libc.IsArm64 ? 235 : 237, at, length, BindPolicy, (long)mask, Bits + 1, 0));
            Libc.munmap((void*)at, (UIntPtr)(ulong)length);
            Errors.Check(result, what);
        }

        /// <summary>Checks where the first, the middle and the last page of a mapping are.</summary>
        internal static void Verify(byte* at, long length, int node, string doing)
        {
            Check(node);
            foreach (long offset in new[] { 0, length / 2, length - 1 })
            {
                int found = -1;
                Errors.Check(Libc.Result(Libc.syscall(Libc.IsArm64 ? 236 : 239, (long)&found, 0, 0, (long)(at + offset),
                    FlagNode | FlagAddress, 0)), doing + ": NumaNode: asking where a page is (get_mempolicy)");
                if (found != node)
                {
                    throw Errors.Fail(ErrorKind.Unsupported, doing + ": NumaNode: the data is on node " + found + ", not on node " +
                        node + "; pages are placed when the segment is created, in memory: let the creator ask for the node");
                }
            }
        }

        /// <summary>InvalidArgument for a node that does not exist.</summary>
        internal static void Check(int node)
        {
            string there = Files.ReadText(Online).Trim();
            // A kernel without NUMA has its memory on node 0.
            if (node < 0 || node >= Bits || !Has(there.Length == 0 ? "0" : there, node))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "NUMA node " + node + " does not exist; this machine has " +
                    Describe(there.Length == 0 ? "0" : there));
            }
        }

        private static string Describe(string list) => (list.IndexOfAny(new[] { '-', ',' }) < 0 ? "node " : "nodes ") + list;

        /// <summary>Whether a list such as "0-1,4" has a number.</summary>
        internal static bool Has(string list, int node)
        {
            foreach (string part in list.Split(','))
            {
                string[] ends = part.Split('-');
                if (int.TryParse(ends[0], NumberStyles.None, CultureInfo.InvariantCulture, out int first) &&
                    int.TryParse(ends[ends.Length - 1], NumberStyles.None, CultureInfo.InvariantCulture, out int last) &&
                    first <= node && node <= last)
                {
                    return true;
                }
            }
            return false;
        }
    }
}
