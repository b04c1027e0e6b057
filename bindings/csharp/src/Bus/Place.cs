using System;
using Ramway.Sys;

namespace Ramway
{
    /// <summary>What has a socket's name, under its listener's lock (ABI.md, section 12, step 3).</summary>
    internal enum SocketState
    {
        /// <summary>Nothing has the name.</summary>
        Absent,
        /// <summary>It was a dead socket's, and is removed.</summary>
        Removed,
        /// <summary>It is not a socket.</summary>
        NoSocket,
        /// <summary>Some program listens there, or may.</summary>
        Live,
    }

    /// <summary>The names of sockets: how they are reached, and that only dead ones are removed.</summary>
    internal static class SocketName
    {
        /// <summary>
        /// A path that leads to a socket and fits into an address where one does: through the open directory if the socket's own is
        /// too long.
        /// </summary>
        internal static string Address(int dir, string file, string path) =>
            Names.LengthOf(path) > Sockets.PathMax ? Files.ProcPath(dir) + "/" + file : path;

        /// <summary>
        /// Removes the name of a socket where nobody listens: one that refuses a connection. A user who may not ask gets a negated
        /// errno.
        /// </summary>
        internal static int RemoveDead(int dir, string file, string path, out SocketState state, out Stat found)
        {
            state = SocketState.Absent;
            int result = Files.StatAt(dir, file, out found);
            if (result < 0)
            {
                return result == -Errno.ENOENT ? 0 : result;
            }
            if (!found.IsSocket)
            {
                state = SocketState.NoSocket;
                return 0;
            }
            path = Address(dir, file, path);
            state = SocketState.Live;
            if (Names.LengthOf(path) > Sockets.PathMax)
            {
                // Nobody could have bound it by a way that we know.
                return 0;
            }
            int fd = Sockets.Stream();
            if (fd < 0)
            {
                return fd;
            }
            result = Sockets.Connect(fd, path);
            Files.Close(fd);
            switch (-result)
            {
                case Errno.ENOENT:
                    state = SocketState.Absent;
                    return 0;
                case Errno.ECONNREFUSED:
                    state = SocketState.Removed;
                    return RemoveIfSame(dir, file, found.Id);
                default:
                    return result == -Errno.EACCES || result == -Errno.EPERM ? result : 0;
            }
        }

        /// <summary>Removes a name if it leads to this file: 0 or a negated errno.</summary>
        internal static int RemoveIfSame(int dir, string file, in FileId id)
        {
            if (!SegmentFile.LeadsTo(dir, file, id))
            {
                return 0;
            }
            int removed = Files.Unlink(dir, file);
            return removed == -Errno.ENOENT ? 0 : removed;
        }
    }

    /// <summary>
    /// Where a listener is: its socket, and the segment whose lock says that it lives, in a directory that is held open. For a
    /// plain name that is the segment's, and the socket is NAME.sock beside it; a path is the socket's, and the segment is
    /// PATH.lock, but for the path of a name's own socket, which meets the name at the same lock (ABI.md, section 10).
    /// </summary>
    internal sealed class Place : IDisposable
    {
        private readonly SegmentName directory;
        private readonly string segmentFile;
        private readonly string socketFile;
        // The socket that we bound.
        private FileId? bound;

        private Place(SegmentName directory, string segment, string segmentFile, string socketFile)
        {
            this.directory = directory;
            Segment = segment;
            this.segmentFile = segmentFile;
            this.socketFile = socketFile;
            // With a '/' in it, so that it is a path wherever it is given as a name.
            SocketPath = Names.Beside(directory.Path, socketFile);
        }

        /// <summary>The segment as a name or path to be created.</summary>
        internal string Segment { get; }

        /// <summary>For messages, and for peers that connect by path.</summary>
        internal string SocketPath { get; }

        /// <summary>The directory, for its user as long as this lives.</summary>
        internal int Dir => directory.Dir;

        /// <summary>Finds the directory; create makes the Ramway directory if it is not there.</summary>
        internal static Place Resolve(string text, bool create)
        {
            bool isPath = text.IndexOf('/') >= 0;
            if (!isPath && Names.HasSuffix(text, Facts.LockSuffix))
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "a listener's name must not end in " + Facts.LockSuffix);
            }
            SegmentName at = SegmentName.Resolve(text, create);
            if (!isPath)
            {
                return new Place(at, text, at.File, Names.SocketOf(at.File));
            }
            string? name = Names.NameOfSocket(at.File);
            return name != null && IsRamwayDirectory(at.Dir)
                ? new Place(at, Names.Beside(text, name), name, at.File)
                : new Place(at, text + Facts.LockSuffix, at.File + Facts.LockSuffix, at.File);
        }

        /// <summary>Whether this is the Ramway directory, however the two are written.</summary>
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

        public void Dispose() => directory.Dispose();

        /// <summary>A path to the socket that fits into an address.</summary>
        internal string SocketAddress()
        {
            string path = SocketName.Address(Dir, socketFile, SocketPath);
            int length = Names.LengthOf(path);
            if (length < 0)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument, "the path has a NUL or half a surrogate pair in it");
            }
            if (length > Sockets.PathMax)
            {
                int most = Math.Max(Sockets.PathMax - (length - Names.LengthOf(socketFile)), 0);
                throw Errors.Fail(ErrorKind.InvalidArgument, $"the socket's path {SocketPath} is too long: the system takes at " +
                    $"most {Sockets.PathMax} bytes, and so at most {most} in the file name; pick a shorter name, or set " +
                    "RAMWAY_DIR to a shorter path");
            }
            return path;
        }

        /// <summary>Removes a dead socket. The caller holds the listener's lock. Anything else stays and is an error.</summary>
        internal void Clear()
        {
            Errors.Check(SocketName.RemoveDead(Dir, socketFile, SocketPath, out SocketState state, out Stat found),
                "removing the dead socket " + SocketPath);
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
            if (bound is FileId own)
            {
                // What cannot be removed now is found dead by the next listener.
                SocketName.RemoveIfSame(Dir, socketFile, own);
            }
        }

        /// <summary>Makes a listening socket, at a name that is absent, with exactly these permission bits.</summary>
        internal Descriptor Listen(uint mode, int backlog)
        {
            string path = SocketAddress();
            var socket = new Descriptor(Errors.Check(Sockets.Stream(), "making a socket"));
            try
            {
                Bind((int)socket.DangerousGetHandle(), path, mode, backlog);
                return socket;
            }
            catch
            {
                ClearOwn();
                socket.Dispose();
                throw;
            }
        }

        private void Bind(int fd, string path, uint mode, int backlog)
        {
            Errors.Check(Sockets.ModeBeforeBind(fd, mode), "setting the mode of a socket");
            int result = Sockets.Bind(fd, path);
            if (result == -Errno.EADDRINUSE)
            {
                throw Foreign();
            }
            Errors.Check(result, "binding " + SocketPath);
            if (Files.StatAt(Dir, socketFile, out Stat own) >= 0 && own.IsSocket)
            {
                bound = own.Id;
            }
            result = Sockets.SocketMode(Dir, socketFile, mode);
            if (result == -Errno.ENOTSOCK)
            {
                throw Errors.Fail(ErrorKind.AlreadyExists,
                    $"another program replaced the socket {SocketPath}, which was just bound; pick another name");
            }
            Errors.Check(result < 0 ? result : Sockets.Listen(fd, backlog), "listening at " + SocketPath);
        }

        /// <summary>
        /// What to say when nobody takes a connection until the deadline: nothing has the socket's name (absent), or nobody
        /// listens there. It throws where nobody ever will.
        /// </summary>
        internal RamwayException Missed(bool absent)
        {
            // A link may lead to a socket.
            if (Files.StatAt(Dir, socketFile, out Stat stat) >= 0 && !stat.IsSocket && !stat.IsLink)
            {
                throw Errors.Fail(ErrorKind.InvalidArgument,
                    $"{SocketPath} is {stat.Describe()}, not a listener's socket");
            }
            if (IsHeld())
            {
                return Errors.Fail(ErrorKind.TimedOut, $"the listener of {SocketPath} is alive but not accepting");
            }
            return Errors.Fail(ErrorKind.NotFound, absent
                ? $"no listener made the socket {SocketPath}: start it, or check the name and RAMWAY_DIR"
                : $"the listener that made {SocketPath} is gone: start it again");
        }

        /// <summary>Whether a listener holds the segment's lock. Where we may not ask we do not know: false.</summary>
        private bool IsHeld()
        {
            if (Files.StatAt(Dir, segmentFile, out Stat stat) < 0 || !stat.IsRegular)
            {
                return false;
            }
            int fd = Files.OpenAt(Dir, segmentFile, false);
            if (fd < 0)
            {
                return false;
            }
            int result = Lock.HeldByAnother(fd, Facts.ByteListener, out LockMode mode);
            Files.Close(fd);
            return result >= 0 && mode != LockMode.Unlocked;
        }
    }
}
