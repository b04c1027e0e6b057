using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>
    /// Where a listener is: its socket, and the segment whose lock says that it lives, in a directory that is held open. For a
    /// plain name that is the segment's, and the socket is NAME.sock beside it; a path is the socket's, and the segment is
    /// PATH.lock.
    /// </summary>
    internal sealed class Place : IDisposable
    {
        private readonly SegmentName _directory;
        private readonly string _segmentFile;
        private readonly string _socketFile;

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
            return isPath
                ? new Place(directory, text + ".lock", directory.File + ".lock", directory.File)
                : new Place(directory, text, directory.File, directory.File + ".sock");
        }

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

        /// <summary>Removes a dead listener's socket. The caller holds the listener's lock. Anything that is not a socket stays
        /// and is an error.</summary>
        internal void Clear()
        {
            int found = Files.StatAt(_directory.Dir, _socketFile, out Stat stat);
            if (found == -Errno.ENOENT)
            {
                return;
            }
            if (found < 0)
            {
                throw Errors.Os(found, "looking at " + SocketPath);
            }
            if (!stat.IsSocket)
            {
                throw Errors.Fail(ErrorKind.AlreadyExists,
                    $"{SocketPath} is {stat.Describe()}, not a socket; it is left as it is: move it or pick another name");
            }
            int removed = Files.Unlink(_directory.Dir, _socketFile);
            if (removed < 0 && removed != -Errno.ENOENT)
            {
                throw Errors.Os(removed, "removing the dead socket " + SocketPath);
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
            if (result < 0)
            {
                throw Errors.Os(result, "binding " + SocketPath);
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
                // Ours, just bound, under the listener's lock.
                Files.Unlink(_directory.Dir, _socketFile);
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
                return Errors.Fail(ErrorKind.TimedOut, $"the listener of {SocketPath} lives, but it does not listen");
            }
            return Errors.Fail(ErrorKind.NotFound, absent
                ? $"no listener made the socket {SocketPath}: start it, or check the name and RAMWAY_DIR"
                : $"the listener that made {SocketPath} is gone: start it again");
        }
    }
}
