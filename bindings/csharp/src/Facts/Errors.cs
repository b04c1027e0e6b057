using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>How errors are made.</summary>
    internal static class Errors
    {
        /// <summary>What a message says where there is no text.</summary>
        internal static string Summary(ErrorKind kind)
        {
            uint index = (uint)kind - 1;
            return index < (uint)Facts.ErrorTexts.Length ? Facts.ErrorTexts[index] : "error " + (int)kind;
        }

        /// <summary>An error with a text.</summary>
        internal static RamwayException Fail(ErrorKind kind, string? text) => Fail(kind, null, null, text);

        /// <summary>An error with a text about something that was done to a name.</summary>
        internal static RamwayException Fail(ErrorKind kind, string? operation, string? name, string? text) =>
            new RamwayException(kind, operation, name, text, 0, null);

        /// <summary>
        /// An error of the operating system while something was done; the kind follows from its number, which may be
        /// negative as the functions of Ramway.Sys return it.
        /// </summary>
        internal static RamwayException Os(long errno, string doing)
        {
            int number = (int)Math.Abs(errno);
            return new RamwayException(KindOf(number), null, null, doing, number, null);
        }

        /// <summary>The result of a call of Ramway.Sys, or an exception where it is a negated errno.</summary>
        internal static int Check(int result, string doing) => result >= 0 ? result : throw Os(result, doing);

        /// <summary>Likewise.</summary>
        internal static long Check(long result, string doing) => result >= 0 ? result : throw Os(result, doing);

        internal static ErrorKind KindOf(int errno)
        {
            switch (Math.Abs(errno))
            {
                case Errno.ENOENT:
                    return ErrorKind.NotFound;
                case Errno.EEXIST:
                    return ErrorKind.AlreadyExists;
                case Errno.EACCES:
                case Errno.EPERM:
                case Errno.EROFS:
                    return ErrorKind.PermissionDenied;
                case Errno.ENOSPC:
                case Errno.ENOMEM:
                case Errno.EDQUOT:
                    return ErrorKind.NoSpace;
                case Errno.EINTR:
                    return ErrorKind.Interrupted;
                case Errno.ENOSYS:
                case Errno.EOPNOTSUPP:
                    return ErrorKind.Unsupported;
                default:
                    return ErrorKind.Os;
            }
        }

        /// <summary>The error with what was tried, on which name, if it does not say so yet.</summary>
        internal static RamwayException About(RamwayException e, string operation, string? name) =>
            e.Operation != null && e.Name != null
                ? e
                : new RamwayException(e.Kind, e.Operation ?? operation, e.Name ?? name, e.Text, e.Errno, e.InnerException);

        /// <summary>Does something, whose errors say what was tried, on which name. Nothing is tried where this port cannot run.</summary>
        internal static T During<T>(string operation, string? name, Func<T> act)
        {
            try
            {
                Libc.RequireSupported();
                return act();
            }
            catch (RamwayException e)
            {
                throw About(e, operation, name);
            }
        }

        /// <summary>An errno in words.</summary>
        internal static string Describe(int errno) => Libc.ErrorText(errno);
    }
}
