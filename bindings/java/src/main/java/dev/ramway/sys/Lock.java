package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;

/**
 * Open-file-description locks on single bytes. They belong to the description, not to the process: they vanish when its
 * last descriptor closes, however that comes about, and two descriptions of one process conflict like strangers.
 */
public final class Lock {
    private static final int GET = 36;
    private static final int SET = 37;

    private Lock() {}

    /** How a byte is locked. The order is that of the kernel's numbers. */
    public enum Mode {
        /** Any number of holders. Needs a readable description. */
        SHARED,
        /** One holder. Needs a writable description. */
        EXCLUSIVE,
        /** Nobody holds it. */
        UNLOCKED
    }

    // struct flock: type, whence (i16), start, length (i64 from offset 8), pid; the open-file-description kind wants pid 0.
    private static MemorySegment request(Mode mode, long at) {
        MemorySegment flock = Libc.scratch().buffer.asSlice(0, 32);
        flock.fill((byte) 0);
        flock.set(JAVA_SHORT, 0, (short) mode.ordinal());
        flock.set(JAVA_LONG, 8, at);
        flock.set(JAVA_LONG, 16, 1);
        return flock;
    }

    /**
     * Locks one byte without waiting.
     *
     * @return false if another description holds it in a way that excludes this one
     * @throws SysException if it cannot be locked at all
     */
    public static boolean tryLock(int fd, long at, Mode mode) throws SysException {
        int result = Libc.fcntl(fd, SET, request(mode, at).address());
        if (result >= 0) {
            return true;
        }
        if (result == -Errno.EAGAIN || result == -Errno.EACCES) {
            return false;
        }
        throw new SysException(-result, "");
    }

    /** Releases a byte. It does nothing if this description does not hold it. */
    public static void unlock(int fd, long at) {
        Libc.fcntl(fd, SET, request(Mode.UNLOCKED, at).address());
    }

    /**
     * How another description holds a byte. It takes nothing, and works on a read-only descriptor.
     *
     * @throws SysException if the kernel does not say
     */
    public static Mode heldByAnother(int fd, long at) throws SysException {
        MemorySegment flock = request(Mode.EXCLUSIVE, at);
        int result = Libc.fcntl(fd, GET, flock.address());
        if (result < 0) {
            throw new SysException(-result, "");
        }
        return Mode.values()[flock.get(JAVA_SHORT, 0)];
    }

    /**
     * Whether another description holds a byte, in either way.
     *
     * @throws SysException if the kernel does not say
     */
    public static boolean isHeld(int fd, long at) throws SysException {
        return heldByAnother(fd, at) != Mode.UNLOCKED;
    }
}
