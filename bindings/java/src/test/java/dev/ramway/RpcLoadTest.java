package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadLocalRandom;
import org.junit.jupiter.api.Test;

/** Many calls at a time, and many that end early. */
class RpcLoadTest {
    private static final byte[] NOTHING = {};

    /** Pings until nothing else is in flight: each call has had its final reply. */
    private static void settle(RpcClient client) throws InterruptedException {
        RpcServing.until(() -> {
            try {
                client.ping();
                return client.inFlight() == 0;
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }, "each call has its final reply");
    }

    private static List<FutureTask<Void>> start(int count, ThreadFactory factory, java.util.concurrent.Callable<Void> work) {
        List<FutureTask<Void>> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            FutureTask<Void> task = new FutureTask<>(work);
            factory.newThread(task).start();
            all.add(task);
        }
        return all;
    }

    @Test
    void tenThousandCallsAreInFlight() throws Exception {
        int count = 10_000;
        try (RpcServing serving = new RpcServing(builder -> builder.maxInFlight(count).handlers(count));
                RpcClient client = serving.connect()) {
            List<RpcPending> all = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                all.add(client.start(5, new byte[] {(byte) i, (byte) (i >> 8)}));
            }
            RpcServing.until(() -> serving.methods.began.get() == count, "all run");
            assertEquals(count, client.inFlight());
            serving.methods.openGate();
            for (int i = 0; i < count; i++) {
                assertArrayEquals(new byte[] {(byte) i, (byte) (i >> 8)}, all.get(i).get().body());
            }
            assertEquals(0, client.inFlight());
        }
    }

    /** Leaders come and go, by replies, time-outs, interrupts and cancellations, and nobody is left waiting. */
    @Test
    void aClientIsSharedByThreadsOfBothKinds() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            java.util.concurrent.Callable<Void> work = () -> {
                ThreadLocalRandom random = ThreadLocalRandom.current();
                for (int i = 0; i < 500; i++) {
                    byte[] body = RpcMethods.pattern(random.nextInt(), random.nextInt(100));
                    switch (random.nextInt(8)) {
                        case 0 -> {
                            try (RpcPending pending = client.start(1, body)) {
                                try {
                                    assertArrayEquals(body, pending.get(Duration.ofNanos(random.nextInt(100_000))).body());
                                } catch (TimedOutException e) {
                                    assertArrayEquals(body, pending.get().body());
                                }
                            }
                        }
                        case 1 -> {
                            RpcPending pending = client.start(1, body);
                            pending.cancel();
                            try {
                                assertArrayEquals(body, pending.get().body());
                            } catch (RpcException e) {
                                assertEquals(RpcStatus.CANCELLED, e.status().orElseThrow());
                            }
                        }
                        case 2 -> {
                            try (RpcStream stream = client.stream(4, RpcMethods.stream(20, 4, 0, 0), CallOptions.DEFAULT.withWindow(3))) {
                                int n = 0;
                                for (RpcReply each : stream) {
                                    assertArrayEquals(RpcMethods.pattern(n++, 4), each.body());
                                }
                                assertEquals(20, n);
                            }
                        }
                        case 3 -> {
                            try {
                                client.call(1, body, CallOptions.DEFAULT.withTimeout(Duration.ofNanos(1 + random.nextInt(200_000))));
                            } catch (RpcException e) {
                                // Whose clock was first is chance.
                                assertTrue(e.error().isPresent() ? e.error().get() == ErrorKind.TIMED_OUT
                                        : e.status().get() == RpcStatus.TIMED_OUT || e.status().get() == RpcStatus.CANCELLED, e.toString());
                            }
                        }
                        default -> assertArrayEquals(body, client.call(1, body));
                    }
                }
                return null;
            };
            List<FutureTask<Void>> all = start(4, Thread.ofPlatform().daemon().factory(), work);
            all.addAll(start(8, Thread.ofVirtual().factory(), work));
            for (FutureTask<Void> each : all) {
                each.get();
            }
            settle(client);
        }
    }

    @Test
    void bothRingsAreFullAndNobodyWaitsForever() throws Exception {
        try (RpcServing serving = new RpcServing(builder -> builder.capacity(4096).maxBytes(1 << 20));
                RpcClient client = RpcClient.builder(serving.path).maxBuffered(1 << 20).connect()) {
            java.util.concurrent.Callable<Void> work = () -> {
                for (int round = 0; round < 20; round++) {
                    List<RpcPending> pending = new ArrayList<>();
                    for (int i = 0; i < 10; i++) {
                        pending.add(client.start(1, RpcMethods.pattern(i, 1500)));
                    }
                    for (int i = 0; i < 10; i++) {
                        assertArrayEquals(RpcMethods.pattern(i, 1500), pending.get(i).get().body());
                    }
                }
                return null;
            };
            List<FutureTask<Void>> all = start(2, Thread.ofPlatform().daemon().factory(), work);
            all.addAll(start(4, Thread.ofVirtual().factory(), work));
            for (FutureTask<Void> each : all) {
                each.get();
            }
            settle(client);
        }
    }

    @Test
    void aStormOfCancellationsFreesEachPlace() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            for (int round = 0; round < 5; round++) {
                List<RpcPending> all = new ArrayList<>();
                for (int i = 0; i < 2000; i++) {
                    all.add(client.start(5, NOTHING));
                }
                for (RpcPending each : all) {
                    each.cancel();
                }
                for (RpcPending each : all) {
                    RpcException e = assertThrows(RpcException.class, each::get);
                    assertEquals(RpcStatus.CANCELLED, e.status().orElseThrow());
                }
                settle(client);
            }
            assertEquals(serving.methods.began.get(), serving.methods.cancelled.get());
        }
    }

    @Test
    void aStormOfDeadlinesFreesEachPlace() throws Exception {
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            for (int round = 0; round < 5; round++) {
                List<RpcPending> all = new ArrayList<>();
                for (int i = 0; i < 2000; i++) {
                    all.add(client.start(5, NOTHING, CallOptions.DEFAULT.withTimeout(Duration.ofNanos(1 + i * 10_000L))));
                }
                for (RpcPending each : all) {
                    RpcException e = assertThrows(RpcException.class, each::get);
                    assertTrue(e.error().isPresent() ? e.error().get() == ErrorKind.TIMED_OUT
                            : e.status().get() == RpcStatus.TIMED_OUT || e.status().get() == RpcStatus.CANCELLED, e.toString());
                }
                settle(client);
            }
        }
    }

    /** Whatever is first, the call has one outcome, its place is free again, and no reply goes to another call. */
    @Test
    void cancellationsRaceWithReplies() throws Exception {
        int replies = 0;
        int count = 100_000;
        try (RpcServing serving = new RpcServing(); RpcClient client = serving.connect()) {
            for (int i = 0; i < count; i++) {
                byte[] body = {(byte) i, (byte) (i >> 8), (byte) (i >> 16)};
                try (RpcPending pending = client.start(1, body)) {
                    if (i % 4 != 0) {
                        for (int spin = ThreadLocalRandom.current().nextInt(2000); spin > 0; spin--) {
                            Thread.onSpinWait();
                        }
                        pending.tryGet();
                    }
                    pending.cancel();
                    assertArrayEquals(body, pending.get().body());
                    replies++;
                } catch (RpcException e) {
                    assertEquals(RpcStatus.CANCELLED, e.status().orElseThrow());
                }
            }
            settle(client);
        }
        assertTrue(replies < count);
    }
}
