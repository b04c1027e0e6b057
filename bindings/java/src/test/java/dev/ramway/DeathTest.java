package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Real processes, killed by SIGKILL. */
@ExtendWith(Pace.class)
class DeathTest {
    private static final Options PAGES = Options.DEFAULT.withCapacity(1 << 14).withTimeout(Duration.ofSeconds(20));

    private static String ring() {
        return Scratch.path(Scratch.name("death")).toString();
    }

    /**
     * Sends numbers from args[1] on forever, and says after it was sent which one it is at, at most once a millisecond: what is
     * said is read late, and a full pipe would stop the sender.
     */
    static void count(Peer.Inside me, String[] args) throws InterruptedException {
        Sender tx = Sender.openOrCreate(args[0], PAGES);
        me.say("ready");
        long told = 0;
        for (long i = Long.parseLong(args[1]);; i++) {
            tx.send(1, i, new byte[(int) (i % 300)]);
            long now = System.nanoTime();
            if (now - told >= 1_000_000) {
                told = now;
                me.say(Long.toString(i));
            }
        }
    }

    @Test
    void nothingCommittedIsLostWithItsSender() throws Exception {
        String name = ring();
        long next = 1;
        try (Receiver rx = Receiver.create(name, PAGES)) {
            for (int life = 0; life < 4; life++) {
                long said = 0;
                try (Peer sender = Peer.start("DeathTest.count", name, Long.toString(next))) {
                    sender.expect("ready");
                    long end = System.nanoTime() + 150_000_000;
                    while (System.nanoTime() < end || next < 300) {
                        try (Message message = rx.recv(Scratch.LONG)) {
                            assertEquals(next++, message.tag());
                        }
                    }
                    // Not by its Process, which would close what it has said.
                    ProcessHandle.of(sender.pid()).orElseThrow().destroyForcibly();
                    try {
                        while (true) {
                            said = Long.parseLong(sender.hear());
                        }
                    } catch (AssertionError ended) {
                        // It has said no more.
                        sender.waitFor();
                    }
                }
                try {
                    while (true) {
                        try (Message message = rx.recv(Scratch.LONG)) {
                            assertEquals(next++, message.tag());
                        }
                    }
                } catch (PeerDeadException dead) {
                    assertTrue(next > said, next + " after " + said);
                }
                refused(ErrorKind.PEER_DEAD, rx::tryRecv);
                // A successor asks where to go on.
                try (Sender successor = Sender.open(name, PAGES)) {
                    assertEquals(next - 1, successor.lastTag().orElseThrow());
                    successor.abandon();
                }
                refused(ErrorKind.PEER_DEAD, rx::recv);
            }
        }
    }

    /** Receives, says what it has released, and holds the last one of args[1]. */
    static void takeSome(Peer.Inside me, String[] args) throws InterruptedException {
        Receiver rx = Receiver.open(args[0], PAGES);
        for (long i = 0; i < Long.parseLong(args[1]); i++) {
            rx.recv().close();
        }
        Message held = rx.recv();
        me.say("holds " + held.tag());
        Thread.sleep(60_000);
    }

    @Test
    void whatWasNotReleasedIsReceivedAgain() throws Exception {
        String name = ring();
        try (Sender tx = Sender.create(name, PAGES)) {
            for (int i = 0; i < 20; i++) {
                tx.send(1, i, new byte[100]);
            }
            try (Peer receiver = Peer.start("DeathTest.takeSome", name, "7")) {
                receiver.expect("holds 7");
                assertTrue(tx.peerAlive());
                receiver.kill();
            }
            try (Receiver rx = Receiver.open(name, PAGES)) {
                for (int i = 7; i < 20; i++) {
                    try (Message message = rx.recv()) {
                        assertEquals(i, message.tag());
                    }
                }
            }
        }
    }

    /** Attaches, and then does nothing. */
    static void hold(Peer.Inside me, String[] args) {
        Options options = PAGES;
        RingEnd end = args[1].equals("sender") ? Sender.openOrCreate(args[0], options) : Receiver.openOrCreate(args[0], options);
        me.say("ready");
        me.hear();
        end.close();
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void aWaitingReceiverLearnsOfTheDeath(WaitMode mode) throws Exception {
        String name = ring();
        try (Receiver rx = Receiver.create(name, PAGES.withWaitMode(mode));
                Peer peer = Peer.start("DeathTest.hold", name, "sender")) {
            peer.expect("ready");
            CompletableFuture<Long> ended = CompletableFuture.supplyAsync(() -> {
                assertInstanceOf(PeerDeadException.class, refused(ErrorKind.PEER_DEAD, rx::recv));
                return System.nanoTime();
            });
            Thread.sleep(150);
            peer.kill();
            long killed = System.nanoTime();
            long took = (ended.get(60, TimeUnit.SECONDS) - killed) / 1_000_000;
            Pace.below(250, took, "ms until it knew");
        }
    }

    @ParameterizedTest
    @EnumSource(WaitMode.class)
    void aWaitingSenderLearnsOfTheDeath(WaitMode mode) throws Exception {
        String name = ring();
        try (Sender tx = Sender.create(name, PAGES.withWaitMode(mode));
                Peer peer = Peer.start("DeathTest.hold", name, "receiver")) {
            peer.expect("ready");
            while (tx.trySend(1, new byte[1000])) {
                assertTrue(tx.pendingBytes() > 0);
            }
            CompletableFuture<Long> ended = CompletableFuture.supplyAsync(() -> {
                refused(ErrorKind.PEER_DEAD, () -> tx.send(1, new byte[1000]));
                return System.nanoTime();
            });
            Thread.sleep(150);
            peer.kill();
            long killed = System.nanoTime();
            long took = (ended.get(60, TimeUnit.SECONDS) - killed) / 1_000_000;
            Pace.below(250, took, "ms until it knew");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallbackComesAtADeath(boolean sending) throws Exception {
        String name = ring();
        RingEnd end = sending ? Sender.create(name, PAGES) : Receiver.create(name, PAGES);
        try (end; Peer peer = Peer.start("DeathTest.hold", name, sending ? "receiver" : "sender")) {
            peer.expect("ready");
            CompletableFuture<Long> called = new CompletableFuture<>();
            Runnable callback = () -> called.complete(System.nanoTime());
            if (end instanceof Sender tx) {
                while (tx.trySend(1, new byte[1000])) {
                    assertTrue(tx.pendingBytes() > 0);
                }
                tx.whenWritable(1000, callback);
            } else {
                ((Receiver) end).whenReadable(callback);
            }
            Thread.sleep(150);
            assertTrue(!called.isDone());
            peer.kill();
            long killed = System.nanoTime();
            long took = (called.get(60, TimeUnit.SECONDS) - killed) / 1_000_000;
            Pace.below(250, took, "ms until it knew");
            // A program that waits by callbacks learns of it by the calls that do not wait, and is not called in vain for long.
            refused(ErrorKind.PEER_DEAD, () -> {
                for (int calls = 0; calls < 3; calls++) {
                    CompletableFuture<Void> again = new CompletableFuture<>();
                    if (end instanceof Sender tx) {
                        tx.trySend(1, new byte[1000]);
                        tx.whenWritable(1000, () -> again.complete(null));
                    } else {
                        ((Receiver) end).tryRecv();
                        ((Receiver) end).whenReadable(() -> again.complete(null));
                    }
                    again.get(60, TimeUnit.SECONDS);
                }
            });
            refused(ErrorKind.PEER_DEAD, () -> {
                if (end instanceof Sender tx) {
                    tx.send(1, new byte[1000]);
                } else {
                    ((Receiver) end).recv();
                }
            });
        }
    }

    @Test
    void aStoppedPeerIsAlive() throws Exception {
        String name = ring();
        try (Receiver rx = Receiver.create(name, PAGES); Peer peer = Peer.start("DeathTest.hold", name, "sender")) {
            peer.expect("ready");
            peer.signal("STOP");
            refused(ErrorKind.TIMED_OUT, () -> rx.recv(Duration.ofMillis(400)));
            assertTrue(rx.peerAlive());
            peer.signal("CONT");
            peer.finish();
            refused(ErrorKind.CLOSED, rx::recv);
        }
    }

    /** Sends back what it gets, sleeping for each. */
    static void echo(Peer.Inside me, String[] args) throws InterruptedException {
        try (Receiver rx = Receiver.open(args[0], PAGES.withWaitMode(WaitMode.valueOf(args[2])));
                Sender tx = Sender.open(args[1], PAGES.withWaitMode(WaitMode.valueOf(args[2])))) {
            me.say("ready");
            while (true) {
                try (Message message = rx.recv()) {
                    tx.send(message.typeId(), message.tag(), message.data());
                }
            }
        } catch (ClosedException end) {
            me.say("done");
        }
    }

    /** 10,000 round trips with a sleeper on each side, and no wait longer than the machine's own worst. */
    @ParameterizedTest
    @EnumSource(value = WaitMode.class, names = {"HYBRID", "BLOCK"})
    void sleepersOnEachSide(WaitMode mode) throws Exception {
        String there = ring();
        String back = ring();
        try (Sender tx = Sender.create(there, PAGES.withWaitMode(mode));
                Receiver rx = Receiver.create(back, PAGES.withWaitMode(mode));
                Peer peer = Peer.start("DeathTest.echo", there, back, mode.name())) {
            peer.expect("ready");
            int late = 0;
            for (int i = 0; i < 10_000; i++) {
                long began = System.nanoTime();
                tx.send(1, i, new byte[32]);
                try (Message message = rx.recv(Scratch.LONG)) {
                    assertEquals(i, message.tag());
                }
                // A lost wake-up costs 100 ms, each time; a busy machine a time slice, now and then.
                late += System.nanoTime() - began > 50_000_000 ? 1 : 0;
            }
            shut(tx);
            peer.expect("done");
            Pace.below(4, late, "round trips that took more than 50 ms");
        }
    }

    /** Before the end of its block, which javac warns about. */
    private static void shut(RingEnd end) {
        end.close();
    }
}
