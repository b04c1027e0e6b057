package dev.ramway;

import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Numa;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the calls of every language have in common: time-outs, options that would be ignored, batches, the wait for a peer. */
class CallsTest {
    private static final Options PAGE = Options.DEFAULT.withCapacity(4096);
    private static final Duration NEGATIVE = Duration.ofNanos(-1);

    private static String name() {
        return Scratch.path(Scratch.name("calls")).toString();
    }

    private interface Call<T> {
        T get() throws Exception;
    }

    private static <T> CompletableFuture<T> start(boolean virtual, Call<T> call) {
        CompletableFuture<T> result = new CompletableFuture<>();
        (virtual ? Thread.ofVirtual() : Thread.ofPlatform().daemon()).start(() -> {
            try {
                result.complete(call.get());
            } catch (Throwable t) {
                result.completeExceptionally(t);
            }
        });
        return result;
    }

    private static <T> T end(CompletableFuture<T> result) throws Exception {
        return result.get(Scratch.LONG.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    void aTimeoutBelowZeroIsRefused() throws Exception {
        String name = name();
        try (Ring.Pair pair = Ring.pair(PAGE); Region region = Region.create(name, 10); Listener listener = Listener.bind(name())) {
            for (Executable call : List.<Executable>of(() -> pair.receiver().recv(NEGATIVE),
                    () -> pair.receiver().recvBatch(3, NEGATIVE), () -> pair.receiver().recvInto(new byte[3], NEGATIVE),
                    () -> pair.sender().send(1, 0, new byte[1], NEGATIVE), () -> pair.sender().reserve(1, NEGATIVE),
                    () -> pair.sender().sendBatch(1, 0, List.of(new byte[1]), NEGATIVE),
                    () -> pair.sender().reserveTensor(ElementType.INT8, new long[] {1}, NEGATIVE),
                    () -> pair.receiver().waitForPeer(NEGATIVE), () -> region.await(0, NEGATIVE), () -> listener.accept(NEGATIVE),
                    () -> Receiver.open("x", Options.DEFAULT.withTimeout(NEGATIVE)),
                    () -> Region.open("x", Options.DEFAULT.withTimeout(NEGATIVE)),
                    () -> Bus.connect("x", ConnectOptions.DEFAULT.withTimeout(NEGATIVE)),
                    () -> Bus.listen("x", ListenOptions.DEFAULT, NEGATIVE))) {
                says(refused(ErrorKind.INVALID_ARGUMENT, call), "below zero");
            }
            assertEquals(null, pair.receiver().tryRecv());
        }
    }

    @Test
    void whatIsNullIsNamed() {
        for (Executable call : List.<Executable>of(() -> Sender.create(null), () -> Receiver.open(null), () -> Region.create(null, 1),
                () -> Bus.connect(null), () -> Listener.bind(null))) {
            assertEquals("name", assertThrows(NullPointerException.class, call).getMessage());
        }
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            assertEquals("timeout", assertThrows(NullPointerException.class, () -> pair.receiver().recv(null)).getMessage());
        }
    }

    @Test
    void whatWouldBeIgnoredIsRefused() {
        String name = name();
        Options discard = Options.DEFAULT.withDiscard(true);
        for (Executable call : List.<Executable>of(() -> Sender.open(name, discard), () -> Receiver.openOrCreate(name, discard),
                () -> Region.open(name, discard), () -> Region.openOrCreate(name, 10, discard))) {
            says(refused(ErrorKind.INVALID_ARGUMENT, call), "discard applies to create only", name);
        }
        says(refused(ErrorKind.INVALID_ARGUMENT, () -> Sender.open(name, Options.DEFAULT.withPersistent(true))), "persistent");
        says(refused(ErrorKind.INVALID_ARGUMENT, () -> Region.open(name, Options.DEFAULT.withMode(0666))), "mode");
        says(refused(ErrorKind.INVALID_ARGUMENT, () -> Region.create(name, 10, PAGE)), "capacity");
        Sender.openOrCreate(name, Options.DEFAULT.withPersistent(true).withMode(0640)).abandon();
        Sender.create(name, discard).abandon();
        assertTrue(Files.notExists(Path.of(name)));
    }

    @Test
    void aNode() throws Exception {
        String missing = refused(ErrorKind.INVALID_ARGUMENT, () -> Sender.create(name(), PAGE.withNumaNode(777))).getMessage();
        assertTrue(missing.contains("NUMA node 777 does not exist; this machine has node"), missing);
        refused(ErrorKind.INVALID_ARGUMENT, () -> Ring.pair(PAGE.withNumaNode(-2)));
        if (!Numa.exists(0)) {
            return;
        }
        String name = name();
        try (Sender tx = Sender.create(name, PAGE.withNumaNode(0)); Receiver rx = Receiver.open(name, PAGE.withNumaNode(0))) {
            tx.send(1, new byte[5]);
            rx.recv().close();
        } catch (RamwayException e) {
            // A container's filter of system calls may refuse it, and then it says so.
            assertTrue(e.getMessage().contains("numaNode"), e.getMessage());
        }
        try (Region region = Region.create(name(), 100, Options.DEFAULT.withNumaNode(0));
                Ring.Pair pair = Ring.pair(PAGE.withNumaNode(0))) {
            assertEquals(100, region.length());
            assertTrue(pair.sender().trySend(1, new byte[1]));
        } catch (RamwayException e) {
            assertTrue(e.getMessage().contains("numaNode"), e.getMessage());
        }
    }

    @Test
    void aBatchSaysHowManyWereSent() throws Exception {
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            Sender tx = pair.sender();
            List<byte[]> three = List.of(new byte[1], new byte[2], new byte[3]);
            assertEquals(3, tx.sendBatch(1, three));
            assertEquals(3, tx.sendBatch(1, 9, three));
            try (Batch batch = pair.receiver().recvBatch()) {
                assertEquals(6, batch.size());
                assertEquals(9, batch.get(5).tag());
            }
            // What can never fit ends it, and the call that begins with it says so.
            List<byte[]> tooLong = List.of(new byte[1], new byte[5000], new byte[1]);
            assertEquals(1, tx.sendBatch(1, tooLong));
            try (Message m = pair.receiver().tryRecv()) {
                assertEquals(1, m.length());
            }
            refused(ErrorKind.TOO_LARGE, () -> tx.sendBatch(1, tooLong.subList(1, 3)));
            refused(ErrorKind.INVALID_ARGUMENT, () -> tx.sendBatch(-1, three));
            List<byte[]> many = List.of(new byte[1000], new byte[1000], new byte[1000], new byte[1000], new byte[1000]);
            assertEquals(4, tx.sendBatch(1, 0, many, Duration.ofMillis(5)));
            refused(ErrorKind.TIMED_OUT, () -> tx.sendBatch(1, 0, many, Duration.ofMillis(5)));
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, () -> tx.sendBatch(1, many));
            pair.receiver().recv().close();
            Thread.currentThread().interrupt();
            assertEquals(1, tx.sendBatch(1, many));
            assertTrue(Thread.interrupted());
            try (Batch batch = pair.receiver().recvBatch()) {
                assertEquals(4, batch.size());
            }
            tx.sendVectored(2, 3, MemorySegment.ofArray(new byte[2]), MemorySegment.ofArray(new byte[4]));
            try (Message m = pair.receiver().recv()) {
                assertEquals(6, m.length());
            }
        }
    }

    /** In another process: attaches where it is told, until it is told more. */
    static void attach(Peer.Inside me, String[] args) {
        me.say("ready");
        me.hear();
        RingEnd end = args[1].equals("sender") ? Sender.open(args[0]) : Receiver.open(args[0]);
        me.say("attached");
        me.hear();
        end.close();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPeerIsWaitedFor(boolean virtual) throws Exception {
        String name = name();
        try (Receiver rx = Receiver.create(name, PAGE)) {
            refused(ErrorKind.TIMED_OUT, () -> rx.waitForPeer(Duration.ZERO));
            refused(ErrorKind.TIMED_OUT, () -> rx.waitForPeer(Duration.ofMillis(20)));
            try (Peer peer = Peer.start("CallsTest.attach", name, "sender")) {
                peer.expect("ready");
                CompletableFuture<Integer> waiting = start(virtual, rx::waitForPeer);
                peer.tell("go");
                assertEquals(1, end(waiting));
                peer.expect("attached");
                assertEquals(1, rx.waitForPeer(Duration.ZERO));
                peer.kill();
            }
            refused(ErrorKind.PEER_DEAD, rx::recv);
            refused(ErrorKind.TIMED_OUT, () -> rx.waitForPeer(Duration.ofMillis(1)));
            CompletableFuture<Integer> waiting = start(virtual, rx::waitForPeer);
            try (Sender successor = Sender.open(name)) {
                assertEquals(2, end(waiting));
                assertEquals(1, successor.waitForPeer());
            }
            // Closed in an orderly way is not attached either.
            refused(ErrorKind.TIMED_OUT, () -> rx.waitForPeer(Duration.ZERO));
            CompletableFuture<Integer> removed = start(virtual, rx::waitForPeer);
            Files.delete(Path.of(name));
            assertEquals(ErrorKind.CLOSED, kind(removed));
        }
    }

    private static ErrorKind kind(CompletableFuture<?> result) {
        return ((RamwayException) assertThrows(java.util.concurrent.ExecutionException.class, () -> end(result)).getCause()).kind();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theWaitForAPeerEnds(boolean virtual) throws Exception {
        String name = name();
        Sender tx = Sender.create(name, PAGE);
        CompletableFuture<Integer> closed = start(virtual, tx::waitForPeer);
        Thread.sleep(20);
        tx.close();
        assertEquals(ErrorKind.DETACHED, kind(closed));
        refused(ErrorKind.DETACHED, tx::waitForPeer);
        try (Ring.Pair pair = Ring.pair(PAGE)) {
            assertEquals(1, pair.sender().waitForPeer());
            pair.receiver().close();
            refused(ErrorKind.CLOSED, pair.sender()::waitForPeer);
        }
        try (Receiver rx = Receiver.create(name(), PAGE)) {
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, rx::waitForPeer);
        }
    }

    /** The sender hears of the close at once; the role, and what is out, stay until the view is given back. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCloseIsToldWhileAMessageIsOut(boolean virtual) throws Exception {
        String name = name();
        try (Sender tx = Sender.create(name, PAGE)) {
            Receiver rx = Receiver.open(name);
            tx.send(1, 7, new byte[1000]);
            while (tx.trySend(1, new byte[1000])) {
                assertTrue(tx.pendingBytes() > 0);
            }
            Message message = rx.recv();
            MemorySegment view = message.data();
            CompletableFuture<Void> waiting = start(virtual, () -> {
                tx.send(1, new byte[1000]);
                return null;
            });
            Thread.sleep(20);
            rx.close();
            assertEquals(ErrorKind.CLOSED, kind(waiting));
            assertEquals(1000, view.byteSize());
            refused(ErrorKind.BUSY, () -> Receiver.open(name));
            assertFalse(rx.isFinished());
            message.close();
            message.close();
            assertTrue(rx.isFinished());
            assertThrows(IllegalStateException.class, () -> view.asSlice(0).get(java.lang.foreign.ValueLayout.JAVA_BYTE, 0));
            try (Receiver next = Receiver.open(name); Message again = next.recv()) {
                assertEquals(0, again.tag());
            }
        }
    }

    @Test
    void anEndSaysOnWhat() throws Exception {
        String name = name();
        try (Listener listener = Listener.bind(name)) {
            CompletableFuture<Bus> other = start(false, () -> Bus.connect(name));
            try (Bus bus = listener.accept(Scratch.LONG)) {
                end(other).close();
                says(refused(ErrorKind.CLOSED, () -> bus.receiver().recv()), name);
                assertEquals(name, bus.receiver().name());
            }
            CompletableFuture<Bus> abandoned = start(false, () -> Bus.connect(name));
            try (Bus bus = listener.accept(Scratch.LONG)) {
                end(abandoned).abandon();
                says(refused(ErrorKind.PEER_DEAD, () -> bus.receiver().recv()), name);
            }
        }
    }
}
