using System.Runtime.InteropServices;

namespace Ramway.Sys
{
    /// <summary>How a byte is locked.</summary>
    internal enum LockMode : short
    {
        /// <summary>Any number of holders. Needs a readable description.</summary>
        Shared = 0,
        /// <summary>One holder. Needs a writable description.</summary>
        Exclusive = 1,
        /// <summary>Nobody else holds the byte.</summary>
        Unlocked = 2,
    }

    /// <summary>
    /// Open-file-description locks on single bytes. They belong to the description, not to the process: they vanish when its last
    /// descriptor closes, however that comes about, and two descriptions of one process conflict like strangers.
    /// </summary>
    internal static unsafe class Lock
    {
        private const int GetLock = 36;
        private const int SetLock = 37;

        [StructLayout(LayoutKind.Explicit, Size = 32)]
        private struct Request
        {
            [FieldOffset(0)] internal LockMode Type;
            [FieldOffset(2)] internal short Whence;
            [FieldOffset(8)] internal long Start;
            [FieldOffset(16)] internal long Length;
            [FieldOffset(24)] internal int Pid;
        }

        private static int Call(int fd, int command, ref Request request)
        {
            int result;
            fixed (Request* at = &request)
            {
                do
                {
                    result = Libc.Result(Libc.fcntl(fd, command, at));
                }
                while (result == -Errno.EINTR);
            }
            return result;
        }

        /// <summary>
        /// Locks one byte without waiting: 1, or 0 if another description holds it in a way that excludes this one, or a negated
        /// errno.
        /// </summary>
        internal static int Try(int fd, long at, LockMode mode)
        {
            var request = new Request { Type = mode, Start = at, Length = 1 };
            int result = Call(fd, SetLock, ref request);
            return result == -Errno.EAGAIN || result == -Errno.EACCES ? 0 : result < 0 ? result : 1;
        }

        /// <summary>Releases a byte. It does nothing if this description does not hold it.</summary>
        internal static void Unlock(int fd, long at) => Try(fd, at, LockMode.Unlocked);

        /// <summary>
        /// How another description holds this byte, 0 or a negated errno. It takes nothing, and works on a read-only descriptor.
        /// </summary>
        internal static int HeldByAnother(int fd, long at, out LockMode mode) => InTheWay(fd, at, LockMode.Exclusive, out mode);

        /// <summary>
        /// Likewise, but a shared lock is not seen: whoever may read the file can take one.
        /// </summary>
        internal static int HeldExclusivelyByAnother(int fd, long at, out LockMode mode) =>
            InTheWay(fd, at, LockMode.Shared, out mode);

        /// <summary>Which lock of another description a lock of this mode would meet.</summary>
        private static int InTheWay(int fd, long at, LockMode asked, out LockMode mode)
        {
            var request = new Request { Type = asked, Start = at, Length = 1 };
            int result = Call(fd, GetLock, ref request);
            mode = request.Type;
            return result;
        }
    }
}
