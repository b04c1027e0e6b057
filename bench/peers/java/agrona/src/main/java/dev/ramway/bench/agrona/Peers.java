package dev.ramway.bench.agrona;

import dev.ramway.bench.About;
import dev.ramway.bench.Burst;
import dev.ramway.bench.End;
import dev.ramway.bench.Mechanism;
import dev.ramway.bench.Setup;
import java.io.File;
import java.nio.MappedByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.agrona.IoUtil;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;

/**
 * Agrona's {@code OneToOneRingBuffer} over a file that both processes map, one each way: {@code tryClaim} and
 * {@code commit} (no copy), {@code read}.
 */
public final class Peers {
    /** Without bounds checks, as Agrona's own benchmarks run. */
    private static final boolean TUNED = Boolean.getBoolean("agrona.disable.bounds.checks");

    private Peers() {}

    public static List<Mechanism> mechanisms() {
        return List.of(new Rings());
    }

    private static final class Rings implements Mechanism {
        @Override
        public About about() {
            return new About(TUNED ? "agrona-tuned-java" : "agrona-java", "peer", false,
                    "OneToOneRingBuffer over a mapped file each way: tryClaim, commit; read",
                    About.versionOf(OneToOneRingBuffer.class));
        }

        @Override
        public boolean can(Burst burst) {
            return burst.trips() || burst.streams();
        }

        @Override
        public Opening open(Setup setup, boolean leads) throws Exception {
            String[] names = leads ? new String[] {"there", "back"} : new String[] {"back", "there"};
            AtomicBuffer[] buffers = new AtomicBuffer[2];
            for (int i = 0; i < 2; i++) {
                File file = Path.of(setup.directory(), names[i]).toFile();
                long length = setup.capacity() + RingBufferDescriptor.TRAILER_LENGTH;
                MappedByteBuffer mapped = leads ? IoUtil.mapNewFile(file, length) : IoUtil.mapExistingFile(file, names[i]);
                buffers[i] = new UnsafeBuffer(mapped);
            }
            return () -> new Ends(new OneToOneRingBuffer(buffers[0]), new OneToOneRingBuffer(buffers[1]));
        }
    }

    /** Both rings of a side. The handler adds up. */
    private static final class Ends implements End, MessageHandler {
        private final OneToOneRingBuffer to;
        private final OneToOneRingBuffer from;
        private long total;

        Ends(OneToOneRingBuffer to, OneToOneRingBuffer from) {
            this.to = to;
            this.from = from;
        }

        @Override
        public void send(int size, long n) {
            int at;
            while ((at = to.tryClaim(1, size)) <= 0) {
                Thread.onSpinWait();
            }
            AtomicBuffer buffer = to.buffer();
            if (size == 32) {
                buffer.putLong(at, n);
                buffer.putLong(at + 8, n + 1);
                buffer.putLong(at + 16, n + 2);
                buffer.putLong(at + 24, n + 3);
            } else {
                for (int word = 0; word < size; word += 8) {
                    buffer.putLong(at + word, n++);
                }
            }
            to.commit(at);
        }

        @Override
        public long receive(int size) {
            long before = total;
            while (from.read(this, 1) == 0) {
                Thread.onSpinWait();
            }
            return total - before;
        }

        @Override
        public int receive(int size, int max, Sum sum) {
            long before = total;
            int got;
            while ((got = from.read(this, max)) == 0) {
                Thread.onSpinWait();
            }
            sum.words += total - before;
            return got;
        }

        @Override
        public void onMessage(int type, MutableDirectBuffer buffer, int at, int length) {
            if (length == 32) {
                total += buffer.getLong(at) + buffer.getLong(at + 8) + buffer.getLong(at + 16) + buffer.getLong(at + 24);
            } else {
                for (int word = 0; word < length; word += 8) {
                    total += buffer.getLong(at + word);
                }
            }
        }

        @Override
        public void close() {
            IoUtil.unmap(to.buffer().byteBuffer());
            IoUtil.unmap(from.buffer().byteBuffer());
        }
    }
}
