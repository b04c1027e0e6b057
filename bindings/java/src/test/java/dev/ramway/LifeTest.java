package dev.ramway;

import static dev.ramway.Rings.half;
import static dev.ramway.Rings.hold;
import static dev.ramway.Rings.inode;
import static dev.ramway.Rings.put;
import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static dev.ramway.Rings.word;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The life of a name, row by row of the call table in section 11 of docs/ABI.md. */
class LifeTest {
    /** The states of the table's columns; each makes the name, and gives what keeps it in use, or null. */
    private enum Column {
        NO_FILE {
            @Override
            Attachment make(Path name) {
                return null;
            }
        },
        IN_USE {
            @Override
            Attachment make(Path name) {
                return hold(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(8192), Role.PRODUCER);
            }
        },
        STALE_AND_EMPTY {
            @Override
            Attachment make(Path name) {
                Peer peer = Rings.holder(name, Role.PRODUCER);
                peer.kill();
                return null;
            }
        },
        STALE_UNDELIVERED {
            @Override
            Attachment make(Path name) {
                Peer peer = Rings.holder(name, Role.PRODUCER);
                for (int i = 0; i < 3; i++) {
                    peer.tell("put");
                    peer.expect("done");
                }
                peer.kill();
                return null;
            }
        },
        STALE_UNSEEN_CLOSE {
            @Override
            Attachment make(Path name) {
                Attachment a = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
                half(a, Facts.OFF_PRODUCER + Facts.OFF_ROLE_EPOCH, 1);
                half(a, Facts.OFF_PRODUCER + Facts.OFF_ROLE_FLAGS, Facts.ROLE_CLOSED);
                a.release();
                return null;
            }
        },
        STALE_PERSISTENT {
            @Override
            Attachment make(Path name) {
                hold(name, OpenMode.CREATE, Options.DEFAULT.withPersistent(true), Role.PRODUCER).release();
                return null;
            }
        },
        OF_ANOTHER_BOOT {
            @Override
            Attachment make(Path name) {
                Attachment a = hold(name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER);
                put(a, 100);
                a.release();
                try (RandomAccessFile file = new RandomAccessFile(name.toFile(), "rw")) {
                    file.seek(Facts.OFF_BOOT_ID);
                    file.write("0123456789abcdef".getBytes());
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
                return null;
            }
        };

        abstract Attachment make(Path name);
    }

    /** What a call does in each column: "makes", "attaches", or the name of the error. */
    private record Call(String what, OpenMode how, boolean discard, String... results) {}

    private static final List<Call> CALLS = List.of(
            new Call("create", OpenMode.CREATE, false, "makes", "ALREADY_EXISTS", "makes", "ALREADY_EXISTS", "ALREADY_EXISTS",
                    "ALREADY_EXISTS", "makes"),
            new Call("create, discarding", OpenMode.CREATE, true, "makes", "ALREADY_EXISTS", "makes", "makes", "makes", "makes", "makes"),
            new Call("open", OpenMode.OPEN, false, "NOT_FOUND", "attaches", "attaches", "attaches", "attaches", "attaches", "NOT_FOUND"),
            // Discarding is create's alone.
            new Call("openOrCreate", OpenMode.OPEN_OR_CREATE, false, "makes", "attaches", "attaches", "attaches", "attaches", "attaches",
                    "makes"));

    @TestFactory
    List<DynamicTest> callTable() {
        List<DynamicTest> tests = new ArrayList<>();
        for (Call call : CALLS) {
            for (Column column : Column.values()) {
                tests.add(DynamicTest.dynamicTest(call.what + " " + column, () -> cell(call, column)));
            }
        }
        return tests;
    }

    private static void cell(Call call, Column column) {
        Path name = Scratch.directory("life").resolve("ring");
        Options options = Options.DEFAULT.withDiscard(call.discard);
        Attachment holder = column.make(name);
        Object before = inode(name);
        String result = call.results[column.ordinal()];
        switch (result) {
            case "makes" -> {
                Attachment a = hold(name, call.how, options, Role.CONSUMER);
                assertNotEquals(before, inode(name), "it is the old one");
                assertEquals(0, word(a, Facts.OFF_TAIL) | word(a, Facts.OFF_HEAD) | word(a, Facts.OFF_PRODUCER + Facts.OFF_ROLE_EPOCH));
                a.release();
            }
            case "attaches" -> {
                Attachment a = hold(name, call.how, options, Role.CONSUMER);
                assertEquals(before, inode(name), "it is not the one that was there");
                // The same role once more is Busy, for every call that attaches.
                refused(ErrorKind.BUSY, name, call.how, options, Role.CONSUMER);
                a.release();
            }
            default -> {
                says(refused(ErrorKind.valueOf(result), name, call.how, options, Role.CONSUMER), name);
                assertEquals(before, inode(name), "it was touched");
            }
        }
        if (holder != null) {
            holder.release();
        }
    }

    @Test
    void whatIsThereIsSaid() {
        Path dir = Scratch.directory("said");
        String[] texts = {null, "a live ring", null, "3 undelivered messages (15 bytes)", "end of a stream", "persistent", null};
        for (Column column : Column.values()) {
            String text = texts[column.ordinal()];
            Path name = dir.resolve(column.name());
            Attachment holder = text == null ? null : column.make(name);
            if (text != null) {
                says(refused(ErrorKind.ALREADY_EXISTS, name, OpenMode.CREATE, Options.DEFAULT, Role.CONSUMER),
                        "creating the ring '" + name + "': ", text);
            }
            if (holder != null) {
                holder.release();
            }
        }
        Path name = dir.resolve("boot");
        Column.OF_ANOTHER_BOOT.make(name);
        says(refused(ErrorKind.NOT_FOUND, name, OpenMode.OPEN, Options.DEFAULT, Role.CONSUMER), "another boot");
    }

    @Test
    void damageIsSaidAndNotCounted() {
        Path dir = Scratch.directory("damage");
        long[][] damages = {{7, 7}, {0, 32}, {4096, 0}, {48, 0}};
        String[] texts = {"contradict each other", "contradict each other", "the frame at 0 claims", "the frame at 32 claims"};
        for (int i = 0; i < damages.length; i++) {
            Path name = dir.resolve("ring" + i);
            Attachment a = hold(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(4096), Role.PRODUCER);
            word(a, Facts.OFF_TAIL, damages[i][0]);
            word(a, Facts.OFF_HEAD, damages[i][1]);
            a.data.set(java.lang.foreign.ValueLayout.JAVA_INT, 0, i == 2 ? -1 : 10);
            a.data.set(java.lang.foreign.ValueLayout.JAVA_INT, 32, 100);
            a.release();
            says(refused(ErrorKind.ALREADY_EXISTS, name, OpenMode.CREATE, Options.DEFAULT, Role.PRODUCER), "it is damaged: ", texts[i]);
        }
    }
}
