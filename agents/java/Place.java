import dev.ramway.Bus;
import dev.ramway.ConnectOptions;
import dev.ramway.ListenOptions;
import dev.ramway.Listener;
import dev.ramway.Message;
import dev.ramway.Options;
import dev.ramway.RamwayException;
import dev.ramway.Receiver;
import dev.ramway.RingEnd;
import dev.ramway.Sender;
import dev.ramway.Slot;
import dev.ramway.TimedOutException;
import java.time.Duration;
import java.util.function.IntSupplier;

/** Rings or a bus as the flags say: both halves of a bus, or what the command needs of rings. */
final class Place {
    /** How long to wait for a name, a role or the other side. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    static final Options OPENING = Options.DEFAULT.withTimeout(PATIENCE);

    private final Args args;
    /** The half to send by; null if there is none. */
    final Sender tx;
    /** The half to receive by; null if there is none. */
    final Receiver rx;
    private final Bus bus;

    /**
     * Makes or opens what the flags say. On rings, to is the one to send to and from the one to receive from; of a bus, that
     * may have only one direction, the halves that are asked for.
     */
    private Place(Args args, boolean sends, String to, boolean receives, String from) throws InterruptedException {
        this.args = args;
        bus = bus(args);
        if (bus != null) {
            tx = sends ? bus.sender() : null;
            rx = receives ? bus.receiver() : null;
            return;
        }
        Options options = OPENING.withWaitMode(args.wait);
        if (args.create) {
            options = options.withCapacity(args.capacity).withAlign(args.align);
            tx = to == null ? null : Sender.create(to, options);
            rx = from == null ? null : Receiver.create(from, options);
        } else {
            tx = to == null ? null : Sender.open(to, options);
            rx = from == null ? null : Receiver.open(from, options);
        }
    }

    private static Bus bus(Args args) throws InterruptedException {
        if (args.listen != null) {
            ListenOptions options = ListenOptions.DEFAULT.withCapacities(args.capacity, args.capacity)
                    .withAlign(args.align).withWaitMode(args.wait);
            try (Listener listener = Listener.bind(args.listen, options)) {
                return listener.accept(PATIENCE);
            }
        }
        if (args.connect != null) {
            return Bus.connect(args.connect, ConnectOptions.DEFAULT.withTimeout(PATIENCE).withWaitMode(args.wait));
        }
        return null;
    }

    /** The sending half, and the line that says so. */
    static Place sending(Args args) throws InterruptedException {
        Place place = new Place(args, true, args.ring, false, null);
        place.attached(place.tx);
        return place;
    }

    /** The receiving half, and the line that says so. */
    static Place receiving(Args args) throws InterruptedException {
        Place place = new Place(args, false, null, true, args.ring);
        place.attached(place.rx);
        return place;
    }

    /** Both halves: to one ring and from the other, or a bus. */
    static Place conversation(Args args, String to, String from) throws InterruptedException {
        Place place = new Place(args, true, to, true, from);
        place.attached(place.tx);
        return place;
    }

    private void attached(RingEnd end) {
        if (end == null) {
            throw new Args.UsageException("--ring (with --back for both ways), --listen or --connect is missing");
        }
        Main.say("attached pid=" + ProcessHandle.current().pid() + " epoch=" + Integer.toUnsignedString(end.epoch())
                + " peer_epoch=" + Integer.toUnsignedString(end.peerEpoch()) + " capacity=" + end.capacity()
                + " max=" + end.maxMessageLength());
    }

    /** Closes in an orderly way. What that says on a bus whose peer is dead does not matter. */
    void close() {
        for (AutoCloseable end : bus != null ? new AutoCloseable[] {bus} : new AutoCloseable[] {tx, rx}) {
            try {
                if (end != null) {
                    end.close();
                }
            } catch (RamwayException e) {
                // As above.
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
        Main.say("closed");
    }

    /** Waits for a message, for as long as a wait may last. */
    Message receive() throws InterruptedException {
        return within(args, rx::recv, rx::recv);
    }

    /** Waits for room, for as long as a wait may last. */
    Slot reserve(int length) throws InterruptedException {
        return within(args, () -> tx.reserve(length), limit -> tx.reserve(length, limit));
    }

    /** A call that waits. */
    interface Waiting<T> {
        T call() throws InterruptedException;
    }

    /** A call that waits for so long. */
    interface Limited<T> {
        T call(Duration limit) throws InterruptedException;
    }

    /** What a call gives within the time that a wait may last, in one call or by polling. */
    static <T> T within(Args args, Waiting<T> waiting, Limited<T> limited) throws InterruptedException {
        if (args.poll == null) {
            return args.timeout == null ? waiting.call() : limited.call(args.timeout);
        }
        long began = System.nanoTime();
        while (true) {
            try {
                return limited.call(args.poll);
            } catch (TimedOutException e) {
                if (args.timeout != null && System.nanoTime() - began >= args.timeout.toNanos()) {
                    throw e;
                }
            }
        }
    }

    /** Looks every millisecond until the other side's epoch differs from the noted one; false: none came in time. */
    boolean awaitSuccessor(int noted, IntSupplier epoch) throws InterruptedException {
        long began = System.nanoTime();
        while (epoch.getAsInt() == noted) {
            if (args.timeout != null && System.nanoTime() - began >= args.timeout.toNanos()) {
                return false;
            }
            Thread.sleep(1);
        }
        return true;
    }

    /** Sleeps for so many microseconds. */
    static void sleep(long us) throws InterruptedException {
        if (us > 0) {
            Thread.sleep(Duration.ofNanos(us * 1000));
        }
    }

    /** Whole milliseconds since then. */
    static long msSince(long began) {
        return (System.nanoTime() - began) / 1_000_000;
    }
}
