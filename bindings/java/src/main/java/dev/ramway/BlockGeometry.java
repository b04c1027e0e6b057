package dev.ramway;

/**
 * Where a block's data lies: as {@link SegmentHeader#check} leaves it, inside the segment, mappable here, and consistent.
 *
 * @param dataOffset the data's segment offset
 * @param capacity bytes of data; 0: this block does not exist
 * @param length a region's as it was asked for, 1 to capacity; 0 in a ring
 * @param align a ring's; 0 in a region
 */
record BlockGeometry(long dataOffset, long capacity, long length, int align) {
    /** No block. */
    static final BlockGeometry NONE = new BlockGeometry(0, 0, 0, 0);
}
