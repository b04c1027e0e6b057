import dev.ramway.ErrorKind;
import dev.ramway.RamwayException;
import dev.ramway.SendingEnd;
import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** {@code produce}. */
final class Produce {
    private final SendingEnd tx;
    private final Stream stream;
    private final Line.Limits limits;
    private final Messages all;
    private long next;
    private long sent;

    Produce(SendingEnd tx, Line line) {
        this.tx = tx;
        all = new Messages(line, tx.maxMessageLength());
        stream = new Stream(line, 1);
        limits = stream.limits;
        next = Math.max(stream.start, 0);
        if (stream.count < 0) {
            throw new Line.RefusedException("count is missing");
        }
    }

    /** Sends one message as {@code how} says, waiting for room for as long as a wait may last. */
    private void put(Messages.Made m, boolean flush) throws InterruptedException, Stream.Ending {
        boolean never = stream.how.equals("try");
        if (!flush || stream.how.equals("reserve")) {
            Slot slot = never ? tx.tryReserve(m.length()) : reserve(tx, limits, m.length());
            if (slot == null) {
                throw new Stream.Ending(ErrorKind.FULL);
            }
            fill(slot, m);
            if (flush) {
                slot.commit(m.typeId(), m.tag());
            } else {
                slot.commitUnflushed(m.typeId(), m.tag());
            }
        } else if (!never) {
            send(m);
        } else if (!trySend(tx, m)) {
            throw new Stream.Ending(ErrorKind.FULL);
        }
    }

    /** Waits for room, for as long as a wait may last. */
    static Slot reserve(SendingEnd tx, Line.Limits limits, int length) throws InterruptedException {
        return limits.within(() -> tx.reserve(length), limit -> tx.reserve(length, limit));
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
    private void send(Messages.Made m) throws InterruptedException {
        switch ((int) (Messages.seqOf(m.tag()) % 3)) {
            case 0 -> {
                byte[] data = Arrays.copyOfRange(m.pattern(), m.from(), m.from() + m.length());
                limits.run(() -> tx.send(m.typeId(), m.tag(), data), limit -> tx.send(m.typeId(), m.tag(), data, limit));
            }
            case 1 -> {
                ByteBuffer data = ByteBuffer.wrap(m.pattern(), m.from(), m.length());
                limits.run(() -> tx.send(m.typeId(), m.tag(), data), limit -> tx.send(m.typeId(), m.tag(), data, limit));
            }
            default -> {
                MemorySegment data = m.payload();
                limits.run(() -> tx.send(m.typeId(), m.tag(), data), limit -> tx.send(m.typeId(), m.tag(), data, limit));
            }
        }
    }

    private static boolean trySend(SendingEnd tx, Messages.Made m) {
        return switch ((int) (Messages.seqOf(m.tag()) % 3)) {
            case 0 -> tx.trySend(m.typeId(), m.tag(), Arrays.copyOfRange(m.pattern(), m.from(), m.from() + m.length()));
            case 1 -> tx.trySend(m.typeId(), m.tag(), ByteBuffer.wrap(m.pattern(), m.from(), m.length()));
            default -> tx.trySend(m.typeId(), m.tag(), m.payload());
        };
    }

    void run() throws InterruptedException {
        long end = next + stream.count;
        while (next < end) {
            boolean flush = (sent + 1) % stream.batch == 0 || next + 1 == end;
            int noted = tx.peerEpoch();
            long began = System.nanoTime();
            try {
                put(all.make(next), flush);
            } catch (RamwayException | Stream.Ending e) {
                ErrorKind kind = Stream.kindOf(e);
                report(kind, began);
                if (!stream.goesOn(kind)) {
                    return;
                }
                if (!stream.successor(noted, tx::peerEpoch)) {
                    report(ErrorKind.TIMED_OUT, began);
                    return;
                }
                continue;
            }
            if (stream.progress) {
                Agent.say("at seq=" + next);
            }
            sent++;
            next++;
        }
        Agent.say("sent count=" + sent + " next=" + next);
    }

    private void report(ErrorKind kind, long began) {
        Agent.say("end " + Agent.named(kind) + " sent=" + sent + " next=" + next + " elapsed_ms=" + Stream.msSince(began));
    }
}
