package dev.ramway;

import dev.ramway.sys.BootId;
import dev.ramway.sys.Mapping;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Instant;
import java.util.Arrays;

/**
 * What a header page that may be trusted says. Checking works on a private copy, so each number is read once and what was
 * checked is what is used.
 *
 * @param kind what the segment holds
 * @param flags of the segment
 * @param size the segment's length in bytes
 * @param bootId when it was made, 16 bytes
 * @param blocks the rings, or the region in block 0
 */
record SegmentHeader(int kind, int flags, long size, byte[] bootId, BlockGeometry[] blocks) {
    boolean persistent() {
        return (flags & Facts.FLAG_PERSISTENT) != 0;
    }

    /** Refuses a segment of another kind. */
    void expect(int wanted) {
        if (kind != wanted) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "this is a %s, not a %s", Layout.kindName(kind), Layout.kindName(wanted));
        }
    }

    /** Nobody uses this named segment and nobody may resume it. */
    boolean ofAnotherBoot() {
        byte[] now = BootId.now();
        byte[] unknown = new byte[16];
        // All zero on either side: not known, so not held against it.
        return !Arrays.equals(bootId, unknown) && !Arrays.equals(now, unknown) && !Arrays.equals(bootId, now);
    }

    private static ByteBuffer littleEndian(byte[] page) {
        return ByteBuffer.wrap(page).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The header page of a new segment. Rings begin empty at their first position, everything else is 0. */
    static byte[] format(SegmentSpec spec) {
        return format(spec, Facts.FEATURES_KNOWN);
    }

    /** {@link #format(SegmentSpec)} with these required features. */
    static byte[] format(SegmentSpec spec, int features) {
        byte[] page = new byte[Facts.HEADER_SIZE];
        ByteBuffer to = littleEndian(page);
        to.putLong(Facts.OFF_MAGIC, Facts.MAGIC);
        to.putInt(Facts.OFF_BYTE_ORDER, Facts.BYTE_ORDER);
        to.putShort(Facts.OFF_VERSION_MAJOR, (short) Facts.VERSION_MAJOR);
        to.putShort(Facts.OFF_VERSION_MINOR, (short) (spec.kind() == Facts.KIND_TOPIC ? Facts.VERSION_MINOR_TOPIC : Facts.VERSION_MINOR));
        to.putInt(Facts.OFF_KIND, spec.kind());
        to.putInt(Facts.OFF_FLAGS, spec.flags());
        to.putInt(Facts.OFF_FEATURES_REQUIRED, features);
        to.putLong(Facts.OFF_SIZE, spec.size());
        Instant now = Instant.now();
        to.putLong(Facts.OFF_CREATED_NS, now.getEpochSecond() * 1_000_000_000L + now.getNano());
        to.put(Facts.OFF_BOOT_ID, spec.bootId());
        for (int i = 0; i < 2; i++) {
            BlockGeometry g = spec.blocks()[i];
            if (g.dataOffset() == 0) {
                continue;
            }
            int base = Layout.block(i);
            to.putLong(base + Facts.OFF_DATA_OFFSET, g.dataOffset());
            to.putLong(base + Facts.OFF_CAPACITY, g.capacity());
            to.putLong(base + Facts.OFF_LEN, g.length());
            to.putInt(base + Facts.OFF_ALIGN, g.align());
            if (g.isTopic()) {
                formatTopic(to, base, g);
            } else if (spec.kind() != Facts.KIND_REGION) {
                to.putLong(base + Facts.OFF_TAIL, Layout.firstPosition(g.align()));
                to.putLong(base + Facts.OFF_HEAD, Layout.firstPosition(g.align()));
            }
        }
        return page;
    }

    private static void formatTopic(ByteBuffer to, int base, BlockGeometry g) {
        to.putInt(base + Facts.OFF_TOPIC_SLOTS, g.slots());
        to.putInt(base + Facts.OFF_TOPIC_FLAGS, g.flags());
        to.putLong(base + Facts.OFF_TOPIC_SUBS_OFFSET, g.subsOffset());
        long first = Layout.firstTopicPosition(g.align());
        to.putLong(base + Facts.OFF_TOPIC_TAIL, first);
        to.putLong(base + Facts.OFF_TOPIC_LAST, first);
        to.putLong(base + Facts.OFF_TOPIC_CLAIM, first);
        for (int i = 0; i < Facts.TOPIC_CHUNKS; i++) {
            to.putLong(base + Facts.OFF_TOPIC_STARTS + 8 * i, first);
        }
    }

    /**
     * Decides whether a header page may be trusted, in the order of section 16 of docs/ABI.md. Nothing is allocated for
     * what it claims.
     *
     * @param page the file's first {@link Layout#HEADER_SIZE} bytes, zero beyond its end
     * @param fileSize the file's length in bytes
     */
    static SegmentHeader check(byte[] page, long fileSize) {
        return check(page, fileSize, BusUse.PLAIN);
    }

    /** {@link #check(byte[], long)} of a bus that must be for this use. */
    static SegmentHeader check(byte[] page, long fileSize, BusUse use) {
        ByteBuffer from = littleEndian(page);
        if (from.getLong(Facts.OFF_MAGIC) != Facts.MAGIC) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "this is not a Ramway segment (other first bytes); it is left as it is");
        }
        if (fileSize < Facts.HEADER_SIZE) {
            throw Errors.fail(ErrorKind.CORRUPT, "the segment is cut off after %d bytes, less than its header page", fileSize);
        }
        int order = from.getInt(Facts.OFF_BYTE_ORDER);
        if (order == Facts.BYTE_ORDER_SWAPPED) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the segment was made on a machine of the other byte order");
        }
        if (order != Facts.BYTE_ORDER) {
            throw Errors.fail(ErrorKind.CORRUPT, "the segment's byte order mark is 0x%08x", order);
        }
        int major = Short.toUnsignedInt(from.getShort(Facts.OFF_VERSION_MAJOR));
        if (major != Facts.VERSION_MAJOR) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the segment has version %d.%d of the format, this side speaks %d.%d", major,
                    Short.toUnsignedInt(from.getShort(Facts.OFF_VERSION_MINOR)), Facts.VERSION_MAJOR, Facts.VERSION_MINOR);
        }
        use.check(from.getInt(Facts.OFF_FEATURES_REQUIRED), "the segment");
        int kind = from.getInt(Facts.OFF_KIND);
        if (kind < Facts.KIND_REGION || kind > Facts.KIND_TOPIC) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the segment is of kind %s, which this version does not know",
                    Integer.toUnsignedString(kind));
        }
        long size = from.getLong(Facts.OFF_SIZE);
        if (size != fileSize) {
            throw Errors.fail(ErrorKind.CORRUPT, "the segment says that it has %s bytes, the file has %d",
                    Long.toUnsignedString(size), fileSize);
        }
        byte[] bootId = Arrays.copyOfRange(page, Facts.OFF_BOOT_ID, Facts.OFF_BOOT_ID + 16);
        return new SegmentHeader(kind, from.getInt(Facts.OFF_FLAGS), size, bootId, checkBlocks(from, kind, size));
    }

    /** The blocks that the segment's kind has. */
    private static BlockGeometry[] checkBlocks(ByteBuffer from, int kind, long size) {
        BlockGeometry first = switch (kind) {
            case Facts.KIND_REGION -> checkRegion(from, size);
            case Facts.KIND_RING, Facts.KIND_BUS -> checkRing(from, 0, kind, size);
            case Facts.KIND_TOPIC -> checkTopic(from, size);
            default -> BlockGeometry.NONE;
        };
        BlockGeometry second = kind == Facts.KIND_BUS ? checkRing(from, 1, kind, size) : BlockGeometry.NONE;
        if (first.capacity() != 0 && second.capacity() != 0 && first.dataOffset() < second.dataOffset() + second.capacity()
                && second.dataOffset() < first.dataOffset() + first.capacity()) {
            throw Errors.fail(ErrorKind.CORRUPT, "the two rings of the bus overlap");
        }
        return new BlockGeometry[] {first, second};
    }

    /** Reads a block's geometry and checks that the data lies inside the segment and can be mapped here. */
    private static BlockGeometry checkRange(ByteBuffer from, int block, long size) {
        int base = Layout.block(block);
        long offset = from.getLong(base + Facts.OFF_DATA_OFFSET);
        long capacity = from.getLong(base + Facts.OFF_CAPACITY);
        long end = offset + capacity;
        // The numbers are unsigned, and a sum below what was added to has overflowed. The size is a file's: above 0.
        if (Long.compareUnsigned(offset, Facts.HEADER_SIZE) < 0 || offset % Facts.HEADER_SIZE != 0
                || Long.compareUnsigned(end, offset) < 0 || Long.compareUnsigned(end, size) > 0) {
            throw Errors.fail(ErrorKind.CORRUPT, "block %d claims %s bytes at %s, which do not lie in a segment of %d bytes", block,
                    Long.toUnsignedString(capacity), Long.toUnsignedString(offset), size);
        }
        int page = Mapping.pageSize();
        if (capacity != 0 && (offset % page != 0 || capacity % page != 0)) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH,
                    "the data (%d bytes at %d) cannot be mapped with this machine's pages of %d bytes", capacity, offset, page);
        }
        return new BlockGeometry(offset, capacity, from.getLong(base + Facts.OFF_LEN), from.getInt(base + Facts.OFF_ALIGN));
    }

    private static BlockGeometry checkRing(ByteBuffer from, int block, int kind, long size) {
        if (kind == Facts.KIND_BUS && from.getLong(Layout.block(block) + Facts.OFF_CAPACITY) == 0) {
            return BlockGeometry.NONE;
        }
        BlockGeometry g = checkRange(from, block, size);
        checkShape("ring " + block, g, Facts.ALIGN_MIN, g.capacity());
        return new BlockGeometry(g.dataOffset(), g.capacity(), 0, g.align());
    }

    private static void checkShape(String what, BlockGeometry g, int leastAlign, long mostAlign) {
        if (g.capacity() < Facts.HEADER_SIZE || Long.bitCount(g.capacity()) != 1) {
            throw Errors.fail(ErrorKind.CORRUPT, "%s has a capacity of %d bytes, not a power of two of at least a page", what,
                    g.capacity());
        }
        // As a signed number, one of 2^31 and more is below the least.
        if (g.align() < leastAlign || g.align() > Facts.ALIGN_MAX || Integer.bitCount(g.align()) != 1 || g.align() > mostAlign) {
            throw Errors.fail(ErrorKind.CORRUPT, "%s has an alignment of %s", what, Integer.toUnsignedString(g.align()));
        }
    }

    private static BlockGeometry checkTopic(ByteBuffer from, long size) {
        BlockGeometry g = checkRange(from, 0, size);
        checkShape("the topic", g, Facts.TOPIC_ALIGN_MIN, g.capacity() / 2);
        int base = Facts.BLOCK0;
        int slots = from.getInt(base + Facts.OFF_TOPIC_SLOTS);
        if (slots < 1 || slots > Facts.TOPIC_SLOTS_MAX) {
            throw Errors.fail(ErrorKind.CORRUPT, "the topic has %s slots for subscribers, expected 1 to %d",
                    Integer.toUnsignedString(slots), Facts.TOPIC_SLOTS_MAX);
        }
        long area = from.getLong(base + Facts.OFF_TOPIC_SUBS_OFFSET);
        long end = area + Layout.areaLength(slots);
        if (Long.compareUnsigned(area, Facts.HEADER_SIZE) < 0 || area % Facts.HEADER_SIZE != 0 || Long.compareUnsigned(end, area) < 0
                || Long.compareUnsigned(end, g.dataOffset()) > 0) {
            throw Errors.fail(ErrorKind.CORRUPT, "the topic's subscribers' area of %d bytes at %s does not lie between the header page "
                    + "and the data at %d", Layout.areaLength(slots), Long.toUnsignedString(area), g.dataOffset());
        }
        if (area % Mapping.pageSize() != 0) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the topic's subscribers' area at %d cannot be mapped with this machine's pages of "
                    + "%d bytes", area, Mapping.pageSize());
        }
        int flags = from.getInt(base + Facts.OFF_TOPIC_FLAGS);
        if ((flags & ~Facts.TOPIC_FLAGS_KNOWN) != 0) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the topic was made with flags 0x%x, which this version does not know",
                    flags & ~Facts.TOPIC_FLAGS_KNOWN);
        }
        return new BlockGeometry(g.dataOffset(), g.capacity(), 0, g.align(), slots, flags, area);
    }

    private static BlockGeometry checkRegion(ByteBuffer from, long size) {
        BlockGeometry g = checkRange(from, 0, size);
        if (g.length() == 0 || Long.compareUnsigned(g.length(), g.capacity()) > 0) {
            throw Errors.fail(ErrorKind.CORRUPT, "the region claims %s bytes in a capacity of %d",
                    Long.toUnsignedString(g.length()), g.capacity());
        }
        return new BlockGeometry(g.dataOffset(), g.capacity(), g.length(), 0);
    }
}
