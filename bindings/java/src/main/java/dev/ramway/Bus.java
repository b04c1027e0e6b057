package dev.ramway;

/** A full-duplex connection of two processes: a ring in each direction, and a socket that tells of a death. */
public final class Bus implements AutoCloseable {
    Bus() {}

    /**
     * Connects to a listener, and waits for one that is not there yet.
     *
     * @param name the listener's
     * @return the connection
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public static Bus connect(String name) throws InterruptedException {
        return connect(name, ConnectOptions.DEFAULT);
    }

    /**
     * Connects to a listener, and waits for one that is not there yet.
     *
     * @param name the listener's
     * @param options how
     * @return the connection
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public static Bus connect(String name, ConnectOptions options) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** {@return the sending half; Unsupported if this direction has no capacity} */
    public Sender sender() {
        throw new UnsupportedOperationException();
    }

    /** {@return the receiving half; Unsupported if this direction has no capacity} */
    public Receiver receiver() {
        throw new UnsupportedOperationException();
    }

    /** {@return the user that the peer acted as when the connection was made} */
    public int peerUid() {
        throw new UnsupportedOperationException();
    }

    /** {@return the peer's process when the connection was made; 0 if it has no number here} */
    public int peerPid() {
        throw new UnsupportedOperationException();
    }

    /** {@return whether the peer still holds its end. One system call; any thread may ask} */
    public boolean peerAlive() {
        throw new UnsupportedOperationException();
    }

    /** Closes both halves; what was sent before is delivered. */
    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
