package dev.ramway;

import java.time.Duration;

/** Accepts buses under a name. */
public final class Listener implements AutoCloseable {
    Listener() {}

    /**
     * Listens.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the listener
     */
    public static Listener bind(String name) {
        return bind(name, ListenOptions.DEFAULT);
    }

    /**
     * Listens.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the listener
     */
    public static Listener bind(String name, ListenOptions options) {
        throw new UnsupportedOperationException();
    }

    /**
     * The next connection. Waits for it.
     *
     * @return the bus
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Bus accept() throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * The next connection. Waits for it.
     *
     * @param timeout the longest wait
     * @return the bus
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Bus accept(Duration timeout) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** {@return the next connection, or null if there is none now} */
    public Bus tryAccept() {
        throw new UnsupportedOperationException();
    }

    /** {@return where the socket is} */
    public String path() {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
