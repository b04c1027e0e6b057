package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Mapping;
import dev.ramway.sys.Stat;
import dev.ramway.sys.SysException;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * All that a Sender or a Receiver stands on: mapped memory whose geometry was checked, and the role, held until release. Its
 * segments are of global scope: they are right until {@link #release} and deadly after it, so a handle lends out others.
 */
final class Attachment {
    /** The header page, readable and writable. */
    final MemorySegment header;
    /** Where the ring's block begins in the header page. */
    final int block;
    /** The ring's data, mapped twice back to back: 2 * capacity bytes; a consumer's cannot be written. */
    final MemorySegment data;
    /** A power of two, at least a page. */
    final long capacity;
    /** A power of two from 16 to 4096. */
    final int align;
    final Role role;
    /** How the handle is tied to its peer. */
    final Link link;
    /** For messages; empty for a ring without a name. */
    final String name;

    private Attachment(MemorySegment header, int block, MemorySegment data, Geometry g, Role role, Link link, String name) {
        this.header = header;
        this.block = block;
        this.data = data;
        this.capacity = g.capacity();
        this.align = g.align();
        this.role = role;
        this.link = link;
        this.name = name;
    }

    /**
     * Creates or opens a named ring, takes the role and maps the ring. It blocks as the time-out says, and up to a second in
     * races with others.
     */
    static Attachment named(String name, How how, Options options, Role role) {
        Objects.requireNonNull(name, "name");
        String tried = how.verb() + " the ring";
        Errors.checkPlatform();
        Spec spec;
        try {
            options.check(how);
            long capacity = options.capacity() == 0 ? Layout.DEFAULT_CAPACITY : options.capacity();
            // Checked here although an existing ring may need none of it: a mistake shows on the first run.
            spec = Spec.ring(capacity, options.align(), Memory.granule(options)).named(options.persistent());
        } catch (RamwayException e) {
            throw Errors.about(e, tried, name);
        }
        Geometry wanted = spec.blocks()[0];
        Segment opened = new Named(name, how, Layout.KIND_RING, spec, role.lockByte(), false, options, found -> {
            Geometry g = found.blocks()[0];
            if (options.capacity() != 0 && g.capacity() != wanted.capacity()) {
                throw differs("capacity", wanted.capacity(), g.capacity());
            }
            if (options.align() != 0 && g.align() != wanted.align()) {
                throw differs("alignment", wanted.align(), g.align());
            }
        }).open();
        Attachment made = null;
        try {
            made = map(opened.fd(), Layout.BLOCK0, opened.header().blocks()[0], opened.link(), role, options, name);
            return made;
        } catch (RamwayException e) {
            throw Errors.about(e, tried, name);
        } finally {
            if (made == null) {
                opened.drop();
            } else {
                // A mapping keeps the memory.
                Files.close(opened.fd());
            }
        }
    }

    /** Takes a role of the ring behind a descriptor, which stays the caller's. */
    static Attachment descriptor(int fd, Options options, Role role) {
        String name = "descriptor " + fd;
        try {
            Errors.checkPlatform();
            options.check(How.OPEN);
            return taken(fd, options, role, name);
        } catch (RamwayException e) {
            throw Errors.about(e, "attaching to the ring of", name);
        }
    }

    private static Attachment taken(int fd, Options options, Role role, String name) {
        Geometry g = unnamed(fd, options);
        // A description of its own, for the locks: a duplicate would share those of everybody who inherited it.
        int lock = reopened(fd);
        NamedLink link = NamedLink.unnamed(lock);
        Attachment made = null;
        int file = -1;
        try {
            link.take(role, options);
            // And one for the mapping, which would keep the locks alive.
            file = reopened(fd);
            made = map(file, Layout.BLOCK0, g, link, role, options, name);
            return made;
        } finally {
            if (file >= 0) {
                Files.close(file);
            }
            if (made == null) {
                link.close();
            }
        }
    }

    private static int reopened(int fd) {
        return Errors.checked(Files.reopen(fd), "opening " + Files.procPath(fd) + " once more (is /proc mounted?)");
    }

    /** Checks what a descriptor leads to, as of any segment. */
    private static Geometry unnamed(int fd, Options options) {
        try {
            Stat stat = Files.stat(fd);
            if (!stat.isRegular()) {
                throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "this is %s, not the memory of a ring", stat.describe());
            }
            if (stat.links() != 0) {
                throw Errors.of(ErrorKind.INVALID_ARGUMENT, "this descriptor leads to a file that has a name: open the ring by its name");
            }
        } catch (SysException e) {
            throw Errors.os(e, "looking at the descriptor");
        }
        SegmentFile.checkFileSystem(fd, false);
        SegmentFile.Page page = SegmentFile.readPage(fd);
        Header header = Header.check(page.bytes(), page.fileSize());
        if (header.kind() != Layout.KIND_RING) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "this is a %s, not a ring", Layout.kindName(header.kind()));
        }
        Geometry g = header.blocks()[0];
        if (options.capacity() != 0 || options.align() != 0) {
            Geometry wanted = Spec.ring(options.capacity() == 0 ? g.capacity() : options.capacity(), options.align(),
                    Memory.granule(options)).blocks()[0];
            if (g.capacity() != wanted.capacity()) {
                throw differs("capacity", wanted.capacity(), g.capacity());
            }
            if (options.align() != 0 && g.align() != wanted.align()) {
                throw differs("alignment", wanted.align(), g.align());
            }
        }
        return g;
    }

    private static RamwayException differs(String what, long wanted, long found) {
        return Errors.fail(ErrorKind.INVALID_ARGUMENT,
                "it exists, and its %s is %d bytes, not the %d asked for; leave it out to take what is there", what, found, wanted);
    }

    /**
     * Maps a ring of a segment in memory without a name, which was checked. The file stays the caller's, and on an error the
     * link too; else release closes it.
     *
     * @param name for messages
     * @param block {@link Layout#BLOCK0} or {@link Layout#BLOCK1}
     * @param g what {@link Header#check} said of it
     */
    static Attachment memory(String name, int fd, int block, Geometry g, Link link, Role role, Options options) {
        return map(fd, block, g, link, role, options, name);
    }

    private static Attachment map(int fd, int block, Geometry g, Link link, Role role, Options options, String name) {
        // The header page is mapped apart from the data, which a consumer cannot write: both guard against our own mistakes.
        MemorySegment header = Memory.mapHeader(fd, true);
        MemorySegment data = null;
        boolean done = false;
        try {
            data = Mapping.mirror(fd, g.dataOffset(), g.capacity(), role == Role.PRODUCER);
            Memory.place(data, 2, options, "placing the ring's data");
            done = true;
        } catch (SysException e) {
            throw Errors.os(e, "mapping the ring's data twice");
        } finally {
            if (!done) {
                unmap(header, data);
            }
        }
        return new Attachment(header, block, data, g, role, link, name);
    }

    private static void unmap(MemorySegment header, MemorySegment data) {
        if (data != null) {
            Mapping.unmap(data);
        }
        Mapping.unmap(header);
    }

    /** Unmaps the memory and lets the role go, in this order. To be called once, when nobody uses the memory any more. */
    void release() {
        unmap(header, data);
        link.close();
    }
}
