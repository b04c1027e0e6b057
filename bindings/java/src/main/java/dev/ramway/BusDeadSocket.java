package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.FileId;
import dev.ramway.sys.Files;
import dev.ramway.sys.Sockets;
import dev.ramway.sys.Stat;
import dev.ramway.sys.SysException;

/** What has a socket's name. It is removed only if a connection to it is refused: nothing else proves that nobody listens. */
final class BusDeadSocket {
    private BusDeadSocket() {}

    /** What was found, and done. */
    enum Found { NOTHING, REMOVED, NOT_A_SOCKET, ALIVE, FORBIDDEN }

    /** Removes a socket that nobody listens at; everything else stays. */
    static Found remove(int dir, String file) throws SysException {
        Stat stat = Files.statAt(dir, file);
        if (stat == null) {
            return Found.NOTHING;
        }
        if (!stat.isSocket()) {
            return Found.NOT_A_SOCKET;
        }
        String address = Files.procPath(dir) + "/" + file;
        if (Sockets.length(address) > Sockets.PATH_MAX) {
            return Found.ALIVE;
        }
        int fd = Sockets.stream();
        if (fd < 0) {
            throw new SysException(-fd, "making a socket");
        }
        int error;
        try {
            error = -Sockets.connect(fd, address);
        } finally {
            Files.close(fd);
        }
        return switch (error) {
            case Errno.ECONNREFUSED -> unlink(dir, file, stat.id());
            case Errno.ENOENT -> Found.NOTHING;
            case Errno.EACCES, Errno.EPERM -> Found.FORBIDDEN;
            default -> Found.ALIVE;
        };
    }

    /** Takes a name away that still leads to this socket. */
    static Found unlink(int dir, String file, FileId id) throws SysException {
        Stat now = Files.statAt(dir, file);
        if (now == null || !now.id().equals(id)) {
            return Found.NOTHING;
        }
        int error = -Files.unlink(dir, file);
        if (error != 0 && error != Errno.ENOENT) {
            throw new SysException(error, "removing a socket");
        }
        return Found.REMOVED;
    }
}
