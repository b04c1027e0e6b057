using System;
using System.Text;

namespace Ramway.Sys
{
    /// <summary>Memory without a name, whose size can be fixed for good. Where a call fails, it returns the negative
    /// errno.</summary>
    internal static unsafe class Memfd
    {
        private const int SealSeal = 0x1;
        private const int SealShrink = 0x2;
        private const int SealGrow = 0x4;
        private const int SealWrite = 0x8;
        private const int SealFutureWrite = 0x10;

        /// <summary>What a peer's memory must at least be sealed with before it is mapped: it can neither shrink (reading
        /// beyond the end would kill us) nor grow, and nobody can take that back or add a seal that stops the other side's
        /// writes.</summary>
        private const int Seals = SealShrink | SealGrow | SealSeal;

        private const uint MfdCloexec = 0x1;
        private const uint MfdAllowSealing = 0x2;
        private const uint MfdNoexecSeal = 0x8;
        private const int FAddSeals = 1033;
        private const int FGetSeals = 1034;
        private const long TmpfsMagic = 0x01021994;

        /// <summary>The kernel's limit on a memfd's name: NAME_MAX less its own prefix "memfd:".</summary>
        private const int NameMax = 249;

        /// <summary>Makes memory, empty and close-on-exec, whose size can be set and then fixed by <see cref="Seal"/>. What
        /// is given as its name only shows in /proc; what does not fit is cut off.</summary>
        internal static int New(string name) => Create(name, MfdCloexec | MfdAllowSealing);

        /// <summary>Likewise without seals, for memory whose size those who share it may change.</summary>
        internal static int Unsealed(string name) => Create(name, MfdCloexec);

        /// <summary>Fixes the size for good: later calls that would change it, or the set of seals, fail for everybody.</summary>
        internal static void Seal(int fd) => Errors.Check(Libc.Result(Libc.fcntl(fd, FAddSeals, (long)Seals)), "sealing memory");

        /// <summary>
        /// The size in bytes of memory that a peer sent, once it is certain that nobody can change it. Anything but an ordinary
        /// memfd with at least the seals of <see cref="Seal"/>, and none against writing, is 0 with a reason. Memory of huge
        /// pages is refused as well: holes can be punched into it, and filling them again may fail with SIGBUS.
        /// </summary>
        internal static long SealedSize(int fd, out string? why)
        {
            why = null;
            int seals = Libc.Result(Libc.fcntl(fd, FGetSeals, 0L));
            if (seals == -Errno.EINVAL)
            {
                why = "the descriptor sent is not a memfd";
            }
            else if (seals < 0)
            {
                return seals;
            }
            else if ((seals & Seals) != Seals)
            {
                why = $"the seals of the memfd sent are {seals:x}, expected {Seals:x}";
            }
            else if ((seals & (SealWrite | SealFutureWrite)) != 0)
            {
                why = "the memfd sent is sealed against writing";
            }
            if (why != null)
            {
                return 0;
            }
            // struct statfs: f_type is its first 8 bytes, and the whole is shorter than this.
            long* statfs = stackalloc long[64];
            int result = Libc.Result(Libc.fstatfs(fd, statfs));
            if (result < 0)
            {
                return result;
            }
            if (statfs[0] != TmpfsMagic)
            {
                why = "the memfd sent is of huge pages, which a peer can take away";
                return 0;
            }
            result = Files.Stat(fd, out Stat stat);
            return result < 0 ? result : stat.Size;
        }

        /// <summary>The name as the kernel takes it: no control characters, whole characters, a NUL at the end.</summary>
        private static void Name(string name, byte* to)
        {
            int length = 0;
            byte* one = stackalloc byte[4];
            for (int i = 0; i < name.Length; i++)
            {
                bool pair = char.IsHighSurrogate(name[i]) && i + 1 < name.Length && char.IsLowSurrogate(name[i + 1]);
                string character = name[i] < ' ' || name[i] == 0x7f ? "?" : name.Substring(i, pair ? 2 : 1);
                i += pair ? 1 : 0;
                int bytes = Encoding.UTF8.GetBytes(character, new Span<byte>(one, 4));
                if (length + bytes > NameMax)
                {
                    break;
                }
                Buffer.MemoryCopy(one, to + length, bytes, bytes);
                length += bytes;
            }
            to[length] = 0;
        }

        private static int Create(string name, uint flags)
        {
            byte* text = stackalloc byte[NameMax + 1];
            Name(name, text);
            // Kernels from 6.3 on can be told to accept only memory that cannot be executed; older ones do not know the flag.
            long fd = Call(text, flags | MfdNoexecSeal);
            return (int)(fd == -Errno.EINVAL ? Call(text, flags) : fd);
        }

        // By number: the function is as young as glibc 2.27.
        private static long Call(byte* name, uint flags) =>
            Libc.Result(Libc.syscall(Libc.IsArm64 ? 279 : 319, (long)name, flags, 0, 0, 0, 0));
    }
}
