package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** docs/ABI.md is what this port was written from, so what it shows is compared with what the code writes. */
class AbiPageTest {
    private static final List<String> PAGE = page();

    private static List<String> page() {
        try {
            return Files.readAllLines(Path.of("../../docs/ABI.md"));
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    /** A block that is fenced as ```hex TITLE. */
    private record Block(String title, List<String> lines) {
        /** The number after a word of the title. */
        int number(String word) {
            return Arrays.stream(title.split(" ")).filter(w -> w.startsWith(word + "=")).mapToInt(w ->
                    Integer.parseInt(w.substring(word.length() + 1))).findFirst().orElseThrow();
        }
    }

    private static List<Block> blocks(String title) {
        List<Block> found = new ArrayList<>();
        for (int i = 0; i < PAGE.size(); i++) {
            if (PAGE.get(i).startsWith("```hex " + title)) {
                int end = i + PAGE.subList(i, PAGE.size()).indexOf("```");
                found.add(new Block(PAGE.get(i).substring("```hex ".length()), PAGE.subList(i + 1, end)));
            }
        }
        assertFalse(found.isEmpty(), title);
        return found;
    }

    /** Compares `OFFSET  xx xx ...` with the bytes there; a byte that is not hexadecimal may be anything. */
    private static void compare(String line, byte[] bytes, int base) {
        String[] words = line.trim().split("\\s+");
        int at = base + Integer.parseInt(words[0], 16);
        for (int i = 1; i < words.length; i++) {
            if (words[i].matches("[0-9a-f]{2}")) {
                assertEquals(words[i], String.format("%02x", bytes[at + i - 1]), "byte " + (at + i - 1) + " of '" + line + "'");
            }
        }
    }

    private interface Sending {
        void send(Sender tx) throws Exception;
    }

    /** Compares blocks with the file of a ring that begins at their start and was sent what is sent. */
    private static Stream<DynamicTest> frames(String title, Sending sending) {
        return blocks(title).stream().map(block -> DynamicTest.dynamicTest(block.title, () -> {
            String name = Scratch.name("frames");
            try (Sender tx = Sender.create(name, Options.DEFAULT.withCapacity(4096).withAlign(block.number("align")).withDiscard(true))) {
                if (block.number("start") != 0) {
                    assertTrue(tx.trySend(1, new byte[block.number("start") - Facts.FRAME_HEADER]));
                    try (Receiver rx = Receiver.open(name); Message m = rx.tryRecv()) {
                        assertEquals(block.number("start") - Facts.FRAME_HEADER, m.length());
                    }
                }
                sending.send(tx);
                byte[] file = Files.readAllBytes(Scratch.path(name));
                assertEquals(8192, file.length);
                for (String line : block.lines) {
                    if (line.startsWith("data ")) {
                        compare(line.substring(5), file, 4096);
                    } else {
                        assertTrue(line.startsWith("tail "), line);
                        long tail = ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).getLong(Facts.BLOCK0 + Facts.OFF_TAIL);
                        assertEquals(Long.parseLong(line.substring(5).trim(), 16), tail);
                    }
                }
            }
        }));
    }

    @TestFactory
    Stream<DynamicTest> framesAreAsShown() {
        return frames("align=", tx -> {
            assertTrue(tx.trySend(7, 0x1122334455667788L, "hello".getBytes()));
            assertTrue(tx.trySend(8, new byte[0]));
        });
    }

    @Test
    void theHeaderPageIsAsShown() throws IOException {
        Path name = Scratch.directory("header").resolve("ring");
        Attachment a = Rings.hold(name, OpenMode.CREATE, Options.DEFAULT.withCapacity(4096), Role.PRODUCER);
        byte[] file = Files.readAllBytes(name);
        for (Block block : blocks("header")) {
            block.lines.forEach(line -> compare(line, file, 0));
        }
        a.release();
    }

    @Test
    void helloIsAsShown() {
        byte[] hello = BusHandshake.encode(BusHandshake.Type.HELLO, null, 0);
        for (Block block : blocks("hello")) {
            block.lines.forEach(line -> compare(line, hello, 0));
        }
    }

    @Test
    void errorsAreFoundByTheirNumbers() {
        for (ErrorKind kind : ErrorKind.values()) {
            assertEquals(kind.ordinal() + 1, kind.number());
            assertEquals(kind, ErrorKind.of(kind.number()));
        }
    }
}
