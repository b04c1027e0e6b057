package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Poll;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Accepts connectors, each with a {@link Bus} of its own memory. Safe for any number of threads.
 *
 * <p>A connector that is silent, breaks the handshake or is another user's is refused and does not disturb the others: up
 * to 64 handshakes run side by side, on one daemon thread of the listener's; for one more, the connector that has been silent the
 * longest is refused. They begin when somebody asks for a bus;
 * until then connectors wait. It listens until {@link #close}, or until it is forgotten and collected.
 */
public final class Listener implements AutoCloseable {
    private final AcceptQueue queue;
    private final Rest rest;
    private final Cleaner.Cleanable cleanable;
    private final ReentrantLock closing = new ReentrantLock();

    /** What a listener holds, without the listener: its thread knows only parts of it. */
    private record Rest(Place place, NamedLink link, int socket, int alarm, AcceptQueue queue, Serve serve) implements Runnable {
        @Override
        public void run() {
            queue.end(Errors.of(ErrorKind.DETACHED, "the listener is closed"));
            serve.awaitEnd();
            Undo undo = new Undo();
            undo.add(place::close);
            undo.add(link::close);
            undo.add(() -> Files.close(alarm));
            // While our lock says that this name is ours. A connector that comes in between is told by the hang-up.
            undo.add(() -> leave(place, socket));
            undo.all();
        }
    }

    private Listener(String name, ListenOptions options, boolean onlyOne) {
        Spec spec = options.spec();
        Undo undo = new Undo();
        try {
            Place place = Place.resolve(name, true);
            undo.add(place::close);
            NamedLink link = ListenerLock.take(place.segment, Duration.ZERO);
            undo.add(link::close);
            // The lock says that the place is ours.
            place.clear();
            int socket = place.listen(options.socketMode(), options.backlog());
            undo.add(() -> leave(place, socket));
            int alarm = Errors.checked(Poll.alarm(), "making an eventfd");
            undo.add(() -> Files.close(alarm));
            queue = new AcceptQueue(alarm);
            Serve serve = new Serve(name, spec, options, onlyOne, socket, alarm, queue, place);
            Thread.ofPlatform().daemon().name("ramway-listener " + name).start(serve);
            rest = new Rest(place, link, socket, alarm, queue, serve);
            cleanable = Forgotten.watch(this, rest);
        } catch (Throwable t) {
            undo.all();
            throw t;
        }
    }

    /**
     * {@link #bind(String, ListenOptions)} with the defaults.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the listener
     * @throws RamwayException as there
     */
    public static Listener bind(String name) {
        return bind(name, ListenOptions.DEFAULT);
    }

    /**
     * Starts to listen. The name is gone when the listener is closed; what a killed one left is taken over.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the listener
     * @throws RamwayException ALREADY_EXISTS if a live listener has the name, or something that is not ours to remove (it
     *     stays as it is); INVALID_ARGUMENT for a bad name, capacity or alignment; PERMISSION_DENIED, NO_SPACE,
     *     UNSUPPORTED, OS
     */
    public static Listener bind(String name, ListenOptions options) {
        return bind(name, options, false);
    }

    /** A listener by which one connector at most is told that it is welcome. */
    static Listener bindOne(String name, ListenOptions options) {
        return bind(name, options, true);
    }

    private static Listener bind(String name, ListenOptions options, boolean onlyOne) {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(options, "options");
        try {
            Errors.checkPlatform();
            return Forgotten.freeingSpace(() -> new Listener(name, options, onlyOne));
        } catch (RamwayException e) {
            throw Errors.about(e, "listening at", name);
        }
    }

    /**
     * The next connection. Waits for it; a virtual thread that does holds no carrier.
     *
     * @return the bus
     * @throws InterruptedException if the thread is interrupted while it waits; it ends at once
     * @throws RamwayException DETACHED once the listener is closed; NO_SPACE if there is no memory for a bus and OS if there
     *     are no descriptors left (the connector was told, and the listener goes on at the next call). What connectors do
     *     wrong is no error here: see {@link #refused}
     */
    public Bus accept() throws InterruptedException {
        return bus(take(-1));
    }

    /**
     * The next connection. Waits for it, but not forever.
     *
     * @param timeout the longest wait; zero looks once
     * @return the bus
     * @throws InterruptedException if the thread is interrupted while it waits; it ends at once
     * @throws TimedOutException if nobody came
     * @throws RamwayException as of {@link #accept()}
     */
    public Bus accept(Duration timeout) throws InterruptedException {
        return acceptWithin(RingEnd.nanos(timeout));
    }

    /** In nanoseconds, or {@link RingEnd#FOREVER}. */
    Bus acceptWithin(long nanos) throws InterruptedException {
        AcceptQueue.Result result = take(nanos == RingEnd.FOREVER ? -1 : nanos);
        if (result == null) {
            throw about(Errors.of(ErrorKind.TIMED_OUT, "no connector came before the deadline"));
        }
        return bus(result);
    }

    /**
     * The next connection if there is one now. Never waits.
     *
     * <p>A handshake takes some system calls of both sides. It begins when somebody asks: the first call finds nothing, and
     * one of those after somebody connected has the bus.
     *
     * @return the bus, or null if there is none now
     * @throws RamwayException as of {@link #accept()}
     */
    public Bus tryAccept() {
        try {
            return bus(queue.tryTake());
        } catch (RamwayException e) {
            throw about(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private AcceptQueue.Result take(long nanos) throws InterruptedException {
        try {
            return queue.take(nanos);
        } catch (RamwayException e) {
            throw about(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private Bus bus(AcceptQueue.Result result) {
        if (result == null) {
            return null;
        }
        if (result.failure() != null) {
            throw about(result.failure());
        }
        return result.bus();
    }

    private RamwayException about(RamwayException e) {
        return Errors.about(e, "accepting at", path());
    }

    /** {@return the socket's path, which connectors can be given in place of the name} */
    public String path() {
        return rest.place().socketPath();
    }

    /** {@return how many connectors have been refused or have given up so far, for logs} */
    public long refused() {
        return queue.refused();
    }

    /** {@return why the last one of {@link #refused} was, for logs; empty if there was none} */
    public Optional<RamwayException> lastRefusal() {
        return Optional.ofNullable(queue.lastRefusal());
    }

    /**
     * Stops listening and removes the name. Calls of accept end with DETACHED, and connectors that were not yet served wait
     * for the next listener; buses live on. Any thread may, and more than once. It waits for no connector.
     *
     * @throws RamwayException if the name could not be removed; all else is done nevertheless
     */
    @Override
    public void close() {
        closing.lock();
        try {
            cleanable.clean();
        } finally {
            closing.unlock();
        }
    }

    private static void leave(Place place, int socket) {
        try {
            place.leave();
        } finally {
            Files.close(socket);
        }
    }
}
