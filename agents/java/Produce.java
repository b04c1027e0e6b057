import dev.ramway.ErrorKind;
import dev.ramway.RamwayException;
import dev.ramway.Sender;
import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;

/** {@code produce}. */
final class Produce {
    private final Args args;
    private final Place place;
    private final Sender tx;
    private final Messages all;
    private long next;
    private long sent;

    private Produce(Args args) throws InterruptedException {
        this.args = args;
        place = Place.sending(args);
        tx = place.tx;
        all = new Messages(args.sizes, tx.maxMessageLength());
        next = args.first();
    }

    static void play(Args args) throws InterruptedException {
        args.counted();
        args.oneOf("how", args.how, "", "send", "reserve", "try");
        new Produce(args).run();
    }

    /** Sends one message as --how says, waiting for room for as long as a wait may last. */
    static void put(Args args, Place place, Messages.Made m, boolean flush) throws InterruptedException, Main.Ending {
        boolean never = args.how.equals("try");
        if (!flush || args.how.equals("reserve")) {
            Slot slot = never ? place.tx.tryReserve(m.length()) : place.reserve(m.length());
            if (slot == null) {
                throw new Main.Ending(ErrorKind.FULL);
            }
            fill(slot, m);
            if (flush) {
                slot.commit(m.typeId(), m.tag());
            } else {
                slot.commitUnflushed(m.typeId(), m.tag());
            }
        } else if (never) {
            if (!trySend(place.tx, m)) {
                throw new Main.Ending(ErrorKind.FULL);
            }
        } else {
            send(args, place.tx, m);
        }
    }

    /** By turns the ways to write. */
    private static void fill(Slot slot, Messages.Made m) {
        switch ((int) (Messages.seqOf(m.tag()) % 3)) {
            case 0 -> slot.buffer().put(m.pattern(), m.from(), m.length());
            case 1 -> slot.put(0, Arrays.copyOfRange(m.pattern(), m.from(), m.from() + m.length()));
            default -> slot.data().copyFrom(m.payload());
        }
    }

    /** By turns what a payload may be. */
    private static void send(Args args, Sender tx, Messages.Made m) throws InterruptedException {
        switch ((int) (Messages.seqOf(m.tag()) % 3)) {
            case 0 -> {
                byte[] data = Arrays.copyOfRange(m.pattern(), m.from(), m.from() + m.length());
                within(args, () -> tx.send(m.typeId(), m.tag(), data), limit -> tx.send(m.typeId(), m.tag(), data, limit));
            }
            case 1 -> {
                ByteBuffer data = ByteBuffer.wrap(m.pattern(), m.from(), m.length());
                within(args, () -> tx.send(m.typeId(), m.tag(), data), limit -> tx.send(m.typeId(), m.tag(), data, limit));
            }
            default -> {
                MemorySegment data = m.payload();
                within(args, () -> tx.send(m.typeId(), m.tag(), data), limit -> tx.send(m.typeId(), m.tag(), data, limit));
            }
        }
    }

    private interface Waiting {
        void call() throws InterruptedException;
    }

    private interface Limited {
        void call(Duration limit) throws InterruptedException;
    }

    private static void within(Args args, Waiting waiting, Limited limited) throws InterruptedException {
        Place.within(args, () -> {
            waiting.call();
            return args;
        }, limit -> {
            limited.call(limit);
            return args;
        });
    }

    private static boolean trySend(Sender tx, Messages.Made m) {
        return switch ((int) (Messages.seqOf(m.tag()) % 3)) {
            case 0 -> tx.trySend(m.typeId(), m.tag(), Arrays.copyOfRange(m.pattern(), m.from(), m.from() + m.length()));
            case 1 -> tx.trySend(m.typeId(), m.tag(), ByteBuffer.wrap(m.pattern(), m.from(), m.length()));
            default -> tx.trySend(m.typeId(), m.tag(), m.payload());
        };
    }

    private void run() throws InterruptedException {
        long end = next + args.count;
        if (args.resume) {
            var last = tx.lastTag();
            next = last.isPresent() ? Messages.seqOf(last.getAsLong()) + 1 : next;
            Main.say("resuming next=" + next);
        }
        if (args.oversize) {
            tryTooLong();
        }
        long endings = 0;
        while (next < end) {
            boolean flush = (sent + 1) % Math.max(args.batch, 1) == 0 || next + 1 == end;
            int noted = tx.peerEpoch();
            long began = System.nanoTime();
            try {
                put(args, place, all.make(next), flush);
            } catch (RamwayException | Main.Ending e) {
                ErrorKind kind = Main.kindOf(e);
                report(kind, Place.msSince(began));
                if (!Main.isEnding(kind) || ++endings >= args.endings) {
                    break;
                }
                if (!place.awaitSuccessor(noted, tx::peerEpoch)) {
                    report(ErrorKind.TIMED_OUT, Place.msSince(began));
                    break;
                }
                continue;
            }
            if (args.progress) {
                Main.say("at seq=" + next);
            }
            sent++;
            next++;
            Place.sleep(args.pace);
        }
        if (next >= end) {
            Main.say("sent count=" + sent + " next=" + next);
        }
        Input.linger(args);
        place.close();
    }

    private void tryTooLong() throws InterruptedException {
        long began = System.nanoTime();
        try {
            put(args, place, all.make(next, tx.maxMessageLength() + 1L), true);
        } catch (RamwayException | Main.Ending e) {
            report(Main.kindOf(e), Place.msSince(began));
            return;
        }
        throw new Messages.BadException(next, "a message longer than the longest was sent");
    }

    private void report(ErrorKind kind, long elapsed) {
        Main.say("end " + Main.named(kind) + " sent=" + sent + " next=" + next + " elapsed_ms=" + elapsed);
    }
}
