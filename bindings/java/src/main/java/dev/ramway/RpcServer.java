package dev.ramway;

import java.time.Duration;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;

/**
 * Serves methods to {@link RpcClient}s of any language. {@link #bind(String)} makes one, {@link #method} and {@link #stream} say what it
 * has, and {@link #serve} serves until {@link #shutdown}.
 *
 * <p>Handlers run on virtual threads, or on an executor's, a bounded number at a time; one client has at most half of that as long as
 * others wait. Those of {@link #inlineMethod} run where requests are read. A client that asks for too much is answered OVERLOADED. A
 * client that dies, or breaks the format, disturbs no other one. Safe for any number of threads.
 */
public final class RpcServer implements AutoCloseable {
    /** How long calls may take to stop after they were told to, in ns. */
    private static final long STOPPING = Facts.RACE_TIMEOUT_NANOS;

    private final String name;
    private final Listener listener;
    private final BusGuests guests;
    private final RpcServerMethods methods = new RpcServerMethods();
    private final RpcPool pool;
    private final int maxInFlight;
    private final long maxBytes;
    private final Set<RpcConnection> connections = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean ending = new AtomicBoolean();
    private final CountDownLatch ended = new CountDownLatch(1);
    /** Connections are closed as soon as they are made. */
    private volatile boolean over;
    /** The thread that waits for calls to end; null: nobody does. */
    private volatile Thread drainer;

    private RpcServer(Builder b) {
        name = b.name;
        maxInFlight = b.maxInFlight;
        maxBytes = b.maxBytes;
        guests = BusGuests.clients(b.maxClients, b.maxInFlight);
        pool = new RpcPool(b.executor != null ? b.executor
                : task -> Thread.ofVirtual().name("ramway-handler").start(task), b.handlers);
        listener = Listener.bind(b.name, b.options, guests);
    }

    /** How to serve. For one thread; each call changes this and gives it back. */
    public static final class Builder {
        private final String name;
        private ListenOptions options = ListenOptions.DEFAULT;
        private int maxClients = Facts.RPC_CLIENTS_DEFAULT;
        private int maxInFlight = Facts.RPC_IN_FLIGHT_DEFAULT;
        private long maxBytes;
        private Executor executor;
        private int handlers = Facts.RPC_IN_FLIGHT_DEFAULT;

        private Builder(String name) {
            this.name = Objects.requireNonNull(name, "name");
        }

        /**
         * Bytes of both rings of every client, rounded up to a power of two of at least a page; 1 MiB by default. No request and no reply
         * can be longer.
         *
         * @param bytes above 0
         * @return this
         */
        public Builder capacity(long bytes) {
            if (bytes == 0) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a capacity of 0 bytes: RPC needs both rings");
            }
            options = options.withCapacity(bytes);
            return this;
        }

        /**
         * What each frame's address is a multiple of; 16 by default.
         *
         * @param align in bytes, a power of two from 16 to 4096
         * @return this
         */
        public Builder align(int align) {
            options = options.withAlign(align);
            return this;
        }

        /**
         * The socket's permission bits; 0600 by default, or 0666 with allowUids.
         *
         * @param mode the bits, exactly, whatever the umask
         * @return this
         */
        public Builder mode(int mode) {
            options = options.withMode(mode);
            return this;
        }

        /**
         * Other users who may connect; only our own by default.
         *
         * @param uids their numbers
         * @return this
         */
        public Builder allowUids(Set<Integer> uids) {
            options = options.withAllowUids(uids);
            return this;
        }

        /**
         * How long a client may take for each message of the handshake; 1 s by default.
         *
         * @param timeout above 0
         * @return this
         */
        public Builder handshakeTimeout(Duration timeout) {
            options = options.withHandshakeTimeout(timeout);
            return this;
        }

        /**
         * How the server waits; hybrid by default.
         *
         * @param mode how
         * @return this
         */
        public Builder waitMode(WaitMode mode) {
            options = options.withWaitMode(mode);
            return this;
        }

        /**
         * How many clients there may be at a time; 128 by default. One beyond is refused: BUSY.
         *
         * @param most at least 1
         * @return this
         */
        public Builder maxClients(int most) {
            maxClients = atLeastOne("maxClients", most, Integer.MAX_VALUE);
            return this;
        }

        /**
         * How many calls a client may have in flight; 1024 by default.
         *
         * @param most from 1 to 1,048,576
         * @return this
         */
        public Builder maxInFlight(int most) {
            maxInFlight = atLeastOne("maxInFlight", most, Facts.RPC_IN_FLIGHT_MAX);
            return this;
        }

        /**
         * Bytes of requests and replies that are copied for one client; by default four times the capacity of a ring. A call beyond is
         * answered OVERLOADED, a reply beyond REPLY_TOO_LARGE.
         *
         * @param bytes at least 1
         * @return this
         */
        public Builder maxBytes(long bytes) {
            if (bytes < 1) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a maxBytes of %d: expected at least 1", bytes);
            }
            maxBytes = bytes;
            return this;
        }

        /**
         * What runs handlers, in place of virtual threads. It must not run them in the calling thread. Where it refuses
         * ({@link java.util.concurrent.RejectedExecutionException}), a call is answered OVERLOADED.
         *
         * @param executor the caller's: the server does not shut it down
         * @return this
         */
        public Builder executor(Executor executor) {
            this.executor = Objects.requireNonNull(executor, "executor");
            return this;
        }

        /**
         * How many handlers may run at a time, of all clients; 1024 by default. Calls beyond wait.
         *
         * @param most at least 1
         * @return this
         */
        public Builder handlers(int most) {
            handlers = atLeastOne("handlers", most, Integer.MAX_VALUE);
            return this;
        }

        private static int atLeastOne(String what, int value, int most) {
            if (value < 1 || value > most) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a number of %d for %s: expected 1 to %d", value, what, most);
            }
            return value;
        }

        /**
         * Listens. Clients are taken once {@link RpcServer#serve} runs.
         *
         * @return the server
         * @throws RamwayException as of {@link Listener#bind(String, ListenOptions)}
         */
        public RpcServer bind() {
            return new RpcServer(this);
        }
    }

    /**
     * {@return how to serve, to be changed}
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     */
    public static Builder builder(String name) {
        return new Builder(name);
    }

    /**
     * Listens, with the defaults.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the server
     * @throws RamwayException as of {@link Listener#bind(String, ListenOptions)}
     */
    public static RpcServer bind(String name) {
        return builder(name).bind();
    }

    /**
     * Registers a method that gives one reply; called as a stream, that is its only element. At any time.
     *
     * @param number the method's, below FFFF0000
     * @param handler what it does
     * @return this
     * @throws RamwayException ALREADY_EXISTS if the number is taken, INVALID_ARGUMENT if it is Ramway's own
     */
    public RpcServer method(int number, RpcHandler handler) {
        methods.add(number, Objects.requireNonNull(handler, "handler"), null, false);
        return this;
    }

    /**
     * The same by name: the number is {@link RpcClient#methodId}.
     *
     * @param name such as "Store.Get"; without control characters
     * @param handler what it does
     * @return this
     * @throws RamwayException ALREADY_EXISTS if the name's number is taken, INVALID_ARGUMENT for a name that cannot be
     */
    public RpcServer method(String name, RpcHandler handler) {
        methods.add(name, Objects.requireNonNull(handler, "handler"), null, false);
        return this;
    }

    /**
     * Registers a method that gives one reply, and whose handler runs on the thread that reads what its client asks, in place of one
     * of its own: the cheapest way to answer, for what takes microseconds. Until it returns, this client's further calls are not begun,
     * and neither a cancellation nor the end of another call's time is seen; other clients are not held up. It must not block, and must
     * not shut the server down.
     *
     * {@snippet :
     * server.inlineMethod(7, request -> counter.next(request.body()));
     * }
     *
     * @param number the method's, below FFFF0000
     * @param handler what it does
     * @return this
     * @throws RamwayException ALREADY_EXISTS if the number is taken, INVALID_ARGUMENT if it is Ramway's own
     */
    public RpcServer inlineMethod(int number, RpcHandler handler) {
        methods.add(number, Objects.requireNonNull(handler, "handler"), null, true);
        return this;
    }

    /**
     * The same by name: the number is {@link RpcClient#methodId}.
     *
     * @param name such as "Store.Get"; without control characters
     * @param handler what it does
     * @return this
     * @throws RamwayException ALREADY_EXISTS if the name's number is taken, INVALID_ARGUMENT for a name that cannot be
     */
    public RpcServer inlineMethod(String name, RpcHandler handler) {
        methods.add(name, Objects.requireNonNull(handler, "handler"), null, true);
        return this;
    }

    /**
     * Registers a method whose reply is a stream; called for one reply, it fails with HANDLER_FAILED. At any time.
     *
     * @param number the method's, below FFFF0000
     * @param handler what it does
     * @return this
     * @throws RamwayException ALREADY_EXISTS if the number is taken, INVALID_ARGUMENT if it is Ramway's own
     */
    public RpcServer stream(int number, RpcStreamHandler handler) {
        methods.add(number, null, Objects.requireNonNull(handler, "handler"), false);
        return this;
    }

    /**
     * The same by name: the number is {@link RpcClient#methodId}.
     *
     * @param name such as "Store.Watch"; without control characters
     * @param handler what it does
     * @return this
     * @throws RamwayException ALREADY_EXISTS if the name's number is taken, INVALID_ARGUMENT for a name that cannot be
     */
    public RpcServer stream(String name, RpcStreamHandler handler) {
        methods.add(name, null, Objects.requireNonNull(handler, "handler"), false);
        return this;
    }

    /**
     * Serves until the server is shut down, and returns once that is done. Each client has a daemon thread that reads what it asks.
     *
     * @throws InterruptedException if the thread is interrupted; clients that are connected are served on, until a shutdown
     * @throws RamwayException if the server cannot take clients any more
     */
    public void serve() throws InterruptedException {
        while (!ending.get()) {
            Bus bus;
            try {
                bus = listener.accept();
            } catch (RamwayException e) {
                // A lack of memory or descriptors: the client was told, and accept pauses by itself.
                if (ending.get() || e.kind() == ErrorKind.NO_SPACE || e.errno().isPresent()) {
                    continue;
                }
                throw e;
            }
            begin(bus);
        }
        ended.await();
    }

    private void begin(Bus bus) {
        RpcConnection connection = new RpcConnection(this, bus, methods, pool, maxInFlight, maxBytes);
        connections.add(connection);
        if (ending.get()) {
            connection.drain();
        }
        Thread.ofPlatform().daemon().name("ramway-rpc " + name).start(connection);
        if (over) {
            connection.close();
        }
    }

    /** A connection has ended. */
    void gone(RpcConnection connection) {
        // Before it is counted no more: who sees by `clients` that there is a place finds it free.
        guests.leave();
        connections.remove(connection);
        changed();
    }

    /** Something has ended that a shutdown may wait for. */
    void changed() {
        LockSupport.unpark(drainer);
    }

    /** {@return how many clients are connected} */
    public int clients() {
        return connections.size();
    }

    /** {@return the socket's path, which clients can be given in place of the name} */
    public String path() {
        return listener.path();
    }

    /**
     * Ends the server: it takes no new client, answers new calls DRAINING, and waits for the running ones. After the limit the rest are
     * cancelled; a client whose calls do not stop then, or that does not read their replies, is left without a word (PEER_DEAD). Returns
     * once all that is done; a second call waits for the first.
     *
     * @param limit how long running calls may go on
     * @throws InterruptedException if the thread is interrupted while it waits; the rest is cancelled at once, and all is closed
     */
    public void shutdown(Duration limit) throws InterruptedException {
        long nanos = RingEnd.nanos(limit);
        if (!ending.compareAndSet(false, true)) {
            ended.await();
            return;
        }
        boolean interrupted = false;
        try {
            listener.close();
        } finally {
            connections.forEach(RpcConnection::drain);
            drainer = Thread.currentThread();
            try {
                interrupted = awaitIdle(nanos);
                connections.forEach(RpcConnection::cancelAll);
                interrupted |= awaitIdle(STOPPING);
            } finally {
                over = true;
                connections.forEach(RpcConnection::close);
                drainer = null;
                ended.countDown();
            }
        }
        if (interrupted) {
            throw new InterruptedException();
        }
    }

    /** Waits until each call that was taken has its final REPLY, and says whether the thread was interrupted. */
    private boolean awaitIdle(long nanos) {
        long start = System.nanoTime();
        while (!connections.stream().allMatch(RpcConnection::isIdle)) {
            long left = Waiter.left(start, nanos);
            if (left <= 0) {
                return false;
            }
            if (Thread.interrupted()) {
                return true;
            }
            LockSupport.parkNanos(this, left);
        }
        return false;
    }

    /** {@link #shutdown} without a limit for running calls: they are cancelled. An interrupt is kept. */
    @Override
    public void close() {
        try {
            shutdown(Duration.ZERO);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
