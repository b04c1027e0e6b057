using System;
using System.Threading;

namespace Ramway.Sys
{
    /// <summary>Mapping files. Results are 0, or a negated errno.</summary>
    internal static unsafe class Memory
    {
        /// <summary>The size of a page of memory in bytes.</summary>
        internal static readonly int PageSize = Environment.SystemPageSize;

        private const int Read = 1;
        private const int Write = 2;
        private const int MapShared = 0x01;
        private const int MapPrivate = 0x02;
        private const int MapFixed = 0x10;
        private const int MapAnonymous = 0x20;
        private const int MapNoReserve = 0x4000;
        private const long HugePage = 2 << 20;

        /// <summary>
        /// Maps length bytes of a file from offset, both multiples of the page, shared; with 2 copies twice, back to back: byte i and
        /// byte i + length are one byte of memory. The caller has checked that the file holds them. To be undone with <see
        /// cref="Unmap"/> of copies * length bytes.
        /// </summary>
        internal static int Map(int fd, long offset, long length, int copies, bool writable, out byte* at)
        {
            at = null;
            if (length <= 0 || length > 1L << 61)
            {
                return -Errno.ENOMEM;
            }
            int error = Reserve(copies * length, LargePage(fd, length), out at);
            for (int copy = 0; error >= 0 && copy < copies; copy++)
            {
                // Inside the range reserved above, which nobody else uses.
                error = MapOver(at + copy * length, fd, offset, length, writable);
                if (error < 0)
                {
                    Unmap(at, copies * length);
                    at = null;
                }
            }
            return error;
        }

        /// <summary>
        /// Undoes <see cref="Map"/>. Nobody may use the memory any more.
        /// </summary>
        internal static void Unmap(byte* at, long length) => Libc.munmap(at, (UIntPtr)(ulong)length);

        /// <summary>Maps a window of a file over a range that Reserve gave.</summary>
        private static int MapOver(byte* at, int fd, long offset, long length, bool writable)
        {
            int protection = writable ? Read | Write : Read;
            long got = (long)Libc.mmap(at, (UIntPtr)(ulong)length, protection, MapShared | MapFixed, fd, offset);
            return (int)Math.Min(Libc.Result(got), 0);
        }

        /// <summary>
        /// Takes address space without memory, length bytes of it, beginning at a multiple of align (a power of two).
        /// </summary>
        private static int Reserve(long length, long align, out byte* at)
        {
            at = null;
            long slack = align > PageSize ? align : 0;
            long got = Libc.Result((long)Libc.mmap(
                null, (UIntPtr)(ulong)(length + slack), 0, MapPrivate | MapAnonymous | MapNoReserve, -1, 0));
            if (got < 0)
            {
                return (int)got;
            }
            at = (byte*)got;
            if (slack == 0)
            {
                return 0;
            }
            long before = -got & (align - 1), after = slack - before;
            // What was only taken to find a multiple goes back; nobody knows of it.
            if (before > 0)
            {
                Unmap(at, before);
            }
            at += before;
            if (after > 0)
            {
                Unmap(at + length, after);
            }
            return 0;
        }

        /// <summary>
        /// The alignment that lets the kernel use huge pages for a mapping: the file's own page on hugetlbfs (where it is a must),
        /// else 2 MiB for a mapping that can hold one.
        /// </summary>
        private static long LargePage(int fd, long length)
        {
            if (FileSystem.Of(fd, out FileSystem.Numbers numbers) == 0 && numbers.Type == FileSystem.HugePages)
            {
                return Math.Max(numbers.BlockSize, PageSize);
            }
            return length >= HugePage ? HugePage : PageSize;
        }

        /// <summary>
        /// Faults every page of a shared mapping in, for writing if it is writable, and leaves its bytes as they are.
        /// </summary>
        internal static void Touch(byte* at, long length, bool writable)
        {
            for (long i = 0; i < length; i += PageSize)
            {
                // Within the mapping and aligned to a page. Other processes write here by stores that an atomic never tears.
                ref int word = ref *(int*)(at + i);
                int value = Volatile.Read(ref word);
                if (writable)
                {
                    // Writes back what is there; if that fails, another has just written, which faults as well.
                    Interlocked.CompareExchange(ref word, value, value);
                }
            }
        }
    }
}
