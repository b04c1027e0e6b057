package dev.ramway;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * Calls the methods of an {@link RpcServer}. Safe for any number of threads, platform or virtual: one of those that wait receives for
 * all of them. {@link #connect(String)} makes one.
 *
 * <p>A call that fails throws an {@link RpcException}. Nothing is repeated by itself, and a client whose server is gone does not
 * connect again: make another one.
 */
public final class RpcClient implements AutoCloseable {
    private final RpcChannel channel;

    private RpcClient(RpcChannel channel) {
        this.channel = channel;
    }

    /** How to connect. For one thread; each call changes this and gives it back. */
    public static final class Builder {
        private final String name;
        private ConnectOptions options = ConnectOptions.DEFAULT;
        private long maxBuffered;

        private Builder(String name) {
            this.name = Objects.requireNonNull(name, "name");
        }

        /**
         * How long to wait for a server that is not there yet; 10 s by default.
         *
         * @param timeout the longest wait
         * @return this
         */
        public Builder timeout(Duration timeout) {
            options = options.withTimeout(timeout);
            return this;
        }

        /**
         * Other users whose servers will do; only our own by default.
         *
         * @param uids their numbers
         * @return this
         */
        public Builder allowUids(Set<Integer> uids) {
            options = options.withAllowUids(uids);
            return this;
        }

        /**
         * How calls wait; hybrid by default.
         *
         * @param mode how
         * @return this
         */
        public Builder waitMode(WaitMode mode) {
            options = options.withWaitMode(mode);
            return this;
        }

        /**
         * Bytes of replies that nobody has taken yet, all calls together; a reply beyond that fails its call with TOO_LARGE. By default
         * four times the capacity of the ring.
         *
         * @param bytes at least 1
         * @return this
         */
        public Builder maxBuffered(long bytes) {
            if (bytes < 1) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a maxBuffered of %d bytes: expected at least 1", bytes);
            }
            maxBuffered = bytes;
            return this;
        }

        /**
         * Connects to the server, and waits for it.
         *
         * @return the client
         * @throws InterruptedException if the thread is interrupted while it waits
         * @throws RamwayException as of {@link Bus#connect(String, ConnectOptions)}; ABI_MISMATCH also if a plain listener has the
         *     name, BUSY if the server has as many clients as it takes
         */
        public RpcClient connect() throws InterruptedException {
            Bus bus = new BusConnector(name, options, BusUse.RPC).connect();
            try {
                return new RpcClient(new RpcChannel(name, bus, maxBuffered));
            } catch (Throwable t) {
                bus.close();
                throw t;
            }
        }
    }

    /**
     * {@return how to connect, to be changed}
     *
     * @param name the server's: a name in RAMWAY_DIR, or a path with a '/'
     */
    public static Builder builder(String name) {
        return new Builder(name);
    }

    /**
     * Connects to a server, and waits up to 10 s for one that is not there yet.
     *
     * @param name the server's: a name in RAMWAY_DIR, or a path with a '/'
     * @return the client
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException as of {@link Builder#connect}
     */
    public static RpcClient connect(String name) throws InterruptedException {
        return builder(name).connect();
    }

    /**
     * {@return the number of a method's name, for a service whose methods have names}
     *
     * @param name such as "Store.Get"
     */
    public static int methodId(String name) {
        return RpcFrames.methodId(name);
    }

    /**
     * Sends a request and waits for its reply.
     *
     * @param method the method's number
     * @param body the request
     * @return the reply
     * @throws InterruptedException if the thread is interrupted while it waits; the call is cancelled
     * @throws RpcException if there is no reply
     */
    public byte[] call(int method, byte[] body) throws InterruptedException {
        return call(method, body, CallOptions.DEFAULT).body();
    }

    /**
     * Sends a request and waits for its reply.
     *
     * @param method the method's number
     * @param body the request
     * @param options the time limit and metadata
     * @return the reply with its metadata
     * @throws InterruptedException if the thread is interrupted while it waits; the call is cancelled
     * @throws RpcException if there is no reply; with the error TIMED_OUT if the time limit passed here
     */
    public RpcReply call(int method, byte[] body, CallOptions options) throws InterruptedException {
        try (RpcPending pending = start(method, body, options)) {
            return pending.get();
        }
    }

    /**
     * {@link #start(int, byte[], CallOptions)} with the defaults.
     *
     * @param method the method's number
     * @param body the request
     * @return the call
     */
    public RpcPending start(int method, byte[] body) {
        return start(method, body, CallOptions.DEFAULT);
    }

    /**
     * Sends a request and does not wait. Where the server lets no more calls be in flight, or the ring is full, the request is sent
     * later, by the calls of this client that wait.
     *
     * @param method the method's number
     * @param body the request; it is not to be changed before the reply is there
     * @param options the time limit and metadata
     * @return the call; close lets go of it and cancels it
     * @throws RpcException TOO_LARGE if the request can never fit into the ring
     */
    public RpcPending start(int method, byte[] body, CallOptions options) {
        return new RpcPending(channel, begin(method, body, 0, options));
    }

    /**
     * {@link #stream(int, byte[], CallOptions)} with the defaults.
     *
     * @param method the method's number
     * @param body the request
     * @return the stream
     */
    public RpcStream stream(int method, byte[] body) {
        return stream(method, body, CallOptions.DEFAULT);
    }

    /**
     * Sends a request whose reply is a stream. A reader that does not take its elements stops its own stream and nothing else.
     *
     * @param method the method's number
     * @param body the request; it is not to be changed before the first element is there
     * @param options the time limit, metadata, and how many elements may be under way
     * @return the stream; close lets go of it and cancels it
     * @throws RpcException TOO_LARGE if the request can never fit into the ring
     */
    public RpcStream stream(int method, byte[] body, CallOptions options) {
        return new RpcStream(channel, begin(method, body, options.window(), options));
    }

    private RpcCall begin(int method, byte[] body, int window, CallOptions options) {
        Objects.requireNonNull(body, "body");
        return channel.start(method, body, options.meta(), window, options.nanos());
    }

    /**
     * Waits until the server has answered: it is there and reads.
     *
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RpcException if there is no answer
     */
    public void ping() throws InterruptedException {
        call(Facts.METHOD_PING, RpcFrames.NONE);
    }

    /**
     * The same with a limit.
     *
     * @param timeout the longest wait
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RpcException if there is no answer
     */
    public void ping(Duration timeout) throws InterruptedException {
        call(Facts.METHOD_PING, RpcFrames.NONE, CallOptions.DEFAULT.withTimeout(timeout));
    }

    /**
     * A method that a server has.
     *
     * @param number its number, unsigned
     * @param name its name; empty if it has none
     */
    public record Method(int number, String name) {}

    /**
     * {@return the server's methods, in the order of their numbers}
     *
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RpcException if there is no answer; CORRUPT if it is no list of methods
     */
    public List<Method> describe() throws InterruptedException {
        List<Method> methods = new ArrayList<>();
        String answer = new String(call(Facts.METHOD_DESCRIBE, RpcFrames.NONE), StandardCharsets.UTF_8);
        for (String line : answer.split("\n")) {
            if (line.isEmpty()) {
                continue;
            }
            int blank = line.indexOf(' ');
            try {
                methods.add(new Method(Integer.parseUnsignedInt(blank < 0 ? line : line.substring(0, blank)),
                        blank < 0 ? "" : line.substring(blank + 1)));
            } catch (NumberFormatException e) {
                throw RpcException.of(ErrorKind.CORRUPT, true, "the server describes its methods by the line '" + line
                        + "', expected a number and perhaps a name");
            }
        }
        return methods;
    }

    /** {@return how many calls the server lets this client have in flight; more wait in the client} */
    public long maxInFlight() {
        return Integer.toUnsignedLong(channel.bus.maxInFlight);
    }

    /** {@return how many calls are in flight now: sent, and the server has not ended them} */
    public int inFlight() {
        return channel.inFlight();
    }

    /** {@return the user that the server acted as when the connection was made; an unsigned number} */
    public int peerUid() {
        return channel.bus.peerUid();
    }

    /** {@return the server's process when the connection was made; 0 if it has no number in our PID namespace} */
    public int peerPid() {
        return channel.bus.peerPid();
    }

    /** {@return whether the connection has ended, as far as calls have found out: each further call fails} */
    public boolean isClosed() {
        return channel.isOver();
    }

    /** Ends the connection. Calls under way end with CLOSED. Any thread may, and more than once. */
    @Override
    public void close() {
        channel.close();
    }
}
