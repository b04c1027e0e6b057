package dev.ramway.sys;

/** What this process may run on. */
public final class Cpu {
    private static final int COUNT = Runtime.getRuntime().availableProcessors();

    private Cpu() {}

    /** How many processors this process may use: on one, nobody spins. */
    public static int count() {
        return COUNT;
    }
}
