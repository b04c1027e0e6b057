package dev.ramway;

import dev.ramway.sys.BootId;
import dev.ramway.sys.Mapping;

/**
 * What a new segment is to hold.
 *
 * @param kind what it is
 * @param flags of the segment
 * @param bootId all zero for a segment without a name: only files can outlive a boot
 * @param size the whole segment's length in bytes
 * @param blocks two
 */
record SegmentSpec(int kind, int flags, byte[] bootId, long size, BlockGeometry[] blocks) {
    // More than this and a page would overflow; no machine has it.
    private static final long CAPACITY_MAX = 1L << 61;

    /** A ring as the options say, of this capacity where they say none. */
    static SegmentSpec ring(Options options, long capacity) {
        return ring(options.capacity() == 0 ? capacity : options.capacity(), options.align(), SegmentMapping.granule(options));
    }

    /** A ring. The granule is the (huge) page that the data's offset and capacity are multiples of. */
    static SegmentSpec ring(long capacity, int align, long granule) {
        return rings(Facts.KIND_RING, new long[] {capacity}, align, granule);
    }

    /**
     * A bus: toPeer is what the listener sends into, fromPeer what it receives from. A capacity of 0 leaves that direction
     * out.
     */
    static SegmentSpec bus(long toPeer, long fromPeer, int align) {
        if (toPeer == 0 && fromPeer == 0) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a bus needs a capacity other than 0 in one direction");
        }
        return rings(Facts.KIND_BUS, new long[] {toPeer, fromPeer}, align, Mapping.pageSize());
    }

    /** A topic as the options say. Each of its parts begins on a multiple of the (huge) page. */
    static SegmentSpec topic(Options options, int slots, int flags) {
        int align = options.align() == 0 ? Facts.TOPIC_ALIGN_MIN : options.align();
        checkAlign(align, Facts.TOPIC_ALIGN_MIN);
        if (slots < 1 || slots > Facts.TOPIC_SLOTS_MAX) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "%d slots for subscribers: expected 1 to %d", slots, Facts.TOPIC_SLOTS_MAX);
        }
        checkCapacity(options.capacity());
        long granule = SegmentMapping.granule(options);
        // A whole frame takes at most half of it.
        long capacity = roundCapacity(Math.max(options.capacity() == 0 ? Facts.CAPACITY_DEFAULT : options.capacity(), 2L * align), granule);
        long space = headerSpace(granule);
        long offset = space + (Layout.areaLength(slots) + space - 1 & -space);
        return new SegmentSpec(Facts.KIND_TOPIC, 0, new byte[16], offset + capacity,
                new BlockGeometry[] {new BlockGeometry(offset, capacity, 0, align, slots, flags, space), BlockGeometry.NONE});
    }

    private static void checkAlign(int align, int least) {
        if (align < least || align > Facts.ALIGN_MAX || Integer.bitCount(align) != 1) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "an alignment of %d: expected a power of two from %d to %d", align, least,
                    Facts.ALIGN_MAX);
        }
    }

    private static void checkCapacity(long capacity) {
        if (capacity < 0) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a capacity of %d bytes: expected 0 or more", capacity);
        }
    }

    /** A region of length bytes, more than 0. */
    static SegmentSpec region(long length, long granule) {
        if (length <= 0) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a region of %d bytes: expected at least 1", length);
        }
        if (length > CAPACITY_MAX) {
            throw tooBig(length);
        }
        long offset = headerSpace(granule);
        long capacity = (length + granule - 1) & -granule;
        return new SegmentSpec(Facts.KIND_REGION, 0, new byte[16], offset + capacity,
                new BlockGeometry[] {new BlockGeometry(offset, capacity, length, 0), BlockGeometry.NONE});
    }

    /** The lock of a listening socket. */
    static SegmentSpec listener() {
        return new SegmentSpec(Facts.KIND_LISTENER, 0, new byte[16], headerSpace(Mapping.pageSize()),
                new BlockGeometry[] {BlockGeometry.NONE, BlockGeometry.NONE});
    }

    /** The same for a segment with a name. */
    SegmentSpec named(boolean persistent) {
        return new SegmentSpec(kind, persistent ? Facts.FLAG_PERSISTENT : 0, BootId.now(), size, blocks);
    }

    private static SegmentSpec rings(int kind, long[] capacities, int align, long granule) {
        int aligned = align == 0 ? Facts.ALIGN_MIN : align;
        checkAlign(aligned, Facts.ALIGN_MIN);
        long size = headerSpace(granule);
        BlockGeometry[] blocks = {BlockGeometry.NONE, BlockGeometry.NONE};
        for (int i = 0; i < capacities.length; i++) {
            checkCapacity(capacities[i]);
            boolean absent = capacities[i] == 0 && kind == Facts.KIND_BUS;
            long capacity = absent ? 0 : roundCapacity(capacities[i], granule);
            blocks[i] = new BlockGeometry(size, capacity, 0, aligned);
            // Two of at most 2^61 and a page: no overflow.
            size += capacity;
        }
        return new SegmentSpec(kind, 0, new byte[16], size, blocks);
    }

    /** What a ring gets for the capacity asked for: a power of two, at least a granule. */
    private static long roundCapacity(long asked, long granule) {
        if (asked > CAPACITY_MAX) {
            throw tooBig(asked);
        }
        long least = Math.max(asked, granule);
        long power = Long.highestOneBit(least);
        return power == least ? power : power << 1;
    }

    private static long headerSpace(long granule) {
        return Math.max(granule, Facts.HEADER_SIZE);
    }

    /** Refuses what no machine has. */
    static RamwayException tooBig(long bytes) {
        return Errors.fail(ErrorKind.NO_SPACE, "a capacity of %d bytes is more than any machine has", bytes);
    }
}
