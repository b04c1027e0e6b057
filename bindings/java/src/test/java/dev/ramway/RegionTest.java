package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(Pace.class)
class RegionTest {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final Duration SHORT = Duration.ofMillis(30);

    private static RamwayException refused(ErrorKind kind, Callable<?> call) {
        RamwayException e = assertThrows(RamwayException.class, call::call);
        assertEquals(kind, e.kind(), e.getMessage());
        return e;
    }

    /** Starts a thread that does something, and waits until it sleeps. */
    private static Thread waiting(boolean virtual, Future<?>[] result, Callable<Integer> wait) throws Exception {
        java.util.concurrent.FutureTask<Integer> task = new java.util.concurrent.FutureTask<>(wait);
        Thread thread = virtual ? Thread.ofVirtual().start(task) : Thread.ofPlatform().start(task);
        result[0] = task;
        Thread.sleep(30);
        assertFalse(task.isDone(), "it should wait");
        return thread;
    }

    private static Throwable failure(Future<?> result) {
        return assertThrows(java.util.concurrent.ExecutionException.class, () -> result.get(60, TimeUnit.SECONDS)).getCause();
    }

    @Test
    void handlesShareTheirBytes() {
        String name = Scratch.name("region");
        try (Region a = Region.create(name, 5000);
                Region b = Region.openOrCreate(name, 5000);
                Region c = Region.openReadOnly(name);
                Region d = Region.open(name)) {
            assertEquals(a.length(), d.length());
            assertEquals(5000, a.length());
            assertEquals(5000, b.data().byteSize());
            assertEquals(0, a.data().address() % 4096);
            assertTrue(c.isReadOnly());
            a.data().set(ValueLayout.JAVA_LONG, 4992, 42);
            assertEquals(42, b.data().get(ValueLayout.JAVA_LONG, 4992));
            assertEquals(42, c.buffer().getLong(4992));
            b.buffer().putInt(0, 7);
            assertEquals(7, a.data().get(ValueLayout.JAVA_INT, 0));
            assertThrows(IndexOutOfBoundsException.class, () -> a.data().get(ValueLayout.JAVA_BYTE, 5000));
            assertThrows(IllegalArgumentException.class, () -> c.data().set(ValueLayout.JAVA_INT, 0, 1));
            assertTrue(c.buffer().isReadOnly());
            RamwayException e = refused(ErrorKind.PERMISSION_DENIED, () -> {
                c.signal();
                return null;
            });
            assertEquals("signalling the region '" + name + "': it was opened read-only", e.getMessage());
        }
        assertFalse(Files.exists(Scratch.path(name)), "the last one out removes the name");
    }

    @Test
    void whatExistsMustHaveTheLengthAskedFor() {
        String name = Scratch.name("length");
        refused(ErrorKind.NOT_FOUND, () -> Region.open(name, Options.DEFAULT));
        refused(ErrorKind.NOT_FOUND, () -> Region.openReadOnly(name, Options.DEFAULT));
        refused(ErrorKind.INVALID_ARGUMENT, () -> Region.create(name, 0, Options.DEFAULT));
        refused(ErrorKind.INVALID_ARGUMENT, () -> Region.create(name, -1, Options.DEFAULT));
        refused(ErrorKind.NO_SPACE, () -> Region.create(name, Long.MAX_VALUE, Options.DEFAULT));
        try (Region a = Region.openOrCreate(name, 100, Options.DEFAULT)) {
            refused(ErrorKind.ALREADY_EXISTS, () -> Region.create(name, 100, Options.DEFAULT));
            RamwayException e = refused(ErrorKind.INVALID_ARGUMENT, () -> Region.openOrCreate(name, 101, Options.DEFAULT));
            assertEquals("opening or creating the region '" + name + "': it exists with a length of 100 bytes, not the 101 asked for",
                    e.getMessage());
            Region.openOrCreate(name, 100, Options.DEFAULT).close();
            assertFalse(a.isClosed());
        }
    }

    @Test
    void afterCloseEverythingThrows() {
        Region region = Region.create(Scratch.name("closed"), 64, Options.DEFAULT);
        MemorySegment data = region.data();
        ByteBuffer buffer = region.buffer();
        data.set(ValueLayout.JAVA_INT, 0, 1);
        region.close();
        region.close();
        assertTrue(region.isClosed());
        assertThrows(IllegalStateException.class, () -> data.get(ValueLayout.JAVA_INT, 0));
        assertThrows(IllegalStateException.class, () -> buffer.get(0));
        refused(ErrorKind.DETACHED, region::data);
        refused(ErrorKind.DETACHED, region::buffer);
        refused(ErrorKind.DETACHED, region::notifications);
        refused(ErrorKind.DETACHED, () -> region.await(0));
        refused(ErrorKind.DETACHED, () -> {
            region.signal();
            return null;
        });
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void aSignalEndsAWaitInEveryMode(WaitMode mode) throws Exception {
        String name = Scratch.name("signal");
        try (Region a = Region.create(name, 64, Options.DEFAULT.withWaitMode(mode)); Region b = Region.open(name, Options.DEFAULT)) {
            int seen = a.notifications();
            assertThrows(TimedOutException.class, () -> a.await(seen, Duration.ZERO));
            assertThrows(TimedOutException.class, () -> a.await(seen, SHORT));
            b.signal();
            assertEquals(seen + 1, a.await(seen));
            assertEquals(seen + 1, a.await(seen, Duration.ZERO));
            Future<?>[] result = new Future<?>[1];
            waiting(false, result, () -> a.await(seen + 1));
            b.data().set(ValueLayout.JAVA_LONG, 0, 99);
            b.signal();
            assertEquals(seen + 2, result[0].get(60, TimeUnit.SECONDS));
            assertEquals(99, a.data().get(ValueLayout.JAVA_LONG, 0));
        }
    }

    @Test
    void aReadOnlyHandleWaitsToo() throws Exception {
        String name = Scratch.name("poll");
        try (Region a = Region.create(name, 64, Options.DEFAULT); Region b = Region.openReadOnly(name, Options.DEFAULT)) {
            Future<?>[] result = new Future<?>[1];
            waiting(false, result, () -> b.await(0));
            a.signal();
            assertEquals(1, result[0].get(60, TimeUnit.SECONDS));
            Thread thread = waiting(false, result, () -> b.await(1));
            thread.interrupt();
            assertEquals(InterruptedException.class, failure(result[0]).getClass());
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anInterruptEndsAWaitAtOnce(boolean virtual) throws Exception {
        try (Region region = Region.create(Scratch.name("interrupt"), 64, Options.DEFAULT)) {
            long[] took = new long[19];
            for (int i = 0; i < took.length; i++) {
                Future<?>[] result = new Future<?>[1];
                Thread thread = waiting(virtual, result, () -> region.await(0));
                long start = System.nanoTime();
                thread.interrupt();
                assertEquals(InterruptedException.class, failure(result[0]).getClass());
                took[i] = System.nanoTime() - start;
            }
            expectAtOnce(took);
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, () -> region.await(0));
            assertFalse(Thread.currentThread().isInterrupted());
            region.signal();
            assertEquals(1, region.await(0));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCloseEndsAllWaits(boolean virtual) throws Exception {
        long[] took = new long[9];
        for (int round = 0; round < took.length; round++) {
            String name = Scratch.name("close");
            Region region = Region.create(name, 64, Options.DEFAULT);
            List<Future<?>> results = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                Future<?>[] result = new Future<?>[1];
                waiting(virtual, result, () -> region.await(0));
                results.add(result[0]);
            }
            long start = System.nanoTime();
            region.close();
            took[round] = System.nanoTime() - start;
            for (Future<?> result : results) {
                assertEquals(ErrorKind.DETACHED, ((RamwayException) failure(result)).kind());
            }
            assertFalse(Files.exists(Scratch.path(name)));
        }
        expectAtOnce(took);
    }

    /** A round of a sleep is 100 ms: what waited for its end would take half of that, one time with another. */
    private static void expectAtOnce(long[] took) {
        java.util.Arrays.sort(took);
        Pace.below(20_000, took[took.length / 2] / 1000, "µs, the median");
    }

    @Test
    void aWaitEndsWhenTheNameVanishes() throws Exception {
        String name = Scratch.name("rm");
        try (Region region = Region.create(name, 64, Options.DEFAULT)) {
            Future<?>[] result = new Future<?>[1];
            waiting(false, result, () -> region.await(0));
            Files.delete(Scratch.path(name));
            assertEquals(ClosedException.class, failure(result[0]).getClass());
            // What was notified counts for more than the name.
            region.signal();
            assertEquals(1, region.await(0));
        }
    }

    @Test
    void aBufferInUseByAChannelPutsCloseOff() throws Exception {
        Region region = Region.create(Scratch.name("channel"), 8 << 20, Options.DEFAULT);
        Path file = Scratch.path(Scratch.name("file"));
        try (FileChannel out = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            CountDownLatch begun = new CountDownLatch(1);
            Future<?>[] result = new Future<?>[1];
            java.util.concurrent.FutureTask<Integer> writer = new java.util.concurrent.FutureTask<>(() -> {
                ByteBuffer all = region.buffer();
                begun.countDown();
                int n = 0;
                try {
                    while (true) {
                        n += out.write(all.rewind(), 0);
                    }
                } catch (IllegalStateException e) {
                    return n;
                }
            });
            Thread.ofPlatform().start(writer);
            result[0] = writer;
            begun.await();
            Thread.sleep(20);
            region.close();
            assertNotEquals(0, result[0].get(60, TimeUnit.SECONDS));
        }
    }

    /** Each signals once and waits for the other: a lost wake-up shows as a round of 100 ms. */
    @Test
    void noWakeUpIsLostBetweenProcesses() throws Exception {
        String name = Scratch.name("pingpong");
        int rounds = 3000;
        try (Region region = Region.create(name, 64, Options.DEFAULT.withWaitMode(WaitMode.BLOCK));
                Peer peer = Peer.start("RegionTest.echo", name, Integer.toString(rounds))) {
            peer.expect("ready");
            long slow = 0;
            for (int i = 0; i < rounds; i++) {
                long start = System.nanoTime();
                int seen = region.notifications();
                LONG.setRelease(region.data(), 0L, (long) i + 1);
                region.signal();
                while ((long) LONG.getAcquire(region.data(), 8L) != i + 1) {
                    seen = region.await(seen, Scratch.LONG);
                }
                if (System.nanoTime() - start > 90_000_000) {
                    slow++;
                }
            }
            peer.finish();
            Pace.below(4, slow, "of " + rounds + " that took a whole round");
        }
    }

    static void echo(Peer.Inside me, String[] args) throws InterruptedException {
        try (Region region = Region.open(args[0], Options.DEFAULT.withWaitMode(WaitMode.BLOCK))) {
            int seen = region.notifications();
            me.say("ready");
            for (int i = 0; i < Integer.parseInt(args[1]); i++) {
                while ((long) LONG.getAcquire(region.data(), 0L) != i + 1) {
                    seen = region.await(seen, Scratch.LONG);
                }
                LONG.setRelease(region.data(), 8L, (long) i + 1);
                region.signal();
            }
        }
    }

    @Test
    void aKilledHolderLeavesAStaleRegionThatIsMadeAnew() {
        String name = Scratch.name("killed");
        try (Peer peer = Peer.start("RegionTest.holder", name)) {
            peer.expect("ready");
            refused(ErrorKind.ALREADY_EXISTS, () -> Region.create(name, 64, Options.DEFAULT));
            peer.kill();
        }
        assertTrue(Files.exists(Scratch.path(name)));
        // Opening resumes what the dead one left.
        try (Region region = Region.open(name, Options.DEFAULT)) {
            assertEquals(1234, region.data().get(ValueLayout.JAVA_LONG, 0));
        }
        assertFalse(Files.exists(Scratch.path(name)));
        try (Peer peer = Peer.start("RegionTest.holder", name)) {
            peer.expect("ready");
            peer.kill();
        }
        try (Region region = Region.create(name, 64, Options.DEFAULT)) {
            assertEquals(0, region.data().get(ValueLayout.JAVA_LONG, 0));
        }
    }

    static void holder(Peer.Inside me, String[] args) {
        Region region = Region.create(args[0], 64, Options.DEFAULT);
        region.data().set(ValueLayout.JAVA_LONG, 0, 1234);
        me.say("ready");
        me.hear();
    }

    @Test
    void manyVirtualThreadsWaitOnOneHandle() throws Exception {
        try (Region region = Region.create(Scratch.name("virtual"), 64, Options.DEFAULT);
                ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Future<Integer>> results = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                results.add(threads.submit(() -> region.await(0)));
            }
            // More than there are carriers: one that was pinned would keep the others, and this, from running.
            assertEquals("ran", threads.submit(() -> "ran").get(60, TimeUnit.SECONDS));
            region.signal();
            for (Future<Integer> result : results) {
                assertEquals(1, result.get(60, TimeUnit.SECONDS));
            }
        }
    }

    /** A signal at any moment of a virtual thread's way to sleep wakes it: one that were lost would take a round of 100 ms. */
    @Test
    void noWakeUpIsLostByVirtualThreads() throws Exception {
        String name = Scratch.name("virtual");
        try (Region a = Region.create(name, 64, Options.DEFAULT.withWaitMode(WaitMode.BLOCK));
                Region b = Region.open(name, Options.DEFAULT);
                ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
            int rounds = 500;
            Future<Long> slow = threads.submit(() -> {
                long count = 0;
                for (int i = 0; i < rounds; i++) {
                    a.await(i, Scratch.LONG);
                    long took = System.nanoTime() - (long) LONG.getAcquire(a.data(), 0L);
                    count += took > 90_000_000 ? 1 : 0;
                    LONG.setRelease(a.data(), 8L, (long) i + 1);
                }
                return count;
            });
            for (int i = 0; i < rounds; i++) {
                // From right into its way to sleep to well after it.
                java.util.concurrent.locks.LockSupport.parkNanos(i % 10 * 20_000L);
                LONG.setRelease(b.data(), 0L, System.nanoTime());
                b.signal();
                while ((long) LONG.getAcquire(b.data(), 8L) != i + 1) {
                    Thread.yield();
                }
            }
            Pace.below(4, slow.get(60, TimeUnit.SECONDS), "that took a whole round");
        }
    }

    @Test
    void closingWhileOthersUseItNeverCrashes() throws Exception {
        for (int i = 0; i < 50; i++) {
            Region region = Region.create(Scratch.name("race"), 1 << 16, Options.DEFAULT);
            List<Future<?>> results = new ArrayList<>();
            try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
                for (int t = 0; t < 3; t++) {
                    boolean waits = t == 0;
                    results.add(threads.submit(() -> {
                        int seen = 0;
                        while (true) {
                            if (waits) {
                                seen = region.await(seen);
                            } else {
                                region.data().fill((byte) 1);
                                region.signal();
                            }
                        }
                    }));
                }
                Thread.sleep(5);
                region.close();
                for (Future<?> result : results) {
                    Throwable end = failure(result);
                    assertTrue(end instanceof IllegalStateException || end instanceof RamwayException e && e.kind() == ErrorKind.DETACHED,
                            end.toString());
                }
            }
        }
    }
}
