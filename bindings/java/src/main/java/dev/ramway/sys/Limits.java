package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.MemorySegment;

/** The limits of this process that the kernel keeps. */
final class Limits {
    /** The longest file that it may make; growing one beyond it is not only an error but a deadly SIGXFSZ. */
    static final int FILE_SIZE = 1;
    /** How much it may lock in memory. */
    static final int LOCKED_MEMORY = 8;

    private static final int PRLIMIT64 = Platform.pick(302, 261);

    private Limits() {}

    /** A limit in bytes; {@link Long#MAX_VALUE} for none, and where the kernel does not say. */
    static long of(int which) {
        MemorySegment limit = Libc.scratch().buffer;
        if (Libc.syscall(PRLIMIT64, 0, which, 0, limit.address(), 0, 0) != 0) {
            return Long.MAX_VALUE;
        }
        // Unsigned, and all ones for none.
        long current = limit.get(JAVA_LONG, 0);
        return current < 0 ? Long.MAX_VALUE : current;
    }
}
