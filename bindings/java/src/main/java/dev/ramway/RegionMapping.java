package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Mapping;
import dev.ramway.sys.SysException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * A named region that this process uses. The segments are of global scope: right until {@link #release}, deadly after it.
 *
 * @param header the header page, mapped apart from the data
 * @param data capacity bytes
 * @param length as it was asked for, 1 to capacity
 * @param readOnly neither can be written, so no waiter's bit can be set either
 * @param link its locks
 */
record RegionMapping(MemorySegment header, MemorySegment data, long length, boolean readOnly, NamedLink link) {
    /**
     * Creates or opens a named region and maps it.
     *
     * @param length in bytes: what a new one gets and, if it is not 0, what an existing one must have
     * @param readOnly such a handle can only be opened
     */
    static RegionMapping open(String name, How how, long length, Options options, boolean readOnly) {
        Objects.requireNonNull(name, "name");
        String tried = how.verb() + " the region";
        Errors.checkPlatform();
        RegionMapping mapping = null;
        Segment opened = null;
        try {
            options.check(how);
            if (options.capacity() != 0 || options.align() != 0) {
                throw Errors.of(ErrorKind.INVALID_ARGUMENT, (options.capacity() != 0 ? "capacity" : "align")
                        + " is for rings; a region has a length");
            }
            Spec spec = how == How.OPEN ? null : Spec.region(length, Memory.granule(options)).named(options.persistent());
            opened = new Named(name, how, Layout.KIND_REGION, spec, NamedLink.NO_ROLE, readOnly, options, found -> {
                long there = found.blocks()[0].length();
                if (length != 0 && there != length) {
                    throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "it exists with a length of %d bytes, not the %d asked for", there,
                            length);
                }
            }).open();
            mapping = map(opened, readOnly, options);
            return mapping;
        } catch (RamwayException e) {
            throw Errors.about(e, tried, name);
        } finally {
            if (mapping != null) {
                // A mapping keeps the memory.
                Files.close(opened.fd());
            } else if (opened != null) {
                opened.drop();
            }
        }
    }

    private static RegionMapping map(Segment segment, boolean readOnly, Options options) {
        Geometry g = segment.header().blocks()[0];
        MemorySegment header = Memory.mapHeader(segment.fd(), !readOnly);
        MemorySegment data = null;
        boolean done = false;
        try {
            data = Mapping.map(segment.fd(), g.dataOffset(), g.capacity(), !readOnly);
            Memory.place(data, 1, options, "placing the region's data");
            done = true;
        } catch (SysException e) {
            throw Errors.os(e, "mapping the region's data");
        } finally {
            if (!done) {
                unmap(header, data);
            }
        }
        return new RegionMapping(header, data, g.length(), readOnly, segment.link());
    }

    private static void unmap(MemorySegment header, MemorySegment data) {
        if (data != null) {
            Mapping.unmap(data);
        }
        Mapping.unmap(header);
    }

    /** Unmaps the region and lets the name go. To be called once, when nobody uses the memory any more. */
    void release() {
        unmap(header, data);
        link.close();
    }
}
