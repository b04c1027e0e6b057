package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Waiting for descriptors, and one kind of descriptor by which another thread ends the wait. For one thread. */
public final class Poll {
    private static final int PPOLL = Platform.pick(271, 73);
    private static final int EVENTFD2 = Platform.pick(290, 19);
    private static final int READ = Platform.pick(0, 63);
    private static final int WRITE = Platform.pick(1, 64);

    private static final int EFD_NONBLOCK = 04000;
    private static final int EFD_CLOEXEC = 02000000;

    private static final short IN = 0x1;
    private static final short ERROR = 0x8;
    private static final short HANG_UP = 0x10;
    private static final short INVALID = 0x20;
    private static final short PEER_HANG_UP = 0x2000;
    private static final int ENTRY = 8;

    private final Arena arena = Arena.ofAuto();
    private final MemorySegment entries;
    private final MemorySegment timeout = arena.allocate(16, 8);
    private final int most;
    private int count;

    /** Room for {@code most} descriptors. */
    public Poll(int most) {
        this.most = most;
        entries = arena.allocate((long) most * ENTRY, 8);
    }

    /** Forgets all descriptors. */
    public void clear() {
        count = 0;
    }

    /** Waits for this one too, until it can be read or the other end hangs up; gives its number for {@link #ready}. */
    public int add(int fd) {
        if (count == most) {
            throw new IndexOutOfBoundsException(count);
        }
        set(entries, count, fd, IN);
        return count++;
    }

    /**
     * Waits until one is ready.
     *
     * @param nanos how long at most; below 0 is forever
     * @return 0, or the error with a minus sign; EINTR and the end of the time are none
     */
    public int await(long nanos) {
        for (int i = 0; i < count; i++) {
            entries.set(JAVA_SHORT, i * ENTRY + 6, (short) 0);
        }
        timeout.set(JAVA_LONG, 0, nanos / 1_000_000_000);
        timeout.set(JAVA_LONG, 8, nanos % 1_000_000_000);
        long result = Libc.syscall(PPOLL, entries.address(), count, nanos < 0 ? 0 : timeout.address(), 0, 0, 0);
        return result < 0 && result != -Errno.EINTR ? (int) result : 0;
    }

    /** Whether the last wait found this one ready. */
    public boolean ready(int index) {
        return entries.get(JAVA_SHORT, index * ENTRY + 6) != 0;
    }

    private static void set(MemorySegment entries, long index, int fd, short events) {
        entries.set(JAVA_INT, index * ENTRY, fd);
        entries.set(JAVA_SHORT, index * ENTRY + 4, events);
        entries.set(JAVA_SHORT, index * ENTRY + 6, (short) 0);
    }

    /**
     * Whether the other end of a connected socket is closed: the peer closed it or died. It never waits. Bytes that the
     * peer sends say nothing and are left alone.
     */
    public static boolean hungUp(int fd) {
        MemorySegment buffer = Libc.scratch().buffer;
        set(buffer, 0, fd, PEER_HANG_UP);
        buffer.set(JAVA_LONG, 8, 0);
        buffer.set(JAVA_LONG, 16, 0);
        long result = Libc.syscallAgain(PPOLL, buffer.address(), 1, buffer.address() + 8, 0, 0, 0);
        // A descriptor that is not open counts too: waiting on it would wait forever.
        return result < 0 || (buffer.get(JAVA_SHORT, 6) & (HANG_UP | PEER_HANG_UP | ERROR | INVALID)) != 0;
    }

    /** A descriptor to be woken by ({@link #wake}), or the error with a minus sign. */
    public static int alarm() {
        return (int) Libc.syscall(EVENTFD2, 0, EFD_NONBLOCK | EFD_CLOEXEC, 0, 0, 0, 0);
    }

    /** Makes an alarm ready. Any thread may. */
    public static void wake(int alarm) {
        MemorySegment one = Libc.scratch().buffer;
        one.set(JAVA_LONG, 0, 1);
        // It can only refuse because it is ready already, as often as a number can say.
        Libc.syscallAgain(WRITE, alarm, one.address(), 8, 0, 0, 0);
    }

    /** Makes an alarm that was ready wait for the next {@link #wake}. */
    public static void reset(int alarm) {
        Libc.syscallAgain(READ, alarm, Libc.scratch().buffer.address(), 8, 0, 0, 0);
    }
}
