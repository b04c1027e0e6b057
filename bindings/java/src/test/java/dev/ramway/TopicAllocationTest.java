package dev.ramway;

import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a topic's message costs on the heap, once the loop around it is compiled: nothing, as a ring's. */
class TopicAllocationTest {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int MESSAGES = 200_000;
    private static final byte[] BYTES = new byte[64];
    private static volatile long sink;

    private interface Loop {
        long run(Publisher pub, Subscriber sub, int n) throws Exception;
    }

    /** In another process: measures the loop of that name. */
    static void measure(Peer.Inside me, String[] args) throws Exception {
        for (int i = 0; i < 30; i++) {
            Ring.pair().close();
        }
        Loop loop = switch (args[0]) {
            case "reliable" -> TopicAllocationTest::messages;
            case "lossy" -> TopicAllocationTest::messages;
            case "into" -> TopicAllocationTest::into;
            case "slots" -> TopicAllocationTest::slots;
            case "latest" -> TopicAllocationTest::latest;
            case "latest array" -> TopicAllocationTest::latestArray;
            case "batches", "lossy batches" -> TopicAllocationTest::batches;
            default -> throw new IllegalArgumentException(args[0]);
        };
        Policy policy = switch (args[0]) {
            case "lossy", "lossy batches" -> Policy.LOSSY;
            case "latest", "latest array" -> Policy.LATEST;
            default -> Policy.RELIABLE;
        };
        double least = Double.MAX_VALUE;
        Path path = Scratch.path(Scratch.name("allocation"));
        try (Publisher pub = Topic.create(path.toString()).capacity(1 << 16).publisher();
                Subscriber sub = Topic.open(path.toString()).policy(policy).subscriber()) {
            for (int round = 0; round < 60 && least > Double.parseDouble(args[1]); round++) {
                long before = THREADS.getCurrentThreadAllocatedBytes();
                sink += loop.run(pub, sub, MESSAGES);
                least = Math.min(least, (THREADS.getCurrentThreadAllocatedBytes() - before) / (double) MESSAGES);
            }
        }
        me.say(Double.toString(least));
    }

    @ParameterizedTest
    @ValueSource(strings = {"reliable", "lossy", "into", "slots", "latest", "latest array", "batches", "lossy batches"})
    void nothing(String loop) {
        AllocationTest.costs(0.01, "TopicAllocationTest.measure", loop);
    }

    private static long messages(Publisher pub, Subscriber sub, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            pub.send(7, i, BYTES);
            try (Message message = sub.recv()) {
                sum += message.getLong(0) + message.seq() + message.lost();
            }
        }
        return sum;
    }

    private static long into(Publisher pub, Subscriber sub, int n) throws Exception {
        byte[] target = new byte[64];
        long sum = 0;
        for (int i = 0; i < n; i++) {
            pub.send(7, i, BYTES);
            sum += sub.recvInto(target).seq() + target[0];
        }
        return sum;
    }

    private static long slots(Publisher pub, Subscriber sub, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            try (Slot slot = pub.reserve(32)) {
                slot.putLong(0, i);
                slot.commit(7, i);
            }
            try (Message message = sub.recv()) {
                sum += message.getLong(0);
            }
        }
        return sum;
    }

    private static long latest(Publisher pub, Subscriber sub, int n) throws Exception {
        long sum = 0;
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment target = arena.allocate(64);
            for (int i = 0; i < n; i++) {
                pub.send(7, i, BYTES);
                sum += sub.latest(target).seq() + target.get(ValueLayout.JAVA_LONG, 0);
            }
        }
        return sum;
    }

    private static long latestArray(Publisher pub, Subscriber sub, int n) throws Exception {
        byte[] target = new byte[64];
        long sum = 0;
        for (int i = 0; i < n; i++) {
            pub.send(7, i, BYTES);
            sum += sub.latest(target).seq() + target[0];
        }
        return sum;
    }

    /** The batch is not made either: its object would be 1.6 bytes a message. */
    private static long batches(Publisher pub, Subscriber sub, int n) throws Exception {
        long sum = 0;
        for (int i = 0; i < n; i += 20) {
            for (int each = 0; each < 20; each++) {
                pub.send(7, i, BYTES);
            }
            try (Batch batch = sub.recvBatch()) {
                for (Message message : batch) {
                    sum += message.getLong(0) + message.seq();
                }
            }
        }
        return sum;
    }
}
