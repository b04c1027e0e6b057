package dev.ramway;

import java.util.Objects;
import java.util.Set;

/**
 * How a {@link Listener} serves. Immutable: start from {@link #DEFAULT}.
 *
 * @param toPeer capacity in bytes of what the listener sends into; 0 leaves this direction out
 * @param fromPeer capacity in bytes of what the listener receives from; 0 leaves this direction out
 * @param align of payloads, in bytes: a power of two from 16 to 4096
 * @param allowedUids other users that may connect; only our own effective user by default
 * @param lockMemory as in {@link Options}
 * @param prefault as in {@link Options}
 * @param waitMode how both halves wait
 * @param membarrier as in {@link Options}
 */
public record ListenOptions(long toPeer, long fromPeer, int align, Set<Integer> allowedUids, boolean lockMemory, boolean prefault,
        WaitMode waitMode, boolean membarrier) {
    /** 1 MiB in each direction, payloads aligned to 16 bytes, our own user, hybrid waiting. */
    public static final ListenOptions DEFAULT =
            new ListenOptions(1 << 20, 1 << 20, 16, Set.of(), false, false, WaitMode.HYBRID, true);

    /** Copies what could be changed. */
    public ListenOptions {
        Objects.requireNonNull(waitMode, "waitMode");
        allowedUids = Set.copyOf(allowedUids);
    }

    /**
     * {@return the same, but for this}
     *
     * @param toPeer capacity in bytes
     * @param fromPeer capacity in bytes
     */
    public ListenOptions withCapacities(long toPeer, long fromPeer) {
        return new ListenOptions(toPeer, fromPeer, align, allowedUids, lockMemory, prefault, waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param align of payloads, in bytes
     */
    public ListenOptions withAlign(int align) {
        return new ListenOptions(toPeer, fromPeer, align, allowedUids, lockMemory, prefault, waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param allowedUids other users that may connect
     */
    public ListenOptions withAllowedUids(Set<Integer> allowedUids) {
        return new ListenOptions(toPeer, fromPeer, align, allowedUids, lockMemory, prefault, waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param waitMode how both halves wait
     */
    public ListenOptions withWaitMode(WaitMode waitMode) {
        return new ListenOptions(toPeer, fromPeer, align, allowedUids, lockMemory, prefault, waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param membarrier as in {@link Options}
     */
    public ListenOptions withMembarrier(boolean membarrier) {
        return new ListenOptions(toPeer, fromPeer, align, allowedUids, lockMemory, prefault, waitMode, membarrier);
    }
}
