package dev.ramway;

import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static org.junit.jupiter.api.Assertions.assertEquals;

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

    /** Bytes a message; the least of some runs, because a compiler that is late is no failure. */
    private static double bytes(Loop loop) throws Exception {
        double least = Double.MAX_VALUE;
        try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(1 << 16))) {
            for (int round = 0; round < 60 && least > 0.01; round++) {
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
        })));
    }

    private static double measured(String loop) {
        try (Peer peer = Peer.startOptimized("AllocationTest.measure", loop)) {
            double bytes = Double.parseDouble(peer.hear());
            peer.finish();
            return bytes;
        }
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
        assertEquals(0, measured("getters"), 0.01);
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
        assertEquals(0, measured("views"), 0.01);
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
        assertEquals(0, measured("slots"), 0.01);
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
        assertEquals(0, measured("without"), 0.01);
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

    /** A batch itself may be made: 32 bytes for as many messages as it has. */
    @Test
    void batches() {
        assertEquals(0, measured("batches"), 1);
    }
}
