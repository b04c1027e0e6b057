package dev.ramway;

import java.time.Duration;

/**
 * A connection to one process of this machine: two rings in sealed memory, one for each direction, and a socket whose
 * hang-up tells that the peer is gone. {@link #connect} makes one; at the other end a {@link Listener} accepts it.
 *
 * <p>Whatever the peer writes into the shared memory, at any time, this process neither crashes nor reads outside of it
 * ({@link ErrorKind#CORRUPT}, at worst), as far as the copying calls are used where the peer is not trusted: see
 * {@link Receiver#recvInto(byte[])}.
 *
 * <p>One thread may send while another receives. After the last message a receiver gets {@link ClosedException} if the peer
 * closed and {@link PeerDeadException} if its process died; a blocked call learns it within 200 ms. Both are final.
 */
public final class Bus implements AutoCloseable {
    private final BusEnd end;
    private final BusMemory.Halves halves;
    /** Of an RPC client's bus: how many calls may be in flight. Unsigned. */
    final int maxInFlight;

    Bus(BusEnd end, BusMemory.Halves halves, int maxInFlight) {
        this.end = end;
        this.halves = halves;
        this.maxInFlight = maxInFlight;
    }

    /**
     * Connects to a listener, and waits up to 10 s for one that is not there yet.
     *
     * @param name the listener's: a name in RAMWAY_DIR, or a path with a '/'
     * @return the connection
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException as of {@link #connect(String, ConnectOptions)}
     */
    public static Bus connect(String name) throws InterruptedException {
        return connect(name, ConnectOptions.DEFAULT);
    }

    /**
     * Connects to a listener, and waits for one that is not there yet or does not accept. It returns once the listener has
     * served us. A virtual thread that waits here holds no carrier.
     *
     * @param name the listener's: a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the connection
     * @throws InterruptedException if the thread is interrupted while it waits; it ends at once
     * @throws RamwayException NOT_FOUND if there was no listener until the deadline, TIMED_OUT if there was one but it did
     *     not answer, PERMISSION_DENIED if either side does not deal with the other's user or the socket cannot be
     *     reached, ABI_MISMATCH if the two sides speak different versions, CORRUPT or PEER_DEAD if the listener breaks the
     *     handshake, or what the listener gave as its reason (NO_SPACE for example)
     */
    public static Bus connect(String name, ConnectOptions options) throws InterruptedException {
        return new BusConnector(name, options, BusUse.PLAIN).connect();
    }

    /**
     * Listens, takes one peer, and removes the name again. At most one connector is ever told that it is welcome, so none
     * is told that it is connected and is not.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options as for a {@link Listener}
     * @return the connection
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException as of {@link Listener#bind(String, ListenOptions)} and {@link Listener#accept()}
     */
    public static Bus listen(String name, ListenOptions options) throws InterruptedException {
        return listen(name, options, RingEnd.FOREVER);
    }

    /**
     * {@link #listen(String, ListenOptions)} with a limit.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options as for a {@link Listener}
     * @param timeout the longest wait
     * @return the connection
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws TimedOutException if no peer came
     */
    public static Bus listen(String name, ListenOptions options, Duration timeout) throws InterruptedException {
        return listen(name, options, RingEnd.nanos(timeout));
    }

    private static Bus listen(String name, ListenOptions options, long nanos) throws InterruptedException {
        Bus bus = null;
        try (Listener listener = Listener.bindOne(name, options)) {
            bus = listener.acceptWithin(nanos);
        } catch (Throwable t) {
            // What a listener says that could not be closed.
            if (bus != null) {
                bus.close();
            }
            throw t;
        }
        return bus;
    }

    /**
     * {@return the sending half, with all of its calls}
     *
     * @throws RamwayException UNSUPPORTED if the listener gave this direction no capacity
     */
    public Sender sender() {
        if (halves.sender() == null) {
            throw missingDirection("receive-only");
        }
        return halves.sender();
    }

    /**
     * {@return the receiving half, with all of its calls}
     *
     * @throws RamwayException UNSUPPORTED if the listener gave this direction no capacity
     */
    public Receiver receiver() {
        if (halves.receiver() == null) {
            throw missingDirection("send-only");
        }
        return halves.receiver();
    }

    private static RamwayException missingDirection(String ways) {
        return Errors.fail(ErrorKind.UNSUPPORTED, "this bus is %s: the listener gave the other direction a capacity of 0", ways);
    }

    /** {@return the user that the peer acted as when the connection was made, as the kernel recorded it; an unsigned number} */
    public int peerUid() {
        return end.peer.uid();
    }

    /**
     * {@return the peer's process when the connection was made; 0 if it has no number in our PID namespace} It says who asked,
     * and nothing should be decided by it: numbers are used again.
     */
    public int peerPid() {
        return end.peer.pid();
    }

    /** {@return whether the peer still holds its end; false once this end is closed} One system call; any thread may ask. */
    public boolean peerAlive() {
        return !end.hungUp();
    }

    /**
     * Gives the connection up without saying that this was all: after what was sent the peer's receiver gets PEER_DEAD, as if this
     * process had been killed, so that half a stream does not pass for a whole one.
     */
    public void abandon() {
        if (halves.sender() != null) {
            halves.sender().abandon();
        }
        close();
    }

    /** Hangs up without a word in either direction. Of a bus that has both. */
    void hangUp() {
        halves.sender().giveUp();
        halves.receiver().giveUp();
    }

    /**
     * Closes both halves; what was sent before is delivered. The peer sees a hang-up when both halves are closed and no
     * message or slot is out any more. Any thread may, and more than once: calls of other threads that wait end with
     * DETACHED (or with {@link ClosedException}, if the peer answers by closing even faster).
     */
    @Override
    public void close() {
        halves.close();
    }
}
