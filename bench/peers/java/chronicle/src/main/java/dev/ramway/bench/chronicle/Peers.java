package dev.ramway.bench.chronicle;

import dev.ramway.bench.About;
import dev.ramway.bench.Burst;
import dev.ramway.bench.End;
import dev.ramway.bench.Mechanism;
import dev.ramway.bench.Setup;
import java.util.List;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.RollCycles;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * Chronicle Queue: a queue each way in a directory in memory, written in place by {@code acquireWritingDocument} and
 * {@code writeLong}, read in place by {@code readingDocument} and {@code readLong}; both sides poll. It keeps every message: a
 * file grows as long as the row is measured.
 */
public final class Peers {
    /** Bytes that are mapped at once: not a mapping for each few messages. */
    private static final long BLOCK = 64L << 20;

    private Peers() {}

    public static List<Mechanism> mechanisms() {
        return List.of(new Queue());
    }

    private static final class Queue implements Mechanism {
        @Override
        public About about() {
            return new About("chronicle-java", "peer", false, "Chronicle Queue each way: acquireWritingDocument, readingDocument",
                    About.versionOf(ChronicleQueue.class));
        }

        @Override
        public boolean can(Burst burst) {
            return burst.trips() || burst.streams();
        }

        @Override
        public Opening open(Setup setup, boolean leads) {
            ChronicleQueue there = queue(setup.directory() + "/there");
            ChronicleQueue back = queue(setup.directory() + "/back");
            ChronicleQueue from = leads ? back : there;
            ChronicleQueue to = leads ? there : back;
            // Before the other side writes anything.
            ExcerptTailer tailer = from.createTailer();
            return () -> new Ends(to, from, tailer);
        }

        private static ChronicleQueue queue(String path) {
            return SingleChronicleQueueBuilder.binary(path)
                    // Nobody needs to find message number n again: no index entry for most of them.
                    .rollCycle(RollCycles.FAST_DAILY)
                    .blockSize(BLOCK)
                    .build();
        }
    }

    private static final class Ends implements End {
        private final ChronicleQueue to;
        private final ChronicleQueue from;
        private final ExcerptAppender appender;
        private final ExcerptTailer tailer;

        Ends(ChronicleQueue to, ChronicleQueue from, ExcerptTailer tailer) {
            this.to = to;
            this.from = from;
            this.tailer = tailer;
            appender = to.createAppender();
        }

        @Override
        public void send(int size, long n) {
            try (DocumentContext document = appender.acquireWritingDocument(false)) {
                Bytes<?> bytes = document.wire().bytes();
                for (int word = 0; word < size; word += 8) {
                    bytes.writeLong(n++);
                }
            }
        }

        @Override
        public long receive(int size) {
            for (;;) {
                try (DocumentContext document = tailer.readingDocument()) {
                    if (document.isPresent()) {
                        return sum(document.wire().bytes(), size);
                    }
                }
                Thread.onSpinWait();
            }
        }

        @Override
        public int receive(int size, int max, Sum sum) {
            // It has no call for several.
            sum.words += receive(size);
            return 1;
        }

        private static long sum(Bytes<?> bytes, int size) {
            if (bytes.readRemaining() != size) {
                throw new IllegalStateException("a message of " + bytes.readRemaining() + " bytes instead of " + size);
            }
            long sum = 0;
            for (int word = 0; word < size; word += 8) {
                sum += bytes.readLong();
            }
            return sum;
        }

        @Override
        public void close() {
            appender.close();
            tailer.close();
            to.close();
            from.close();
        }
    }
}
