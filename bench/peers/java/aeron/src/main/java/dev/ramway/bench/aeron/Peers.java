package dev.ramway.bench.aeron;

import dev.ramway.bench.About;
import dev.ramway.bench.Burst;
import dev.ramway.bench.End;
import dev.ramway.bench.Mechanism;
import dev.ramway.bench.Setup;
import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.BackoffIdleStrategy;

/**
 * Aeron over {@code aeron:ipc}: an exclusive publication and a subscription each way, {@code tryClaim} and {@code commit} (no
 * copy), {@code Image.poll}; both sides poll. The media driver is a thread of the leading process, which backs off: it
 * is not on a message's way, and its own low-latency setting, which polls, would take the processor from one of the two sides.
 */
public final class Peers {
    /** Without bounds checks, as Aeron's own benchmarks run. */
    private static final boolean TUNED = Boolean.getBoolean("agrona.disable.bounds.checks");
    private static final int THERE = 1001;
    private static final int BACK = 1002;
    private static final long WAIT_MAX_NS = TimeUnit.SECONDS.toNanos(20);

    private Peers() {}

    public static List<Mechanism> mechanisms() {
        return List.of(new Ipc());
    }

    private static final class Ipc implements Mechanism {
        @Override
        public About about() {
            return new About(TUNED ? "aeron-tuned-java" : "aeron-java", "peer", false,
                    "aeron:ipc each way: ExclusivePublication.tryClaim, Image.poll",
                    About.versionOf(Aeron.class));
        }

        @Override
        public boolean can(Burst burst) {
            return burst.trips() || burst.streams();
        }

        @Override
        public Opening open(Setup setup, boolean leads) {
            String directory = setup.directory() + "/aeron";
            MediaDriver driver = leads ? driver(directory) : null;
            Aeron aeron = Aeron.connect(new Aeron.Context()
                    .aeronDirectoryName(directory)
                    .driverTimeoutMs(60_000)
                    .awaitingIdleStrategy(new BackoffIdleStrategy()));
            // A log has three terms, and half a term may be under way: what the driver tells the sender of the receiver's
            // progress comes some hundred microseconds late.
            String channel = "aeron:ipc?term-length=" + Math.max(TERM, 4 * setup.capacity());
            ExclusivePublication to = aeron.addExclusivePublication(channel, leads ? THERE : BACK);
            Subscription from = aeron.addSubscription("aeron:ipc", leads ? BACK : THERE);
            return () -> {
                long until = System.nanoTime() + WAIT_MAX_NS;
                while (!to.isConnected() || !from.isConnected()) {
                    if (System.nanoTime() - until > 0) {
                        throw new IllegalStateException("the two sides do not find each other");
                    }
                    Thread.sleep(1);
                }
                return new Ends(driver, aeron, to, from.imageAtIndex(0));
            };
        }
    }

    /** The fewest bytes of a term: half of it is some 30,000 messages, more than pass while the driver sleeps. */
    private static final long TERM = 4 << 20;

    private static MediaDriver driver(String directory) {
        // Nobody is dead because a machine was busy.
        long patient = TimeUnit.SECONDS.toNanos(60);
        return MediaDriver.launch(new MediaDriver.Context()
                .aeronDirectoryName(directory)
                .dirDeleteOnStart(true)
                .dirDeleteOnShutdown(true)
                .threadingMode(ThreadingMode.SHARED)
                .sharedIdleStrategy(new BackoffIdleStrategy(1, 1, 100_000, 100_000))
                .termBufferSparseFile(false)
                .ipcTermBufferLength((int) TERM)
                .clientLivenessTimeoutNs(patient)
                .publicationUnblockTimeoutNs(2 * patient)
                .imageLivenessTimeoutNs(patient)
                .driverTimeoutMs(60_000));
    }

    /** Both ways of a side. The handler adds up. */
    private static final class Ends implements End, FragmentHandler {
        private final MediaDriver driver;
        private final Aeron aeron;
        private final ExclusivePublication to;
        private final Image from;
        private final BufferClaim claim = new BufferClaim();
        private long total;

        Ends(MediaDriver driver, Aeron aeron, ExclusivePublication to, Image from) {
            this.driver = driver;
            this.aeron = aeron;
            this.to = to;
            this.from = from;
        }

        @Override
        public void send(int size, long n) {
            while (to.tryClaim(size, claim) < 0) {
                if (!to.isConnected()) {
                    throw new IllegalStateException("the other side is gone");
                }
                Thread.onSpinWait();
            }
            MutableDirectBuffer buffer = claim.buffer();
            int at = claim.offset();
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
            claim.commit();
        }

        @Override
        public long receive(int size) {
            long before = total;
            while (from.poll(this, 1) == 0) {
                Thread.onSpinWait();
            }
            return total - before;
        }

        @Override
        public int receive(int size, int max, Sum sum) {
            long before = total;
            int got;
            while ((got = from.poll(this, max)) == 0) {
                Thread.onSpinWait();
            }
            sum.words += total - before;
            return got;
        }

        @Override
        public void onFragment(DirectBuffer buffer, int at, int length, Header header) {
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
            aeron.close();
            if (driver != null) {
                driver.close();
            }
        }
    }
}
