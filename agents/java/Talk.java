import dev.ramway.ErrorKind;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Locale;

/** {@code echo} and {@code ping}. */
final class Talk {
    private Talk() {}

    static void echo(Args args) throws InterruptedException {
        Place place = Place.conversation(args, args.back, args.ring);
        if (place.rx == null) {
            throw new Args.UsageException("--ring with --back, --listen or --connect");
        }
        long first = -1;
        long last = -1;
        long received = 0;
        long bytes = 0;
        ErrorKind kind;
        long began = System.nanoTime();
        for (;;) {
            // Without a limit it is being measured, and a look at the clock costs about as much as a message.
            if (args.timeout != null) {
                began = System.nanoTime();
            }
            Message m;
            try {
                m = place.receive();
            } catch (RamwayException e) {
                kind = e.kind();
                break;
            }
            try (m) {
                last = Messages.seqOf(m.tag());
                if (received++ == 0) {
                    first = last;
                }
                bytes += m.length();
                back(m, place.reserve(m.length()));
            }
        }
        Main.say("end " + Main.named(kind) + " received=" + received + " first=" + first + " last=" + last + " bytes="
                + bytes + " elapsed_ms=" + Place.msSince(began));
        place.close();
    }

    private static void back(Message m, Slot slot) {
        int length = m.length();
        if (length == 32) {
            // Words spare a short message its view.
            for (int at = 0; at < 32; at += 8) {
                slot.putLong(at, m.getLong(at));
            }
        } else {
            MemorySegment.copy(m.data(), 0, slot.data(), 0, length);
        }
        slot.commit(m.typeId(), m.tag());
    }

    static void ping(Args args) throws Exception {
        args.counted();
        if (!args.check) {
            Speed.ping(args);
            return;
        }
        Place place = Place.conversation(args, args.ring, args.back);
        Messages all = new Messages(args.sizes, place.tx.maxMessageLength());
        Times times = new Times(args);
        for (long seq = 0; seq < args.count; seq++) {
            Produce.put(args, place, all.make(seq), true);
            try (Message m = place.receive()) {
                all.check(seq, m.typeId(), m.tag(), m.data());
            }
            times.trip(seq);
        }
        times.report();
        place.close();
    }

    /** The times of groups of round trips, all but the first --warm-up ones. */
    static final class Times {
        private final long count;
        private final long group;
        private final long warmUp;
        /** Nanoseconds of one round trip, an average of each group. */
        private final double[] samples;
        private int taken;
        private long last = System.nanoTime();

        Times(Args args) {
            count = args.count;
            group = args.group;
            warmUp = args.warmUp;
            samples = new double[Math.toIntExact(count / group + 1)];
        }

        /** Round trip number seq is over. */
        void trip(long seq) {
            if ((seq + 1) % group != 0) {
                return;
            }
            long now = System.nanoTime();
            if (seq >= warmUp) {
                samples[taken++] = (double) (now - last) / group;
            }
            last = now;
        }

        private double at(double part) {
            return taken == 0 ? 0 : samples[(int) ((taken - 1) * part)];
        }

        void report() {
            Arrays.sort(samples, 0, taken);
            Main.say(String.format(Locale.ROOT, "rtt count=%d min_ns=%.1f p50_ns=%.1f p99_ns=%.1f max_ns=%.1f", count, at(0), at(0.5),
                    at(0.99), at(1)));
        }
    }
}
