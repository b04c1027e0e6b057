package dev.ramway;

import java.time.Duration;
import java.util.Objects;
import java.util.Set;

/**
 * How a {@link Listener} serves. Immutable: start from {@link #DEFAULT}.
 *
 * @param toPeer capacity in bytes of the ring that the listener sends into, rounded up to a power of two of at least a page;
 *     0 leaves this direction out
 * @param fromPeer the same for the ring that it receives from
 * @param align what each payload's address is a multiple of, in bytes: a power of two from 16 to 4096
 * @param mode the permission bits of the socket, exactly, whatever the umask; 0 is 0600, or 0666 with allowUids
 * @param allowUids other users who may connect; only our own effective user by default. They need a path that they can
 *     search: give the listener a path, or RAMWAY_DIR such a directory. A user without a number in our user namespace is
 *     refused even if its stand-in (usually 65534) is named
 * @param handshakeTimeout how long a connector may take for each message of the handshake before it is refused; above 0
 * @param backlog how many connectors may wait for an accept at a time; others keep trying until their deadline. At least 1;
 *     the kernel caps it at net.core.somaxconn
 * @param lockMemory as in {@link Options}
 * @param prefault as in {@link Options}
 * @param waitMode how both halves of every bus wait
 * @param membarrier as in {@link Options}
 */
public record ListenOptions(long toPeer, long fromPeer, int align, int mode, Set<Integer> allowUids, Duration handshakeTimeout,
        int backlog, boolean lockMemory, boolean prefault, WaitMode waitMode, boolean membarrier) {
    /** 1 MiB in each direction, payloads aligned to 16 bytes, our own user, 1 s for a handshake, hybrid waiting. */
    public static final ListenOptions DEFAULT = new ListenOptions(Facts.CAPACITY_DEFAULT, Facts.CAPACITY_DEFAULT, Facts.ALIGN_MIN, 0,
            Set.of(), Duration.ofNanos(Facts.HANDSHAKE_TIMEOUT_NANOS), Facts.BACKLOG_DEFAULT, false, false, WaitMode.HYBRID, true);

    /** Copies what could be changed. What is no value at all is refused here; what cannot be right, where it is used. */
    public ListenOptions {
        Objects.requireNonNull(handshakeTimeout, "handshakeTimeout");
        Objects.requireNonNull(waitMode, "waitMode");
        allowUids = Set.copyOf(allowUids);
    }

    /**
     * {@return the same, but for this}
     *
     * @param both capacity in bytes of either direction
     */
    public ListenOptions withCapacity(long both) {
        return withCapacities(both, both);
    }

    /**
     * {@return the same, but for this}
     *
     * @param toPeer capacity in bytes of the ring that the listener sends into; 0 leaves it out
     * @param fromPeer capacity in bytes of the ring that it receives from; 0 leaves it out
     */
    public ListenOptions withCapacities(long toPeer, long fromPeer) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param align what each payload's address is a multiple of, in bytes: a power of two from 16 to 4096
     */
    public ListenOptions withAlign(int align) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param mode the permission bits of the socket; 0 is 0600, or 0666 with allowUids
     */
    public ListenOptions withMode(int mode) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param allowUids other users who may connect
     */
    public ListenOptions withAllowUids(Set<Integer> allowUids) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param handshakeTimeout how long a connector may take for each message of the handshake; above 0
     */
    public ListenOptions withHandshakeTimeout(Duration handshakeTimeout) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param backlog how many connectors may wait for an accept at a time; at least 1
     */
    public ListenOptions withBacklog(int backlog) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param lockMemory as in {@link Options}
     */
    public ListenOptions withLockMemory(boolean lockMemory) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param prefault as in {@link Options}
     */
    public ListenOptions withPrefault(boolean prefault) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param waitMode how both halves of every bus wait
     */
    public ListenOptions withWaitMode(WaitMode waitMode) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /**
     * {@return the same, but for this}
     *
     * @param membarrier as in {@link Options}
     */
    public ListenOptions withMembarrier(boolean membarrier) {
        return new ListenOptions(toPeer, fromPeer, align, mode, allowUids, handshakeTimeout, backlog, lockMemory, prefault,
                waitMode, membarrier);
    }

    /** What both halves of every bus are told. */
    Options halves() {
        return Options.DEFAULT.withLockMemory(lockMemory).withPrefault(prefault).withWaitMode(waitMode).withMembarrier(membarrier);
    }

    /** What every bus holds. */
    SegmentSpec spec() {
        if (!handshakeTimeout.isPositive()) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a handshakeTimeout of %s: expected one above 0", handshakeTimeout);
        }
        if (backlog < 1) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a backlog of %d: expected at least 1", backlog);
        }
        if ((mode & ~0777) != 0) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a mode of 0%o: expected permission bits, 0 to 0777", mode);
        }
        return SegmentSpec.bus(toPeer, fromPeer, align);
    }

    int socketMode() {
        if (mode != 0) {
            return mode;
        }
        return allowUids.isEmpty() ? 0600 : 0666;
    }
}
