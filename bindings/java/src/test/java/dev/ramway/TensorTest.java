package dev.ramway;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Collections;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Tensors as they lie in a payload, without a ring. */
class TensorTest {
    /** A well-formed frame, of zeros. */
    static byte[] frame(ElementType type, long... shape) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment payload = arena.allocate(Tensor.room(type, shape, Integer.MAX_VALUE), 64);
            long offset = Tensor.writeHeader(payload, type, shape);
            return payload.asSlice(0, offset + Tensor.length(type, shape)).toArray(ValueLayout.JAVA_BYTE);
        }
    }

    private static RamwayException refused(byte[] payload) {
        RamwayException e = assertThrows(RamwayException.class, () -> Tensor.parse(MemorySegment.ofArray(payload)));
        assertEquals(ErrorKind.INVALID_ARGUMENT, e.kind());
        assertTrue(e.getMessage().startsWith("not a tensor frame: "), e.getMessage());
        return e;
    }

    @Test
    void theTypesAreThoseOfTheFormatsPage() throws Exception {
        String page = java.nio.file.Files.readString(HandshakeTest.Repository.file("docs/ABI.md"));
        String table = page.substring(page.indexOf("| element types | code | bits |"));
        table = table.substring(0, table.indexOf("\n\n"));
        int found = 0;
        for (String row : table.lines().skip(2).toList()) {
            String[] cells = row.split("\\|");
            // A name may say in brackets what it is made of.
            String[] names = cells[1].replaceAll("\\([^)]*\\)", "").trim().split(" *, *");
            String[] bits = cells[3].trim().split(" *, *");
            for (int i = 0; i < names.length; i++) {
                ElementType type = ElementType.of(Integer.parseInt(cells[2].trim()), Integer.parseInt(bits[i]));
                assertEquals(names[i], type.formatName());
                assertEquals(type, ElementType.values()[found++], "the order");
                assertEquals(Integer.parseInt(bits[i]) / 8, type.size());
            }
        }
        assertEquals(ElementType.values().length, found);
    }

    @Test
    void everyTypeAndShapeComesOutAsItWentIn() {
        for (ElementType type : ElementType.values()) {
            for (long[] shape : new long[][] {{}, {0}, {3}, {2, 3}, {5, 0, 7}, {1, 2, 3, 4, 5}}) {
                byte[] payload = frame(type, shape);
                Tensor tensor = Tensor.parse(MemorySegment.ofArray(payload));
                assertEquals(type, tensor.type());
                assertArrayEquals(shape, tensor.shape());
                assertEquals(Arrays.stream(shape).reduce(1, (a, b) -> a * b) * type.size(), tensor.data().byteSize());
            }
        }
    }

    @Test
    void theElementsLieOnAMultipleOf64WhereverThePayloadBegins() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment room = arena.allocate(4096, 4096);
            for (int start = 0; start < 128; start += 16) {
                for (int dimensions = 0; dimensions < 5; dimensions++) {
                    long[] shape = new long[dimensions];
                    Arrays.fill(shape, 2);
                    MemorySegment payload = room.asSlice(start, Tensor.room(ElementType.FLOAT64, shape, 4000));
                    payload.fill((byte) 0xFF);
                    long offset = Tensor.writeHeader(payload, ElementType.FLOAT64, shape);
                    assertEquals(0, (start + offset) % 64);
                    assertTrue(offset < 8 + 8 * dimensions + 64, "the smallest");
                    Tensor.parse(payload.asSlice(0, offset + (8L << dimensions)));
                }
            }
        }
    }

    @Test
    void whatIsCutOffOrChangedIsNone() {
        byte[] good = frame(ElementType.INT32, 2, 3);
        int header = good.length - 24;
        for (int n = 0; n < good.length; n++) {
            refused(Arrays.copyOf(good, n));
        }
        assertEquals("not a tensor frame: 25 bytes are not int32 of the shape [2, 3]",
                refused(Arrays.copyOf(good, good.length + 1)).getMessage());
        for (int i = 0; i < header; i++) {
            for (int bit = 0; bit < 8; bit++) {
                byte[] bad = good.clone();
                bad[i] ^= (byte) (1 << bit);
                if (i == 0 && (bad[0] == 1 || bad[0] == 2)) {
                    // uint32 and float32 are tensors too.
                    Tensor.parse(MemorySegment.ofArray(bad));
                    continue;
                }
                refused(bad);
            }
        }
    }

    @Test
    void whatNobodyCanCountIsRefused() {
        assertEquals(0, Tensor.length(ElementType.INT8, new long[] {0, Long.MAX_VALUE}));
        assertEquals(-1, Tensor.length(ElementType.INT16, new long[] {0, Long.MAX_VALUE}), "also where another dimension is 0");
        assertEquals(-1, Tensor.length(ElementType.INT8, new long[] {-1}));
        assertEquals(-1, Tensor.length(ElementType.INT8, new long[] {1L << 32, 1L << 31}));
        assertEquals(1L << 62, Tensor.length(ElementType.INT8, new long[] {1L << 32, 1L << 30}));
        long[] ones = new long[33];
        Arrays.fill(ones, 1);
        assertKind(ErrorKind.INVALID_ARGUMENT, ElementType.UINT8, ones);
        assertKind(ErrorKind.INVALID_ARGUMENT, ElementType.UINT8, 1L << 32, 1L << 32, 0);
        for (long n : new long[] {4096, 1L << 31, 1L << 62, Long.MAX_VALUE}) {
            assertKind(ErrorKind.TOO_LARGE, ElementType.UINT8, n);
        }
        byte[] payload = frame(ElementType.UINT8, Collections.nCopies(32, 1L).stream().mapToLong(n -> n).toArray());
        assertEquals(32, Tensor.parse(MemorySegment.ofArray(payload)).shape().length);
    }

    private static void assertKind(ErrorKind kind, ElementType type, long... shape) {
        assertEquals(kind, assertThrows(RamwayException.class, () -> Tensor.room(type, shape, 4080)).kind());
    }

    @Test
    void noBytesMakeTheReaderStumble() {
        Random random = new Random(11);
        byte[][] seeds = {frame(ElementType.FLOAT32, 2, 3), frame(ElementType.BOOL), frame(ElementType.COMPLEX128, 1, 0, 4)};
        int tensors = 0;
        for (int round = 0; round < 50_000; round++) {
            byte[] payload = seeds[round % seeds.length].clone();
            for (int i = random.nextInt(4); i > 0; i--) {
                payload[random.nextInt(payload.length)] ^= (byte) (1 << random.nextInt(8));
            }
            try {
                Tensor tensor = Tensor.parse(MemorySegment.ofArray(payload));
                assertEquals(Tensor.length(tensor.type(), tensor.shape()), tensor.data().byteSize());
                assertTrue(payload.length <= Tensor.room(tensor.type(), tensor.shape(), Integer.MAX_VALUE));
                tensors++;
            } catch (RamwayException e) {
                assertEquals(ErrorKind.INVALID_ARGUMENT, e.kind());
            }
        }
        assertTrue(tensors > 1000 && tensors < 49_000, "both happen");
    }
}
