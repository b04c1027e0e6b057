package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Sleeping on many words at once ({@code futex_waitv}, Linux 5.16). For one thread. */
public final class FutexWaitv {
    /** How many words one call takes. */
    public static final int MAX = 128;

    private static final int NUMBER = 449;
    private static final int CLOCK_GETTIME = Platform.pick(228, 113);
    private static final int CLOCK_MONOTONIC = 1;
    // Of 32 bits, and shared: the private flag is not set.
    private static final int SIZE_U32 = 2;
    private static final int ENTRY = 24;

    private final Arena arena = Arena.ofAuto();
    private final MemorySegment entries = arena.allocate((long) MAX * ENTRY, 8);
    private final MemorySegment until = arena.allocate(16, 8);

    /** A place for up to {@link #MAX} words. */
    public FutexWaitv() {}

    /** Whether this kernel has the call and no filter refuses it. */
    public static boolean supported() {
        return Known.SUPPORTED;
    }

    private static final class Known {
        // No words at all are EINVAL where there is such a call, and no way to sleep by mistake.
        static final boolean SUPPORTED = Libc.syscall(NUMBER, 0, 0, 0, 0, 0, 0) == -Errno.EINVAL;
    }

    /**
     * Says which word number {@code index} is.
     *
     * @param word its address, aligned to 4
     * @param expected the value that it must hold to be slept on
     */
    public void set(int index, long word, int expected) {
        long at = (long) index * ENTRY;
        entries.set(JAVA_LONG, at, expected & 0xFFFFFFFFL);
        entries.set(JAVA_LONG, at + 8, word);
        entries.set(JAVA_INT, at + 16, SIZE_U32);
        entries.set(JAVA_INT, at + 20, 0);
    }

    /**
     * Sleeps until one of the first {@code count} words is woken or does not hold what it should. The words stay mapped
     * meanwhile: a wake-up of one of them makes this return before it is unmapped.
     *
     * @param nanos how long at most, above 0
     * @return the number of a word that was woken, or the error with a minus sign: EAGAIN (one held something else),
     *     ETIMEDOUT, EINTR, EFAULT (one is not mapped)
     */
    public int await(int count, long nanos) {
        // An absolute time by the very clock that the kernel compares with; System.nanoTime may be another.
        Libc.syscall(CLOCK_GETTIME, CLOCK_MONOTONIC, until.address(), 0, 0, 0, 0);
        long nano = until.get(JAVA_LONG, 8) + nanos;
        until.set(JAVA_LONG, 0, until.get(JAVA_LONG, 0) + nano / 1_000_000_000L);
        until.set(JAVA_LONG, 8, nano % 1_000_000_000L);
        return (int) Libc.syscall(NUMBER, entries.address(), count, 0, until.address(), CLOCK_MONOTONIC, 0);
    }
}
