package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What a sender and a receiver stand on: a named ring, mapped. */
class AttachmentTest {
    private static Attachment open(String name, OpenMode how, Options options, Role role) {
        return Attachment.named(name, how, options, role);
    }

    private static RamwayException refused(ErrorKind kind, Runnable call) {
        RamwayException e = assertThrows(RamwayException.class, call::run);
        assertEquals(kind, e.kind(), e.getMessage());
        return e;
    }

    @Test
    void bothHalvesOfTheMirrorAreTheSameBytes() {
        String name = Scratch.name("mirror");
        Attachment tx = open(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(5000), Role.PRODUCER);
        Attachment rx = open(name, OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER);
        assertEquals(8192, tx.capacity);
        assertEquals(16384, rx.data.byteSize());
        for (long at = 0; at < tx.capacity; at += 8) {
            tx.data.set(ValueLayout.JAVA_LONG, at < 4096 ? at : at + tx.capacity, at * 0x9E3779B97F4A7C15L);
        }
        for (long at = 0; at < tx.capacity; at += 8) {
            assertEquals(at * 0x9E3779B97F4A7C15L, rx.data.get(ValueLayout.JAVA_LONG, at));
            assertEquals(at * 0x9E3779B97F4A7C15L, rx.data.get(ValueLayout.JAVA_LONG, at + rx.capacity));
        }
        assertTrue(rx.data.isReadOnly(), "a receiver cannot write");
        assertThrows(IllegalArgumentException.class, () -> rx.data.set(ValueLayout.JAVA_LONG, 0, 1));
        assertTrue(tx.link.peerAlive(tx.role));
        rx.release();
        assertFalse(tx.link.peerAlive(tx.role));
        tx.release();
        assertFalse(Files.exists(Scratch.path(name)), "the last one out removes the name");
    }

    @Test
    void aRoleIsHeldOnce() {
        String name = Scratch.name("busy");
        Attachment tx = open(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
        RamwayException e = refused(ErrorKind.BUSY, () -> open(name, OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER));
        assertEquals("opening the ring '" + name + "': the ring has a sender already", e.getMessage());
        refused(ErrorKind.ALREADY_EXISTS, () -> open(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER));
        tx.release();
        refused(ErrorKind.NOT_FOUND, () -> open(name, OpenMode.OPEN, Options.DEFAULT, Role.PRODUCER));
    }

    @Test
    void anotherProcessReadsWhatThisOneWroteAndIsMissedWhenItIsKilled() {
        String name = Scratch.name("process");
        Attachment tx = open(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(1 << 16), Role.PRODUCER);
        byte[] bytes = "over the end and round".getBytes();
        for (int i = 0; i < bytes.length; i++) {
            tx.data.set(ValueLayout.JAVA_BYTE, tx.capacity - 4 + i, bytes[i]);
        }
        try (Peer peer = Peer.start("AttachmentTest.reader", name, Integer.toString(bytes.length))) {
            peer.expect(new String(bytes));
            assertTrue(tx.link.peerAlive(tx.role));
            // A stopped process lives.
            peer.signal("STOP");
            assertTrue(tx.link.peerAlive(tx.role));
            peer.kill();
            assertFalse(tx.link.peerAlive(tx.role));
        }
        // Its role is free.
        open(name, OpenMode.OPEN, Options.DEFAULT.withTimeout(Duration.ofSeconds(5)), Role.CONSUMER).release();
        tx.release();
        assertFalse(Files.exists(Scratch.path(name)));
    }

    static void reader(Peer.Inside me, String[] args) {
        Attachment rx = open(args[0], OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER);
        byte[] bytes = rx.data.asSlice(rx.capacity - 4, Integer.parseInt(args[1])).toArray(ValueLayout.JAVA_BYTE);
        me.say(new String(bytes));
        me.hear();
    }

    @Test
    void theHeaderPageIsTheOneOfTheFormat() throws Exception {
        String name = Scratch.name("header");
        Attachment tx = open(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(4096).withAlign(64), Role.PRODUCER);
        byte[] page = java.util.Arrays.copyOf(Files.readAllBytes(Scratch.path(name)), 4096);
        assertArrayEquals(page, SegmentMapping.snapshot(tx.header));
        SegmentHeader header = SegmentHeader.check(page, 8192);
        assertEquals(new BlockGeometry(4096, 4096, 0, 64), header.blocks()[0]);
        assertEquals(48, tx.header.get(ValueLayout.JAVA_LONG, tx.block + Facts.OFF_TAIL));
        tx.release();
    }
}
