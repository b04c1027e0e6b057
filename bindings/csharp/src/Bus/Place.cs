using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// Where a listener is: its socket, and the segment whose lock says that it lives, in a directory that is held open. For a
    /// plain name that is the segment's, and the socket is NAME.sock beside it; a path is the socket's, and the segment is
    /// PATH.lock, but for the path of a name's own socket, which meets the name at the same lock (ABI.md, section 10).
    /// </summary>
    internal sealed class Place : IDisposable
    {
        private readonly SegmentName _directory;
        private readonly string _segmentFile;
        private readonly string _socketFile;
        // The socket that we bound.
        private FileId? _bound;

        private Place(SegmentName directory, string segment, string segmentFile, string socketFile)
        {
            _directory = directory;
            Segment = segment;
            _segmentFile = segmentFile;
            _socketFile = socketFile;
            // With a '/' in it, so that it is a path wherever it is given as a name.
            string path = _directory.Path;
            SocketPath = path.Substring(0, path.LastIndexOf('/') + 1) + _socketFile;
        }

        /// <summary>The segment as a name or path to be created.</summary>
        internal string Segment { get; }

        /// <summary>For messages, and for those who connect by path.</summary>
        internal string SocketPath { get; }

        /// <summary>Finds the directory; create makes the Ramway directory if it is not there.</summary>
        internal static Place Resolve(string text, bool create)
        {
            bool isPath = text.IndexOf('/') >= 0;
            if (!isPath && text.EndsWith(".lock", StringComparison.Ordinal))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a listener's name must not end in .lock");
            }
            SegmentName directory = SegmentName.Resolve(text, create);
            if (!isPath)
            {
                return new Place(directory, text, directory.File, directory.File + ".sock");
            }
            string? name = NameOf(directory.File);
            return name != null && IsRamwayDirectory(directory.Dir)
                ? new Place(directory, text.Substring(0, text.LastIndexOf('/') + 1) + name, name, directory.File)
                : new Place(directory, text + ".lock", directory.File + ".lock", directory.File);
        }

        /// <summary>The listener's name whose socket would have this file name in the Ramway directory, or null.</summary>
        private static string? NameOf(string file)
        {
            const string suffix = ".sock";
            if (!file.EndsWith(suffix, StringComparison.Ordinal))
            {
                return null;
            }
            string name = file.Substring(0, file.Length - suffix.Length);
            return Names.IsValid(name) && !name.EndsWith(".lock", StringComparison.Ordinal) ? name : null;
        }

        /// <summary>However the two are written.</summary>
        private static bool IsRamwayDirectory(int dir)
        {
            string root = Names.Directory();
            int other = Names.CanBePath(root) ? Files.OpenDir(root, true) : -1;
            if (other < 0)
            {
                return false;
            }
            bool same = Files.Stat(dir, out Stat a) >= 0 && Files.Stat(other, out Stat b) >= 0 && a.Id.Equals(b.Id);
            Files.Close(other);
            return same;
        }

        /// <summary>The directory, for its user as long as this lives.</summary>
        internal int Dir => _directory.Dir;

        public void Dispose() => _directory.Dispose();

        /// <summary>A path to the socket that fits into an address, through the directory that is held open if need be.</summary>
        internal string SocketAddress()
        {
            string path = SocketPath;
            if (Sockets.PathLength(path) > Sockets.PathMax)
            {
                path = Files.ProcPath(_directory.Dir) + "/" + _socketFile;
            }
            int length = Sockets.PathLength(path);
            if (length < 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "the path has a NUL or half a surrogate pair in it");
            }
            if (length > Sockets.PathMax)
            {
                int most = Math.Max(Sockets.PathMax - (length - Sockets.PathLength(_socketFile)), 0);
                throw Errors.Fail(ErrorKind.InvalidArgument, $"the socket's path {SocketPath} is too long: the system takes at " +
                    $"most {Sockets.PathMax} bytes, and so at most {most} in the file name; pick a shorter name, or set " +
                    "RAMWAY_DIR to a shorter path");
            }
            return path;
        }

        /// <summary>Removes a dead socket. The caller holds the listener's lock. Anything else stays and is an error.</summary>
        internal void Clear()
        {
            int result = SocketName.RemoveDead(_directory.Dir, _socketFile, SocketPath, out SocketState state, out Stat found);
            if (result < 0)
            {
                throw Errors.Os(result, "removing the dead socket " + SocketPath);
            }
            switch (state)
            {
                case SocketState.NoSocket:
                    throw Errors.Fail(ErrorKind.AlreadyExists,
                        $"{SocketPath} is {found.Describe()}, not a socket; it is left as it is: move it or pick another name");
                case SocketState.Live:
                    throw Foreign();
            }
        }

        private RamwayException Foreign() => Errors.Fail(ErrorKind.AlreadyExists,
            $"{SocketPath}: a program that does not hold Ramway's lock is listening there; stop it, or pick another name");

        /// <summary>
        /// Removes the socket that <see cref="Listen"/> bound, while it is still open, and no other that has come in its place.
        /// </summary>
        internal void ClearOwn()
        {
            if (_bound is FileId own)
            {
                // What cannot be removed now is found dead by the next listener.
                SocketName.RemoveIfSame(_directory.Dir, _socketFile, own);
            }
        }

        /// <summary>Makes a listening socket, at a name that is absent, with exactly these permission bits.</summary>
        internal Descriptor Listen(uint mode, int backlog)
        {
            string path = SocketAddress();
            int fd = Sockets.Stream();
            if (fd < 0)
            {
                throw Errors.Os(fd, "making a socket");
            }
            try
            {
                Bind(fd, path, mode, backlog);
            }
            catch
            {
                ClearOwn();
                Files.Close(fd);
                throw;
            }
            return new Descriptor(fd);
        }

        private void Bind(int fd, string path, uint mode, int backlog)
        {
            int result = Sockets.ModeBeforeBind(fd, mode);
            if (result < 0)
            {
                throw Errors.Os(result, "setting the mode of a socket");
            }
            result = Sockets.Bind(fd, path);
            if (result == -Errno.EADDRINUSE)
            {
                throw Foreign();
            }
            if (result < 0)
            {
                throw Errors.Os(result, "binding " + SocketPath);
            }
            if (Files.StatAt(_directory.Dir, _socketFile, out Stat own) >= 0 && own.IsSocket)
            {
                _bound = own.Id;
            }
            result = Sockets.SocketMode(_directory.Dir, _socketFile, mode);
            if (result == -Errno.ENOTSOCK)
            {
                throw Errors.Fail(ErrorKind.AlreadyExists,
                    $"somebody replaced the socket {SocketPath}, which was just bound");
            }
            if (result >= 0)
            {
                result = Sockets.Listen(fd, backlog);
            }
            if (result < 0)
            {
                throw Errors.Os(result, "listening at " + SocketPath);
            }
        }

        /// <summary>
        /// What to say when nobody takes a connection until the deadline: nothing has the socket's name (absent), or nobody
        /// listens there. It throws where nobody ever will.
        /// </summary>
        internal RamwayException Missed(bool absent)
        {
            // A link may lead to a socket.
            if (Files.StatAt(_directory.Dir, _socketFile, out Stat stat) >= 0 && !stat.IsSocket && !stat.IsLink)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"{SocketPath} is {stat.Describe()}, not a listener's socket");
            }
            // Where we may not ask we do not know.
            if (Attach.ListenerLives(_directory.Dir, _segmentFile) == true)
            {
                return Errors.Fail(ErrorKind.TimedOut, $"the listener of {SocketPath} is alive but not accepting");
            }
            return Errors.Fail(ErrorKind.NotFound, absent
                ? $"no listener made the socket {SocketPath}: start it, or check the name and RAMWAY_DIR"
                : $"the listener that made {SocketPath} is gone: start it again");
        }
    }
}
