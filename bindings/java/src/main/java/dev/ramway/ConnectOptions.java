package dev.ramway;

import java.time.Duration;
import java.util.Objects;
import java.util.Set;

/**
 * How to connect to a {@link Listener}. Immutable: start from {@link #DEFAULT}.
 *
 * @param timeout how long to wait for a listener that is not there yet, does not accept, or is flooded
 * @param allowUids other users whose listeners will do; only those of our own effective user by default
 * @param waitMode how both halves wait
 * @param membarrier as in {@link Options}
 */
public record ConnectOptions(Duration timeout, Set<Integer> allowUids, WaitMode waitMode, boolean membarrier) {
    /** 10 s, our own user, hybrid waiting. */
    public static final ConnectOptions DEFAULT =
            new ConnectOptions(Duration.ofNanos(Facts.CONNECT_TIMEOUT_NANOS), Set.of(), WaitMode.HYBRID, true);

    /** Copies what could be changed. */
    public ConnectOptions {
        Objects.requireNonNull(timeout, "timeout");
        Objects.requireNonNull(waitMode, "waitMode");
        allowUids = Set.copyOf(allowUids);
    }

    /**
     * {@return the same, but for this}
     *
     * @param timeout how long to wait
     */
    public ConnectOptions withTimeout(Duration timeout) {
        return new ConnectOptions(timeout, allowUids, waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param allowUids other users whose listeners will do
     */
    public ConnectOptions withAllowUids(Set<Integer> allowUids) {
        return new ConnectOptions(timeout, allowUids, waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param waitMode how both halves wait
     */
    public ConnectOptions withWaitMode(WaitMode waitMode) {
        return new ConnectOptions(timeout, allowUids, waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param membarrier as in {@link Options}
     */
    public ConnectOptions withMembarrier(boolean membarrier) {
        return new ConnectOptions(timeout, allowUids, waitMode, membarrier);
    }
}
