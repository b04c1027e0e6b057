package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.function.Executable;

/** Named rings whose words are set directly: what a sender and a receiver do with them is tested elsewhere. */
final class Rings {
    private Rings() {}

    static Attachment hold(Path name, OpenMode how, Options options, Role role) {
        return Attachment.named(name.toString(), how, options, role);
    }

    /** The error of an attempt that must fail. */
    static RamwayException refused(ErrorKind kind, Path name, OpenMode how, Options options, Role role) {
        return refused(kind, () -> hold(name, how, options, role).release());
    }

    static RamwayException refused(ErrorKind kind, Executable call) {
        RamwayException e = assertThrows(RamwayException.class, call);
        assertEquals(kind, e.kind(), e.getMessage());
        return e;
    }

    static void says(RamwayException e, Object... texts) {
        for (Object text : texts) {
            assertTrue(e.getMessage().contains(text.toString()), e.getMessage());
        }
    }

    static long word(Attachment a, int offset) {
        return a.header.get(ValueLayout.JAVA_LONG, a.block + offset);
    }

    static void word(Attachment a, int offset, long value) {
        a.header.set(ValueLayout.JAVA_LONG, a.block + offset, value);
    }

    static void half(Attachment a, int offset, int value) {
        a.header.set(ValueLayout.JAVA_INT, a.block + offset, value);
    }

    /** Publishes a message of n bytes. */
    static void put(Attachment a, int n) {
        long tail = word(a, Facts.OFF_TAIL);
        a.data.set(ValueLayout.JAVA_INT, tail & (a.capacity - 1), n);
        word(a, Facts.OFF_TAIL, tail + Layout.frameSize(n, a.align - 1));
    }

    /** Releases everything. */
    static void drain(Attachment a) {
        word(a, Facts.OFF_HEAD, word(a, Facts.OFF_TAIL));
    }

    /** What is in a directory, dot-names too. */
    static List<String> names(Path dir) {
        try (Stream<Path> all = Files.list(dir)) {
            return all.map(path -> path.getFileName().toString()).sorted().toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    static void expectNames(Path dir, String... names) {
        assertEquals(List.of(names), names(dir));
    }

    /** What makes a file the same file; null if there is none. */
    static Object inode(Path path) {
        try {
            return Files.exists(path) ? Files.readAttributes(path, "unix:ino").get("ino") : null;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** In another process: holds a role of the ring args[0], puts a message at each word, and lets go at another. */
    static void holder(Peer.Inside me, String[] args) {
        Attachment a = hold(Path.of(args[0]), OpenMode.OPEN_OR_CREATE, Options.DEFAULT.withCapacity(4096), Role.valueOf(args[1]));
        me.say("ready");
        while ("put".equals(me.hear())) {
            put(a, 5);
            me.say("done");
        }
        a.release();
    }

    static Peer holder(Path name, Role role) {
        Peer peer = Peer.start("Rings.holder", name.toString(), role.name());
        peer.expect("ready");
        return peer;
    }
}
