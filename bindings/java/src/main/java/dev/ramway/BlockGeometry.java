package dev.ramway;

/**
 * Where a block's data lies: as {@link SegmentHeader#check} leaves it, inside the segment, mappable here, and consistent.
 *
 * @param dataOffset the data's segment offset
 * @param capacity bytes of data; 0: this block does not exist
 * @param length a region's as it was asked for, 1 to capacity; 0 in a ring
 * @param align a ring's or topic's; 0 in a region
 * @param slots a topic's, 1 to {@link Facts#TOPIC_SLOTS_MAX}; 0 in all else
 * @param flags a topic's creator's, none of which is unknown
 * @param subsOffset the segment offset of a topic's subscribers' area, which lies before the data
 */
record BlockGeometry(long dataOffset, long capacity, long length, int align, int slots, int flags, long subsOffset) {
    /** No block. */
    static final BlockGeometry NONE = new BlockGeometry(0, 0, 0, 0);

    /** A ring's or a region's. */
    BlockGeometry(long dataOffset, long capacity, long length, int align) {
        this(dataOffset, capacity, length, align, 0, 0, 0);
    }

    boolean isTopic() {
        return slots != 0;
    }

    /** The length of a topic's subscribers' area in bytes. */
    long areaLength() {
        return Layout.areaLength(slots);
    }

    /** The length of what precedes each payload. */
    int frameHeader() {
        return isTopic() ? Facts.TOPIC_FRAME_HEADER : Facts.FRAME_HEADER;
    }
}
