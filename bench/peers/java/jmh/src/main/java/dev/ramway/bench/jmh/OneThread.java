package dev.ramway.bench.jmh;

import dev.ramway.Batch;
import dev.ramway.Message;
import dev.ramway.Options;
import dev.ramway.Receiver;
import dev.ramway.Ring;
import dev.ramway.Sender;
import dev.ramway.Slot;
import java.util.concurrent.TimeUnit;
import org.agrona.BufferUtil;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What sending 32 bytes and receiving them takes of one thread, both ends of a ring in it: nobody waits, and no cache line
 * goes from one processor to another, so that what is left is instructions. With {@code -prof gc}, gc.alloc.rate.norm is the
 * bytes that a message takes from the heap.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(value = 1, jvmArgs = {
    "-XX:+UseSerialGC", "--enable-native-access=ALL-UNNAMED", "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
    "-Dagrona.disable.bounds.checks=true"
})
public class OneThread {
    private static final int SIZE = 32;
    private static final int TOGETHER = 32;
    private static final int CAPACITY = 1 << 20;

    /** Both ends of one of Ramway's. */
    @State(Scope.Thread)
    public static class Ramway {
        private Ring.Pair pair;
        private Sender tx;
        private Receiver rx;
        private final byte[] data = new byte[SIZE];
        private long n;

        @Setup
        public void open() throws Exception {
            pair = Ring.pair(Options.DEFAULT.withCapacity(CAPACITY).withPrefault(true));
            tx = pair.sender();
            rx = pair.receiver();
        }

        @TearDown
        public void close() {
            pair.close();
        }
    }

    /** One of Agrona's, whose handler adds up. */
    @State(Scope.Thread)
    public static class Agrona implements MessageHandler {
        private final OneToOneRingBuffer ring = new OneToOneRingBuffer(
                new UnsafeBuffer(BufferUtil.allocateDirectAligned(CAPACITY + RingBufferDescriptor.TRAILER_LENGTH, 64)));
        private long n;
        private long total;

        private void claim() {
            int at = ring.tryClaim(1, SIZE);
            var buffer = ring.buffer();
            buffer.putLong(at, n);
            buffer.putLong(at + 8, n + 1);
            buffer.putLong(at + 16, n + 2);
            buffer.putLong(at + 24, n + 3);
            n++;
            ring.commit(at);
        }

        @Override
        public void onMessage(int type, MutableDirectBuffer buffer, int at, int length) {
            total += buffer.getLong(at) + buffer.getLong(at + 8) + buffer.getLong(at + 16) + buffer.getLong(at + 24);
        }
    }

    /** {@code send} of an array, {@code recv}, and all of it read. */
    @Benchmark
    public long each(Ramway on) throws InterruptedException {
        on.data[0]++;
        on.tx.send(0, on.data);
        return receive(on);
    }

    /** The same, written where it lies. */
    @Benchmark
    public long slot(Ramway on) throws InterruptedException {
        try (Slot slot = on.tx.reserve(SIZE)) {
            fill(slot, on.n++);
            slot.commit(0, 0);
        }
        return receive(on);
    }

    /** The same, 32 published together and released together. */
    @Benchmark
    @OperationsPerInvocation(TOGETHER)
    public long batched(Ramway on) throws InterruptedException {
        for (int i = 0; i < TOGETHER; i++) {
            try (Slot slot = on.tx.reserve(SIZE)) {
                fill(slot, on.n++);
                slot.commitUnflushed(0, 0);
            }
        }
        on.tx.flush();
        long sum = 0;
        try (Batch batch = on.rx.recvBatch(TOGETHER)) {
            for (int i = 0; i < batch.size(); i++) {
                sum += sum(batch.get(i));
            }
        }
        return sum;
    }

    private static long receive(Ramway on) throws InterruptedException {
        try (Message message = on.rx.recv()) {
            return sum(message);
        }
    }

    private static void fill(Slot slot, long n) {
        slot.putLong(0, n);
        slot.putLong(8, n + 1);
        slot.putLong(16, n + 2);
        slot.putLong(24, n + 3);
    }

    private static long sum(Message message) {
        return message.getLong(0) + message.getLong(8) + message.getLong(16) + message.getLong(24);
    }

    /** Agrona's ring: {@code tryClaim}, {@code commit}, {@code read}. */
    @Benchmark
    public long agronaEach(Agrona on) {
        on.claim();
        on.ring.read(on, 1);
        return on.total;
    }

    /** The same, 32 read together; it publishes each. */
    @Benchmark
    @OperationsPerInvocation(TOGETHER)
    public long agronaBatched(Agrona on) {
        for (int i = 0; i < TOGETHER; i++) {
            on.claim();
        }
        // It stops at the end of its buffer.
        for (int left = TOGETHER; left > 0; ) {
            left -= on.ring.read(on, left);
        }
        return on.total;
    }
}
