package dev.ramway;

import dev.ramway.sys.Mapping;
import dev.ramway.sys.SysException;
import java.lang.foreign.MemorySegment;

/**
 * A segment's header page and data in this process's memory. They are of global scope: valid until {@link #release} and deadly
 * after it, so handles give users other segments.
 *
 * @param header the header page
 * @param data a block's data
 * @param link how this handle is tied to its peer
 */
record SegmentMapping(MemorySegment header, MemorySegment data, Link link) {
    /**
     * Maps a checked segment, its data as it is or {@code mirrored}, twice back to back. The header page is mapped apart from the
     * data: both guard against this side's own mistakes. The file stays the caller's, and on an error the link too.
     */
    static SegmentMapping map(int fd, BlockGeometry g, boolean mirrored, boolean headerWritable, boolean dataWritable, Link link,
            Options options) {
        MemorySegment header = SegmentMemory.mapHeader(fd, headerWritable);
        try {
            MemorySegment data = mirrored ? Mapping.mirror(fd, g.dataOffset(), g.capacity(), dataWritable)
                    : Mapping.map(fd, g.dataOffset(), g.capacity(), dataWritable);
            try {
                SegmentMemory.place(data, mirrored ? 2 : 1, options);
                return new SegmentMapping(header, data, link);
            } catch (Throwable t) {
                Mapping.unmap(data);
                throw t;
            }
        } catch (SysException e) {
            Mapping.unmap(header);
            throw Errors.os(e, "mapping the data");
        } catch (Throwable t) {
            Mapping.unmap(header);
            throw t;
        }
    }

    /** Unmaps the memory and releases the role, in this order. To be called once, when nobody uses the memory any more. */
    void release() {
        Mapping.unmap(data);
        Mapping.unmap(header);
        link.close();
    }
}
