package dev.ramway;

import static dev.ramway.Rings.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Errno;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Handles that nobody closed, and nobody can reach any more. */
class ForgottenTest {
    private static final Options SMALL = Options.DEFAULT.withCapacity(4096);

    /** Asks the collector until something is so. */
    private static void collectUntil(BooleanSupplier so) throws InterruptedException {
        long start = System.nanoTime();
        while (!so.getAsBoolean()) {
            assertTrue(System.nanoTime() - start < Scratch.LONG.toNanos(), "what was forgotten is still there");
            System.gc();
            Thread.sleep(10);
        }
    }

    private static String name() {
        return Scratch.path(Scratch.name("forgotten")).toString();
    }

    /** In another process: makes so many of something, and keeps none. */
    static void forget(Peer.Inside me, String[] args) throws Exception {
        int count = Integer.parseInt(args[1]);
        // Classes are loaded from files: those of errors while there are descriptors for it.
        try {
            Receiver.open("nobody-made-this").close();
        } catch (RamwayException e) {
            me.say(Errno.text(2) + e.getMessage().length());
        }
        for (int i = 0; i < count; i++) {
            switch (args[0]) {
                case "pairs" -> Ring.pair(SMALL).sender().send(1, new byte[10]);
                case "senders" -> Sender.openOrCreate(args[2] + i, SMALL).trySend(1, new byte[0]);
                case "receivers" -> Receiver.openOrCreate(args[2] + i, SMALL).tryRecv();
                case "regions" -> Region.create(args[2] + i, 100).signal();
                case "listeners" -> Listener.bind(args[2] + i).refused();
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
        me.say("done");
    }

    /** More than a process may have mappings for, and far more than the heap would ever notice. */
    @Test
    void forgottenPairsDoNotRunOut() {
        try (Peer peer = Peer.start("ForgottenTest.forget", "pairs", "30000")) {
            peer.hear();
            peer.expect("done");
            peer.finish();
        }
    }

    /** With few descriptors: each of these takes two or more. */
    @ParameterizedTest
    @ValueSource(strings = {"receivers", "regions", "listeners"})
    void forgottenNamesDoNotRunOut(String what) throws IOException {
        Path dir = Scratch.directory("forgotten");
        try (Peer peer = Peer.start(List.of("prlimit", "--nofile=256:256"), "ForgottenTest.forget", Map.of(), what, "600",
                dir + "/x")) {
            peer.hear();
            peer.expect("done");
            peer.finish();
        }
        // What the end of the process left is stale, what was collected before is gone.
        try (var left = Files.list(dir)) {
            assertTrue(left.count() < 2 * 256);
        }
    }

    private static void send(String name, int messages) throws InterruptedException {
        Sender tx = Sender.open(name);
        for (int i = 0; i < messages; i++) {
            tx.send(1, i, new byte[10]);
        }
        assertTrue(tx.peerAlive());
    }

    /** Nobody said that this was all. */
    @Test
    void aForgottenSenderIsADeadOne() throws Exception {
        String name = name();
        try (Receiver rx = Receiver.create(name, SMALL)) {
            send(name, 3);
            collectUntil(() -> !rx.peerAlive());
            for (int i = 0; i < 3; i++) {
                try (Message m = rx.recv(Scratch.LONG)) {
                    assertEquals(i, m.tag());
                }
            }
            refused(ErrorKind.PEER_DEAD, () -> rx.recv(Scratch.LONG));
            // Its role can be taken.
            Sender.open(name).close();
            refused(ErrorKind.CLOSED, () -> rx.recv(Scratch.LONG));
        }
        assertTrue(Files.notExists(Path.of(name)));
    }

    private static void receive(String name) throws InterruptedException {
        Receiver rx = Receiver.open(name);
        rx.recv();
    }

    @Test
    void aForgottenMessageIsReceivedAgain() throws Exception {
        String name = name();
        try (Sender tx = Sender.create(name, SMALL)) {
            tx.send(1, 7, new byte[10]);
            receive(name);
            collectUntil(() -> !tx.peerAlive());
            try (Receiver rx = Receiver.open(name); Message m = rx.recv(Scratch.LONG)) {
                assertEquals(7, m.tag());
            }
        }
    }

    private static MemorySegment view(String name, boolean shared) throws InterruptedException {
        Receiver rx = Receiver.open(name);
        rx.shareViews(shared);
        return rx.recv().data();
    }

    /** A view knows nothing of its handle; what it shows must stay there. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aViewOutlivesAForgottenReceiver(boolean shared) throws Exception {
        String name = name();
        try (Sender tx = Sender.create(name, SMALL)) {
            tx.send(1, new byte[] {5, 6, 7, 8, 9, 10, 11, 12});
            MemorySegment view = view(name, shared);
            for (int i = 0; i < 20; i++) {
                System.gc();
                Thread.sleep(10);
                assertEquals(5, view.get(ValueLayout.JAVA_BYTE, 0));
            }
            // Its role is gone where only the view is left, unless the view keeps the handle.
            if (!shared) {
                collectUntil(() -> !tx.peerAlive());
                assertEquals(6, view.get(ValueLayout.JAVA_BYTE, 1));
            }
        }
    }

    private static MemorySegment data(String name) {
        return Region.open(name).data();
    }

    @Test
    void bytesKeepTheirRegion() throws Exception {
        String name = name();
        try (Region region = Region.create(name, 4096)) {
            region.data().set(ValueLayout.JAVA_INT, 0, 77);
        }
        Region.create(name, 4096, Options.DEFAULT.withPersistent(true)).close();
        MemorySegment data = data(name);
        for (int i = 0; i < 20; i++) {
            System.gc();
            Thread.sleep(5);
            data.set(ValueLayout.JAVA_INT, 0, i);
            assertEquals(i, data.get(ValueLayout.JAVA_INT, 0));
        }
    }

    private static void listen(String name) {
        assertEquals(0, Listener.bind(name).refused());
    }

    @Test
    void aForgottenListenerListensNoMore() throws Exception {
        String name = name();
        listen(name);
        collectUntil(() -> Files.notExists(Path.of(name)) && Files.notExists(Path.of(name + ".lock")));
        Listener.bind(name).close();
    }

    private static Sender half(String name) throws InterruptedException {
        return Bus.connect(name).sender();
    }

    private static void use(String name, Listener listener, List<Bus> accepted) throws Exception {
        Thread other = Thread.startVirtualThread(() -> {
            try {
                accepted.add(listener.accept(Scratch.LONG));
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
        Sender tx = half(name);
        other.join();
        Bus bus = accepted.get(0);
        // The half that is in use keeps the other one.
        for (int i = 0; i < 10; i++) {
            System.gc();
            Thread.sleep(10);
            tx.send(1, i, new byte[10]);
            try (Message m = bus.receiver().recv(Scratch.LONG)) {
                assertEquals(i, m.tag());
            }
            assertTrue(bus.sender().trySend(1, new byte[0]));
        }
        assertTrue(bus.peerAlive());
    }

    @Test
    void aForgottenBusIsADeadPeer() throws Exception {
        String name = name();
        try (Listener listener = Listener.bind(name)) {
            List<Bus> accepted = new ArrayList<>();
            use(name, listener, accepted);
            try (Bus bus = accepted.get(0)) {
                collectUntil(() -> !bus.peerAlive());
                refused(ErrorKind.PEER_DEAD, () -> bus.receiver().recv(Scratch.LONG));
            }
        }
    }

    private static Receiver lonely() {
        return Ring.pair(SMALL).receiver();
    }

    @Test
    void aForgottenEndOfAPairIsClosed() throws Exception {
        Receiver rx = lonely();
        try (rx) {
            collectUntil(() -> !rx.peerAlive());
            assertThrows(ClosedException.class, () -> rx.recv(Scratch.LONG));
        }
    }

    /** A handle that waits is not forgotten, also if nothing else refers to it. */
    @Test
    void aWaitKeepsItsHandle() throws Exception {
        String name = name();
        try (Sender tx = Sender.create(name, SMALL)) {
            List<Long> got = new ArrayList<>();
            Thread waiting = Thread.ofVirtual().unstarted(() -> {
                try (Message m = Receiver.open(name).recv()) {
                    got.add(m.tag());
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            });
            waiting.start();
            for (int i = 0; i < 10; i++) {
                System.gc();
                Thread.sleep(20);
            }
            assertTrue(tx.peerAlive());
            tx.send(1, 8, new byte[1], Duration.ofSeconds(20));
            waiting.join();
            assertEquals(List.of(8L), got);
        }
    }
}
