package dev.ramway;

/** The bytes of a segment: docs/ABI.md as numbers. Nothing here maps memory or decides what to trust. */
final class Layout {
    /** The first eight bytes of every segment: "RAMWAY\r\n", as a little-endian number. */
    static final long MAGIC = 0x0A0D_5941_574D_4152L;
    /** Written in the creator's byte order, so that a reader of the other order sees it swapped. */
    static final int BYTE_ORDER = 0x0A0B0C0D;
    static final int BYTE_ORDER_SWAPPED = 0x0D0C0B0A;
    /** A reader refuses any other major version, and accepts any minor one. */
    static final int VERSION_MAJOR = 1;
    static final int VERSION_MINOR = 0;
    /** The required feature bits that this version knows. */
    static final int FEATURES_KNOWN = 0;

    /** The length of the header page in bytes; data begins here or later. */
    static final int HEADER_SIZE = 4096;
    /** Where the blocks begin in the header page. */
    static final int BLOCK0 = 0x400;
    static final int BLOCK1 = 0x800;

    /** The length of what precedes every payload: len u32, type id u32, tag u64. */
    static final int FRAME_HEADER = 16;
    static final int FRAME_TYPE_ID = 4;
    static final int FRAME_TAG = 8;
    static final int ALIGN_MIN = 16;
    static final int ALIGN_MAX = 4096;
    /** No message is longer, whatever the capacity. */
    static final int MESSAGE_MAX = Integer.MAX_VALUE - 16;
    /** The capacity of a ring if nobody says otherwise. */
    static final long DEFAULT_CAPACITY = 1 << 20;

    /** In the segment's flags: the last one out leaves the name in place. */
    static final int FLAG_PERSISTENT = 1;

    /** The bits of a role's flags. */
    static final int ROLE_MEMBARRIER_CAPABLE = 1;
    static final int ROLE_FENCE_FREE = 2;
    static final int ROLE_CLOSED = 4;

    /** What a segment holds. */
    static final int KIND_REGION = 1;
    static final int KIND_RING = 2;
    static final int KIND_BUS = 3;
    static final int KIND_LISTENER = 4;

    /** Where the fields of the segment header are, from the segment's start. */
    static final int OFF_MAGIC = 0x00;
    static final int OFF_BYTE_ORDER = 0x08;
    static final int OFF_VERSION_MAJOR = 0x0C;
    static final int OFF_VERSION_MINOR = 0x0E;
    static final int OFF_KIND = 0x10;
    static final int OFF_FLAGS = 0x14;
    static final int OFF_FEATURES_REQUIRED = 0x18;
    static final int OFF_SIZE = 0x20;
    static final int OFF_CREATED = 0x28;
    static final int OFF_BOOT_ID = 0x30;

    /** Where the fields of a block's geometry are, from the block's start. */
    static final int OFF_DATA_OFFSET = 0x000;
    static final int OFF_CAPACITY = 0x008;
    static final int OFF_LEN = 0x010;
    static final int OFF_ALIGN = 0x018;

    /** Where a ring's words are, from the block's start. */
    static final int OFF_TAIL = 0x080;
    static final int OFF_LAST_TAGS = 0x088;
    static final int OFF_HEAD = 0x100;
    static final int OFF_PRODUCER = 0x180;
    static final int OFF_CONSUMER = 0x200;
    /** Two last-tag records, each the end and the tag of a published frame. */
    static final int LAST_TAG_SIZE = 16;
    static final int LAST_TAG_END = 0;
    static final int LAST_TAG_TAG = 8;

    /** Where the words of a role's line are, from OFF_PRODUCER or OFF_CONSUMER. */
    static final int ROLE_WAIT = 0x0;
    static final int ROLE_FLAGS = 0x4;
    static final int ROLE_EPOCH = 0x8;
    static final int ROLE_CLOSE_SEEN = 0xC;

    /** A region's only word, from the block's start. */
    static final int OFF_NOTIFY = 0x080;

    private Layout() {}

    /** Where block 0 or 1 begins in the header page. */
    static int block(int index) {
        return index == 0 ? BLOCK0 : BLOCK1;
    }

    static String kindName(int kind) {
        return switch (kind) {
            case KIND_REGION -> "region";
            case KIND_RING -> "ring";
            case KIND_BUS -> "bus";
            case KIND_LISTENER -> "listener";
            default -> "segment of unknown kind";
        };
    }

    /** Where the positions of a new ring with this alignment begin. */
    static long firstPosition(int align) {
        return align - FRAME_HEADER;
    }

    /** Whether two positions could be those of a ring at rest: where frames can begin, and at most a capacity apart. */
    static boolean positionsAgree(long tail, long head, long capacity, int align) {
        long mask = align - 1;
        long first = firstPosition(align);
        return (tail & mask) == first && (head & mask) == first && Long.compareUnsigned(tail - head, capacity) <= 0;
    }

    /** How many bytes a frame with a payload of n bytes takes. It cannot overflow for n up to 2^32. */
    static long frameSize(long n, int align) {
        long mask = align - 1;
        return (FRAME_HEADER + n + mask) & ~mask;
    }

    /** The longest payload that a ring of this capacity can ever hold. */
    static int maxMessageLength(long capacity) {
        return capacity < FRAME_HEADER ? 0 : (int) Math.min(capacity - FRAME_HEADER, MESSAGE_MAX);
    }
}
