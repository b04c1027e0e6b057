package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.FileInputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;

/** Names, descriptors and what files hold. */
public final class Files {
    /** In place of a directory: the working directory, for a path. */
    public static final int AT_CWD = -100;

    /** Where named segments live unless they are told otherwise: this and the user's number. */
    public static final String DEFAULT_DIRECTORY = "/dev/shm/ramway-";

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

    private static final ValueLayout.OfLong LONG = JAVA_LONG;
    private static final MethodHandle LINKAT = Libc.withErrno("linkat", FunctionDescriptor.of(
            JAVA_INT, JAVA_INT, ValueLayout.ADDRESS, JAVA_INT, ValueLayout.ADDRESS, JAVA_INT));
    private static final MethodHandle UNLINKAT =
            Libc.withErrno("unlinkat", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ValueLayout.ADDRESS, JAVA_INT));
    private static final MethodHandle MKDIR =
            Libc.withErrno("mkdir", FunctionDescriptor.of(JAVA_INT, ValueLayout.ADDRESS, JAVA_INT));
    private static final MethodHandle FCHMOD = Libc.withErrno("fchmod", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
    private static final MethodHandle FTRUNCATE = Libc.withErrno("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, LONG));
    private static final MethodHandle PREAD =
            Libc.withErrno("pread", FunctionDescriptor.of(LONG, JAVA_INT, ValueLayout.ADDRESS, LONG, LONG));
    private static final MethodHandle PWRITE =
            Libc.withErrno("pwrite", FunctionDescriptor.of(LONG, JAVA_INT, ValueLayout.ADDRESS, LONG, LONG));
    private static final MethodHandle FSTATFS =
            Libc.withErrno("fstatfs", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ValueLayout.ADDRESS));

    private Files() {}

    private interface Call {
        int errnoOrZero(MemorySegment state) throws Throwable;
    }

    /** Makes a call that gives 0 or -1 until no signal interrupts it. */
    private static int again(Call call) {
        Libc.Scratch s = Libc.scratch();
        try {
            while (true) {
                if (call.errnoOrZero(s.state) == 0) {
                    return 0;
                }
                int errno = s.errno();
                if (errno != Errno.EINTR) {
                    return -errno;
                }
            }
        } catch (Throwable t) {
            throw Libc.unexpected(t);
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
        return Libc.openat(AT_CWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW), 0);
    }

    /**
     * Opens what {@link #statAt} called a regular file: a descriptor, or the error with a minus sign. If it was exchanged
     * meanwhile, the open neither blocks nor follows a link nor takes a terminal; the caller looks again at what it got.
     */
    public static int openAt(int dir, String name, boolean writable) {
        int flags = writable ? O_RDWR : O_RDONLY;
        return Libc.openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
    }

    /** What is at a name, only to be asked about and for {@link #procPath}: a descriptor, or the error with a minus sign. */
    public static int openPath(int dir, String name) {
        return Libc.openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
    }

    /** Makes a file with a name that nothing has yet: a descriptor, or the error with a minus sign. */
    public static int createNew(int dir, String name) {
        return Libc.openat(dir, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    }

    /** Makes a file in the directory's file system that has no name yet: a descriptor, or the error with a minus sign. */
    public static int createUnnamed(int dir) {
        return Libc.openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }

    /** A short path to an open file or directory. Needs /proc. */
    public static String procPath(int fd) {
        return "/proc/self/fd/" + fd;
    }

    /** Another open file description of the same file, which need not have a name; or the error with a minus sign. */
    public static int reopen(int fd) {
        return Libc.openat(AT_CWD, procPath(fd), O_RDWR | O_CLOEXEC, 0);
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
            MemorySegment source = Libc.string(arena, from);
            MemorySegment target = Libc.string(arena, to);
            return again(state -> (int) LINKAT.invokeExact(state, fromDir, source, toDir, target, flags));
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
            MemorySegment path = Libc.string(arena, name);
            return again(state -> (int) UNLINKAT.invokeExact(state, dir, path, 0));
        }
    }

    /** Makes a directory for its owner alone: 0, or the error with a minus sign. That it exists already is fine. */
    public static int makeDir(String name) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment path = Libc.string(arena, name);
            int result = again(state -> (int) MKDIR.invokeExact(state, path, 0700));
            return result == -Errno.EEXIST ? 0 : result;
        }
    }

    /** Sets a file's permissions exactly, whatever the umask: 0, or the error with a minus sign. */
    public static int chmod(int fd, int mode) {
        return again(state -> (int) FCHMOD.invokeExact(state, fd, mode & 0777));
    }

    /** Sets a file's length: 0, or the error with a minus sign. */
    public static int truncate(int fd, long length) {
        return again(state -> (int) FTRUNCATE.invokeExact(state, fd, length));
    }

    /**
     * What a descriptor is.
     *
     * @throws SysException if the kernel does not say
     */
    public static Stat stat(int fd) throws SysException {
        return statx(fd, "", AT_EMPTY_PATH);
    }

    /**
     * What is at a name; a symbolic link is not followed. null: nothing.
     *
     * @throws SysException if the kernel does not say
     */
    public static Stat statAt(int dir, String name) throws SysException {
        try {
            return statx(dir, name, AT_SYMLINK_NOFOLLOW);
        } catch (SysException e) {
            if (e.errno() == Errno.ENOENT) {
                return null;
            }
            throw e;
        }
    }

    private static Stat statx(int dir, String name, int flags) throws SysException {
        MemorySegment result = Libc.scratch().buffer;
        try (Arena arena = Arena.ofConfined()) {
            long path = Libc.string(arena, name).address();
            long errno = Libc.syscallAgain(STATX, dir, path, flags, STATX_BASIC_STATS, result.address(), 0);
            if (errno != 0) {
                throw new SysException((int) -errno, "");
            }
        }
        return Stat.of(result);
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
        int errno = -again(state -> (int) FSTATFS.invokeExact(state, fd, result));
        if (errno != 0) {
            throw new SysException(errno, "");
        }
        // struct statfs: type, bsize, blocks, bfree, bavail, files, ffree, fsid, namelen, frsize.
        return new FileSystem((int) result.get(LONG, 0), result.get(LONG, 8), result.get(LONG, 16), result.get(LONG, 32),
                result.get(LONG, 72));
    }

    /**
     * Reads at an offset until the bytes are there or the file ends, and says how many there were.
     *
     * @throws SysException if it cannot be read
     */
    public static int readAt(int fd, byte[] into, int length, long offset) throws SysException {
        Libc.Scratch s = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocate(Math.max(length, 1));
            int done = 0;
            while (done < length) {
                long n = (long) PREAD.invokeExact(s.state, fd, buffer.asSlice(done), (long) (length - done), offset + done);
                if (n == 0) {
                    break;
                }
                if (n > 0) {
                    done += (int) n;
                } else if (s.errno() != Errno.EINTR) {
                    throw new SysException(s.errno(), "");
                }
            }
            MemorySegment.copy(buffer, JAVA_BYTE, 0, into, 0, done);
            return done;
        } catch (SysException e) {
            throw e;
        } catch (Throwable t) {
            throw Libc.unexpected(t);
        }
    }

    /**
     * Writes all bytes at an offset.
     *
     * @throws SysException if they cannot be written
     */
    public static void writeAt(int fd, byte[] bytes, long offset) throws SysException {
        Libc.Scratch s = Libc.scratch();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment buffer = arena.allocateFrom(JAVA_BYTE, bytes);
            long done = 0;
            while (done < bytes.length) {
                long n = (long) PWRITE.invokeExact(s.state, fd, buffer.asSlice(done), bytes.length - done, offset + done);
                if (n > 0) {
                    done += n;
                } else if (n == 0 || s.errno() != Errno.EINTR) {
                    throw new SysException(n == 0 ? Errno.EIO : s.errno(), "");
                }
            }
        } catch (SysException e) {
            throw e;
        } catch (Throwable t) {
            throw Libc.unexpected(t);
        }
    }

    /**
     * What a file of the kernel's says; empty if it cannot be read. Not by a channel, which an interrupt of the thread
     * would close.
     */
    public static String text(String path) {
        try (FileInputStream in = new FileInputStream(path)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            return "";
        }
    }
}
