using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What names may be, and which directory they are in.</summary>
    internal static class Names
    {
        /// <summary>The longest name in the Ramway directory, in bytes.</summary>
        internal const int Longest = 80;

        /// <summary>Where named segments live. It need not exist.</summary>
        internal static string Directory()
        {
            string? told = Environment.GetEnvironmentVariable("RAMWAY_DIR");
            return string.IsNullOrEmpty(told) ? DefaultDirectory() : told!;
        }

        internal static string DefaultDirectory()
        {
            Libc.RequireSupported();
            return "/dev/shm/ramway-" + Libc.geteuid();
        }

        /// <summary>Whether a name may stand in the Ramway directory.</summary>
        internal static bool IsValid(string name)
        {
            if (name.Length < 1 || name.Length > Longest || name[0] == '.' || name.EndsWith(".sock", StringComparison.Ordinal))
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

        /// <summary>Whether a path can be given to the system: no NUL, and UTF-8 for all of it.</summary>
        internal static bool CanBePath(string path)
        {
            for (int i = 0; i < path.Length; i++)
            {
                char c = path[i];
                bool pair = char.IsHighSurrogate(c) && i + 1 < path.Length && char.IsLowSurrogate(path[i + 1]);
                if (c == '\0' || char.IsSurrogate(c) && !pair)
                {
                    return false;
                }
                if (pair)
                {
                    i++;
                }
            }
            return true;
        }

        /// <summary>
        /// The socket that belongs to a listener's segment, both as file names: NAME.sock beside NAME; where a path is the socket,
        /// the segment is PATH.lock.
        /// </summary>
        internal static string SocketOf(string segment)
        {
            const string suffix = ".lock";
            return segment.Length > suffix.Length && segment.EndsWith(suffix, StringComparison.Ordinal)
                ? segment.Substring(0, segment.Length - suffix.Length)
                : segment + ".sock";
        }
    }

    /// <summary>
    /// A name in a directory that is held open, so that the whole of an operation happens in one directory.
    /// </summary>
    internal sealed class SegmentName : IDisposable
    {
        private SegmentName(int dir, string file, string path, bool isPath)
        {
            Dir = dir;
            File = file;
            Path = path;
            IsPath = isPath;
        }

        internal int Dir { get; private set; }

        /// <summary>The name in the directory.</summary>
        internal string File { get; }

        /// <summary>For messages, and for those who come by path.</summary>
        internal string Path { get; }

        /// <summary>It was given as a path.</summary>
        internal bool IsPath { get; }

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
                int dir = Files.OpenDir(parent, true);
                if (dir < 0)
                {
                    throw Errors.Os(dir, "opening the directory " + parent);
                }
                return new SegmentName(dir, file, name, true);
            }
            if (!Names.IsValid(name))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "the name '" + name + "' cannot be used: 1 to " + Names.Longest +
                    " of A-Z a-z 0-9 . _ -, not starting with a dot, not ending in .sock (with a / it would be a path)");
            }
            string root = Names.Directory();
            if (!Names.CanBePath(root))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "RAMWAY_DIR is no path");
            }
            return new SegmentName(OpenRoot(root, makeDir), name, root.TrimEnd('/') + "/" + name, false);
        }

        /// <summary>A file of a directory, whatever its name is.</summary>
        internal static SegmentName In(string directory, string file)
        {
            int dir = Names.CanBePath(directory) ? Files.OpenDir(directory, true) : -Errno.EINVAL;
            return dir >= 0
                ? new SegmentName(dir, file, directory.TrimEnd('/') + "/" + file, true)
                : throw Errors.Os(dir, "opening the directory " + directory);
        }

        /// <summary>
        /// Opens the Ramway directory. Everybody may make a directory or link of the default name in /dev/shm, so there it is
        /// looked at what it is and whose.
        /// </summary>
        private static int OpenRoot(string root, bool makeDir)
        {
            uint uid = Libc.geteuid();
            bool isDefault = root == Names.DefaultDirectory();
            int dir = Files.OpenDir(root, !isDefault);
            if (dir == -Errno.ENOENT && makeDir)
            {
                int made = Files.MakeDir(root);
                if (made < 0)
                {
                    throw Errors.Os(made, "making the Ramway directory " + root);
                }
                dir = Files.OpenDir(root, !isDefault);
            }
            if (dir == -Errno.ENOENT)
            {
                throw Errors.Fail(ErrorKind.NotFound, "nothing has this name: the Ramway directory " + root +
                    " does not exist. Create it first, or check RAMWAY_DIR");
            }
            if (isDefault && (dir == -Errno.ENOTDIR || dir == -Errno.ELOOP))
            {
                throw NotOurs(root, uid, "it is none");
            }
            if (dir < 0)
            {
                throw Errors.Os(dir, "opening the Ramway directory " + root);
            }
            if (!isDefault)
            {
                return dir;
            }
            int looked = Files.Stat(dir, out Stat stat);
            if (looked < 0)
            {
                Files.Close(dir);
                throw Errors.Os(looked, "looking at the Ramway directory " + root);
            }
            if (stat.Uid != uid || (stat.Permissions & 0x3F) != 0)
            {
                Files.Close(dir);
                throw NotOurs(root, uid, "it belongs to user " + stat.Uid + " and has mode " +
                    Convert.ToString((int)stat.Permissions, 8).PadLeft(4, '0'));
            }
            return dir;
        }

        private static RamwayException NotOurs(string root, uint uid, string found) =>
            Errors.Fail(ErrorKind.PermissionDenied, "the Ramway directory " + root + " must be a real directory of user " + uid +
                " with mode 0700, but " + found + "; remove it, or set RAMWAY_DIR to a directory of yours");
    }
}
