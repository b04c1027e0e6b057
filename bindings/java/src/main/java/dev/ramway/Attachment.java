package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Mapping;
import dev.ramway.sys.Stat;
import dev.ramway.sys.SysException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.function.Function;

/** All that a Sender or a Receiver stands on: mapped memory whose geometry was checked, and the role, held until release. */
final class Attachment {
    private final SegmentMapping mapping;
    /** The header page, readable and writable. */
    final MemorySegment header;
    /** Where the ring's block begins in the header page. */
    final int block;
    /** The ring's data, mapped twice back to back: 2 * capacity bytes; a consumer's cannot be written. */
    final MemorySegment data;
    /** A topic's subscribers' area; null in a ring. */
    final MemorySegment area;
    /** Where a subscriber that copies messages out keeps what it gives out, as long as the data; else null. */
    private final MemorySegment copies;
    /** A power of two, at least a page. */
    final long capacity;
    /** A power of two from 16 to 4096. */
    final int align;
    final Role role;
    /** How the handle is tied to its peer. */
    final Link link;
    /** For messages; empty for a ring without a name. */
    final String name;

    /** What was checked of the block. */
    final BlockGeometry geometry;

    private Attachment(SegmentMapping mapping, MemorySegment area, MemorySegment copies, int block, BlockGeometry g, Role role,
            String name) {
        this.mapping = mapping;
        this.area = area;
        this.copies = copies;
        this.geometry = g;
        this.header = mapping.header();
        this.block = block;
        this.data = mapping.data();
        this.capacity = g.capacity();
        this.align = g.align();
        this.role = role;
        this.link = mapping.link();
        this.name = name;
    }

    /**
     * Creates or opens a named ring, takes the role and maps the ring. It blocks as the time-out says, and up to a second in
     * races with others.
     */
    static Attachment named(String name, OpenMode mode, Options options, Role role) {
        Objects.requireNonNull(name, "name");
        return SegmentRequest.named(name, mode, Facts.KIND_RING, () -> {
            options.check(mode);
            // Checked here although an existing ring may need none of it: a mistake shows on the first run.
            SegmentSpec spec = SegmentSpec.ring(options, Facts.CAPACITY_DEFAULT).named(options.persistent());
            return new SegmentRequest(name, mode, Facts.KIND_RING, spec, role.lockByte(), false, options,
                    found -> refuseOther(found.blocks()[0], options))
                    .open(s -> memory(name, s.fd(), Facts.BLOCK0, s.header().blocks()[0], s.link(), role, options));
        });
    }

    /** Refuses a ring that differs from the options. */
    private static void refuseOther(BlockGeometry found, Options options) {
        if (options.capacity() == 0 && options.align() == 0) {
            return;
        }
        BlockGeometry wanted = SegmentSpec.ring(options, found.capacity()).blocks()[0];
        if (options.capacity() != 0 && found.capacity() != wanted.capacity()) {
            throw differs("capacity", wanted.capacity(), found.capacity());
        }
        if (options.align() != 0 && found.align() != wanted.align()) {
            throw differs("alignment", wanted.align(), found.align());
        }
    }

    static RamwayException differs(String what, long wanted, long found) {
        return Errors.fail(ErrorKind.INVALID_ARGUMENT,
                "it exists, and its %s is %d bytes, not the %d asked for; leave it out to take what is there", what, found, wanted);
    }

    /** Takes a role of the ring behind a descriptor, which stays the caller's. */
    static Attachment descriptor(int fd, Options options, Role role) {
        String name = "descriptor " + fd;
        try {
            Errors.checkPlatform();
            options.check(OpenMode.OPEN);
            BlockGeometry g = checkUnnamed(fd, options);
            // A description of its own, for the locks: a duplicate would share those of everybody who inherited it.
            SegmentLink link = SegmentLink.unnamed(reopened(fd));
            try {
                link.take(role, options);
                // And one for the mapping, which would keep the locks alive.
                int file = reopened(fd);
                try {
                    return memory(name, file, Facts.BLOCK0, g, link, role, options);
                } finally {
                    Files.close(file);
                }
            } catch (Throwable t) {
                link.close();
                throw t;
            }
        } catch (RamwayException e) {
            throw Errors.about(e, "attaching to the ring of", name);
        }
    }

    private static int reopened(int fd) {
        return Errors.checked(Files.reopen(fd), "opening " + Files.procPath(fd) + " once more (is /proc mounted?)");
    }

    /** Checks what a descriptor leads to, as of any segment. */
    private static BlockGeometry checkUnnamed(int fd, Options options) {
        try {
            Stat stat = Files.stat(fd);
            if (!stat.isRegular()) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "this is %s, not the memory of a ring", stat.describe());
            }
            if (stat.links() != 0) {
                throw Errors.of(ErrorKind.INVALID_ARGUMENT, "this descriptor leads to a file that has a name: open the ring by its name");
            }
        } catch (SysException e) {
            throw Errors.os(e, "checking the descriptor");
        }
        SegmentFile.checkFileSystem(fd, false);
        SegmentHeader header = SegmentFile.readPage(fd).header();
        header.expect(Facts.KIND_RING);
        refuseOther(header.blocks()[0], options);
        return header.blocks()[0];
    }

    /**
     * Maps a ring of a segment that was checked. The file stays the caller's, and on an error the link too; else release closes it.
     *
     * @param name for messages
     * @param block {@link Layout#BLOCK0} or {@link Layout#BLOCK1}
     * @param g what {@link SegmentHeader#check} said of it
     */
    static Attachment memory(String name, int fd, int block, BlockGeometry g, Link link, Role role, Options options) {
        // A consumer cannot write the data.
        SegmentMapping mapping = SegmentMapping.map(fd, g, true, true, role == Role.PRODUCER, link, options);
        return new Attachment(mapping, null, null, block, g, role, name);
    }

    /**
     * Maps a topic of a segment that was checked: for a publisher all of it writable, for a subscriber the area if it may write
     * there, and nothing else. The file stays the caller's, and on an error the link too.
     *
     * @param copying the subscriber copies what it receives
     */
    static Attachment topic(String name, int fd, BlockGeometry g, Link link, Role role, boolean writable, boolean copying,
            Options options) {
        boolean publishes = role == Role.PRODUCER;
        SegmentMapping mapping = SegmentMapping.map(fd, g, true, publishes, publishes, link, options);
        MemorySegment area = null;
        try {
            long page = Mapping.pageSize();
            MemorySegment mapped = Mapping.map(fd, g.subsOffset(), g.areaLength() + page - 1 & -page, writable);
            area = mapped;
            MemorySegment copies = copying ? Mapping.privately(2 * g.capacity()) : null;
            return new Attachment(mapping, mapped, copies, Facts.BLOCK0, g, role, name);
        } catch (SysException e) {
            if (area != null) {
                Mapping.unmap(area);
            }
            mapping.unmap();
            throw Errors.os(e, "mapping the topic");
        }
    }

    /** Where payloads are read or written by positions: 2 * capacity bytes. */
    MemorySegment payloads() {
        return copies != null ? copies : data;
    }

    /** A handle that stands on this. Without one, all is released. */
    <E> E attach(Function<Attachment, E> make) {
        try {
            return make.apply(this);
        } catch (Throwable t) {
            release();
            throw t;
        }
    }

    /** {@link SegmentMapping#release}. */
    void release() {
        for (MemorySegment each : new MemorySegment[] {copies, area}) {
            if (each != null) {
                Mapping.unmap(each);
            }
        }
        mapping.release();
    }
}
