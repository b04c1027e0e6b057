package dev.ramway;

/**
 * The bytes of a segment: docs/ABI.md as functions of the numbers in {@link Facts}. Nothing here maps memory or decides what to
 * trust.
 */
final class Layout {
    private Layout() {}

    /** Where block 0 or 1 begins in the header page. */
    static int block(int index) {
        return index == 0 ? Facts.BLOCK0 : Facts.BLOCK1;
    }

    static String kindName(int kind) {
        return switch (kind) {
            case Facts.KIND_REGION -> "region";
            case Facts.KIND_RING -> "ring";
            case Facts.KIND_BUS -> "bus";
            case Facts.KIND_LISTENER -> "listener";
            case Facts.KIND_TOPIC -> "topic";
            default -> "segment of unknown kind";
        };
    }

    /** Where the positions of a new ring with this alignment begin. */
    static long firstPosition(int align) {
        return align - Facts.FRAME_HEADER;
    }

    /** Whether two positions could be those of a ring at rest: where frames can begin, and at most a capacity apart. */
    static boolean positionsAgree(long tail, long head, long capacity, int align) {
        long mask = align - 1;
        long first = firstPosition(align);
        return (tail & mask) == first && (head & mask) == first && Long.compareUnsigned(tail - head, capacity) <= 0;
    }

    /**
     * How many bytes a frame with a payload of n bytes takes, where positions are multiples of alignMask + 1. No overflow up to
     * 2^32.
     */
    static long frameSize(long n, long alignMask) {
        return (Facts.FRAME_HEADER + n + alignMask) & ~alignMask;
    }

    /** Where the positions of a new topic with this alignment begin. */
    static long firstTopicPosition(int align) {
        return align - Facts.TOPIC_FRAME_HEADER;
    }

    /** The length of a topic's subscribers' area in bytes. */
    static long areaLength(int slots) {
        return Facts.OFF_SUBS_SLOTS + (long) Facts.SLOT_SIZE * slots;
    }

    /**
     * The longest payload that a topic of this capacity can hold: a whole frame takes at most half of it, so that the last message
     * stays intact while the next one is written.
     */
    static int maxTopicMessageLength(long capacity) {
        return (int) Math.min(capacity / 2 - Facts.TOPIC_FRAME_HEADER, Facts.TOPIC_MESSAGE_MAX);
    }

    /** The longest payload that a ring of this capacity can ever hold. */
    static int maxMessageLength(long capacity) {
        return capacity < Facts.FRAME_HEADER ? 0 : (int) Math.min(capacity - Facts.FRAME_HEADER, Facts.MESSAGE_MAX);
    }
}
