package dev.ramway;

import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** What is there, what may be removed, and rings that have no name. */
class SegmentsTest {
    private static final Options PAGE = Options.DEFAULT.withCapacity(4096);

    private static Segments.Found only(Path dir, String name) {
        return Segments.ls(dir).stream().filter(each -> each.name().equals(name)).findFirst().orElseThrow();
    }

    @Test
    void whatIsThere() throws Exception {
        Path dir = Scratch.directory("ls");
        assertEquals(List.of(), Segments.ls(dir));
        assertEquals(List.of(), Segments.ls(dir.resolve("missing")));
        Files.writeString(dir.resolve("notes"), "somebody's");
        try (Sender tx = Sender.create(dir + "/ring", PAGE.withAlign(64)); Region region = Region.create(dir + "/region", 100);
                Listener listener = Listener.bind(dir + "/bell")) {
            tx.send(1, new byte[10]);
            tx.send(1, new byte[20]);
            assertEquals(List.of("bell.lock", "notes", "region", "ring"),
                    Segments.ls(dir).stream().map(Segments.Found::name).toList());
            Segments.Found ring = only(dir, "ring");
            assertEquals(new Segments.Found("ring", dir.resolve("ring"), Segments.Kind.RING, true, false, false, Files.size(ring.path()),
                    4096, 64, 128, OptionalLong.of(2), true, false, null, null), ring);
            assertEquals(100, only(dir, "region").capacity());
            assertEquals(Segments.Kind.REGION, only(dir, "region").kind());
            assertEquals(Segments.Kind.LISTENER, only(dir, "bell.lock").kind());
            assertTrue(only(dir, "bell.lock").producerHeld());
            assertEquals(ErrorKind.ABI_MISMATCH, only(dir, "notes").error().kind());
            refused(ErrorKind.BUSY, () -> Segments.unlink(dir + "/ring"));
            refused(ErrorKind.BUSY, () -> Segments.unlink(dir + "/region"));
            assertEquals(region.length(), only(dir, "region").capacity());
            assertTrue(listener.path().endsWith("bell"));
        }
        assertFalse(only(dir, "ring").inUse());
        assertTrue(only(dir, "ring").stale());
        String before = Segments.clean(dir, false, true).toString();
        assertEquals(before, Segments.clean(dir, false, false).toString());
        assertEquals(List.of(new Segments.Cleaned("notes", Segments.Outcome.NOT_RAMWAY, "not Ramway's"),
                new Segments.Cleaned("ring", Segments.Outcome.KEPT, "it holds 2 undelivered messages (30 bytes)")),
                Segments.clean(dir, false, false));
        Segments.unlink(dir + "/ring");
        assertTrue(Files.notExists(dir.resolve("ring")));
        refused(ErrorKind.NOT_FOUND, () -> Segments.unlink(dir + "/ring"));
        says(refused(ErrorKind.ABI_MISMATCH, () -> Segments.unlink(dir + "/notes")), "notes");
        refused(ErrorKind.INVALID_ARGUMENT, () -> Segments.unlink(Scratch.DIR.toString()));
        assertEquals("somebody's", Files.readString(dir.resolve("notes")));
        Region.create(dir + "/kept", 10, Options.DEFAULT.withPersistent(true)).close();
        assertTrue(only(dir, "kept").persistent());
        assertEquals(Segments.Outcome.KEPT, Segments.clean(dir, false, false).get(0).outcome());
        assertEquals(new Segments.Cleaned("kept", Segments.Outcome.REMOVED, ""), Segments.clean(dir, true, false).get(0));
        assertEquals(List.of("notes"), Rings.names(dir));
    }

    @Test
    void aTopicsSubscribersAreListed() throws Exception {
        Path dir = Files.createDirectories(Scratch.DIR.resolve("segments-topic"));
        String live = dir + "/live";
        try (Publisher pub = Topic.create(live).capacity(8192).align(64).slots(4).mayEject(true).publisher();
                Subscriber _ = Topic.open(live).latest().label("display").subscriber();
                Subscriber slow = Topic.open(live).label("slow").subscriber();
                Publisher other = Topic.create(dir + "/kept").publisher()) {
            Topic.open(dir + "/kept").label("recorder").durable(true).subscriber().close();
            other.send(1, new byte[5]);
            other.send(1, new byte[6]);
            pub.send(1, new byte[10]);
            pub.send(1, new byte[20]);
            slow.recv().close();
            // As the publisher says.
            Segments.Found topic = only(dir, "live");
            assertEquals(new Segments.TopicState(2, 4, false, true, pub.subscribers()), topic.topic());
            List<SubscriberInfo> found = topic.topic().subscribers();
            assertEquals(List.of("display", "slow"), found.stream().map(SubscriberInfo::label).sorted().toList());
            SubscriberInfo one = found.stream().filter(each -> each.label().equals("slow")).findFirst().orElseThrow();
            assertEquals(List.of(Policy.RELIABLE, true, new Lag(64, 1)), List.of(one.policy(), one.alive(), one.lag()));
            assertEquals(8192, topic.capacity());
        }
        // Of one that nobody uses, what a durable subscriber is still to receive.
        Segments.TopicState kept = only(dir, "kept").topic();
        assertEquals(List.of(2L, false, false), List.of(kept.seq(), kept.lossyOnly(), kept.mayEject()));
        assertEquals(List.of(new SubscriberInfo(0, 1, Policy.RELIABLE, "recorder", true, false, false, new Lag(128, 2), 0, Duration.ZERO)),
                kept.subscribers());
        Segments.unlink(dir + "/kept");
    }

    /** In another process: what a user without a name needs. */
    static void receive(Peer.Inside me, String[] args) throws Exception {
        try (Receiver rx = Receiver.fromFd(0)) {
            for (Message m : rx.messages()) {
                System.out.println(m.tag());
            }
            System.out.println("closed");
        }
    }

    @Test
    void aChildInheritsARing() throws Exception {
        try (Ring.Unnamed ring = Ring.unnamed(PAGE)) {
            Process child = new ProcessBuilder(Peer.command("SegmentsTest.receive")).redirectInput(ring.file())
                    .redirectError(ProcessBuilder.Redirect.INHERIT).start();
            try (Sender tx = Sender.fromFd(ring.fd())) {
                for (int i = 0; i < 200; i++) {
                    tx.send(1, i, new byte[100]);
                }
                tx.waitForPeer(Scratch.LONG);
            }
            try (BufferedReader said = new BufferedReader(new InputStreamReader(child.getInputStream()))) {
                List<String> lines = said.lines().collect(Collectors.toList());
                assertEquals(201, lines.size());
                assertEquals("closed", lines.get(200));
            }
            assertEquals(0, child.waitFor());
        }
    }

    @Test
    void aRingWithoutANameIsLikeOneWithAName() throws Exception {
        try (Ring.Unnamed ring = Ring.unnamed(PAGE); Sender tx = Sender.fromFd(ring.fd())) {
            refused(ErrorKind.BUSY, () -> Sender.fromFd(ring.fd()));
            refused(ErrorKind.INVALID_ARGUMENT, () -> Receiver.fromFd(ring.fd(), PAGE.withCapacity(8192)));
            refused(ErrorKind.INVALID_ARGUMENT, () -> Receiver.fromFd(ring.fd(), PAGE.withAlign(64)));
            Process child = new ProcessBuilder(Peer.command("SegmentsTest.receive")).redirectInput(ring.file())
                    .redirectError(ProcessBuilder.Redirect.INHERIT).start();
            assertEquals(1, tx.waitForPeer(Scratch.LONG));
            child.destroyForcibly().waitFor();
            says(refused(ErrorKind.PEER_DEAD, () -> {
                while (true) {
                    tx.send(1, new byte[1000]);
                }
            }), "descriptor");
            // A successor goes on.
            try (Receiver rx = Receiver.fromFd(ring.fd(), PAGE); Message m = rx.recv()) {
                assertEquals(1000, m.length());
                assertEquals(2, rx.epoch());
            }
            refused(ErrorKind.CLOSED, () -> {
                while (true) {
                    tx.send(1, new byte[1000]);
                }
            });
        }
        refused(ErrorKind.INVALID_ARGUMENT, () -> Receiver.fromFd(0));
        Path named = Scratch.path(Scratch.name("named"));
        try (Sender other = Sender.create(named.toString(), PAGE); var file = new java.io.RandomAccessFile(named.toFile(), "r")) {
            assertTrue(other.capacity() == 4096 && file.length() > 0);
            String fd = Files.list(Path.of("/proc/self/fd")).filter(each -> leadsTo(each, named)).findFirst().orElseThrow()
                    .getFileName().toString();
            says(refused(ErrorKind.INVALID_ARGUMENT, () -> Receiver.fromFd(Integer.parseInt(fd))), "open the ring by its name");
        }
        refused(ErrorKind.OS, () -> Receiver.fromFd(-1));
    }

    private static boolean leadsTo(Path link, Path file) {
        try {
            return Files.readSymbolicLink(link).equals(file);
        } catch (java.io.IOException e) {
            return false;
        }
    }
}
