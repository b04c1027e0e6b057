package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Several threads and one handle. Whatever they do, the virtual machine lives. */
class ThreadsTest {
    private static final Options PAGE = Options.DEFAULT.withCapacity(4096);
    private static final Options HANDSHAKE = PAGE.withMembarrier(false);

    private static void on(Runnable body) throws Exception {
        CompletableFuture.runAsync(body, task -> Thread.ofPlatform().start(task)).get(60, TimeUnit.SECONDS);
    }

    @Test
    void aHandleWandersFromThreadToThread() throws Exception {
        for (Options options : List.of(PAGE, HANDSHAKE)) {
            try (Ring.Pair pair = Ring.pair(options)) {
                for (int i = 0; i < 200; i++) {
                    int n = i;
                    on(() -> {
                        assertTrue(pair.sender().trySend(1, n, new byte[8]));
                        assertTrue(pair.sender().trySend(1, n, new byte[8]));
                    });
                    on(() -> {
                        try (Message message = pair.receiver().tryRecv()) {
                            assertEquals(n, message.tag());
                        }
                        pair.receiver().tryRecv().close();
                    });
                }
            }
        }
    }

    @Test
    void aHandleUnderALock() throws Exception {
        for (Options options : List.of(PAGE, HANDSHAKE)) {
            try (Ring.Pair pair = Ring.pair(options)) {
                ReentrantLock lock = new ReentrantLock();
                List<Thread> threads = new ArrayList<>();
                AtomicLong failed = new AtomicLong();
                for (int t = 0; t < 3; t++) {
                    threads.add(Thread.ofPlatform().start(() -> {
                        for (int i = 0; i < 5000; i++) {
                            lock.lock();
                            try {
                                pair.sender().send(1, 1, new byte[20]);
                            } catch (Exception e) {
                                failed.incrementAndGet();
                            } finally {
                                lock.unlock();
                            }
                        }
                    }));
                }
                long sum = 0;
                for (int i = 0; i < 15_000; i++) {
                    try (Message message = pair.receiver().recv(Scratch.LONG)) {
                        sum += message.tag();
                    }
                }
                for (Thread thread : threads) {
                    thread.join();
                }
                assertEquals(0, failed.get());
                assertEquals(15_000, sum);
            }
        }
    }

    /** A second thread is told, and what the first one does is whole. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void twoThreadsAtOnce(boolean membarrier) throws Exception {
        try (Ring.Pair pair = Ring.pair(membarrier ? PAGE : HANDSHAKE)) {
            CountDownLatch waits = new CountDownLatch(1);
            CompletableFuture<Long> first = CompletableFuture.supplyAsync(() -> {
                waits.countDown();
                try (Message message = pair.receiver().recv()) {
                    return message.tag();
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            waits.await();
            // Once it says that it sleeps it is inside.
            RpcServing.until(() -> Words.getInt(pair.receiver().mine + Facts.OFF_ROLE_WAIT) != 0, "it waits");
            assertThrows(IllegalStateException.class, pair.receiver()::tryRecv);
            assertThrows(IllegalStateException.class, pair.receiver()::recv);
            pair.sender().send(1, 77, new byte[1]);
            assertEquals(77, first.get(60, TimeUnit.SECONDS));
        }
    }

    /** Threads that know nothing of each other: each message is sent and received once, and some calls are refused. */
    @Test
    void aFreeForAll() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            long end = System.nanoTime() + 2_000_000_000L;
            AtomicLong number = new AtomicLong();
            Set<Long> sent = ConcurrentHashMap.newKeySet();
            Set<Long> received = ConcurrentHashMap.newKeySet();
            AtomicLong twice = new AtomicLong();
            AtomicLong odd = new AtomicLong();
            List<Thread> threads = new ArrayList<>();
            for (int t = 0; t < 6; t++) {
                boolean sending = t % 2 == 0;
                threads.add(Thread.ofPlatform().start(() -> {
                    while (System.nanoTime() < end) {
                        try {
                            if (sending) {
                                long n = number.incrementAndGet();
                                if (pair.sender().trySend(1, n, new byte[(int) (n % 100)])) {
                                    sent.add(n);
                                }
                            } else {
                                try (Message message = pair.receiver().tryRecv()) {
                                    if (message != null && !received.add(message.tag())) {
                                        twice.incrementAndGet();
                                    }
                                }
                            }
                        } catch (IllegalStateException refused) {
                            Thread.onSpinWait();
                        } catch (RamwayException e) {
                            if (e.kind() != ErrorKind.BUSY) {
                                odd.incrementAndGet();
                            }
                        }
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            while (true) {
                try (Message message = pair.receiver().tryRecv()) {
                    if (message == null) {
                        break;
                    }
                    received.add(message.tag());
                }
            }
            assertEquals(0, odd.get());
            assertEquals(0, twice.get());
            assertEquals(sent, received);
            assertTrue(sent.size() > 100);
        }
    }

    @Test
    void whatIsLentMayEndInAnotherThread() throws Exception {
        for (Options options : List.of(PAGE, HANDSHAKE)) {
            for (int round = 0; round < 100; round++) {
                try (Ring.Pair pair = Ring.pair(options)) {
                    Slot slot = pair.sender().reserve(16);
                    on(() -> {
                        slot.putLong(0, 4);
                        slot.data().set(ValueLayout.JAVA_LONG, 8, 5);
                        slot.commit(1, 6);
                    });
                    pair.sender().flush();
                    Message message = pair.receiver().recv();
                    on(() -> {
                        assertEquals(4, message.getLong(0));
                        assertEquals(5, message.<Long>read(data -> data.get(ValueLayout.JAVA_LONG, 8)));
                        assertEquals(16, message.toByteArray().length);
                        message.close();
                        message.close();
                    });
                    assertThrows(IllegalStateException.class, message::tag);
                    assertEquals(0, pair.receiver().pendingBytes());
                    assertEquals(null, pair.receiver().tryRecv());
                }
            }
        }
    }

    @Test
    void aViewIsItsThreadsUnlessShared() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            pair.sender().send(1, new byte[] {1, 2, 3, 4});
            pair.sender().send(1, new byte[] {1, 2, 3, 4});
            Message message = pair.receiver().recv();
            MemorySegment view = message.data();
            on(() -> {
                assertThrows(WrongThreadException.class, () -> view.get(ValueLayout.JAVA_BYTE, 0));
                assertThrows(WrongThreadException.class, message::close);
                assertThrows(WrongThreadException.class, () -> message.read(MemorySegment::byteSize));
                assertEquals(2, message.getByte(1));
            });
            assertEquals(1, view.get(ValueLayout.JAVA_BYTE, 0));
            message.close();
            pair.receiver().shareViews(true);
            Message second = pair.receiver().recv();
            MemorySegment shared = second.data();
            on(() -> {
                assertEquals(3, shared.get(ValueLayout.JAVA_BYTE, 2));
                second.close();
            });
            assertThrows(IllegalStateException.class, () -> shared.get(ValueLayout.JAVA_BYTE, 0));
        }
    }

    @Test
    void closeWaitsForWhatIsOut() throws Exception {
        Ring.Pair pair = Ring.pair(PAGE);
        pair.sender().send(1, 5, new byte[] {9});
        Message message = pair.receiver().recv();
        MemorySegment view = message.data();
        on(pair.receiver()::close);
        assertTrue(pair.receiver().isClosed());
        assertFalse(pair.receiver().isFinished());
        assertEquals(9, message.getByte(0));
        assertEquals(9, view.get(ValueLayout.JAVA_BYTE, 0));
        refused(ErrorKind.DETACHED, pair.receiver()::recv);
        message.close();
        assertTrue(pair.receiver().isFinished());
        assertThrows(IllegalStateException.class, () -> view.get(ValueLayout.JAVA_BYTE, 0));
        pair.sender().close();
        // A slot that is committed after the close is still sent.
        String name = Scratch.path(Scratch.name("late")).toString();
        try (Receiver rx = Receiver.create(name, PAGE)) {
            Sender tx = Sender.open(name);
            Slot slot = tx.reserve(8);
            tx.close();
            assertFalse(tx.isFinished());
            slot.putLong(0, 3);
            slot.commit(1, 2);
            assertTrue(tx.isFinished());
            try (Batch batch = rx.recvBatch(4)) {
                assertEquals(3, batch.get(0).getLong(0));
                on(rx::close);
                assertFalse(rx.isFinished());
            }
            assertTrue(rx.isFinished());
        }
    }

    /** Close at any moment beside calls, messages and views of another thread. */
    @Test
    void closeBesideEverything() throws Exception {
        long end = System.nanoTime() + Long.getLong("ramway.stress.seconds", 5) * 1_000_000_000L;
        AtomicLong odd = new AtomicLong();
        long rounds = 0;
        for (; System.nanoTime() < end || rounds <= 20; rounds++) {
            Options options = (rounds % 5 == 4 ? HANDSHAKE : PAGE).withWaitMode(WaitMode.values()[(int) (rounds % 3)]);
            Ring.Pair pair = Ring.pair(options);
            Thread sending = Thread.ofPlatform().start(() -> until(odd, () -> {
                pair.sender().send(1, 1, new byte[40]);
                try (Slot slot = pair.sender().reserve(64)) {
                    slot.putLong(8, 1);
                    slot.data().set(ValueLayout.JAVA_LONG, 16, 5);
                    slot.commitUnflushed(1, 2);
                }
                pair.sender().lastTag();
            }));
            Message[] leaked = new Message[1];
            Thread receiving = Thread.ofPlatform().start(() -> until(odd, () -> {
                try (Message message = pair.receiver().recv()) {
                    leaked[0] = message;
                    MemorySegment data = message.data();
                    for (int i = 0; i < data.byteSize(); i++) {
                        data.get(ValueLayout.JAVA_BYTE, i);
                    }
                    message.getLong(0);
                }
                try (Batch batch = pair.receiver().recvBatch(5, Duration.ofSeconds(5))) {
                    for (Message message : batch) {
                        message.toByteArray();
                    }
                }
            }));
            // A third one looks, and at times closes, what it should not have.
            Thread looking = Thread.ofPlatform().start(() -> {
                while (!pair.receiver().isClosed()) {
                    try {
                        Message message = leaked[0];
                        if (message != null) {
                            message.getLong(0);
                            message.toByteArray();
                            pair.receiver().pendingBytes();
                            if (message.hashCode() % 16 == 0) {
                                message.close();
                            }
                        }
                    } catch (IllegalStateException | WrongThreadException | RamwayException late) {
                        Thread.onSpinWait();
                    }
                }
            });
            Thread.sleep(rounds % 7);
            if (rounds % 2 == 0) {
                pair.receiver().close();
                pair.sender().close();
            } else {
                pair.sender().close();
                pair.receiver().close();
            }
            for (Thread thread : List.of(sending, receiving, looking)) {
                assertTrue(thread.join(Scratch.LONG), () -> "stuck: " + List.of(thread.getStackTrace()));
            }
        }
        assertEquals(0, odd.get());
    }

    private interface Step {
        void run() throws InterruptedException;
    }

    private static void until(AtomicLong odd, Step step) {
        while (true) {
            try {
                step.run();
            } catch (RamwayException e) {
                switch (e.kind()) {
                    case DETACHED, CLOSED -> {
                        return;
                    }
                    case BUSY -> Thread.onSpinWait();
                    default -> {
                        e.printStackTrace();
                        odd.incrementAndGet();
                        return;
                    }
                }
            } catch (IllegalStateException | WrongThreadException meddled) {
                Thread.onSpinWait();
            } catch (Throwable t) {
                t.printStackTrace();
                odd.incrementAndGet();
                return;
            }
        }
    }
}
