package dev.ramway;

/** How a blocking call waits. */
public enum WaitMode {
    /** Spins for up to about 75 µs, less where waits have been long, and then sleeps. */
    HYBRID,
    /** Never sleeps in the kernel while the peer lives: the lowest latency, at the price of a processor. */
    SPIN,
    /** Sleeps at once: the least work, at the price of a wake-up per wait. */
    BLOCK
}
