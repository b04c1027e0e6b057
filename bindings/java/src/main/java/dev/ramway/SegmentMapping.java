package dev.ramway;

import dev.ramway.sys.Mapping;
import dev.ramway.sys.Numa;
import dev.ramway.sys.Placement;
import dev.ramway.sys.Space;
import dev.ramway.sys.SysException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * A segment's header page and data in this process's memory. They are of global scope: valid until {@link #release} and deadly
 * after it, so handles give users other segments.
 *
 * @param header the header page
 * @param data a block's data
 * @param link how this handle is tied to its peer
 */
record SegmentMapping(MemorySegment header, MemorySegment data, Link link) {
    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    /**
     * Maps a checked segment, its data as it is or {@code mirrored}, twice back to back. The header page is mapped apart from the
     * data: both guard against this side's own mistakes. The file stays the caller's, and on an error the link too.
     */
    static SegmentMapping map(int fd, BlockGeometry g, boolean mirrored, boolean headerWritable, boolean dataWritable, Link link,
            Options options) {
        MemorySegment header = mapHeader(fd, headerWritable);
        return Errors.during("mapping the data", () -> {
            MemorySegment data = null;
            try {
                data = mirrored ? Mapping.mirror(fd, g.dataOffset(), g.capacity(), dataWritable)
                        : Mapping.map(fd, g.dataOffset(), g.capacity(), dataWritable);
                place(data, mirrored ? 2 : 1, options);
                return new SegmentMapping(header, data, link);
            } catch (Throwable t) {
                if (data != null) {
                    Mapping.unmap(data);
                }
                Mapping.unmap(header);
                throw t;
            }
        });
    }

    /** Unmaps the memory and releases the role, in this order. To be called once, when nobody uses the memory any more. */
    void release() {
        unmap();
        link.close();
    }

    /** Unmaps the memory, and no more. */
    void unmap() {
        Mapping.unmap(data);
        Mapping.unmap(header);
    }

    /** How many bytes of the header page are mapped: the header page, or a page where that is larger. */
    static long headerLength() {
        return Math.max(Mapping.pageSize(), Facts.HEADER_SIZE);
    }

    /**
     * Takes the space of the header page and of the data. What lies between them, where pages are huge, stays a hole.
     */
    static void allocate(int fd, SegmentSpec spec, int numaNode) {
        try {
            Space.allocate(fd, 0, Facts.HEADER_SIZE);
            for (BlockGeometry g : spec.blocks()) {
                if (numaNode != -1 && g.capacity() != 0) {
                    Numa.prefer(fd, g.dataOffset(), g.capacity(), numaNode);
                }
                if (g.isTopic()) {
                    Space.allocate(fd, g.subsOffset(), g.areaLength());
                }
                Space.allocate(fd, g.dataOffset(), g.capacity());
            }
        } catch (SysException e) {
            throw Errors.os(e, "allocating the segment's space");
        }
    }

    /** Maps the header page of a file that holds at least {@link #headerLength} bytes. */
    static MemorySegment mapHeader(int fd, boolean writable) {
        return Errors.during("mapping the header page", () -> Mapping.map(fd, 0, headerLength(), writable));
    }

    /** A private copy of a mapped header page, for {@link SegmentHeader#check}. */
    static byte[] snapshot(MemorySegment header) {
        byte[] copy = new byte[Facts.HEADER_SIZE];
        ByteBuffer to = ByteBuffer.wrap(copy).order(ByteOrder.nativeOrder());
        for (int at = 0; at < Facts.HEADER_SIZE; at += 8) {
            // Others may write meanwhile: each word is loaded once and stands for itself.
            to.putLong(at, (long) LONG.getOpaque(header, (long) at));
        }
        return copy;
    }

    /** Refuses a node that this machine does not have. */
    static void checkNode(int node) {
        if (!Numa.exists(node)) {
            String nodes = Numa.nodes();
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "NUMA node %d does not exist; this machine has node%s %s", node,
                    nodes.matches("[0-9]+") ? "" : "s", nodes);
        }
    }

    /** Does to mapped data what the options ask of it. */
    static void place(MemorySegment data, int copies, Options options) throws SysException {
        new Placement(options.hugePages(), options.lockMemory(), options.prefault()).apply(data, copies);
        if (options.numaNode() != -1) {
            Numa.verify(data.asSlice(0, data.byteSize() / copies), options.numaNode());
        }
    }

    /** What the data's offset and capacity must be multiples of. */
    static long granule(Options options) {
        return options.hugePages() ? Errors.during("hugePages", Placement::hugePageSize) : Mapping.pageSize();
    }
}
