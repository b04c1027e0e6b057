using Ramway.Sys;

namespace Ramway
{
    /// <summary>What a look at a socket's name found, under its listener's lock (ABI.md, section 12, step 3).</summary>
    internal enum SocketState
    {
        /// <summary>Nothing has the name.</summary>
        Absent,
        /// <summary>It was a dead socket's, and is removed.</summary>
        Removed,
        /// <summary>It is no socket.</summary>
        NoSocket,
        /// <summary>Some program listens there, or may.</summary>
        Live,
    }

    /// <summary>Removes dead sockets, and no others.</summary>
    internal static class SocketName
    {
        /// <summary>
        /// Removes the name of a socket where nobody listens: one that refuses a connection. Whoever may not ask gets a negated
        /// errno. The path leads to the same name; where it is too long, the way is through the directory.
        /// </summary>
        internal static int RemoveDead(int dir, string file, string path, out SocketState state, out Stat found)
        {
            state = SocketState.Absent;
            int result = Files.StatAt(dir, file, out found);
            if (result == -Errno.ENOENT)
            {
                return 0;
            }
            if (result < 0)
            {
                return result;
            }
            if (!found.IsSocket)
            {
                state = SocketState.NoSocket;
                return 0;
            }
            if (Sockets.PathLength(path) > Sockets.PathMax)
            {
                path = Files.ProcPath(dir) + "/" + file;
            }
            if (Sockets.PathLength(path) > Sockets.PathMax)
            {
                // Nobody could have bound it by a way that we know.
                state = SocketState.Live;
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
                    return 0;
                case Errno.EACCES:
                case Errno.EPERM:
                    return result;
                case Errno.ECONNREFUSED:
                    break;
                default:
                    state = SocketState.Live;
                    return 0;
            }
            state = SocketState.Removed;
            return RemoveIfSame(dir, file, found.Id);
        }

        /// <summary>Removes a name if it leads to this file: 0 or a negated errno.</summary>
        internal static int RemoveIfSame(int dir, string file, in FileId id)
        {
            if (Files.StatAt(dir, file, out Stat now) < 0 || !now.Id.Equals(id))
            {
                return 0;
            }
            int removed = Files.Unlink(dir, file);
            return removed == -Errno.ENOENT ? 0 : removed;
        }
    }
}
