package dev.ramway;

import static dev.ramway.Rings.refused;
import static dev.ramway.Rings.says;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Every row of section 16 of docs/ABI.md that concerns the header, and their order. */
class HeaderTest {
    private static final long SIZE = 12_288;

    /** A change of the header page of a ring of 8192 bytes in a segment of 12288, and what comes of it; null: nothing. */
    private record Row(String what, Consumer<ByteBuffer> change, ErrorKind kind) {}

    private static byte[] page(SegmentSpec spec, Consumer<ByteBuffer> change) {
        byte[] page = SegmentHeader.format(spec);
        change.accept(ByteBuffer.wrap(page).order(ByteOrder.LITTLE_ENDIAN));
        return page;
    }

    private static Consumer<ByteBuffer> int32(int at, int value) {
        return page -> page.putInt(at, value);
    }

    private static Consumer<ByteBuffer> int64(int at, long value) {
        return page -> page.putLong(at, value);
    }

    private static List<Row> rows() {
        Consumer<ByteBuffer> version = page -> page.putShort(Facts.OFF_VERSION_MAJOR, (short) 2);
        Consumer<ByteBuffer> magic = page -> page.put(3, (byte) 0);
        ErrorKind abi = ErrorKind.ABI_MISMATCH;
        ErrorKind corrupt = ErrorKind.CORRUPT;
        List<Row> rows = new ArrayList<>(List.of(new Row("as made", page -> {}, null), new Row("magic", magic, abi),
                new Row("the other byte order", int32(Facts.OFF_BYTE_ORDER, Facts.BYTE_ORDER_SWAPPED), abi),
                new Row("no byte order", int32(Facts.OFF_BYTE_ORDER, 0x01020304), corrupt), new Row("version 2", version, abi),
                new Row("version 0", page -> page.putShort(Facts.OFF_VERSION_MAJOR, (short) 0), abi),
                new Row("version 65535", page -> page.putShort(Facts.OFF_VERSION_MAJOR, (short) -1), abi),
                new Row("a later minor version", page -> page.putShort(Facts.OFF_VERSION_MINOR, (short) 9), null),
                new Row("a required feature", int32(Facts.OFF_FEATURES_REQUIRED, 1 << 31), abi),
                new Row("optional features", int32(Facts.OFF_FEATURES_REQUIRED + 4, -1), null),
                new Row("kind 0", int32(Facts.OFF_KIND, 0), abi), new Row("kind 99", int32(Facts.OFF_KIND, 99), abi),
                new Row("kind 2^32 - 1", int32(Facts.OFF_KIND, -1), abi),
                new Row("unknown flags", int32(Facts.OFF_FLAGS, 0xFFFF_FFFE), null),
                // The first check that fails decides.
                new Row("magic before the byte order", magic.andThen(int32(Facts.OFF_BYTE_ORDER, 1)), abi),
                new Row("byte order before the version", version.andThen(int32(Facts.OFF_BYTE_ORDER, 1)), corrupt),
                new Row("version before the size", version.andThen(int64(Facts.OFF_SIZE, 1)), abi),
                new Row("features before the size", int32(Facts.OFF_FEATURES_REQUIRED, 1).andThen(int64(Facts.OFF_SIZE, 1)), abi),
                new Row("kind before the size", int32(Facts.OFF_KIND, 99).andThen(int64(Facts.OFF_SIZE, 1)), abi)));
        int base = Facts.BLOCK0;
        for (long size : new long[] {0, 4096, SIZE - 1, SIZE + 1, -1, Long.MIN_VALUE}) {
            rows.add(new Row("size " + size, int64(Facts.OFF_SIZE, size), corrupt));
        }
        for (long at : new long[] {0, 1, 64, 4095, 8192, SIZE, 1L << 40, -1, -4096, -8192, Long.MIN_VALUE}) {
            rows.add(new Row("data offset " + at, int64(base + Facts.OFF_DATA_OFFSET, at), corrupt));
        }
        for (long capacity : new long[] {0, 4096 + 8192, 16_384, 1L << 30, 1L << 62, Long.MIN_VALUE, -1, -4096}) {
            rows.add(new Row("capacity " + capacity, int64(base + Facts.OFF_CAPACITY, capacity), corrupt));
        }
        for (long capacity : new long[] {1, 15, 16, 2048, 4097, 8191}) {
            // Not a page: which of the two checks comes first is left open, and this is the order of section 16.
            rows.add(new Row("capacity " + capacity, int64(base + Facts.OFF_CAPACITY, capacity), abi));
        }
        for (int align : new int[] {0, 1, 8, 15, 17, 24, 8192, Integer.MIN_VALUE, -1}) {
            rows.add(new Row("alignment " + align, int32(base + Facts.OFF_ALIGN, align), corrupt));
        }
        return rows;
    }

    private static void expect(ErrorKind kind, byte[] page, long fileSize) {
        if (kind == null) {
            assertEquals(fileSize, SegmentHeader.check(page, fileSize).size());
        } else {
            refused(kind, () -> SegmentHeader.check(page, fileSize));
        }
    }

    @TestFactory
    List<DynamicTest> everyRow() {
        return rows().stream().map(row -> DynamicTest.dynamicTest(row.what,
                () -> expect(row.kind, page(SegmentSpec.ring(8192, 16, 4096), row.change), SIZE))).toList();
    }

    @Test
    void theFilesLength() {
        byte[] page = SegmentHeader.format(SegmentSpec.ring(8192, 16, 4096));
        for (long size : new long[] {0, 4095, 4096, SIZE + 1}) {
            expect(ErrorKind.CORRUPT, page, size);
        }
        expect(null, page, SIZE);
    }

    @Test
    void buses() {
        SegmentSpec spec = SegmentSpec.bus(8192, 4096, 64);
        SegmentHeader header = SegmentHeader.check(SegmentHeader.format(spec), spec.size());
        assertEquals(new BlockGeometry(4096, 8192, 0, 64), header.blocks()[0]);
        assertEquals(new BlockGeometry(12_288, 4096, 0, 64), header.blocks()[1]);
        // Neither may lie in the other.
        says(refused(ErrorKind.CORRUPT, () -> SegmentHeader.check(page(spec, int64(Facts.BLOCK1, 8192)), spec.size())), "overlap");
        // One direction may be absent, whatever else its block says.
        SegmentSpec one = SegmentSpec.bus(0, 4096, 16);
        header = SegmentHeader.check(page(one, int64(Facts.BLOCK0, 1).andThen(int32(Facts.BLOCK0 + Facts.OFF_ALIGN, 3))), one.size());
        assertEquals(BlockGeometry.NONE, header.blocks()[0]);
        assertEquals(4096, header.blocks()[1].capacity());
        refused(ErrorKind.INVALID_ARGUMENT, () -> SegmentSpec.bus(0, 0, 16));
    }

    @Test
    void regions() {
        SegmentSpec spec = SegmentSpec.region(5000, 4096);
        assertEquals(new BlockGeometry(4096, 8192, 5000, 0), SegmentHeader.check(SegmentHeader.format(spec), spec.size()).blocks()[0]);
        for (long length : new long[] {0, 8193, -1, Long.MIN_VALUE}) {
            expect(ErrorKind.CORRUPT, page(spec, int64(Facts.BLOCK0 + Facts.OFF_LEN, length)), spec.size());
        }
    }

    @Test
    void positionsAndFrames() {
        assertEquals(32, Layout.frameSize(5, 15));
        assertEquals(64, Layout.frameSize(0, 63));
        assertEquals((1L << 32) + 16, Layout.frameSize((1L << 32) - 1, 15));
        assertEquals(4080, Layout.maxMessageLength(4096));
        assertEquals(Integer.MAX_VALUE - 16, Layout.maxMessageLength(1L << 40));
        assertEquals(48, Layout.firstPosition(64));
        // Across 2^64, and never a byte more than the capacity.
        assertEquals(true, Layout.positionsAgree(4096 - 16, -16, 4096, 16));
        assertEquals(false, Layout.positionsAgree(4096, -16, 4096, 16));
        assertEquals(false, Layout.positionsAgree(-16, 0, 4096, 16));
        assertEquals(false, Layout.positionsAgree(64, 64, 4096, 64));
        assertEquals(true, Layout.positionsAgree(48, 48, 4096, 64));
    }

    @Test
    void capacities() {
        assertEquals(4096, SegmentSpec.ring(1, 16, 4096).blocks()[0].capacity());
        assertEquals(8192, SegmentSpec.ring(4097, 16, 4096).blocks()[0].capacity());
        assertEquals(2 << 20, SegmentSpec.ring(1, 16, 2 << 20).blocks()[0].dataOffset());
        for (long capacity : new long[] {Long.MAX_VALUE, (1L << 62) + 1, 1L << 62}) {
            refused(ErrorKind.NO_SPACE, () -> SegmentSpec.ring(capacity, 16, 4096));
        }
        refused(ErrorKind.INVALID_ARGUMENT, () -> SegmentSpec.ring(-1, 16, 4096));
        for (int align : new int[] {8, 24, 8192, -16}) {
            refused(ErrorKind.INVALID_ARGUMENT, () -> SegmentSpec.ring(4096, align, 4096));
        }
    }
}
