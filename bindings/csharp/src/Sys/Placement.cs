using System;
using System.Globalization;

namespace Ramway.Sys
{
    /// <summary>
    /// What is asked of the memory behind a segment's data. What was asked for is verified or is an error; nothing is a hint that
    /// may have been ignored.
    /// </summary>
    internal static unsafe class Placement
    {
        private const string Directory = "/sys/kernel/mm/transparent_hugepage";
        private const int AdviceHugePage = 14;
        private const int AdvicePopulateRead = 22;
        private const int AdvicePopulateWrite = 23;
        private const int AdviceCollapse = 25;
        private const int LimitOfLockedMemory = 8;

        /// <summary>The size of the pages that HugePages means; Unsupported where there are none.</summary>
        internal static long HugePageSize()
        {
            const string file = Directory + "/hpage_pmd_size";
            if (!long.TryParse(Files.ReadText(file).Trim(), NumberStyles.None, CultureInfo.InvariantCulture, out long size) ||
                !Layout.IsPowerOfTwo((ulong)size))
            {
                throw Errors.Fail(ErrorKind.Unsupported,
                    "HugePages: this kernel has no transparent huge pages (" + file + " cannot be read)");
            }
            return size;
        }

        /// <summary>
        /// Does to a live shared mapping what the options ask for, or says why not. The same length bytes are mapped copies times,
        /// back to back. Unmapping undoes all of it.
        /// </summary>
        internal static void Place(byte* at, long length, int copies, bool writable, SegmentOptions o, string doing)
        {
            if (length == 0)
            {
                return;
            }
            // Huge pages before everything that faults pages in: what is small then has to be collapsed.
            if (o.HugePages)
            {
                UseHugePages(at, length, copies, doing);
            }
            if (o.Prefault)
            {
                Populate(at, length * copies, writable, doing);
            }
            if (o.LockMemory)
            {
                // One copy: the other one's pages are the same, and would count against the limit twice.
                int result = Libc.Result(Libc.mlock(at, (UIntPtr)(ulong)length));
                if (result < 0)
                {
                    throw LockError(result, length, doing);
                }
            }
            if (o.NumaNode is int node)
            {
                Numa.Verify(at, length, node, doing);
            }
        }

        private static RamwayException LockError(int error, long length, string doing)
        {
            ulong limit = Space.SoftLimit(LimitOfLockedMemory);
            Space.Field(Files.ReadText("/proc/self/status"), "VmLck:", out ulong locked);
            // EAGAIN is mlock's other way to say that there is not enough memory.
            return Errors.Os(error == -Errno.EAGAIN ? -Errno.ENOMEM : error, doing + ": LockMemory: mlock of " + length +
                " bytes; this process has " + (locked << 10) + " bytes locked, RLIMIT_MEMLOCK is " +
                (limit == ulong.MaxValue ? "unlimited" : limit + " bytes") + " (raise it with ulimit -l, LimitMEMLOCK= or CAP_IPC_LOCK)");
        }

        private static void Populate(byte* at, long length, bool writable, string doing)
        {
            int result = Libc.Retry(() =>
                Libc.madvise(at, (UIntPtr)(ulong)length, writable ? AdvicePopulateWrite : AdvicePopulateRead));
            if (result == -Errno.EINVAL)
            {
                // Before Linux 5.14. The pages are allocated, so that no fault is fatal.
                Memory.Touch(at, length, writable);
                return;
            }
            Errors.Check(result, doing + ": Prefault of " + length + " bytes");
        }

        private static int Advise(byte* at, long length, int advice) =>
            Libc.Result(Libc.madvise(at, (UIntPtr)(ulong)length, advice));

        private static void UseHugePages(byte* at, long length, int copies, string doing)
        {
            long huge = HugePageSize(), whole = length * copies;
            if ((long)at % huge != 0 || length % huge != 0)
            {
                throw Errors.Fail(ErrorKind.Unsupported, doing + ": HugePages: the data (" + length +
                    " bytes) is not made of whole huge pages of " + huge +
                    " bytes; the process that creates the segment has to ask for them too");
            }
            // Whether the advice is followed is checked below, so that kernels which refuse the one but not the other are served.
            int advised = Advise(at, whole, AdviceHugePage);
            // Puts the file's small pages together (Linux 6.1+) and maps the result, whatever shmem_enabled says except deny.
            // EAGAIN: a page was in use just then.
            int collapsed = Advise(at, whole, AdviceCollapse);
            for (int attempt = 0; attempt < 3 && collapsed == -Errno.EAGAIN; attempt++)
            {
                collapsed = Advise(at, whole, AdviceCollapse);
            }
            long have = MappedHuge((ulong)at, (ulong)whole);
            if (have >= whole)
            {
                return;
            }
            string setting = Files.ReadText(Directory + "/shmem_enabled").Trim();
            throw Errors.Fail(ErrorKind.Unsupported, doing + ": HugePages: " + have + " of " + whole +
                " mapped bytes are in huge pages (MADV_HUGEPAGE: " + Said(advised) + "; MADV_COLLAPSE, Linux 6.1+: " +
                Said(collapsed) + "); " + Directory + "/shmem_enabled is \"" + (setting.Length == 0 ? "unreadable" : setting) +
                "\": set it to \"advise\" as root");
        }

        private static string Said(int result) => result < 0 ? Errors.Describe(-result) : "ok";

        /// <summary>
        /// How many bytes of the mappings in this address range the kernel maps by huge pages.
        /// </summary>
        private static long MappedHuge(ulong start, ulong length)
        {
            long total = 0;
            bool inside = false;
            foreach (string line in Files.ReadText("/proc/self/smaps").Split('\n'))
            {
                string[] words = line.Split(new[] { ' ' }, 3, StringSplitOptions.RemoveEmptyEntries);
                if (words.Length < 2)
                {
                    continue;
                }
                if (words[0].EndsWith(":", StringComparison.Ordinal))
                {
                    if (inside && (words[0] == "ShmemPmdMapped:" || words[0] == "FilePmdMapped:") &&
                        long.TryParse(words[1], NumberStyles.None, CultureInfo.InvariantCulture, out long kib))
                    {
                        total += kib << 10;
                    }
                    continue;
                }
                string[] range = words[0].Split('-');
                inside = range.Length == 2 &&
                    ulong.TryParse(range[0], NumberStyles.HexNumber, CultureInfo.InvariantCulture, out ulong first) &&
                    ulong.TryParse(range[1], NumberStyles.HexNumber, CultureInfo.InvariantCulture, out ulong end) &&
                    first < start + length && end > start;
            }
            return total;
        }
    }
}
