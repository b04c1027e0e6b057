package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;

/** What the machine has. */
public final class Cpu {
    // The number of _SC_NPROCESSORS_ONLN in glibc and musl.
    private static final int ONLINE = 84;
    private static final int COUNT = online();

    private Cpu() {}

    /**
     * How many processors the machine has online: on one, nobody spins. Not how many this process may use: two that are
     * pinned to one processor each do not stand in each other's way.
     */
    public static int count() {
        return COUNT;
    }

    private static int online() {
        MethodHandle sysconf = Libc.plain("sysconf", FunctionDescriptor.of(JAVA_LONG, JAVA_INT));
        try {
            return (int) Math.max((long) sysconf.invokeExact(ONLINE), 1);
        } catch (Throwable t) {
            throw Libc.unexpected(t);
        }
    }
}
