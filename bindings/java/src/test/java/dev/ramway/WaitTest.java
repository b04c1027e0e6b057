package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@ExtendWith(Pace.class)
class WaitTest {
    private static final Options PAGE = Options.DEFAULT.withCapacity(4096);

    /** Something that waits, and what came of it. */
    private interface Wait {
        void run() throws Exception;
    }

    /** A thread in a wait; it has begun when this returns, and most often sleeps. */
    private static final class Waiting {
        final AtomicReference<Throwable> outcome = new AtomicReference<>();
        volatile long ended;
        final Thread thread;

        Waiting(boolean virtual, Wait wait) throws InterruptedException {
            CountDownLatch began = new CountDownLatch(1);
            Runnable body = () -> {
                began.countDown();
                try {
                    wait.run();
                } catch (Throwable t) {
                    outcome.set(t);
                }
                ended = System.nanoTime();
            };
            thread = virtual ? Thread.ofVirtual().start(body) : Thread.ofPlatform().daemon().start(body);
            assertTrue(began.await(60, TimeUnit.SECONDS));
            Thread.sleep(2);
        }

        Throwable end() throws InterruptedException {
            assertTrue(thread.join(Scratch.LONG), "the wait does not end");
            return outcome.get();
        }
    }

    private static void fill(Sender tx) {
        while (tx.trySend(1, new byte[1000])) {
            assertTrue(tx.pendingBytes() > 0);
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void anInterruptEndsAWaitAtOnce(WaitMode mode) throws Exception {
        for (boolean virtual : new boolean[] {false, true}) {
            for (boolean sending : new boolean[] {false, true}) {
                long[] took = new long[40];
                try (Ring.Pair pair = Ring.pair(PAGE.withWaitMode(mode))) {
                    if (sending) {
                        fill(pair.sender());
                    }
                    for (int i = 0; i < took.length; i++) {
                        Waiting w = new Waiting(virtual, sending ? () -> pair.sender().send(1, new byte[1000])
                                : () -> pair.receiver().recv(Scratch.LONG));
                        long told = System.nanoTime();
                        w.thread.interrupt();
                        assertTrue(w.end() instanceof InterruptedException, () -> "ended by " + w.outcome.get());
                        took[i] = w.ended - told;
                    }
                    // The handle is as before.
                    if (!sending) {
                        pair.sender().send(1, 5, new byte[1]);
                        assertEquals(5, pair.receiver().recv().tag());
                    }
                }
                Arrays.sort(took);
                // Far from a round of 100 ms, even on a machine that is busy with other things.
                Pace.below(20_000, took[took.length / 2] / 1000, "µs, the median");
            }
        }
    }

    @Test
    void anInterruptBeforeTheWait() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, pair.receiver()::recv);
            assertFalse(Thread.currentThread().isInterrupted());
            // What need not wait does not look.
            pair.sender().send(1, new byte[1]);
            Thread.currentThread().interrupt();
            pair.receiver().recv().close();
            assertTrue(Thread.interrupted());
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void deadlines(WaitMode mode) throws Exception {
        for (boolean virtual : new boolean[] {false, true}) {
            try (Ring.Pair pair = Ring.pair(PAGE.withWaitMode(mode))) {
                fill(pair.sender());
                for (int ms : new int[] {0, 1, 30, 150}) {
                    long began = System.nanoTime();
                    Waiting w = new Waiting(virtual, () -> pair.sender().send(1, 0, new byte[1000], Duration.ofMillis(ms)));
                    assertTrue(w.end() instanceof TimedOutException, () -> "ended by " + w.outcome.get());
                    long took = w.ended - began;
                    assertTrue(took >= ms * 1_000_000L, ms + " ms took " + took + " ns");
                    Pace.below(ms * 1_000_000L + 1_000_000_000L, took, "ns for " + ms + " ms");
                }
                refused(ErrorKind.INVALID_ARGUMENT, () -> pair.sender().reserve(1000, Duration.ofSeconds(-5)));
                Waiting far = new Waiting(virtual, () -> pair.sender().send(1, 0, new byte[1000], Duration.ofSeconds(Long.MAX_VALUE)));
                pair.receiver().recv().close();
                pair.receiver().recv().close();
                assertEquals(null, far.end());
            }
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void closeEndsAWait(WaitMode mode) throws Exception {
        for (boolean virtual : new boolean[] {false, true}) {
            for (boolean sending : new boolean[] {false, true}) {
                long ended = 0;
                for (int i = 0; i < 10; i++) {
                    Ring.Pair pair = Ring.pair(PAGE.withWaitMode(mode));
                    RingEnd end = sending ? pair.sender() : pair.receiver();
                    if (sending) {
                        fill(pair.sender());
                    }
                    Waiting w = new Waiting(virtual, sending ? () -> pair.sender().send(1, new byte[1000]) : pair.receiver()::recv);
                    Thread.sleep(i);
                    end.close();
                    assertTrue(end.isFinished());
                    long closed = System.nanoTime();
                    assertEquals(ErrorKind.DETACHED, ((RamwayException) w.end()).kind());
                    ended = Math.max(ended, w.ended - closed);
                    pair.close();
                }
                Pace.below(50_000_000, ended, "ns until it ended");
            }
        }
    }

    /** A sender that waits is woken when a quarter is free, and a receiver by a message, in every wait mode. */
    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void pingPong(WaitMode mode) throws Exception {
        for (boolean virtual : new boolean[] {false, true}) {
            try (Ring.Pair there = Ring.pair(PAGE.withWaitMode(mode)); Ring.Pair back = Ring.pair(PAGE.withWaitMode(mode))) {
                int count = mode == WaitMode.SPIN ? 300 : 3000;
                Waiting echo = new Waiting(virtual, () -> {
                    for (int i = 0; i < count; i++) {
                        try (Message message = there.receiver().recv()) {
                            back.sender().send(1, message.tag(), message.data());
                        }
                    }
                });
                Waiting ask = new Waiting(virtual, () -> {
                    for (int i = 0; i < count; i++) {
                        there.sender().send(1, i, new byte[i % 50]);
                        try (Message message = back.receiver().recv(Scratch.LONG)) {
                            assertEquals(i, message.tag());
                        }
                    }
                });
                assertEquals(null, ask.end());
                assertEquals(null, echo.end());
            }
        }
    }

    @Test
    void callbacks() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Sender tx = pair.sender();
            Receiver rx = pair.receiver();
            AtomicInteger calls = new AtomicInteger();
            // Called off: it does not come.
            Registration off = rx.whenReadable(calls::incrementAndGet);
            refused(ErrorKind.BUSY, () -> rx.whenReadable(calls::incrementAndGet));
            off.close();
            off.close();
            tx.send(1, new byte[1]);
            assertEquals(0, Words.getInt(rx.mine + Facts.OFF_ROLE_WAIT));
            Thread.sleep(30);
            assertEquals(0, calls.get());
            // So already.
            called(rx::whenReadable);
            assertEquals(0, Words.getInt(rx.mine + Facts.OFF_ROLE_WAIT));
            rx.recv().close();
            // Later, again and again.
            for (int i = 0; i < 300; i++) {
                CompletableFuture<Thread> later = new CompletableFuture<>();
                rx.whenReadable(() -> later.complete(Thread.currentThread()));
                if (i % 3 == 0) {
                    Thread.sleep(1);
                }
                tx.send(1, i, new byte[1]);
                assertTrue(later.get(60, TimeUnit.SECONDS) != Thread.currentThread());
                try (Message message = rx.tryRecv()) {
                    assertEquals(i, message.tag());
                }
            }
            fill(tx);
            CompletableFuture<Void> room = new CompletableFuture<>();
            tx.whenWritable(1000, () -> room.complete(null));
            Thread.sleep(20);
            assertFalse(room.isDone());
            rx.recv().close();
            rx.recv().close();
            room.get(60, TimeUnit.SECONDS);
            assertTrue(tx.trySend(1, new byte[1000]));
            refused(ErrorKind.TOO_LARGE, () -> tx.whenWritable(5000, () -> {}));
            // From a callback, and one that throws harms no other.
            while (true) {
                try (Message message = rx.tryRecv()) {
                    if (message == null) {
                        break;
                    }
                }
            }
            CountDownLatch chain = new CountDownLatch(20);
            next(rx, chain);
            for (int i = 0; i < 20; i++) {
                tx.send(1, new byte[1]);
                long left = chain.getCount();
                for (int wait = 0; wait < 10_000 && chain.getCount() == left; wait++) {
                    Thread.sleep(1);
                }
            }
            assertTrue(chain.await(60, TimeUnit.SECONDS));
        }
    }

    private static void next(Receiver rx, CountDownLatch chain) {
        rx.whenReadable(() -> {
            assertNotNull(rx.tryRecv()).close();
            chain.countDown();
            if (chain.getCount() > 0) {
                next(rx, chain);
            }
        });
    }

    private static <T> T assertNotNull(T value) {
        org.junit.jupiter.api.Assertions.assertNotNull(value);
        return value;
    }

    private static void called(java.util.function.Consumer<Runnable> ask) throws Exception {
        CompletableFuture<Void> called = new CompletableFuture<>();
        ask.accept(() -> called.complete(null));
        called.get(60, TimeUnit.SECONDS);
    }

    @Test
    void aCallbackComesAtACloseOfEitherEnd() throws Exception {
        Ring.Pair pair = Ring.pair(PAGE);
        CompletableFuture<Void> own = new CompletableFuture<>();
        pair.receiver().whenReadable(() -> own.complete(null));
        fill(pair.sender());
        own.get(60, TimeUnit.SECONDS);
        CompletableFuture<Void> peers = new CompletableFuture<>();
        pair.sender().whenWritable(1000, () -> peers.complete(null));
        pair.receiver().close();
        peers.get(60, TimeUnit.SECONDS);
        refused(ErrorKind.CLOSED, () -> pair.sender().trySend(1, new byte[1]));
        pair.close();
        Ring.Pair other = Ring.pair(PAGE);
        CompletableFuture<Void> closed = new CompletableFuture<>();
        other.receiver().whenReadable(() -> closed.complete(null));
        other.receiver().close();
        closed.get(60, TimeUnit.SECONDS);
        other.close();
    }
}
