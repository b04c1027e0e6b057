package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Poll;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/**
 * Accepts connectors, each with a {@link Bus} of its own memory. Safe for any number of threads.
 *
 * <p>A connector that is silent, breaks the handshake or is another user's is refused and does not disturb the others: up
 * to 64 handshakes run side by side, on one daemon thread of the listener's; for one more, the connector that has been silent the
 * longest is refused. They begin when somebody asks for a bus;
 * until then connectors wait. It listens until {@link #close}, or until it is forgotten and collected.
 */
public final class Listener implements AutoCloseable {
    private final BusAcceptQueue queue;
    private final Resources resources;
    private final Cleaner.Cleanable cleanable;
    private final Mutex closing = new Mutex();

    /** What a listener holds, without the listener: its thread knows only parts of it. */
    private record Resources(BusPlace place, SegmentLink link, int socket, int alarm, BusAcceptQueue queue, BusServer server)
            implements Runnable {
        @Override
        public void run() {
            queue.end(Errors.of(ErrorKind.DETACHED, "the listener is closed"));
            server.awaitEnd();
            Undo undo = new Undo();
            undo.add(place::close);
            undo.add(link::close);
            undo.add(() -> Files.close(alarm));
            // While our lock says that this name is ours. A connector that comes in between is told by the hang-up.
            undo.add(() -> leave(place, socket));
            undo.all();
        }
    }

    private Listener(String name, ListenOptions options, BusGuests guests) {
        SegmentSpec spec = options.spec();
        Undo undo = new Undo();
        try {
            BusPlace place = BusPlace.resolve(name, true);
            undo.add(place::close);
            SegmentLink link = BusListenerLock.take(place.segment, Duration.ZERO);
            undo.add(link::close);
            // The lock says that the place is ours.
            place.clear();
            int socket = place.listen(options.socketMode(), options.backlog());
            undo.add(() -> leave(place, socket));
            int alarm = Errors.checked(Poll.alarm(), "making an eventfd");
            undo.add(() -> Files.close(alarm));
            queue = new BusAcceptQueue(alarm);
            BusServer server = new BusServer(name, spec, options, guests, socket, alarm, queue, place);
            Thread.ofPlatform().daemon().name("ramway-listener " + name).start(server);
            resources = new Resources(place, link, socket, alarm, queue, server);
            cleanable = HandleCleaner.watch(this, resources);
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
        return bind(name, options, BusGuests.plain(false));
    }

    /** A listener by which one connector at most is told that it is welcome. */
    static Listener bindOne(String name, ListenOptions options) {
        return bind(name, options, BusGuests.plain(true));
    }

    static Listener bind(String name, ListenOptions options, BusGuests guests) {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(options, "options");
        try {
            Errors.checkPlatform();
            return HandleCleaner.freeingSpace(() -> new Listener(name, options, guests));
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
        return acceptWithin(RingEnd.FOREVER);
    }

    /**
     * The next connection. Waits for it, but not forever.
     *
     * @param timeout the longest wait; zero checks once
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
        try {
            BusAcceptQueue.Result result = queue.take(nanos);
            if (result == null) {
                throw Errors.of(ErrorKind.TIMED_OUT, "no connector came before the deadline");
            }
            return bus(result);
        } catch (RamwayException e) {
            throw about(e);
        } finally {
            Reference.reachabilityFence(this);
        }
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
            BusAcceptQueue.Result result = queue.tryTake();
            return result == null ? null : bus(result);
        } catch (RamwayException e) {
            throw about(e);
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private static Bus bus(BusAcceptQueue.Result result) {
        if (result.failure() != null) {
            throw result.failure();
        }
        return result.bus();
    }

    private RamwayException about(RamwayException e) {
        return Errors.about(e, "accepting at", path());
    }

    /** {@return the socket's path, which connectors can be given in place of the name} */
    public String path() {
        return resources.place().socketPath();
    }

    /** {@return how many connectors have been refused or have given up so far, for logs} */
    public long refused() {
        return queue.refusals().count();
    }

    /** {@return why the last one of {@link #refused} was, for logs; empty if there was none} */
    public Optional<RamwayException> lastRefusal() {
        return Optional.ofNullable(queue.refusals().last());
    }

    /**
     * Stops listening and removes the name. Calls of accept end with DETACHED, and connectors that were not yet served wait
     * for the next listener; buses live on. Any thread may, and more than once. It waits for no connector.
     *
     * @throws RamwayException if the name could not be removed; all else is done nevertheless
     */
    @Override
    public void close() {
        try (var _ = closing.hold()) {
            cleanable.clean();
        }
    }

    private static void leave(BusPlace place, int socket) {
        try {
            place.leave();
        } finally {
            Files.close(socket);
        }
    }
}
