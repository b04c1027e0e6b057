namespace Ramway.Sys
{
    /// <summary>Error numbers of Linux, the same on x86-64 and aarch64. The functions of this namespace return them negated.</summary>
    internal static class Errno
    {
        internal const int EPERM = 1;
        internal const int ENOENT = 2;
        internal const int EINTR = 4;
        internal const int EIO = 5;
        internal const int EAGAIN = 11;
        internal const int ENOMEM = 12;
        internal const int EACCES = 13;
        internal const int EEXIST = 17;
        internal const int ENOTDIR = 20;
        internal const int EINVAL = 22;
        internal const int ENFILE = 23;
        internal const int EMFILE = 24;
        internal const int ENOSPC = 28;
        internal const int EROFS = 30;
        internal const int EPIPE = 32;
        internal const int ENOSYS = 38;
        internal const int ELOOP = 40;
        internal const int ENOTSOCK = 88;
        internal const int EOPNOTSUPP = 95;
        internal const int EADDRINUSE = 98;
        internal const int ECONNABORTED = 103;
        internal const int ECONNRESET = 104;
        internal const int ETIMEDOUT = 110;
        internal const int ECONNREFUSED = 111;
        internal const int EDQUOT = 122;
    }
}
