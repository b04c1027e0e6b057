using System;
using System.Text;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What names may be, and which directory they are in.</summary>
    internal static class Names
    {
        /// <summary>Where named segments live. It need not exist.</summary>
        internal static string Directory()
        {
            string? told = Environment.GetEnvironmentVariable(Facts.DirectoryVariable);
            return string.IsNullOrEmpty(told) ? DefaultDirectory() : told!;
        }

        internal static string DefaultDirectory()
        {
            Libc.RequireSupported();
            return Facts.DirectoryPrefix + Libc.geteuid();
        }

        /// <summary>Whether a name may stand in the Ramway directory.</summary>
        internal static bool IsValid(string name)
        {
            if (name.Length < 1 || name.Length > Facts.NameMax || name[0] == '.' || HasSuffix(name, Facts.SocketSuffix))
            {
                return false;
            }
            foreach (char c in name)
            {
                bool letter = c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z';
                if (!letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-')
                {
                    return false;
                }
            }
            return true;
        }

        private static readonly Encoding Strict = new UTF8Encoding(false, true);

        /// <summary>Whether a path can be given to the system: no NUL, and UTF-8 for all of it.</summary>
        internal static bool CanBePath(string path) => LengthOf(path) >= 0;

        /// <summary>How long a path is in bytes; -1 if it cannot be passed on: a NUL would cut it off, and half a surrogate pair has
        /// no bytes.</summary>
        internal static int LengthOf(string path)
        {
            try
            {
                return path.IndexOf('\0') >= 0 ? -1 : Strict.GetByteCount(path);
            }
            catch (EncoderFallbackException)
            {
                return -1;
            }
        }

        // A listener's socket is NAME.sock beside its segment NAME; where a path is the socket, the segment is PATH.lock.
        /// <summary>The socket that belongs to a listener's segment, both as file names.</summary>
        internal static string SocketOf(string segment) =>
            segment.Length > Facts.LockSuffix.Length && HasSuffix(segment, Facts.LockSuffix)
                ? Without(segment, Facts.LockSuffix)
                : segment + Facts.SocketSuffix;

        /// <summary>The listener's name whose socket would have this file name in the Ramway directory, or null.</summary>
        internal static string? NameOfSocket(string file)
        {
            if (!HasSuffix(file, Facts.SocketSuffix))
            {
                return null;
            }
            string name = Without(file, Facts.SocketSuffix);
            return IsValid(name) && !HasSuffix(name, Facts.LockSuffix) ? name : null;
        }

        internal static bool HasSuffix(string name, string suffix) => name.EndsWith(suffix, StringComparison.Ordinal);

        private static string Without(string name, string suffix) => name.Substring(0, name.Length - suffix.Length);

        /// <summary>The path of another file in the directory of a path's last part.</summary>
        internal static string Beside(string path, string file) => path.Substring(0, path.LastIndexOf('/') + 1) + file;

        /// <summary>The path of a file in a directory.</summary>
        internal static string Within(string directory, string file) => directory.TrimEnd('/') + "/" + file;
    }

    /// <summary>Where named segments and listeners live.</summary>
    public static class RamwayDirectory
    {
        /// <summary>RAMWAY_DIR of the environment, else /dev/shm/ramway-UID of the effective user. It need not exist.</summary>
        public static string Path => Names.Directory();
    }

    /// <summary>
    /// A name in a directory that is held open, so that the whole of an operation happens in one directory.
    /// </summary>
    internal sealed class SegmentName : IDisposable
    {
        private SegmentName(int dir, string file, string path)
        {
            Dir = dir;
            File = file;
            Path = path;
        }

        internal int Dir { get; private set; }

        /// <summary>The name in the directory.</summary>
        internal string File { get; }

        /// <summary>For messages, and for peers that are given a path.</summary>
        internal string Path { get; }

        public void Dispose()
        {
            if (Dir >= 0)
            {
                Files.Close(Dir);
                Dir = -1;
            }
        }

        /// <summary>
        /// Finds the directory that a name, or a path (with a / in it), means. With makeDir the Ramway directory is made if it is
        /// not there; the parent of a path must exist.
        /// </summary>
        internal static SegmentName Resolve(string name, bool makeDir)
        {
            Libc.RequireSupported();
            if (name is null)
            {
                throw new ArgumentNullException("name");
            }
            int slash = name.LastIndexOf('/');
            if (slash >= 0)
            {
                string parent = name.Substring(0, slash + 1), file = name.Substring(slash + 1);
                if (file.Length == 0 || file == "." || file == ".." || !Names.CanBePath(name))
                {
                    throw Errors.Fail(ErrorKind.InvalidArgument, "the path '" + name + "' does not end in a name");
                }
                int dir = Errors.Check(Files.OpenDir(parent, true), "opening the directory " + parent);
                return new SegmentName(dir, file, name);
            }
            if (!Names.IsValid(name))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "the name '" + name + "' cannot be used: 1 to " + Facts.NameMax +
                    " of " + Facts.NameCharacters + ", not starting with a dot, not ending in " + Facts.SocketSuffix +
                    " (with a / it would be a path)");
            }
            string root = Names.Directory();
            if (!Names.CanBePath(root))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, Facts.DirectoryVariable +
                    " has a NUL or half a surrogate pair in it: set it to the path of a directory");
            }
            return new SegmentName(OpenRoot(root, makeDir), name, Names.Within(root, name));
        }

        /// <summary>A file of a directory, whatever its name is.</summary>
        internal static SegmentName In(string directory, string file)
        {
            int dir = Names.CanBePath(directory) ? Files.OpenDir(directory, true) : -Errno.EINVAL;
            return new SegmentName(Errors.Check(dir, "opening the directory " + directory), file, Names.Within(directory, file));
        }

        /// <summary>
        /// Opens the Ramway directory. Everybody may make a directory or link of the default name in /dev/shm, so there it is
        /// checked what it is and whose.
        /// </summary>
        private static int OpenRoot(string root, bool makeDir)
        {
            uint uid = Libc.geteuid();
            bool isDefault = root == Names.DefaultDirectory();
            int dir = Files.OpenDir(root, !isDefault);
            if (dir == -Errno.ENOENT && makeDir)
            {
                Errors.Check(Files.MakeDir(root), "making the Ramway directory " + root);
                dir = Files.OpenDir(root, !isDefault);
            }
            if (dir == -Errno.ENOENT)
            {
                throw Errors.Fail(ErrorKind.NotFound, "nothing has this name: the Ramway directory " + root +
                    " does not exist. Create it first, or check RAMWAY_DIR");
            }
            if (isDefault && (dir == -Errno.ENOTDIR || dir == -Errno.ELOOP))
            {
                throw NotOurs(root, uid, "it is not a directory");
            }
            Errors.Check(dir, "opening the Ramway directory " + root);
            int result = Files.Stat(dir, out Stat stat);
            if (!isDefault || result >= 0 && stat.Uid == uid && (stat.Permissions & 0x3F) == 0)
            {
                return dir;
            }
            Files.Close(dir);
            Errors.Check(result, "checking the Ramway directory " + root);
            throw NotOurs(root, uid, "it belongs to user " + stat.Uid + " and has mode " +
                Convert.ToString((int)stat.Permissions, 8).PadLeft(4, '0'));
        }

        private static RamwayException NotOurs(string root, uint uid, string found) =>
            Errors.Fail(ErrorKind.PermissionDenied, "the Ramway directory " + root + " must be a real directory of user " + uid +
                " with mode 0700, but " + found + "; remove it, or set RAMWAY_DIR to a directory of yours");
    }
}
