package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(Pace.class)
class VirtualThreadTest {
    private static final int RINGS = 200;

    /** In a process with one carrier: 200 virtual threads wait, and a 201st runs; then each gets its message. */
    static void oneCarrier(Peer.Inside me, String[] args) throws Exception {
        List<Ring.Pair> pairs = new ArrayList<>();
        List<Thread> waiting = new ArrayList<>();
        CountDownLatch began = new CountDownLatch(RINGS);
        int[] got = new int[1];
        for (int i = 0; i < RINGS; i++) {
            // Every other one waits for room.
            boolean sending = i % 2 == 1;
            Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(4096));
            while (sending && pair.sender().trySend(1, new byte[1000])) {
                assertTrue(pair.sender().pendingBytes() > 0);
            }
            pairs.add(pair);
            waiting.add(Thread.ofVirtual().start(() -> {
                began.countDown();
                try {
                    if (sending) {
                        pair.sender().send(1, new byte[1000]);
                    } else {
                        pair.receiver().recv().close();
                    }
                    got[0]++;
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }));
        }
        assertTrue(began.await(20, TimeUnit.SECONDS));
        // Asleep by now, each of them: a spin is 75 µs.
        Thread.sleep(300);
        // The fastest of them: any one may have had to wait for a processor.
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 20; i++) {
            long start = System.nanoTime();
            Thread other = Thread.ofVirtual().start(() -> {});
            assertTrue(other.join(java.time.Duration.ofSeconds(20)));
            best = Math.min(best, System.nanoTime() - start);
            Thread.sleep(10);
        }
        me.say("another one ran");
        assertTrue(best < 2_000_000_000L, "it took " + best + " ns");
        for (int i = 0; i < RINGS; i++) {
            if (i % 2 == 1) {
                pairs.get(i).receiver().recv().close();
                pairs.get(i).receiver().recv().close();
            } else {
                pairs.get(i).sender().send(1, new byte[1]);
            }
        }
        for (Thread thread : waiting) {
            assertTrue(thread.join(java.time.Duration.ofSeconds(20)));
        }
        assertEquals(RINGS, got[0]);
        long pollers = Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().startsWith("ramway-poller")).count();
        me.say(pollers + " pollers");
        pairs.forEach(Ring.Pair::close);
    }

    @Test
    void waitersLeaveTheirCarrier() {
        try (Peer peer = Peer.start(List.of("env", "JDK_JAVA_OPTIONS=-Djdk.virtualThreadScheduler.parallelism=1 "
                + "-Djdk.virtualThreadScheduler.maxPoolSize=1"), "VirtualThreadTest.oneCarrier", java.util.Map.of())) {
            peer.expect("another one ran");
            String pollers = peer.hear();
            assertTrue(pollers.equals("2 pollers") || pollers.equals("200 pollers"), pollers);
            peer.finish();
        }
    }

    /** Both ends on one carrier: a spin that never let go would end nothing. */
    static void bothEnds(Peer.Inside me, String[] args) throws Exception {
        for (WaitMode mode : WaitMode.values()) {
            try (Ring.Pair pair = Ring.pair(Options.DEFAULT.withCapacity(4096).withWaitMode(mode))) {
                Thread sending = Thread.ofVirtual().start(() -> {
                    try {
                        for (int i = 0; i < 300; i++) {
                            pair.sender().send(1, i, new byte[100]);
                        }
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                });
                Thread receiving = Thread.ofVirtual().start(() -> {
                    try {
                        for (int i = 0; i < 300; i++) {
                            try (Message message = pair.receiver().recv()) {
                                assertEquals(i, message.tag());
                            }
                        }
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                    me.say("all of " + mode);
                });
                assertTrue(sending.join(java.time.Duration.ofSeconds(50)) && receiving.join(java.time.Duration.ofSeconds(50)));
            }
        }
    }

    @Test
    void twoEndsOnOneCarrier() {
        try (Peer peer = Peer.start(List.of("env", "JDK_JAVA_OPTIONS=-Djdk.virtualThreadScheduler.parallelism=1 "
                + "-Djdk.virtualThreadScheduler.maxPoolSize=1"), "VirtualThreadTest.bothEnds", java.util.Map.of())) {
            for (WaitMode mode : WaitMode.values()) {
                peer.expect("all of " + mode);
            }
            peer.finish();
        }
    }

    @Test
    void theDeathOfAPeer() throws Exception {
        String name = Scratch.path(Scratch.name("virtual")).toString();
        try (Receiver rx = Receiver.create(name, Options.DEFAULT.withCapacity(1 << 14));
                Peer peer = Peer.start("DeathTest.hold", name, "sender")) {
            peer.expect("ready");
            long[] ended = new long[1];
            Thread waiting = Thread.ofVirtual().start(() -> {
                refused(ErrorKind.PEER_DEAD, rx::recv);
                ended[0] = System.nanoTime();
            });
            Thread.sleep(150);
            peer.kill();
            long killed = System.nanoTime();
            assertTrue(waiting.join(java.time.Duration.ofSeconds(20)));
            long took = (ended[0] - killed) / 1_000_000;
            Pace.below(250, took, "ms until it knew");
        }
    }
}
