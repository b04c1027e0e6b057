package dev.ramway;

import static dev.ramway.BusTest.LONG;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.ramway.sys.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Connectors and listeners that break the handshake. */
@Timeout(120)
class HostileBusTest {
    private static final long BUS_SIZE = Facts.HEADER_SIZE + 2 * 4096;

    /** A listener whose buses are taken in the background. */
    private record Listening(Listener listener, BlockingQueue<Bus> buses) implements AutoCloseable {
        static Listening with(ListenOptions options) {
            Listening it = new Listening(Listener.bind(Scratch.name("target"), options), new LinkedBlockingQueue<>());
            Thread.startVirtualThread(() -> {
                try {
                    while (true) {
                        it.buses.add(it.listener.accept());
                    }
                } catch (InterruptedException | RamwayException e) {
                    // The listener was closed.
                }
            });
            return it;
        }

        Bus next() throws InterruptedException {
            Bus bus = buses.poll(LONG.toSeconds(), TimeUnit.SECONDS);
            assertTrue(bus != null, "nobody was accepted");
            return bus;
        }

        @Override
        public void close() {
            listener.close();
        }
    }

    private record Wrong(String what, byte[] message, int descriptors, ErrorKind kind) {}

    @Test
    void whatConnectorsDoWrongIsRefusedAndHoldsUpNobody() throws Exception {
        byte[] good = HandshakeTest.HELLO;
        List<Wrong> wrongs = List.of(
                new Wrong("another magic", HandshakeTest.changed(0, 'X'), 0, ErrorKind.ABI_MISMATCH),
                new Wrong("another byte order", HandshakeTest.changed(8, 9), 0, ErrorKind.ABI_MISMATCH),
                new Wrong("another version", HandshakeTest.changed(0x0C, 2), 0, ErrorKind.ABI_MISMATCH),
                new Wrong("a feature", HandshakeTest.changed(0x18, 1), 0, ErrorKind.ABI_MISMATCH),
                new Wrong("another type", HandshakeTest.changed(0x10, 4), 0, ErrorKind.CORRUPT),
                new Wrong("a descriptor", good, 1, ErrorKind.CORRUPT),
                new Wrong("many descriptors", good, 20, ErrorKind.CORRUPT),
                new Wrong("half of it", Arrays.copyOf(good, 32), 0, ErrorKind.TIMED_OUT),
                new Wrong("nothing", new byte[0], 0, ErrorKind.TIMED_OUT));
        ListenOptions options = ListenOptions.DEFAULT.withCapacity(4096).withHandshakeTimeout(Duration.ofMillis(300));
        int root = RawSocket.open("/");
        List<RawSocket> silent = new ArrayList<>();
        try (Listening it = Listening.with(options)) {
            String path = it.listener().path();
            // More silent ones than there are places.
            for (int i = 0; i < Facts.HANDSHAKES_MAX + 10; i++) {
                silent.add(RawSocket.connect(path));
            }
            for (Wrong wrong : wrongs) {
                try (RawSocket socket = RawSocket.connect(path)) {
                    if (wrong.message().length > 0) {
                        int[] many = new int[wrong.descriptors()];
                        Arrays.fill(many, root);
                        socket.send(wrong.message(), many);
                    }
                    byte[] answer = socket.read(64);
                    assertEquals(wrong.kind().number(), BusHandshake.decode(answer, BusHandshake.Type.REFUSE).status(), wrong.what());
                    assertEquals(0, socket.read(1).length, "it hangs up");
                }
            }
            afterTheWelcome(path, root);
            assertTrue(it.buses().isEmpty(), "one of them was accepted");
            aSlowButHonestOne(it);
            try (Bus theirs = Bus.connect(path); Bus ours = it.next()) {
                assertTrue(theirs.peerAlive() && ours.peerAlive());
            }
            int refused = Facts.HANDSHAKES_MAX + 10 + wrongs.size() + 4;
            BusTest.eventually(() -> it.listener().refused() == refused);
            assertTrue(it.listener().lastRefusal().isPresent());
        } finally {
            silent.forEach(RawSocket::close);
            Files.close(root);
        }
    }

    /** One that says that it cannot use the memory, one with a descriptor, one that says nothing, and one that goes. */
    private static void afterTheWelcome(String path, int root) {
        List<Consumer<RawSocket>> lasts = List.of(
                socket -> socket.send(BusHandshake.encode(BusHandshake.Type.ACK, ErrorKind.NO_SPACE, 0)),
                socket -> socket.send(BusHandshake.encode(BusHandshake.Type.ACK, null, 0), root),
                socket -> {},
                RawSocket::close);
        for (Consumer<RawSocket> last : lasts) {
            try (RawSocket socket = welcomed(path)) {
                last.accept(socket);
                if (socket.fd() >= 0) {
                    assertEquals(0, socket.read(1).length, "it hangs up without a word");
                }
            }
        }
    }

    private static RawSocket welcomed(String path) {
        RawSocket socket = RawSocket.connect(path);
        socket.send(HandshakeTest.HELLO);
        assertEquals(BUS_SIZE, BusHandshake.decode(socket.read(64), BusHandshake.Type.WELCOME).size());
        return socket;
    }

    private static void aSlowButHonestOne(Listening it) throws InterruptedException {
        RawSocket socket = RawSocket.connect(it.listener().path());
        for (byte one : HandshakeTest.HELLO) {
            socket.send(new byte[] {one});
        }
        BusHandshake.decode(socket.read(64), BusHandshake.Type.WELCOME);
        for (byte one : BusHandshake.encode(BusHandshake.Type.ACK, null, 0)) {
            socket.send(new byte[] {one});
        }
        try (Bus bus = it.next()) {
            // Bytes after the ACK say nothing.
            socket.send(new byte[50]);
            assertTrue(bus.peerAlive());
            socket.close();
            assertThrows(PeerDeadException.class, () -> bus.receiver().recv(LONG));
        }
    }

    /** A listener that answers HELLO with what it is told, and keeps the status of the ACKs. */
    private record Villain(RawSocket listening, String path, BlockingQueue<Integer> acks) implements AutoCloseable {
        static Villain who(Consumer<RawSocket> responds) {
            String path = Scratch.directory("villain").resolve("socket").toString();
            Villain it = new Villain(RawSocket.listen(path), path, new LinkedBlockingQueue<>());
            Thread.ofPlatform().daemon().start(() -> {
                for (RawSocket socket = it.listening.accept(); socket != null; socket = it.listening.accept()) {
                    if (socket.read(64).length == 64) {
                        responds.accept(socket);
                        if (socket.fd() >= 0) {
                            byte[] answer = socket.read(64);
                            if (answer.length == 64) {
                                it.acks.add(BusHandshake.decode(answer, BusHandshake.Type.ACK).status());
                            }
                        }
                    }
                    socket.close();
                }
            });
            return it;
        }

        @Override
        public void close() {
            listening.close();
        }
    }

    /** The header page of the bus that all of these are about, with a change. */
    private static byte[] page(Consumer<byte[]> change) {
        byte[] page = SegmentHeader.format(SegmentSpec.bus(4096, 4096, 16));
        change.accept(page);
        return page;
    }

    private static Consumer<RawSocket> welcome(long announced, int... descriptors) {
        return socket -> socket.send(BusHandshake.encode(BusHandshake.Type.WELCOME, null, announced), descriptors);
    }

    private static Consumer<RawSocket> raw(byte[] bytes) {
        return socket -> {
            if (bytes.length > 0) {
                socket.send(bytes);
            }
            socket.close();
        };
    }

    /** acked: the memory was looked at, so that the listener is told. */
    private record Trick(String what, Consumer<RawSocket> responds, ErrorKind kind, boolean acked) {}

    private final List<Integer> opened = new ArrayList<>();

    private int memory(long size, int seals, byte[] start) {
        int memory = RawSocket.memory(size, seals, start);
        opened.add(memory);
        return memory;
    }

    private int opened(String path) {
        int file = RawSocket.open(path);
        opened.add(file);
        return file;
    }

    private Consumer<RawSocket> sealedPage(Consumer<byte[]> change) {
        return welcome(BUS_SIZE, memory(BUS_SIZE, ALL, page(change)));
    }

    private static final int ALL = RawSocket.SEAL_SEAL | RawSocket.SEAL_SHRINK | RawSocket.SEAL_GROW;

    private List<Trick> tricksWithMemory() {
        byte[] usual = page(p -> {});
        return List.of(
                new Trick("not a memfd", welcome(BUS_SIZE, opened("/dev/null")), ErrorKind.CORRUPT, true),
                new Trick("a regular file", welcome(BUS_SIZE, opened("/proc/self/exe")), ErrorKind.CORRUPT, true),
                new Trick("no seals", welcome(BUS_SIZE, memory(BUS_SIZE, 0, usual)), ErrorKind.CORRUPT, true),
                new Trick("can still grow", welcome(BUS_SIZE, memory(BUS_SIZE, ALL & ~RawSocket.SEAL_GROW, usual)), ErrorKind.CORRUPT,
                        true),
                new Trick("can still shrink", welcome(BUS_SIZE, memory(BUS_SIZE, ALL & ~RawSocket.SEAL_SHRINK, usual)), ErrorKind.CORRUPT,
                        true),
                new Trick("can still be sealed", welcome(BUS_SIZE, memory(BUS_SIZE, ALL & ~RawSocket.SEAL_SEAL, usual)),
                        ErrorKind.CORRUPT, true),
                new Trick("sealed against writing", welcome(BUS_SIZE, memory(BUS_SIZE, ALL | RawSocket.SEAL_WRITE, usual)),
                        ErrorKind.CORRUPT, true),
                new Trick("another size than it has", welcome(2 * BUS_SIZE, memory(BUS_SIZE, ALL, usual)), ErrorKind.CORRUPT, true),
                new Trick("a negative size", welcome(-1, memory(BUS_SIZE, ALL, usual)), ErrorKind.CORRUPT, true),
                new Trick("less than a page", welcome(100, memory(100, ALL, new byte[0])), ErrorKind.CORRUPT, true),
                new Trick("too small for what it says", welcome(8192, memory(8192, ALL, usual)), ErrorKind.CORRUPT, true),
                new Trick("not a segment", welcome(BUS_SIZE, memory(BUS_SIZE, ALL, new byte[0])), ErrorKind.ABI_MISMATCH, true),
                new Trick("another version", sealedPage(p -> p[Facts.OFF_VERSION_MAJOR] = 9), ErrorKind.ABI_MISMATCH, true),
                new Trick("a ring", sealedPage(p -> p[Facts.OFF_KIND] = Facts.KIND_RING), ErrorKind.CORRUPT, true),
                new Trick("rings that overlap", sealedPage(p -> System.arraycopy(p, Facts.BLOCK0, p, Facts.BLOCK1, 8)),
                        ErrorKind.CORRUPT, true),
                new Trick("no ring at all", sealedPage(p -> {
                    Arrays.fill(p, Facts.BLOCK0 + 8, Facts.BLOCK0 + 16, (byte) 0);
                    Arrays.fill(p, Facts.BLOCK1 + 8, Facts.BLOCK1 + 16, (byte) 0);
                }), ErrorKind.CORRUPT, true),
                new Trick("positions that cannot be", sealedPage(p -> p[Facts.BLOCK0 + 0x80] = 3), ErrorKind.CORRUPT, true),
                new Trick("positions of the other ring", sealedPage(p -> p[Facts.BLOCK1 + 0x101] = 0x40), ErrorKind.CORRUPT, true));
    }

    private List<Trick> tricksWithMessages() {
        int fine = memory(BUS_SIZE, ALL, page(p -> {}));
        byte[] refusal = BusHandshake.encode(BusHandshake.Type.REFUSE, ErrorKind.NO_SPACE, 0);
        byte[] other = BusHandshake.encode(BusHandshake.Type.WELCOME, null, BUS_SIZE);
        other[0x0C] = 2;
        return List.of(
                new Trick("no descriptor", welcome(BUS_SIZE), ErrorKind.CORRUPT, false),
                new Trick("two descriptors", welcome(BUS_SIZE, fine, fine), ErrorKind.CORRUPT, false),
                new Trick("a message of another type", socket -> socket.send(HandshakeTest.HELLO, fine), ErrorKind.CORRUPT, false),
                new Trick("a refusal", raw(refusal), ErrorKind.NO_SPACE, false),
                new Trick("another handshake's version", raw(other), ErrorKind.ABI_MISMATCH, false),
                new Trick("another magic", raw(new byte[64]), ErrorKind.ABI_MISMATCH, false),
                new Trick("the end in mid-message", raw(Arrays.copyOf(refusal, 33)), ErrorKind.PEER_DEAD, false),
                new Trick("the end before any message", raw(new byte[0]), ErrorKind.NOT_FOUND, false),
                new Trick("silence", socket -> {}, ErrorKind.TIMED_OUT, false),
                new Trick("a message that never goes on", socket -> socket.send(Arrays.copyOf(refusal, 5)), ErrorKind.TIMED_OUT, false));
    }

    @Test
    void whatAListenerSendsIsDistrusted() throws Exception {
        List<Trick> tricks = new ArrayList<>(tricksWithMemory());
        tricks.addAll(tricksWithMessages());
        // Whatever the first of everything opens.
        play(new Trick("warm-up", welcome(BUS_SIZE), ErrorKind.CORRUPT, false));
        for (Trick trick : tricks) {
            int before = RawSocket.openDescriptors();
            play(trick);
            BusTest.eventually(() -> RawSocket.openDescriptors() <= before);
        }
        opened.forEach(Files::close);
    }

    private static void play(Trick trick) throws Exception {
        boolean again = trick.kind() == ErrorKind.TIMED_OUT || trick.kind() == ErrorKind.NOT_FOUND;
        Duration timeout = again ? Duration.ofMillis(200) : LONG;
        try (Villain villain = Villain.who(trick.responds())) {
            RamwayException e = assertThrows(RamwayException.class,
                    () -> Bus.connect(villain.path(), ConnectOptions.DEFAULT.withTimeout(timeout)).close(), trick.what());
            // Who is hung up on tries again until the deadline, which may come in the middle of a try.
            boolean late = trick.kind() == ErrorKind.NOT_FOUND && e.kind() == ErrorKind.TIMED_OUT;
            assertTrue(e.kind() == trick.kind() || late, trick.what() + ": " + e.getMessage());
            if (trick.acked()) {
                Integer acked = villain.acks().poll(LONG.toSeconds(), TimeUnit.SECONDS);
                assertEquals(trick.kind().number(), acked, trick.what());
            }
        }
    }

    @Test
    void anHonestPageIsTaken() throws Exception {
        int fine = RawSocket.memory(BUS_SIZE, ALL, page(p -> {}));
        try (Villain honest = Villain.who(welcome(BUS_SIZE, fine)); Bus bus = Bus.connect(honest.path())) {
            assertEquals(0, honest.acks().poll(LONG.toSeconds(), TimeUnit.SECONDS));
            // It closes at once: what it sent, which is nothing, comes first.
            assertThrows(PeerDeadException.class, () -> bus.receiver().recv(LONG));
        }
        Files.close(fine);
    }
}
