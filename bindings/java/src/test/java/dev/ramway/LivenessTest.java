package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Loops of short waits learn how their ring has ended: by a death, which somebody has to ask for, and by a close. */
class LivenessTest {
    private static final Options PAGES = Options.DEFAULT.withCapacity(1 << 14).withTimeout(Duration.ofSeconds(20));
    /** Shorter than a look at the clock, than a spin, than the round of the liveness check, just below it, and above. */
    private static final long[] MICROS = {0, 20, 1_000, 5_000, 50_000, 99_000, 150_000};

    /** Attaches to the other end of each: rings, or buses of the listener args[1]. */
    static void peer(Peer.Inside me, String[] args) throws InterruptedException {
        List<AutoCloseable> held = new ArrayList<>();
        for (int i = 0; i < MICROS.length; i++) {
            switch (args[0]) {
                case "receiver" -> held.add(Sender.open(args[1] + i, PAGES));
                case "sender" -> held.add(Receiver.open(args[1] + i, PAGES));
                default -> held.add(Bus.connect(args[1]));
            }
        }
        me.say("ready");
        me.hear();
        for (AutoCloseable each : held) {
            try {
                each.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
        me.say("closed");
        me.hear();
    }

    /** One call that finds nothing. */
    private interface Call {
        void run(RingEnd end, Duration timeout) throws InterruptedException;
    }

    private static void once(RingEnd end, Duration timeout) throws InterruptedException {
        if (end instanceof Sender tx) {
            tx.send(1, 0, new byte[1000], timeout);
        } else {
            ((Receiver) end).recv(timeout).close();
        }
    }

    /** After a callback that says that there may be something. */
    private static void onceCalled(RingEnd end, Duration timeout) throws InterruptedException {
        CompletableFuture<Void> called = new CompletableFuture<>();
        Runnable callback = () -> called.complete(null);
        Registration asked = end instanceof Sender tx ? tx.whenWritable(1000, callback) : ((Receiver) end).whenReadable(callback);
        try (asked) {
            called.get(Scratch.LONG.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException | TimeoutException e) {
            throw new AssertionError(e);
        }
        once(end, timeout);
    }

    /** What a loop of such calls ends with. */
    private static ErrorKind poll(RingEnd end, Duration timeout, Call call) throws InterruptedException {
        long start = System.nanoTime();
        while (true) {
            try {
                call.run(end, timeout);
            } catch (TimedOutException e) {
                if (System.nanoTime() - start > Scratch.LONG.toNanos()) {
                    return e.kind();
                }
            } catch (RamwayException e) {
                return e.kind();
            }
        }
    }

    private static void fill(RingEnd end) {
        while (end instanceof Sender tx && tx.trySend(1, new byte[1000])) {
            assertEquals(end, tx);
        }
    }

    /** Every time-out at once, each in a thread of its own. */
    private static List<String> polled(List<? extends RingEnd> ends, boolean virtual, Call call) throws Exception {
        List<CompletableFuture<String>> all = new ArrayList<>();
        try (var threads = virtual ? Executors.newVirtualThreadPerTaskExecutor() : Executors.newCachedThreadPool()) {
            for (int i = 0; i < MICROS.length; i++) {
                Duration timeout = Duration.ofNanos(1000 * MICROS[i]);
                RingEnd end = ends.get(i);
                all.add(CompletableFuture.supplyAsync(() -> {
                    try {
                        return timeout + " " + poll(end, timeout, call);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }, threads));
            }
            List<String> said = new ArrayList<>();
            for (CompletableFuture<String> each : all) {
                said.add(each.get(2 * Scratch.LONG.toSeconds(), TimeUnit.SECONDS));
            }
            return said;
        }
    }

    private static List<String> all(ErrorKind kind) {
        List<String> said = new ArrayList<>();
        for (long micros : MICROS) {
            said.add(Duration.ofNanos(1000 * micros) + " " + kind);
        }
        return said;
    }

    private static List<RingEnd> rings(String name, String role, Options options) {
        List<RingEnd> ends = new ArrayList<>();
        for (int i = 0; i < MICROS.length; i++) {
            ends.add(role.equals("sender") ? Sender.create(name + i, options) : Receiver.create(name + i, options));
        }
        return ends;
    }

    private static void close(List<? extends AutoCloseable> all) throws Exception {
        for (AutoCloseable each : all) {
            each.close();
        }
    }

    @ParameterizedTest
    @CsvSource({"receiver, false, HYBRID", "receiver, true, HYBRID", "receiver, false, BLOCK", "receiver, false, SPIN",
            "sender, false, HYBRID", "sender, true, HYBRID", "sender, false, BLOCK"})
    void aLoopOfShortWaitsLearnsOfADeath(String role, boolean virtual, WaitMode mode) throws Exception {
        String name = Scratch.path(Scratch.name("liveness")) + "-";
        List<RingEnd> ends = rings(name, role, PAGES.withWaitMode(mode));
        try (Peer peer = Peer.start("LivenessTest.peer", role, name)) {
            peer.expect("ready");
            ends.forEach(LivenessTest::fill);
            peer.kill();
            assertEquals(all(ErrorKind.PEER_DEAD), polled(ends, virtual, LivenessTest::once));
            // And it stays so until a successor attaches.
            assertEquals(all(ErrorKind.PEER_DEAD), polled(ends, virtual, LivenessTest::once));
        } finally {
            close(ends);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"receiver", "sender"})
    void aLoopOfCallbacksLearnsOfADeath(String role) throws Exception {
        String name = Scratch.path(Scratch.name("liveness")) + "-";
        List<RingEnd> ends = rings(name, role, PAGES);
        try (Peer peer = Peer.start("LivenessTest.peer", role, name)) {
            peer.expect("ready");
            ends.forEach(LivenessTest::fill);
            CompletableFuture<List<String>> said = CompletableFuture.supplyAsync(() -> {
                try {
                    return polled(ends, false, LivenessTest::onceCalled);
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            peer.kill();
            assertEquals(all(ErrorKind.PEER_DEAD), said.get(2 * Scratch.LONG.toSeconds(), TimeUnit.SECONDS));
        } finally {
            close(ends);
        }
    }

    /** No call of the loop is needed but the first: the end is looked at before the time. */
    @ParameterizedTest
    @CsvSource({"receiver, HYBRID", "receiver, BLOCK", "sender, HYBRID", "sender, BLOCK"})
    void theEndComesBeforeTheTime(String role, WaitMode mode) throws Exception {
        String name = Scratch.path(Scratch.name("liveness")) + "-";
        List<RingEnd> ends = rings(name, role, PAGES.withWaitMode(mode));
        try (Peer peer = Peer.start("LivenessTest.peer", role, name)) {
            peer.expect("ready");
            ends.forEach(LivenessTest::fill);
            for (RingEnd end : ends) {
                refused(ErrorKind.TIMED_OUT, () -> once(end, Duration.ZERO));
            }
            peer.tell("close");
            peer.expect("closed");
            for (int i = 0; i < MICROS.length; i++) {
                int at = i;
                refused(ErrorKind.CLOSED, () -> once(ends.get(at), Duration.ofNanos(1000 * MICROS[at])));
            }
            peer.finish();
        } finally {
            close(ends);
        }
    }

    /** As well as a message, of course. */
    @Test
    void aMessageComesBeforeTheEnd() throws Exception {
        try (Ring.Pair pair = Ring.pair()) {
            pair.sender().send(1, 5, new byte[3]);
            pair.sender().close();
            try (Message m = pair.receiver().recv(Duration.ZERO)) {
                assertEquals(5, m.tag());
            }
            refused(ErrorKind.CLOSED, () -> pair.receiver().recv(Duration.ZERO));
        }
    }

    @ParameterizedTest
    @CsvSource({"receiver, true", "sender, true", "receiver, false", "sender, false"})
    void theSameOnABus(String role, boolean killed) throws Exception {
        String name = Scratch.path(Scratch.name("liveness-bus")).toString();
        List<Bus> buses = new ArrayList<>();
        try (Listener listener = Listener.bind(name, ListenOptions.DEFAULT.withCapacity(1 << 14));
                Peer peer = Peer.start("LivenessTest.peer", "bus", name)) {
            while (buses.size() < MICROS.length) {
                buses.add(listener.accept(Scratch.LONG));
            }
            peer.expect("ready");
            List<? extends RingEnd> ends = buses.stream().map(bus -> role.equals("sender") ? bus.sender() : bus.receiver()).toList();
            ends.forEach(LivenessTest::fill);
            if (killed) {
                peer.kill();
            } else {
                peer.tell("close");
                peer.expect("closed");
            }
            assertEquals(all(killed ? ErrorKind.PEER_DEAD : ErrorKind.CLOSED), polled(ends, false, LivenessTest::once));
        } finally {
            close(buses);
        }
    }

    /** The third kind of end: nobody can find the name any more. */
    @ParameterizedTest
    @ValueSource(longs = {0, 20, 1_000, 50_000})
    void aLoopOfShortWaitsLearnsOfARemovedName(long micros) throws Exception {
        Duration timeout = Duration.ofNanos(1000 * micros);
        Path path = Scratch.path(Scratch.name("liveness"));
        try (Receiver rx = Receiver.create(path.toString(), PAGES)) {
            Files.delete(path);
            assertEquals(ErrorKind.CLOSED, poll(rx, timeout, LivenessTest::once));
        }
        try (Region region = Region.create(path.toString(), 100)) {
            Files.delete(path);
            long start = System.nanoTime();
            refused(ErrorKind.CLOSED, () -> {
                while (System.nanoTime() - start < Scratch.LONG.toNanos()) {
                    try {
                        region.await(region.notifications(), timeout);
                    } catch (TimedOutException again) {
                        continue;
                    }
                }
            });
        }
    }
}
