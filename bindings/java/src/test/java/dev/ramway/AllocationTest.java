package dev.ramway;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/**
 * What a message costs on the heap, once the loop around it is compiled: nothing. In a process of its own each, because what C2
 * leaves out depends on what else the process has done: here it has opened and closed handles, and so shared arenas.
 */
class AllocationTest {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int MESSAGES = 200_000;
    private static final byte[] BYTES = new byte[32];
    private static volatile long sink;

    private interface Loop {
        long run(Sender tx, Receiver rx, int n) throws Exception;
    }

    /** Bytes a message; the least of some runs, because the first ones are there to have the loop compiled. */
    private static double bytes(Loop loop, double enough) throws Exception {
        double least = Double.MAX_VALUE;
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(1 << 16))) {
            for (int round = 0; round < 60 && least > enough; round++) {
                long before = THREADS.getCurrentThreadAllocatedBytes();
                sink += loop.run(pair.sender(), pair.receiver(), MESSAGES);
                least = Math.min(least, (THREADS.getCurrentThreadAllocatedBytes() - before) / (double) MESSAGES);
            }
        }
        return least;
    }

    /** In another process: measures the loop of that name. */
    static void measure(Peer.Inside me, String[] args) throws Exception {
        for (int i = 0; i < 30; i++) {
            Ring.pair().close();
        }
        me.say(Double.toString(bytes(switch (args[0]) {
            case "getters" -> AllocationTest::getters;
            case "views" -> AllocationTest::views;
            case "slots" -> AllocationTest::slots;
            case "without" -> AllocationTest::without;
            case "batches" -> AllocationTest::batches;
            default -> throw new IllegalArgumentException(args[0]);
        }, Double.parseDouble(args[1]))));
    }

    /**
     * That a message of a loop costs no more. What C2 decides on depends on the counts that it finds when it comes to it, so an
     * attempt where it has left the loop as it was has not been made.
     */
    private static void costs(double most, String loop) {
        costs(most, "AllocationTest.measure", loop);
    }

    static void costs(double most, String program, String loop) {
        double bytes = Double.MAX_VALUE;
        for (int attempt = 0; attempt < 5 && bytes > most; attempt++) {
            try (Peer peer = Peer.startOptimized(program, loop, Double.toString(most))) {
                bytes = Math.min(bytes, Double.parseDouble(peer.hear()));
                peer.finish();
            }
        }
        assertTrue(bytes <= most, loop + ": " + bytes + " bytes a message, " + most + " are the most");
    }

    private static long getters(Sender tx, Receiver rx, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            tx.send(7, i, BYTES);
            try (Message message = rx.recv()) {
                sum += message.getLong(0) + message.getLong(24) + message.tag();
            }
        }
        return sum;
    }

    @Test
    void getters() {
        costs(0.01, "getters");
    }

    private static long views(Sender tx, Receiver rx, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            tx.send(7, BYTES);
            try (Message message = rx.recv()) {
                MemorySegment data = message.data();
                sum += data.get(JAVA_LONG_UNALIGNED, 0) + data.get(JAVA_LONG_UNALIGNED, 24);
            }
        }
        return sum;
    }

    @Test
    void views() {
        costs(0.01, "views");
    }

    private static long slots(Sender tx, Receiver rx, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            try (Slot slot = tx.reserve(32)) {
                slot.putLong(0, i);
                slot.putLong(8, i);
                slot.commit(7, i);
            }
            try (Message message = rx.recv()) {
                sum += message.getLong(0);
            }
        }
        return sum;
    }

    @Test
    void slots() {
        costs(0.01, "slots");
    }

    private static long without(Sender tx, Receiver rx, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            while (!tx.trySend(7, BYTES)) {
                Thread.onSpinWait();
            }
            try (Message message = rx.tryRecv()) {
                sum += message.getLong(0);
            }
        }
        return sum;
    }

    @Test
    void callsThatDoNotWait() {
        costs(0.01, "without");
    }

    private static long batches(Sender tx, Receiver rx, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i += 50) {
            for (int k = 0; k < 50; k++) {
                try (Slot slot = tx.reserve(32)) {
                    slot.putLong(0, k);
                    slot.commitUnflushed(7, 0);
                }
            }
            tx.flush();
            try (Batch batch = rx.recvBatch(50)) {
                for (Message message : batch) {
                    sum += message.getLong(0);
                }
            }
        }
        return sum;
    }

    /** The batch is not made either: its object would be 0.6 bytes a message. */
    @Test
    void batches() {
        costs(0.01, "batches");
    }
}
