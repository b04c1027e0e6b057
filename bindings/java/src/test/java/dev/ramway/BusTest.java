package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import dev.ramway.sys.Libc;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Buses between real processes. */
@Timeout(120)
class BusTest {
    /** Far more than anything here takes. Not {@link Scratch}'s, which makes a directory: other processes have none. */
    static final Duration LONG = Duration.ofSeconds(60);

    private static final ListenOptions SMALL = ListenOptions.DEFAULT.withCapacity(4096);
    private static final ConnectOptions PATIENT = ConnectOptions.DEFAULT.withTimeout(LONG);

    // What other processes do.

    /** Returns every message until the other side closes. */
    static void echo(Peer.Inside me, String[] args) throws InterruptedException {
        try (Bus bus = itsBus(args)) {
            while (true) {
                try (Message message = bus.receiver().recv()) {
                    bus.sender().send(message.typeId(), message.tag(), message.data());
                }
            }
        } catch (ClosedException e) {
            // All came.
        }
    }

    /** Sends three messages, and waits to be killed. */
    static void lastWords(Peer.Inside me, String[] args) throws InterruptedException {
        try (Bus bus = itsBus(args)) {
            for (int i = 0; i < 3; i++) {
                bus.sender().send(7, "last words".getBytes());
            }
            me.say("sent");
            me.hear();
        }
    }

    /** Connects as another user, and says how that ended. */
    static void stranger(Peer.Inside me, String[] args) throws Exception {
        // All classes are loaded while their files can be read for sure.
        try (Listener own = Listener.bind(args[0] + "-first")) {
            CompletableFuture<Bus> accepted = async(own::accept);
            Bus.connect(own.path(), PATIENT).close();
            accepted.get().close();
        }
        // Of this thread alone, which is the one that asks and connects.
        int setuid = System.getProperty("os.arch").equals("aarch64") ? 146 : 105;
        if (Libc.syscall(setuid, OTHER_UID, 0, 0, 0, 0, 0) != 0) {
            throw new IllegalStateException("not permitted to be another user");
        }
        try (Bus bus = Bus.connect(args[0], PATIENT.withAllowUids(Set.of(0)))) {
            me.say("served by " + bus.peerUid());
        } catch (RamwayException e) {
            me.say(e.kind().name() + (e.kind() == ErrorKind.PERMISSION_DENIED ? "" : ": " + e.getMessage()));
        }
        me.hear();
    }

    private static Bus itsBus(String[] args) throws InterruptedException {
        return args[0].equals("listen") ? Bus.listen(args[1], SMALL, LONG) : Bus.connect(args[1], PATIENT);
    }

    /** A bus whose other end is a program that listens or connects. */
    private record Meeting(Bus bus, Peer peer) implements AutoCloseable {
        static Meeting of(String at, String program, boolean itListens) throws InterruptedException {
            Peer peer = Peer.start(program, itListens ? "listen" : "connect", at);
            try {
                Bus bus = itListens ? Bus.connect(at, PATIENT) : Bus.listen(at, SMALL, LONG);
                assertEquals(peer.pid(), bus.peerPid());
                assertEquals(Libc.geteuid(), bus.peerUid());
                assertTrue(bus.peerAlive());
                return new Meeting(bus, peer);
            } catch (Throwable t) {
                peer.close();
                throw t;
            }
        }

        @Override
        public void close() {
            try (peer) {
                bus.close();
            }
        }
    }

    static RamwayException assertKind(ErrorKind kind, Call call) {
        RamwayException e = assertThrows(RamwayException.class, call::run);
        assertEquals(kind, e.kind(), e.getMessage());
        return e;
    }

    /** What may be interrupted. */
    interface Call {
        void run() throws InterruptedException;
    }

    static List<String> names(Path directory) throws IOException {
        try (Stream<Path> all = Files.list(directory)) {
            return all.map(path -> path.getFileName().toString()).sorted().toList();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void twoProcessesTalk(boolean itListens) throws Exception {
        Path directory = Scratch.directory("talk");
        try (Meeting met = Meeting.of(directory.resolve("echo").toString(), "BusTest.echo", itListens)) {
            Bus bus = met.bus();
            for (int i = 0; i < 1000; i++) {
                byte[] sent = new byte[i * 7 % 2000];
                Arrays.fill(sent, (byte) i);
                bus.sender().send(i, -i, sent);
                try (Message message = bus.receiver().recv(LONG)) {
                    assertEquals(i, message.typeId());
                    assertEquals(-i, message.tag());
                    assertArrayEquals(sent, message.toByteArray());
                }
            }
            bus.sender().close();
            assertThrows(ClosedException.class, () -> bus.receiver().recv(LONG));
            met.peer().finish();
            assertFalse(bus.peerAlive());
            bus.close();
            assertKind(ErrorKind.DETACHED, () -> bus.receiver().recv());
            assertFalse(bus.peerAlive());
        }
        assertEquals(List.of(), names(directory));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aKilledPeerIsNoticedAfterItsLastMessage(boolean itListens) throws Exception {
        try (Meeting met = Meeting.of(Scratch.name("killed"), "BusTest.lastWords", itListens)) {
            Bus bus = met.bus();
            met.peer().expect("sent");
            met.peer().kill();
            long killed = System.nanoTime();
            for (int i = 0; i < 3; i++) {
                try (Message message = bus.receiver().recv(LONG)) {
                    assertEquals("last words", new String(message.toByteArray()));
                }
            }
            assertThrows(PeerDeadException.class, () -> bus.receiver().recv(LONG));
            long took = System.nanoTime() - killed;
            assertTrue(took < 20_000_000_000L, "noticed after " + took + " ns");
            // The sending half learns it when it has to wait.
            assertThrows(PeerDeadException.class, () -> {
                for (int i = 0; i < 10; i++) {
                    bus.sender().send(1, 0, new byte[1000], LONG);
                }
            });
            assertFalse(bus.peerAlive());
        }
    }

    @Test
    void aWaitingReceiverIsToldOfADeathAtOnce() throws Exception {
        try (Meeting met = Meeting.of(Scratch.name("waiting"), "BusTest.lastWords", true)) {
            for (int i = 0; i < 3; i++) {
                met.bus().receiver().recv(LONG).close();
            }
            CompletableFuture<Long> noticed = CompletableFuture.supplyAsync(() -> {
                assertThrows(PeerDeadException.class, () -> met.bus().receiver().recv());
                return System.nanoTime();
            });
            Thread.sleep(50);
            met.peer().kill();
            long killed = System.nanoTime();
            long took = noticed.get() - killed;
            // 200 ms on a machine that is not busy.
            assertTrue(took < 20_000_000_000L, "noticed after " + took + " ns");
        }
    }

    @Test
    void oneDirectionCanBeLeftOut() throws Exception {
        String at = Scratch.directory("one-way").resolve("bus").toString();
        try (Listener listener = Listener.bind(at, ListenOptions.DEFAULT.withCapacities(5000, 0).withAlign(64))) {
            CompletableFuture<Bus> connected = async(() -> Bus.connect(listener.path(), PATIENT.withWaitMode(WaitMode.BLOCK)));
            try (Bus ours = listener.accept(LONG); Bus theirs = connected.get()) {
                assertEquals(8192, ours.sender().capacity());
                assertEquals(64, ours.sender().align());
                RamwayException e = assertKind(ErrorKind.UNSUPPORTED, ours::receiver);
                assertTrue(e.getMessage().contains("is send-only"), e.getMessage());
                assertKind(ErrorKind.UNSUPPORTED, theirs::sender);
                assertTrue(ours.sender().trySend(3, "there".getBytes()));
                try (Message message = theirs.receiver().tryRecv()) {
                    assertEquals("there", new String(message.toByteArray()));
                    assertEquals(0, message.data().address() % 64);
                }
            }
        }
    }

    interface Slow<T> {
        T get() throws Exception;
    }

    static <T> CompletableFuture<T> async(Slow<T> work) {
        CompletableFuture<T> result = new CompletableFuture<>();
        Thread.ofPlatform().daemon().start(() -> {
            try {
                result.complete(work.get());
            } catch (Throwable t) {
                result.completeExceptionally(t);
            }
        });
        return result;
    }

    @Test
    void impossibleListenersAreRefused() throws Exception {
        Path directory = Scratch.directory("impossible");
        String at = directory.resolve("x").toString();
        ListenOptions usual = ListenOptions.DEFAULT;
        Map<String, Call> cases = Map.of(
                "no capacity at all", () -> Listener.bind(at, usual.withCapacity(0)).close(),
                "a negative capacity", () -> Listener.bind(at, usual.withCapacity(-1)).close(),
                "an odd alignment", () -> Listener.bind(at, usual.withAlign(24)).close(),
                "no time", () -> Listener.bind(at, usual.withHandshakeTimeout(Duration.ZERO)).close(),
                "no backlog", () -> Listener.bind(at, usual.withBacklog(0)).close(),
                "a mode with more than permissions", () -> Listener.bind(at, usual.withMode(04600)).close(),
                "a name that ends in .lock", () -> Listener.bind("x.lock").close(),
                "a name that cannot be", () -> Listener.bind("a name").close(),
                "a file name that is too long", () -> Listener.bind(directory.resolve("n".repeat(120)).toString()).close());
        cases.forEach((what, call) -> {
            RamwayException e = assertThrows(RamwayException.class, call::run, what);
            assertEquals(ErrorKind.INVALID_ARGUMENT, e.kind(), what + ": " + e.getMessage());
            assertTrue(e.getMessage().startsWith("listening at '"), e.getMessage());
        });
        assertKind(ErrorKind.NO_SPACE, () -> Listener.bind(at, usual.withCapacity(Long.MAX_VALUE)).close());
        assertEquals(List.of(), names(directory));
    }

    @Test
    void closeEndsTheWaitsOfOtherThreads() throws Exception {
        try (Meeting met = Meeting.of(Scratch.name("close"), "BusTest.lastWords", false)) {
            Bus bus = met.bus();
            for (int i = 0; i < 3; i++) {
                bus.receiver().recv(LONG).close();
            }
            CompletableFuture<ErrorKind> ended = async(() -> {
                try {
                    bus.receiver().recv().close();
                    return fail("a fourth message");
                } catch (RamwayException e) {
                    return e.kind();
                }
            });
            Thread.sleep(30);
            bus.close();
            assertEquals(ErrorKind.DETACHED, ended.get());
            bus.close();
            met.peer().tell("go");
            met.peer().finish();
        }
    }

    @Test
    void pathsThatDoNotFitIntoAnAddress() throws Exception {
        Path deep = Scratch.directory("deep");
        while (deep.toString().length() <= 120) {
            deep = deep.resolve("d".repeat(30));
        }
        Files.createDirectories(deep);
        String at = deep.resolve("socket").toString();
        for (boolean itListens : new boolean[] {false, true}) {
            try (Meeting met = Meeting.of(at, "BusTest.lastWords", itListens)) {
                met.peer().expect("sent");
                try (Message message = met.bus().receiver().recv(LONG)) {
                    assertEquals("last words", new String(message.toByteArray()));
                }
                met.peer().tell("go");
                met.peer().finish();
            }
        }
        assertEquals(List.of(), names(deep));
    }

    /** A user that nothing belongs to. */
    private static final int OTHER_UID = 54321;

    @Test
    void theSocketHasExactlyItsMode() throws Exception {
        Path directory = Scratch.directory("modes");
        try (Listener own = Listener.bind(directory.resolve("own").toString());
                Listener named = Listener.bind(directory.resolve("named").toString(),
                        ListenOptions.DEFAULT.withAllowUids(Set.of(OTHER_UID)));
                Listener told = Listener.bind(directory.resolve("told").toString(), ListenOptions.DEFAULT.withMode(0620))) {
            assertEquals("rw-------", mode(own));
            assertEquals("rw-rw-rw-", mode(named));
            assertEquals("rw--w----", mode(told));
        }
        assertEquals(List.of(), names(directory));
    }

    private static String mode(Listener listener) throws IOException {
        return PosixFilePermissions.toString(Files.getPosixFilePermissions(Path.of(listener.path())));
    }

    @Test
    void otherUsersAreServedOnlyIfTheyAreNamed() throws Exception {
        Assumptions.assumeTrue(Libc.geteuid() == 0, "only root can start a process of another user");
        Path directory = Scratch.directory("users");
        Files.setPosixFilePermissions(Scratch.DIR, PosixFilePermissions.fromString("rwx--x--x"));
        Files.setPosixFilePermissions(directory, PosixFilePermissions.fromString("rwxr-xr-x"));
        ListenOptions open = ListenOptions.DEFAULT.withMode(0666);
        strangerAt(directory, open.withAllowUids(Set.of(OTHER_UID)), "served by 0");
        strangerAt(directory, open, "PERMISSION_DENIED");
        strangerAt(directory, ListenOptions.DEFAULT, "PERMISSION_DENIED");
    }

    private static void strangerAt(Path directory, ListenOptions options, String said) throws Exception {
        try (Listener listener = Listener.bind(directory.resolve("socket").toString(), options);
                Peer stranger = Peer.start("BusTest.stranger", listener.path())) {
            boolean served = said.startsWith("served");
            if (served) {
                CompletableFuture<Bus> accepted = async(listener::accept);
                stranger.expect(said);
                try (Bus bus = accepted.get()) {
                    assertEquals(OTHER_UID, bus.peerUid());
                }
            } else {
                // Somebody has to ask, or nobody is looked at.
                Thread asking = Thread.startVirtualThread(() -> assertThrows(Throwable.class, listener::accept));
                stranger.expect(said);
                asking.interrupt();
                if (options.mode() != 0) {
                    eventually(() -> listener.refused() == 1);
                    assertEquals(ErrorKind.PERMISSION_DENIED, listener.lastRefusal().orElseThrow().kind());
                }
            }
            stranger.tell("go");
            stranger.finish();
        }
    }

    interface Condition {
        boolean holds();
    }

    static void eventually(Condition condition) {
        long began = System.nanoTime();
        while (!condition.holds()) {
            assertTrue(System.nanoTime() - began < LONG.toNanos(), "it never came to be");
            RawSocket.sleep(1);
        }
    }
}
