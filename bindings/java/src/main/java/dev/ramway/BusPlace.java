package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.FileId;
import dev.ramway.sys.Files;
import dev.ramway.sys.Sockets;
import dev.ramway.sys.Stat;
import dev.ramway.sys.SysException;

/**
 * Where a listener is: its socket, and the segment whose lock says that it lives, in a directory that is held open. For a
 * plain name that is the segment's, the socket is NAME.sock beside it; a path is the socket's, and the segment is PATH.lock, or
 * NAME where the path is that of a named listener's socket.
 */
final class BusPlace implements AutoCloseable {
    private final SegmentName directory;
    /** The segment as a name or path to be created. */
    final String segment;
    /** The names in the directory. */
    private final String segmentFile;
    private final String socketFile;
    /** Which file {@link #listen} made. */
    private FileId bound;

    private BusPlace(SegmentName directory, String segment, String segmentFile, String socketFile) {
        this.directory = directory;
        this.segment = segment;
        this.segmentFile = segmentFile;
        this.socketFile = socketFile;
    }

    /** Finds the directory; {@code create} makes the Ramway directory if it is not there. */
    static BusPlace resolve(String text, boolean create) {
        boolean isPath = text.indexOf('/') >= 0;
        if (!isPath && text.endsWith(Facts.LOCK_SUFFIX)) {
            throw Errors.of(ErrorKind.INVALID_ARGUMENT,
                    "a listener's name must not end in .lock: such names are for the locks of listeners");
        }
        SegmentName at = SegmentName.resolve(text, create);
        if (!isPath) {
            return new BusPlace(at, text, at.file, SegmentName.socketOf(at.file));
        }
        boolean isSocket = at.file.endsWith(Facts.SOCKET_SUFFIX);
        String name = isSocket ? at.file.substring(0, at.file.length() - Facts.SOCKET_SUFFIX.length()) : "";
        if (SegmentName.isValid(name) && !name.endsWith(Facts.LOCK_SUFFIX) && isRamwayDirectory(at.dir)) {
            // The path of a named listener's socket: it meets that name at the same lock.
            return new BusPlace(at, text.substring(0, text.length() - Facts.SOCKET_SUFFIX.length()), name, at.file);
        }
        return new BusPlace(at, text + Facts.LOCK_SUFFIX, at.file + Facts.LOCK_SUFFIX, at.file);
    }

    /** Whether this is the directory that plain names stand in, however it was written. */
    private static boolean isRamwayDirectory(int dir) {
        int root = Files.openDir(SegmentName.directory(), true);
        if (root < 0) {
            return false;
        }
        try {
            return Errors.orElse(false, () -> Files.stat(dir).id().equals(Files.stat(root).id()));
        } finally {
            Files.close(root);
        }
    }

    @Override
    public void close() {
        directory.close();
    }

    /** For messages, and for those who connect by path: hence always with a '/' in it. */
    String socketPath() {
        String path = directory.path;
        int slash = path.lastIndexOf('/');
        return (slash < 0 ? "./" : path.substring(0, slash + 1)) + socketFile;
    }

    /** A path to the socket that fits into an address, through the directory that is held open if need be. */
    private String socketAddress() {
        String path = socketPath();
        if (Sockets.length(path) > Sockets.PATH_MAX) {
            path = Files.procPath(directory.dir) + "/" + socketFile;
        }
        int length = Sockets.length(path);
        if (length > Sockets.PATH_MAX) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "the socket's path %s is too long: the system takes at most %d bytes, and so "
                    + "at most %d in the file name; pick a shorter name, or set RAMWAY_DIR to a shorter path", socketPath(),
                    Sockets.PATH_MAX, Math.max(Sockets.PATH_MAX - (length - Sockets.length(socketFile)), 0));
        }
        return path;
    }

    /**
     * Removes a dead listener's socket. The caller holds the listener's lock. Anything else stays and is an error: what is no
     * socket, and one that a program listens at which does not hold that lock.
     */
    void clear() {
        switch (Errors.during("checking " + socketPath(), () -> BusDeadSocket.remove(directory.dir, socketFile))) {
            case NOT_A_SOCKET -> throw Errors.fail(ErrorKind.ALREADY_EXISTS,
                    "%s is %s, not a socket; it is left as it is: move it or pick another name", socketPath(), described());
            case ALIVE -> throw taken();
            case FORBIDDEN -> throw Errors.fail(ErrorKind.PERMISSION_DENIED,
                    "%s is another user's socket; it is left as it is: remove it, or pick another name", socketPath());
            default -> { }
        }
    }

    private String described() {
        return Errors.orElse("something", () -> {
            Stat stat = Files.statAt(directory.dir, socketFile);
            return stat == null ? "gone" : stat.describe();
        });
    }

    private RamwayException taken() {
        return Errors.fail(ErrorKind.ALREADY_EXISTS,
                "%s: a program that does not hold Ramway's lock is listening there; stop it, or pick another name", socketPath());
    }

    /** Removes the socket of {@link #listen}, if the name still leads to it. While it is open: its number is its own. */
    void leave() {
        if (bound != null) {
            Errors.during("removing " + socketPath(), () -> BusDeadSocket.unlink(directory.dir, socketFile, bound));
        }
    }

    /** A descriptor to be closed where there is no other one left. */
    int reserve() {
        return Files.dup(directory.dir);
    }

    /** A listening socket, at a name that is absent, with exactly these permission bits. */
    int listen(int mode, int backlog) {
        String path = socketAddress();
        int fd = Errors.checked(Sockets.stream(), "making a socket");
        try {
            Errors.checked(Sockets.modeBeforeBind(fd, mode), "setting the mode of a socket");
            int result = Sockets.bind(fd, path);
            if (result == -Errno.EADDRINUSE) {
                throw taken();
            }
            Errors.checked(result, "binding " + socketPath());
            bound(fd, mode, backlog);
            return fd;
        } catch (Throwable t) {
            Files.close(fd);
            throw t;
        }
    }

    private void bound(int fd, int mode, int backlog) {
        int result = Sockets.modeAfterBind(directory.dir, socketFile, mode);
        if (result == -Errno.ENOTSOCK) {
            throw Errors.fail(ErrorKind.ALREADY_EXISTS, "somebody replaced the socket %s, which was just bound", socketPath());
        }
        try {
            Stat stat = Files.statAt(directory.dir, socketFile);
            bound = stat == null ? null : stat.id();
        } catch (SysException e) {
            result = -e.errno();
        }
        if (result == 0) {
            result = Sockets.listen(fd, backlog);
        }
        if (result < 0) {
            leave();
            throw Errors.os(-result, "listening at " + socketPath());
        }
    }

    /** Tries once to connect a socket and never waits: 0, or the error with a minus sign. */
    int connect(int socket) {
        return Sockets.connect(socket, socketAddress());
    }

    /**
     * What to say when nobody takes a connection until the deadline: nothing has the socket's name ({@code absent}), or
     * nobody listens there.
     *
     * @throws RamwayException if nobody ever will
     */
    RamwayException missed(boolean absent) {
        refuseOthers();
        // Where we may not ask we do not know.
        Boolean lives = BusListenerLock.lives(directory.dir, segmentFile);
        if (Boolean.TRUE.equals(lives)) {
            return Errors.fail(ErrorKind.TIMED_OUT, "the listener of %s is alive but not accepting", socketPath());
        }
        if (absent) {
            return Errors.fail(ErrorKind.NOT_FOUND, "no listener made the socket %s: start it, or check the name and RAMWAY_DIR",
                    socketPath());
        }
        return Errors.fail(ErrorKind.NOT_FOUND, "the listener that made %s is gone: start it again", socketPath());
    }

    private void refuseOthers() {
        // What cannot be checked is not known to be another thing. A link may lead to a socket.
        Stat stat = Errors.orElse(null, () -> Files.statAt(directory.dir, socketFile));
        if (stat != null && !stat.isSocket() && !stat.isLink()) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "%s is %s, not a listener's socket", socketPath(), stat.describe());
        }
    }
}
