package dev.ramway.sys;

/** A full memory barrier on other processors' behalf. */
public final class Membarrier {
    private static final int NUMBER = Platform.pick(324, 283);
    private static final int GLOBAL_EXPEDITED = 1 << 1;
    private static final int REGISTER_GLOBAL_EXPEDITED = 1 << 2;

    private Membarrier() {}

    /**
     * Whether this process is registered and a real barrier succeeded, not merely that the kernel lists the command: a
     * seccomp filter may forbid it. The first call may take up to 12 ms. {@code RAMWAY_MEMBARRIER=0} in the environment
     * switches it off.
     */
    public static boolean isAvailable() {
        return Known.AVAILABLE;
    }

    private static final class Known {
        // Registering waits for every processor's grace period.
        static final boolean AVAILABLE = !"0".equals(System.getenv("RAMWAY_MEMBARRIER"))
                && Libc.syscall(NUMBER, REGISTER_GLOBAL_EXPEDITED, 0, 0, 0, 0, 0) == 0 && run();
    }

    /**
     * A full memory barrier on every processor that runs a registered process, this one included. It waits for other
     * processors for about a microsecond, never for a process.
     *
     * @return false if the kernel refused: then there was none, not even here
     */
    public static boolean run() {
        return Libc.syscall(NUMBER, GLOBAL_EXPEDITED, 0, 0, 0, 0, 0) == 0;
    }
}
