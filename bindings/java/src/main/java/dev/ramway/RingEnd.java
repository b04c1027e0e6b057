package dev.ramway;

/** What the two ends of a ring have in common. */
public abstract sealed class RingEnd implements AutoCloseable permits Sender, Receiver {
    RingEnd() {}

    /** {@return the number of bytes of the data area; a frame takes 16 bytes more than its payload, rounded up to align} */
    public final long capacity() {
        throw new UnsupportedOperationException();
    }

    /** {@return what every payload's address is a multiple of, in bytes} */
    public final int align() {
        throw new UnsupportedOperationException();
    }

    /** {@return the longest payload that ever fits, in bytes: min(capacity - 16, 2^31 - 17)} */
    public final int maxMessageLength() {
        throw new UnsupportedOperationException();
    }

    /** {@return how often this role has been attached, this handle included} */
    public final int epoch() {
        throw new UnsupportedOperationException();
    }

    /** {@return how often the other role has been attached; 0: never yet. Any thread may ask} */
    public final int peerEpoch() {
        throw new UnsupportedOperationException();
    }

    /** {@return whether the other role is attached and its process lives. One system call; any thread may ask} */
    public final boolean peerAlive() {
        throw new UnsupportedOperationException();
    }

    /**
     * Says how blocking calls of this handle wait from now on.
     *
     * @param mode how
     */
    public final void waitMode(WaitMode mode) {
        throw new UnsupportedOperationException();
    }

    /** {@return whether this handle is closed} */
    public final boolean isClosed() {
        throw new UnsupportedOperationException();
    }

    @Override
    public abstract void close();
}
