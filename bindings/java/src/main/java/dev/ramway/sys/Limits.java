package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/** The limits of this process that the kernel keeps. */
final class Limits {
    /** The longest file that it may make; growing one beyond it is not only an error but a deadly SIGXFSZ. */
    static final int FILE_SIZE = 1;
    /** How much it may lock in memory. */
    static final int LOCKED_MEMORY = 8;

    private static final MethodHandle GETRLIMIT =
            Libc.withErrno("getrlimit", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ValueLayout.ADDRESS));

    private Limits() {}

    /** A limit in bytes; {@link Long#MAX_VALUE} for none, and where the kernel does not say. */
    static long of(int which) {
        Libc.Scratch s = Libc.scratch();
        MemorySegment limit = s.buffer.asSlice(0, 16);
        try {
            if ((int) GETRLIMIT.invokeExact(s.state, which, limit) != 0) {
                return Long.MAX_VALUE;
            }
        } catch (Throwable t) {
            throw Libc.unexpected(t);
        }
        // Unsigned, and all ones for none.
        long current = limit.get(JAVA_LONG, 0);
        return current < 0 ? Long.MAX_VALUE : current;
    }
}
