import dev.ramway.Batch;
import dev.ramway.Message;
import dev.ramway.Receiver;
import dev.ramway.Sender;
import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The loops that are measured, written as a user who wants speed would. */
final class Speed {
    private Speed() {}

    /** From this length on a view of the whole message is worth making. */
    private static final int LONG = 512;

    private static int size(Args args) {
        long size = args.sizes.fixed() < 0 ? 32 : args.sizes.fixed();
        if (size % 8 != 0) {
            throw new Args.UsageException("--sizes has to be a multiple of 8");
        }
        args.counted();
        return Math.toIntExact(size);
    }

    /** Writes the words seq, seq + 1, …. */
    private static void fill(Slot slot, int size, long seq) {
        if (size < LONG) {
            for (int at = 0; at < size; at += 8) {
                slot.putLong(at, seq++);
            }
            return;
        }
        MemorySegment words = slot.data();
        // An int that counts words, and a length that is one: a loop that the compiler makes vectors of.
        int count = size / 8;
        for (int i = 0; i < count; i++) {
            words.setAtIndex(ValueLayout.JAVA_LONG, i, seq + i);
        }
    }

    /** Adds up all words. */
    private static long sum(Message m, int size) {
        if (m.length() != size) {
            throw new Messages.BadException(0, "a message of another length than was said");
        }
        long sum = 0;
        if (size < LONG) {
            for (int at = 0; at < size; at += 8) {
                sum += m.getLong(at);
            }
            return sum;
        }
        MemorySegment words = m.data();
        int count = size / 8;
        for (int i = 0; i < count; i++) {
            sum += words.getAtIndex(ValueLayout.JAVA_LONG, i);
        }
        return sum;
    }

    static void flood(Args args) throws InterruptedException {
        int size = size(args);
        Place place = Place.sending(args);
        if (args.batch > 1) {
            floodBatches(place.tx, args.count, size, args.batch);
        } else {
            floodEach(place.tx, args.count, size);
        }
        Main.say("sent count=" + args.count + " next=" + args.count);
        place.close();
    }

    private static void floodEach(Sender tx, long count, int size) throws InterruptedException {
        for (long seq = 0; seq < count; seq++) {
            Slot slot = tx.reserve(size);
            fill(slot, size, seq);
            slot.commit(0, 0);
        }
    }

    private static void floodBatches(Sender tx, long count, int size, int batch) throws InterruptedException {
        int inBatch = 0;
        for (long seq = 0; seq < count; seq++) {
            Slot slot = tx.reserve(size);
            fill(slot, size, seq);
            if (++inBatch < batch && seq + 1 < count) {
                slot.commitUnflushed(0, 0);
            } else {
                inBatch = 0;
                slot.commit(0, 0);
            }
        }
    }

    static void drain(Args args) throws InterruptedException {
        int size = size(args);
        Place place = Place.receiving(args);
        long rest = args.count - args.warmUp;
        long sum = drain(place.rx, args, args.warmUp, size);
        long began = System.nanoTime();
        sum += drain(place.rx, args, rest, size);
        long ns = System.nanoTime() - began;
        Main.say("rate messages=" + rest + " ns=" + ns + " sum=" + Long.toUnsignedString(sum));
        place.close();
    }

    private static long drain(Receiver rx, Args args, long count, int size) throws InterruptedException {
        return args.batch > 1 ? drainBatches(rx, count, size, args.batch) : drainEach(rx, count, size);
    }

    private static long drainEach(Receiver rx, long count, int size) throws InterruptedException {
        long sum = 0;
        for (long i = 0; i < count; i++) {
            try (Message m = rx.recv()) {
                sum += sum(m, size);
            }
        }
        return sum;
    }

    private static long drainBatches(Receiver rx, long count, int size, int most) throws InterruptedException {
        long sum = 0;
        for (long left = count; left > 0;) {
            try (Batch batch = rx.recvBatch((int) Math.min(most, left))) {
                left -= batch.size();
                for (Message m : batch) {
                    sum += sum(m, size);
                }
            }
        }
        return sum;
    }

    static void ping(Args args) throws InterruptedException {
        int size = size(args);
        Place place = Place.conversation(args, args.ring, args.back);
        Talk.Times times = new Talk.Times(args);
        long sum = 0;
        for (long seq = 0; seq < args.count; seq++) {
            Slot slot = place.tx.reserve(size);
            fill(slot, size, seq);
            slot.commit(0, 0);
            try (Message m = place.rx.recv()) {
                sum += sum(m, size);
            }
            times.trip(seq);
        }
        times.report();
        Main.say("sum value=" + Long.toUnsignedString(sum));
        place.close();
    }
}
