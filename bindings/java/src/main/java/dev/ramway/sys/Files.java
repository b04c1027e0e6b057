package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.ByteArrayOutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/** Names, descriptors and what files hold. */
public final class Files {
    /** In place of a directory: the working directory, for a path. */
    public static final int AT_CWD = -100;

    /** What to advise where a directory will not do. */
    public static final String GOOD_PLACE = "/dev/shm or another tmpfs";

    private static final int O_RDONLY = 0;
    private static final int O_RDWR = 2;
    private static final int O_CREAT = 0100;
    private static final int O_EXCL = 0200;
    private static final int O_NOCTTY = 0400;
    private static final int O_NONBLOCK = 04000;
    private static final int O_CLOEXEC = 02000000;
    private static final int O_PATH = 010000000;
    private static final int O_DIRECTORY = Platform.pick(0200000, 040000);
    private static final int O_NOFOLLOW = Platform.pick(0400000, 0100000);
    private static final int O_TMPFILE = 020000000 | O_DIRECTORY;

    private static final int AT_SYMLINK_NOFOLLOW = 0x100;
    private static final int AT_SYMLINK_FOLLOW = 0x400;
    private static final int AT_EMPTY_PATH = 0x1000;
    private static final int F_DUPFD_CLOEXEC = 1030;
    private static final int RENAME_NOREPLACE = 1;
    private static final int STATX_BASIC_STATS = 0x7FF;

    private static final int STATX = Platform.pick(332, 291);
    private static final int RENAMEAT2 = Platform.pick(316, 276);

    private static final int OPENAT = Platform.pick(257, 56);
    private static final int LINKAT = Platform.pick(265, 37);
    private static final int UNLINKAT = Platform.pick(263, 35);
    private static final int MKDIRAT = Platform.pick(258, 34);
    private static final int FCHMOD = Platform.pick(91, 52);
    private static final int FTRUNCATE = Platform.pick(77, 46);
    private static final int PREAD64 = Platform.pick(17, 67);
    private static final int PWRITE64 = Platform.pick(18, 68);
    private static final int FSTATFS = Platform.pick(138, 44);

    private Files() {}

    private static int openat(int dir, String name, int flags, int mode) {
        try (Arena arena = Arena.ofConfined()) {
            long path = Libc.string(arena, name).address();
            return (int) Libc.syscallAgain(OPENAT, dir, path, flags | O_CLOEXEC, mode, 0, 0);
        }
    }

    /** Closes a descriptor. What it says cannot be acted on: the descriptor is gone in any case. */
    public static void close(int fd) {
        Libc.close(fd);
    }

    /** Another descriptor of the same description, or the error with a minus sign. */
    public static int dup(int fd) {
        return Libc.fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }

    /**
     * Opens a directory to name things in it: a descriptor, or the error with a minus sign. Unless {@code follow} is set,
     * a symbolic link at the end of the path is ENOTDIR or ELOOP.
     */
    public static int openDir(String path, boolean follow) {
        return openat(AT_CWD, path, O_PATH | O_DIRECTORY | (follow ? 0 : O_NOFOLLOW), 0);
    }

    /**
     * Opens what {@link #statAt} called a regular file: a descriptor, or the error with a minus sign. If it was exchanged
     * meanwhile, the open neither blocks nor follows a link nor takes a terminal; the caller checks what it got.
     */
    public static int openAt(int dir, String name, boolean writable) {
        int flags = writable ? O_RDWR : O_RDONLY;
        return openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    }

    /** What is at a name, only to be asked about and for {@link #procPath}: a descriptor, or the error with a minus sign. */
    public static int openPath(int dir, String name) {
        return openat(dir, name, O_PATH | O_NOFOLLOW, 0);
    }

    /** Makes a file with a name that nothing has yet: a descriptor, or the error with a minus sign. */
    public static int createNew(int dir, String name) {
        return openat(dir, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, 0600);
    }

    /** Makes a file in the directory's file system that has no name yet: a descriptor, or the error with a minus sign. */
    public static int createUnnamed(int dir) {
        return openat(dir, ".", O_TMPFILE | O_RDWR, 0600);
    }

    /** A short path to an open file or directory. Needs /proc. */
    public static String procPath(int fd) {
        return "/proc/self/fd/" + fd;
    }

    /** Another open file description of the same file, which need not have a name; or the error with a minus sign. */
    public static int reopen(int fd) {
        return openat(AT_CWD, procPath(fd), O_RDWR, 0);
    }

    /** Gives a file without a name its name: 0, or the error with a minus sign, EEXIST if the name is taken. */
    public static int linkUnnamed(int fd, int dir, String name) {
        int result = linkat(AT_CWD, procPath(fd), dir, name, AT_SYMLINK_FOLLOW);
        if (result == -Errno.ENOENT || result == -Errno.EACCES) {
            // Without /proc; this way needs a capability on most kernels.
            return linkat(fd, "", dir, name, AT_EMPTY_PATH);
        }
        return result;
    }

    private static int linkat(int fromDir, String from, int toDir, String to, int flags) {
        try (Arena arena = Arena.ofConfined()) {
            long source = Libc.string(arena, from).address();
            long target = Libc.string(arena, to).address();
            return (int) Libc.syscallAgain(LINKAT, fromDir, source, toDir, target, flags, 0);
        }
    }

    /** Renames within a directory: 0, or the error with a minus sign, EEXIST if the new name is taken. */
    public static int renameNew(int dir, String from, String to) {
        int result;
        try (Arena arena = Arena.ofConfined()) {
            long source = Libc.string(arena, from).address();
            long target = Libc.string(arena, to).address();
            result = (int) Libc.syscallAgain(RENAMEAT2, dir, source, dir, target, RENAME_NOREPLACE, 0);
        }
        if (result != -Errno.EINVAL && result != -Errno.ENOSYS && result != -Errno.EOPNOTSUPP) {
            return result;
        }
        // A file system that knows no such thing: two steps, between which the file has both names.
        result = linkat(dir, from, dir, to, 0);
        return result != 0 ? result : unlink(dir, from);
    }

    /** Removes a name: 0, or the error with a minus sign. */
    public static int unlink(int dir, String name) {
        try (Arena arena = Arena.ofConfined()) {
            return (int) Libc.syscallAgain(UNLINKAT, dir, Libc.string(arena, name).address(), 0, 0, 0, 0);
        }
    }

    /** Makes a directory for its owner alone: 0, or the error with a minus sign. That it exists already is fine. */
    public static int makeDir(String name) {
        try (Arena arena = Arena.ofConfined()) {
            int result = (int) Libc.syscallAgain(MKDIRAT, AT_CWD, Libc.string(arena, name).address(), 0700, 0, 0, 0);
            return result == -Errno.EEXIST ? 0 : result;
        }
    }

    /** Sets a file's permissions exactly, whatever the umask: 0, or the error with a minus sign. */
    public static int chmod(int fd, int mode) {
        return (int) Libc.syscallAgain(FCHMOD, fd, mode & 0777, 0, 0, 0, 0);
    }

    /** Sets a file's length: 0, or the error with a minus sign. */
    public static int truncate(int fd, long length) {
        return (int) Libc.syscallAgain(FTRUNCATE, fd, length, 0, 0, 0, 0);
    }

    /**
     * What a descriptor is.
     *
     * @throws SysException if the kernel does not say
     */
    public static Stat stat(int fd) throws SysException {
        int errno = statx(fd, "", AT_EMPTY_PATH);
        if (errno != 0) {
            throw new SysException(errno, "");
        }
        return Stat.of(Libc.scratch().buffer);
    }

    /**
     * What is at a name; a symbolic link is not followed. null: nothing.
     *
     * @throws SysException if the kernel does not say
     */
    public static Stat statAt(int dir, String name) throws SysException {
        int errno = statx(dir, name, AT_SYMLINK_NOFOLLOW);
        if (errno == Errno.ENOENT) {
            return null;
        }
        if (errno != 0) {
            throw new SysException(errno, "");
        }
        return Stat.of(Libc.scratch().buffer);
    }

    /** Leaves what there is in this thread's buffer: 0 or the error. */
    private static int statx(int dir, String name, int flags) {
        long result = Libc.scratch().buffer.address();
        try (Arena arena = Arena.ofConfined()) {
            long path = Libc.string(arena, name).address();
            return (int) -Libc.syscallAgain(STATX, dir, path, flags, STATX_BASIC_STATS, result, 0);
        }
    }

    /**
     * What a file system says of itself.
     *
     * @param type which one it is
     * @param blockSize in bytes; of hugetlbfs its page
     * @param blocks how many fragments it has, 0 where it does not count
     * @param available how many of them an ordinary user can still have
     * @param fragment the size of one in bytes
     */
    public record FileSystem(int type, long blockSize, long blocks, long available, long fragment) {}

    /**
     * What the file system of a descriptor says of itself.
     *
     * @throws SysException if the kernel does not say
     */
    public static FileSystem fileSystem(int fd) throws SysException {
        MemorySegment result = Libc.scratch().buffer;
        int errno = (int) -Libc.syscallAgain(FSTATFS, fd, result.address(), 0, 0, 0, 0);
        if (errno != 0) {
            throw new SysException(errno, "");
        }
        // struct statfs: type, bsize, blocks, bfree, bavail, files, ffree, fsid, namelen, frsize.
        return new FileSystem((int) result.get(JAVA_LONG, 0), result.get(JAVA_LONG, 8), result.get(JAVA_LONG, 16),
                result.get(JAVA_LONG, 32), result.get(JAVA_LONG, 72));
    }

    /**
     * Reads at an offset until the bytes are there or the file ends, and says how many there were.
     *
     * @throws SysException if it cannot be read
     */
    public static int readAt(int fd, byte[] into, int length, long offset) throws SysException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate(Math.max(length, 1));
            int done = 0;
            while (done < length) {
                long n = Libc.syscallAgain(PREAD64, fd, buffer.address() + done, length - done, offset + done, 0, 0);
                if (n < 0) {
                    throw new SysException((int) -n, "");
                }
                if (n == 0) {
                    break;
                }
                done += (int) n;
            }
            MemorySegment.copy(buffer, JAVA_BYTE, 0, into, 0, done);
            return done;
        }
    }

    /**
     * Writes all bytes at an offset.
     *
     * @throws SysException if they cannot be written
     */
    public static void writeAt(int fd, byte[] bytes, long offset) throws SysException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocateFrom(JAVA_BYTE, bytes);
            int done = 0;
            while (done < bytes.length) {
                long n = Libc.syscallAgain(PWRITE64, fd, buffer.address() + done, bytes.length - done, offset + done, 0, 0);
                if (n <= 0) {
                    throw new SysException(n == 0 ? Errno.EIO : (int) -n, "");
                }
                done += (int) n;
            }
        }
    }

    /** What a file of the kernel's says; empty if it cannot be read. */
    public static String text(String path) {
        return new String(bytes(path), StandardCharsets.UTF_8);
    }

    /** The same as bytes. Such files have no length to ask for; and an interrupt of the thread would close a channel. */
    static byte[] bytes(String path) {
        int fd = openat(AT_CWD, path, O_RDONLY, 0);
        if (fd < 0) {
            return new byte[0];
        }
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        byte[] piece = new byte[4096];
        try {
            int n;
            do {
                n = readAt(fd, piece, piece.length, all.size());
                all.write(piece, 0, n);
            } while (n == piece.length);
            return all.toByteArray();
        } catch (SysException e) {
            return new byte[0];
        } finally {
            close(fd);
        }
    }
}
