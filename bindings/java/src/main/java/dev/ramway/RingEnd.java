package dev.ramway;

import java.time.Duration;
import java.util.Objects;

/** What the two ends of a ring have in common. */
public abstract sealed class RingEnd extends Half implements AutoCloseable permits Producer, Consumer {
    /** A wait without a limit, in nanoseconds. */
    static final long FOREVER = Long.MAX_VALUE;
    /** No wait at all. */
    static final long NOW = -1;

    RingEnd(Attachment a, Options options) {
        super(a, options);
    }

    /** A time-out in nanoseconds; what is too long to be counted is forever. */
    static long nanos(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        if (timeout.isNegative()) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a timeout of %s is below zero: leave it out to wait for as long as it takes",
                    timeout);
        }
        return timeout.getSeconds() >= FOREVER / 1_000_000_000L ? FOREVER : timeout.toNanos();
    }

    /** {@return the number of bytes of the data area; a frame takes 16 bytes more than its payload, rounded up to align} */
    public final long capacity() {
        return capacity;
    }

    /** {@return what every payload's address is a multiple of, in bytes} */
    public final int align() {
        return (int) alignMask + 1;
    }

    /** {@return the longest payload that ever fits, in bytes: min(capacity - 16, 2^31 - 17). It fits whenever the ring is empty} */
    public final int maxMessageLength() {
        return Layout.maxMessageLength(capacity);
    }

    /** {@return how often this role has been attached, this handle included; 1 is the first} */
    public final int epoch() {
        return epoch;
    }

    /**
     * {@return how often the other role has been attached; 0: never yet. A change means that a successor took over. Any thread
     * may ask; 0 once the handle is closed}
     */
    public final int peerEpoch() {
        return peerEpochNow();
    }

    /**
     * {@return whether the other role is attached and its process lives. A stopped process is alive. One system call; any
     * thread may ask; false once the handle is closed}
     */
    public final boolean peerAlive() {
        return peerAliveNow();
    }

    /**
     * Waits until a living peer is attached that has not closed, for as long as it takes; at once if one is. A peer that attaches
     * during the call counts also if it has gone again: its messages may be there. After a receive or send that ended with
     * PEER_DEAD or CLOSED on a named ring, this waits for the successor.
     *
     * @return the peer's epoch, an unsigned number
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException CLOSED if the ring's name was removed, or on a bus or pair whose peer has closed; PEER_DEAD on a bus
     *     whose peer died; BUSY while a message, batch or slot is out; DETACHED after close
     */
    public final int waitForPeer() throws InterruptedException {
        return peerWithin(FOREVER);
    }

    /**
     * {@link #waitForPeer()} with a limit.
     *
     * @param timeout the longest wait; zero looks once
     * @return the peer's epoch, an unsigned number
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws TimedOutException if no peer came
     * @throws RamwayException as of {@link #waitForPeer()}
     */
    public final int waitForPeer(Duration timeout) throws InterruptedException {
        return peerWithin(nanos(timeout));
    }

    /** {@return the name that this end was opened by; that of the listener on a bus, empty on a pair} */
    public final String name() {
        return name;
    }

    /**
     * Says how blocking calls of this handle wait from now on. Any thread may.
     *
     * @param mode how
     */
    public final void waitMode(WaitMode mode) {
        waiter.setMode(Objects.requireNonNull(mode, "mode"));
    }

    /**
     * Says what views of a message, batch or slot may be used by.
     *
     * <p>Normally a view belongs to the thread that asked for it, which also has to close what it is a view of. Where another
     * thread has to be able to, views can be of the shared kind: each of them then costs 0.1 ms or more at the close, because
     * the virtual machine stops every thread to be sure that none is looking. Getters, copies and {@link Message#read} work
     * from any thread as it is.
     *
     * @param shared whether views made from now on are for any thread
     */
    public final void shareViews(boolean shared) {
        sharedViews = shared;
    }

    /**
     * Closes the handle. Any thread may at any time: a call of another one that waits ends with the kind
     * {@link ErrorKind#DETACHED}. While a message, batch or slot is out, the end of that finishes the close; a sender is told at
     * once that its receiver closed. Closing twice is fine.
     */
    @Override
    public abstract void close();
}
