package dev.ramway;

import static dev.ramway.BusTest.LONG;
import static dev.ramway.BusTest.assertKind;
import static dev.ramway.BusTest.async;
import static dev.ramway.BusTest.names;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.Timeout;

/** Listeners, those who connect, and how their waits end. */
@Timeout(120)
@ExtendWith(Pace.class)
class ListenerTest {
    private static final ConnectOptions PATIENT = ConnectOptions.DEFAULT.withTimeout(LONG);

    /** Accepts one bus after another, and says what it got. */
    static void bell(Peer.Inside me, String[] args) throws InterruptedException {
        try (Listener listener = Listener.bind(args[0], ListenOptions.DEFAULT.withCapacity(4096))) {
            me.say("listening");
            while (true) {
                Bus bus = listener.accept();
                try (Message message = bus.receiver().recv()) {
                    me.say(new String(message.toByteArray()));
                }
            }
        }
    }

    @Test
    void aKilledListenerIsTakenOver() throws Exception {
        Path directory = Scratch.directory("bell");
        String at = directory.resolve("bell").toString();
        try (Peer first = Peer.start("ListenerTest.bell", at)) {
            first.expect("listening");
            assertKind(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(at).close());
            try (Bus bus = Bus.connect(at, PATIENT)) {
                bus.sender().send(0, "one".getBytes());
                first.expect("one");
                first.kill();
                assertEquals(List.of("bell", "bell.lock"), names(directory));
                assertThrows(PeerDeadException.class, () -> bus.receiver().recv(LONG));
            }
        }
        // Nobody is there; a connector says so, or waits for the next one.
        RamwayException e = assertKind(ErrorKind.NOT_FOUND,
                () -> Bus.connect(at, ConnectOptions.DEFAULT.withTimeout(Duration.ofMillis(50))).close());
        assertTrue(e.getMessage().contains("is gone: start it again") && e.getMessage().contains("ms to the bus '" + at), e.getMessage());
        CompletableFuture<Void> waited = async(() -> {
            try (Bus bus = Bus.connect(at, PATIENT)) {
                bus.sender().send(0, "two".getBytes());
                return null;
            }
        });
        try (Peer second = Peer.start("ListenerTest.bell", at)) {
            second.expect("listening");
            second.expect("two");
            waited.get();
            second.kill();
        }
        try (Listener listener = Listener.bind(at)) {
            assertEquals(at, listener.path());
        }
        assertEquals(List.of(), names(directory));
    }

    @Test
    void whatIsNotASocketIsLeftAsItIs() throws IOException {
        Path directory = Scratch.directory("not-a-socket");
        Path file = directory.resolve("path");
        Files.writeString(file, "somebody's");
        RamwayException e = assertKind(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(file.toString()).close());
        assertTrue(e.getMessage().contains("path is a regular file, not a socket; it is left as it is"), e.getMessage());
        assertKind(ErrorKind.INVALID_ARGUMENT, () -> Bus.connect(file.toString(), PATIENT).close());
        assertEquals("somebody's", Files.readString(file));
        assertEquals(List.of("path"), names(directory));
        String name = Scratch.name("not-a-segment");
        Files.writeString(Scratch.path(name), "no segment");
        assertKind(ErrorKind.ALREADY_EXISTS, () -> Listener.bind(name).close());
        assertEquals("no segment", Files.readString(Scratch.path(name)));
        Files.delete(Scratch.path(name));
    }

    @Test
    void whatReplacedTheSocketIsLeftAsItIs() throws IOException {
        Path directory = Scratch.directory("replaced");
        Path socket = directory.resolve("socket");
        Listener listener = Listener.bind(socket.toString());
        Files.delete(socket);
        Files.writeString(socket, "somebody's");
        listener.close();
        assertEquals("somebody's", Files.readString(socket));
        // The lock was let go all the same.
        Files.delete(socket);
        Listener.bind(socket.toString()).close();
        assertEquals(List.of(), names(directory));
    }

    @Test
    void acceptAndConnectEndWithAnInterruptAtOnce() throws Exception {
        try (Listener listener = Listener.bind(Scratch.name("quiet"))) {
            interrupted(listener::accept);
            interrupted(() -> Bus.connect(Scratch.name("absent"), PATIENT));
            // It waits for the listener's answer, which nobody lets it have.
            interrupted(() -> Bus.connect(listener.path(), PATIENT));
            interrupted(() -> Bus.listen(Scratch.name("nobody"), ListenOptions.DEFAULT));
            Thread.currentThread().interrupt();
            assertThrows(InterruptedException.class, listener::accept, "also if it came before");
            assertFalse(Thread.interrupted(), "it was told");
        }
    }

    private static void interrupted(BusTest.Slow<Bus> call) throws Exception {
        for (Thread.Builder kind : List.of(Thread.ofPlatform(), Thread.ofVirtual())) {
            CompletableFuture<Long> ended = new CompletableFuture<>();
            Thread thread = kind.start(() -> {
                try {
                    call.get().close();
                    ended.completeExceptionally(new AssertionError("there was a bus"));
                } catch (InterruptedException e) {
                    ended.complete(System.nanoTime());
                } catch (Throwable t) {
                    ended.completeExceptionally(t);
                }
            });
            Thread.sleep(30);
            long began = System.nanoTime();
            thread.interrupt();
            long took = ended.get() - began;
            Pace.below(500_000_000L, took, "ns until it ended");
        }
    }

    @Test
    void acceptAndConnectEndWithTheirTime() throws Exception {
        String absent = Scratch.name("absent");
        try (Listener listener = Listener.bind(Scratch.name("quiet"))) {
            long began = System.nanoTime();
            assertThrows(TimedOutException.class, () -> listener.accept(Duration.ofMillis(30)));
            assertTrue(System.nanoTime() - began >= 30_000_000, "not early");
            assertThrows(TimedOutException.class, () -> listener.accept(Duration.ZERO));
            ConnectOptions shortly = ConnectOptions.DEFAULT.withTimeout(Duration.ofMillis(50));
            RamwayException e = assertKind(ErrorKind.NOT_FOUND, () -> Bus.connect(absent, shortly).close());
            assertTrue(e.getMessage().contains("no listener made the socket"), e.getMessage());
            // A listener that lives and does not accept: the connector waits, and says so.
            e = assertThrows(TimedOutException.class, () -> Bus.connect(listener.path(), shortly).close());
            assertTrue(e.getMessage().contains("is it accepting?"), e.getMessage());
            assertThrows(TimedOutException.class, () -> Bus.listen(absent, ListenOptions.DEFAULT, Duration.ofMillis(10)).close());
            // Times that no long has in nanoseconds are forever.
            CompletableFuture<Bus> accepted = async(() -> listener.accept(Duration.ofSeconds(Long.MAX_VALUE)));
            try (Bus theirs = Bus.connect(listener.path(), shortly.withTimeout(Duration.ofSeconds(Long.MAX_VALUE)));
                    Bus ours = accepted.get()) {
                assertTrue(theirs.peerAlive() && ours.peerAlive());
            }
        }
    }

    @Test
    void closeEndsAccept() throws Exception {
        Path directory = Scratch.directory("close");
        Listener listener = Listener.bind(directory.resolve("socket").toString());
        List<CompletableFuture<Bus>> waiting = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            waiting.add(async(listener::accept));
        }
        Thread.sleep(30);
        List<CompletableFuture<Void>> closing = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            closing.add(async(() -> {
                listener.close();
                return null;
            }));
        }
        for (CompletableFuture<Void> one : closing) {
            one.get();
        }
        for (CompletableFuture<Bus> one : waiting) {
            RamwayException e = (RamwayException) assertThrows(ExecutionException.class, one::get).getCause();
            assertEquals(ErrorKind.DETACHED, e.kind());
            assertTrue(e.getMessage().endsWith("': the listener is closed"), e.getMessage());
        }
        assertKind(ErrorKind.DETACHED, listener::accept);
        assertKind(ErrorKind.DETACHED, listener::tryAccept);
        assertEquals(List.of(), names(directory));
    }

    @Test
    void tryAcceptNeverWaitsAndFindsABusInTheEnd() throws Exception {
        try (Listener listener = Listener.bind(Scratch.name("try"))) {
            assertNull(listener.tryAccept());
            CompletableFuture<Bus> connected = async(() -> Bus.connect(listener.path(), PATIENT));
            Bus[] found = {null};
            BusTest.eventually(() -> (found[0] = listener.tryAccept()) != null);
            try (Bus ours = found[0]; Bus theirs = connected.get()) {
                assertTrue(ours.peerAlive() && theirs.peerAlive());
            }
            assertNull(listener.tryAccept());
            // A connector that is there while no accept runs waits until one does.
            try (RawSocket silent = RawSocket.connect(listener.path())) {
                assertFalse(silent.hungUp());
            }
        }
    }

    @Test
    void whoWasServedAndNotTakenIsToldThatItIsOver() throws Exception {
        Listener listener = Listener.bind(Scratch.name("untaken"));
        assertNull(listener.tryAccept());
        try (Bus theirs = Bus.connect(listener.path(), PATIENT)) {
            listener.close();
            assertThrows(ClosedException.class, () -> theirs.receiver().recv(LONG));
        }
    }

    @Test
    void connectorsQueueUpBeyondTheBacklog() throws Exception {
        int connectors = 20;
        try (Listener listener = Listener.bind(Scratch.name("queue"), ListenOptions.DEFAULT.withBacklog(1).withCapacity(4096))) {
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int i = 0; i < connectors; i++) {
                all.add(async(() -> {
                    try (Bus bus = Bus.connect(listener.path(), PATIENT)) {
                        bus.sender().send(9, "here".getBytes());
                        return null;
                    }
                }));
            }
            Thread.sleep(50);
            for (int i = 0; i < 4; i++) {
                all.add(async(() -> {
                    for (int j = 0; j < connectors / 4; j++) {
                        try (Bus bus = listener.accept(LONG)) {
                            bus.receiver().recv(LONG).close();
                            assertThrows(ClosedException.class, () -> bus.receiver().recv(LONG));
                        }
                    }
                    return null;
                }));
            }
            for (CompletableFuture<Void> one : all) {
                one.get();
            }
        }
    }

    @Test
    void onlyOneIsWelcomedWhereOneIsWanted() throws Exception {
        Path directory = Scratch.directory("once");
        String at = directory.resolve("once").toString();
        AtomicInteger served = new AtomicInteger();
        AtomicInteger attempts = new AtomicInteger();
        AtomicBoolean enough = new AtomicBoolean();
        List<CompletableFuture<Class<?>>> all = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            all.add(async(() -> {
                while (true) {
                    try (Bus bus = Bus.connect(at, ConnectOptions.DEFAULT.withTimeout(Duration.ofSeconds(1)))) {
                        served.incrementAndGet();
                        bus.receiver().recv(LONG).close();
                        return null;
                    } catch (RamwayException e) {
                        attempts.incrementAndGet();
                        // Its time may have been over in the middle of an attempt.
                        if (e.kind() != ErrorKind.NOT_FOUND && e.kind() != ErrorKind.TIMED_OUT) {
                            return e.getClass();
                        }
                        if (enough.get()) {
                            return null;
                        }
                    }
                }
            }));
        }
        Thread.sleep(20);
        Bus bus = Bus.listen(at, ListenOptions.DEFAULT, LONG);
        assertEquals(List.of(), names(directory));
        int before = attempts.get();
        BusTest.eventually(() -> attempts.get() >= before + 4);
        enough.set(true);
        BusTest.eventually(() -> all.stream().filter(CompletableFuture::isDone).count() == 4);
        bus.close();
        int closed = 0;
        for (CompletableFuture<Class<?>> one : all) {
            if (one.get() != null) {
                assertEquals(ClosedException.class, one.get());
                closed++;
            }
        }
        assertEquals(1, closed);
        assertEquals(1, served.get());
    }

    @Test
    void aListenerOfOneGoesOnAfterAFault() throws Exception {
        String at = Scratch.directory("fault").resolve("once").toString();
        // It does not give up by itself on the one that is welcomed.
        CompletableFuture<Bus> listening = async(() -> Bus.listen(at, ListenOptions.DEFAULT.withHandshakeTimeout(LONG), LONG));
        BusTest.eventually(() -> Files.exists(Path.of(at)));
        RawSocket welcomed = RawSocket.connect(at);
        welcomed.send(HandshakeTest.HELLO);
        assertEquals(64, welcomed.read(64).length);
        CompletableFuture<Bus> next = async(() -> Bus.connect(at, PATIENT));
        Thread.sleep(30);
        assertFalse(next.isDone(), "somebody else is welcome");
        welcomed.close();
        try (Bus theirs = next.get(); Bus ours = listening.get()) {
            assertTrue(theirs.peerAlive() && ours.peerAlive());
        }
    }

    @Test
    void aConnectorWithoutTheListenersDirectory() {
        String at = Scratch.path("no-such-directory").resolve("socket").toString();
        ConnectOptions shortly = ConnectOptions.DEFAULT.withTimeout(Duration.ofMillis(20));
        assertKind(ErrorKind.NOT_FOUND, () -> Bus.connect(at, shortly).close());
        assertKind(ErrorKind.INVALID_ARGUMENT, () -> Bus.connect("bad name", PATIENT).close());
        assertKind(ErrorKind.NOT_FOUND, () -> Listener.bind(at).close());
    }

    /** Of a process with one carrier: if a wait held it, nobody else could run. */
    static void oneCarrier(Peer.Inside me, String[] args) throws Exception {
        try (Listener listener = Listener.bind(args[0], ListenOptions.DEFAULT.withCapacity(4096))) {
            AtomicInteger buses = new AtomicInteger();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                threads.add(Thread.startVirtualThread(() -> {
                    try (Bus bus = listener.accept(); Message message = bus.receiver().recv()) {
                        bus.sender().send(message.typeId(), message.toByteArray());
                        buses.incrementAndGet();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                }));
            }
            for (int i = 0; i < 4; i++) {
                threads.add(Thread.startVirtualThread(() -> {
                    try (Bus bus = Bus.connect(args[0])) {
                        Thread.sleep(20);
                        bus.sender().send(5, new byte[10]);
                        bus.receiver().recv().close();
                        buses.incrementAndGet();
                    } catch (InterruptedException e) {
                        throw new AssertionError(e);
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            me.say("buses: " + buses);
        }
    }

    @Test
    void virtualThreadsWaitWithoutTheirCarrier() {
        String one = "-Djdk.virtualThreadScheduler.parallelism=1 -Djdk.virtualThreadScheduler.maxPoolSize=1";
        try (Peer peer = Peer.start("ListenerTest.oneCarrier", Map.of("JDK_JAVA_OPTIONS", one), Scratch.name("carrier"))) {
            peer.expect("buses: 8");
            peer.finish();
        }
    }

    @Test
    void nothingIsLeftOpen() throws Exception {
        // Once for what stays: the first of everything.
        round();
        int before = RawSocket.openDescriptors();
        for (int i = 0; i < 5; i++) {
            round();
        }
        BusTest.eventually(() -> RawSocket.openDescriptors() <= before);
        assertNotNull(Scratch.DIR);
    }

    private static void round() throws Exception {
        try (Listener listener = Listener.bind(Scratch.name("round"), ListenOptions.DEFAULT.withCapacity(4096))) {
            CompletableFuture<Bus> connected = async(() -> Bus.connect(listener.path(), PATIENT));
            try (Bus ours = listener.accept(LONG); Bus theirs = connected.get()) {
                assertTrue(ours.sender().trySend(1, new byte[1]));
                theirs.receiver().recv(LONG).close();
            }
        }
    }
}
