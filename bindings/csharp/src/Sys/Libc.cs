using System;
using System.ComponentModel;
using System.Runtime.InteropServices;

namespace Ramway.Sys
{
    /// <summary>
    /// The C library, which every process has loaded: nothing of ours is native. What can fail is -1 there with an errno, and
    /// the negated errno out of <see cref="Result(int)"/>.
    /// </summary>
    internal static unsafe class Libc
    {
        internal const string Name = "libc";

        /// <summary>aarch64 where it is not x86-64: system call numbers and some flags differ.</summary>
        internal static readonly bool IsArm64 = RuntimeInformation.ProcessArchitecture == Architecture.Arm64;

        private static readonly string? Refusal = WhyNot();

        /// <summary>Throws Unsupported where the format, or this port, cannot be. To be asked before anything is opened.</summary>
        internal static void RequireSupported()
        {
            if (Refusal != null)
            {
                throw Errors.Fail(ErrorKind.Unsupported, Refusal);
            }
        }

        private static string? WhyNot()
        {
            Architecture here = RuntimeInformation.ProcessArchitecture;
            if (!RuntimeInformation.IsOSPlatform(OSPlatform.Linux))
            {
                return "Ramway for .NET is for Linux; this is " + RuntimeInformation.OSDescription;
            }
            if (here != Architecture.X64 && here != Architecture.Arm64)
            {
                return "Ramway for .NET is for x86-64 and aarch64; this process is " + here;
            }
            return null;
        }

        /// <summary>The negated errno where the result of a call is -1. To be asked right after the call.</summary>
        internal static int Result(int result) => result != -1 ? result : -Marshal.GetLastWin32Error();

        /// <summary>Likewise.</summary>
        internal static long Result(long result) => result != -1 ? result : -Marshal.GetLastWin32Error();

        /// <summary>The result of a call, or its negated errno. A call that a signal interrupts is made again.</summary>
        internal static int Retry(Func<int> call)
        {
            int result;
            do
            {
                result = Result(call());
            }
            while (result == -Errno.EINTR);
            return result;
        }

        /// <summary>An errno in words.</summary>
        internal static string ErrorText(int errno) => new Win32Exception(errno).Message + " (errno " + errno + ")";

        /// <summary>
        /// Text as the bytes of a C string. What has a NUL or no encoding in UTF-8 is refused by those who make names of it.
        /// </summary>
        internal static byte[] CString(string text)
        {
            byte[] bytes = new byte[System.Text.Encoding.UTF8.GetByteCount(text) + 1];
            System.Text.Encoding.UTF8.GetBytes(text, 0, text.Length, bytes, 0);
            return bytes;
        }

        [DllImport(Name, SetLastError = true)]
        internal static extern int openat(int dir, byte[] path, int flags, uint mode);

        [DllImport(Name, SetLastError = true)]
        internal static extern int close(int fd);

        [DllImport(Name, SetLastError = true)]
        internal static extern int fcntl(int fd, int command, long argument);

        [DllImport(Name, SetLastError = true)]
        internal static extern int fcntl(int fd, int command, void* argument);

        [DllImport(Name, SetLastError = true)]
        internal static extern int fstatfs(int fd, void* buffer);

        [DllImport(Name, SetLastError = true)]
        internal static extern int unlinkat(int dir, byte[] path, int flags);

        [DllImport(Name, SetLastError = true)]
        internal static extern int linkat(int oldDir, byte[] oldPath, int newDir, byte[] newPath, int flags);

        [DllImport(Name, SetLastError = true)]
        internal static extern int fchmod(int fd, uint mode);

        [DllImport(Name, SetLastError = true)]
        internal static extern int chmod(byte[] path, uint mode);

        [DllImport(Name, SetLastError = true)]
        internal static extern int mkdir(byte[] path, uint mode);

        [DllImport(Name, SetLastError = true)]
        internal static extern int ftruncate(int fd, long length);

        [DllImport(Name, SetLastError = true)]
        internal static extern int fallocate(int fd, int mode, long offset, long length);

        [DllImport(Name, SetLastError = true)]
        internal static extern IntPtr read(int fd, void* buffer, UIntPtr count);

        [DllImport(Name, SetLastError = true)]
        internal static extern IntPtr pread(int fd, void* buffer, UIntPtr count, long offset);

        [DllImport(Name, SetLastError = true)]
        internal static extern IntPtr pwrite(int fd, void* buffer, UIntPtr count, long offset);

        [DllImport(Name, SetLastError = true)]
        internal static extern IntPtr mmap(void* at, UIntPtr length, int protection, int flags, int fd, long offset);

        [DllImport(Name, SetLastError = true)]
        internal static extern int munmap(void* at, UIntPtr length);

        [DllImport(Name, SetLastError = true)]
        internal static extern int madvise(void* at, UIntPtr length, int advice);

        [DllImport(Name, SetLastError = true)]
        internal static extern int mlock(void* at, UIntPtr length);

        [DllImport(Name, SetLastError = true)]
        internal static extern int getrlimit(int resource, void* limit);

        [DllImport(Name)]
        internal static extern uint geteuid();

        /// <summary>A system call that the C library has no function for, or has one only in newer versions.</summary>
        [DllImport(Name, SetLastError = true)]
        internal static extern long syscall(long number, long a, long b, long c, long d, long e, long f);
    }
}
