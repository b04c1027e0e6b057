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

    /** A time-out in nanoseconds: none below 0, and what is too long to be counted is for ever. */
    static long nanos(Duration timeout) {
        if (timeout.isNegative()) {
            return 0;
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
     * {@link ErrorKind#DETACHED}. While a message, batch or slot is out, the end of that finishes the close. Closing twice is
     * fine.
     */
    @Override
    public abstract void close();
}
