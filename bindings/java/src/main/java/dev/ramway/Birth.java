package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Lock;
import dev.ramway.sys.SysException;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * How a named segment comes into being: whole, or not at all. Holds one that is whole and locked but has no name yet; kept
 * when somebody else was faster, for the next attempt.
 */
final class Birth {
    private static final String VANISHED = "the new segment vanished before it had its name";

    private final Named request;
    private Segment segment;
    /** What the file is called meanwhile, where the file system knows no files without a name; else null. */
    private String dotName;
    /** The directory of the dot-name. */
    private int dotDir = -1;

    Birth(Named request) {
        this.request = request;
    }

    /** Throws away what has not got its name. */
    void drop() {
        if (segment == null) {
            return;
        }
        unlinkDotName();
        // Nothing leads to the file, so the last one out finds nothing to remove.
        segment.drop();
        segment = null;
    }

    private void unlinkDotName() {
        if (dotName != null) {
            Files.unlink(dotDir, dotName);
            forgetDotName();
        }
    }

    private void forgetDotName() {
        Files.close(dotDir);
        dotDir = -1;
        dotName = null;
    }

    Segment create(SegmentName place) throws Later {
        SegmentFile.checkFileSystem(place.dir, request.options.allowDisk());
        makeWay(place);
        if (segment == null) {
            build(place, true);
        }
        int result = giveName(place);
        switch (result) {
            case 0:
                Segment born = segment;
                segment = null;
                return born;
            case -Errno.EEXIST:
                throw Later.raced("somebody else created the same name");
            case -Errno.ENOENT:
                // `ramway clean` took the dot-name for a dead one's; or the directory is gone.
                drop();
                throw Later.raced(VANISHED);
            default:
                throw Errors.os(-result, "giving the segment its name");
        }
    }

    /** What is there and is not a dead segment takes the name. */
    private static RamwayException taken(RamwayException e) {
        return switch (e.kind()) {
            case INVALID_ARGUMENT, ABI_MISMATCH, CORRUPT -> Errors.of(ErrorKind.ALREADY_EXISTS, "the name is taken: " + e.detail());
            default -> e;
        };
    }

    /** Removes a dead, empty segment that has the name. Whatever else is there is AlreadyExists. */
    private void makeWay(SegmentName place) throws Later {
        SegmentFile file;
        try {
            file = SegmentFile.open(place, true);
        } catch (RamwayException e) {
            throw taken(e);
        }
        if (file == null) {
            return;
        }
        try {
            SegmentFile.Page page = SegmentFile.readPage(file.fd());
            Header header;
            try {
                header = Header.check(page.bytes(), page.fileSize());
            } catch (RamwayException e) {
                throw taken(e);
            }
            NamedLink link = NamedLink.open(place, file.stat(), false);
            if (link == null) {
                throw Later.raced("the name changed hands while it was looked at");
            }
            try {
                removeDead(place, file, header, link);
            } finally {
                // Nothing but the exclusive lock is held, and it is let go by name.
                link.letGo();
            }
        } finally {
            Files.close(file.fd());
        }
    }

    private void removeDead(SegmentName place, SegmentFile file, Header header, NamedLink link) throws Later {
        boolean alone;
        try {
            alone = Lock.tryLock(link.lock, NamedLink.BYTE_IN_USE, Lock.Mode.EXCLUSIVE);
        } catch (SysException e) {
            throw Errors.os(e, "locking byte 0 of the segment");
        }
        if (!alone) {
            throw inUse(header, link);
        }
        if (!SegmentFile.leadsTo(place.dir, place.file, link.id)) {
            throw Later.raced("the name changed hands while it was looked at");
        }
        boolean discarding = request.how == How.CREATE && request.options.discard();
        if (!header.ofAnotherBoot() && !discarding) {
            String reason = Undelivered.reasonToKeep(file.fd(), header);
            if (reason != null) {
                throw Errors.of(ErrorKind.ALREADY_EXISTS, reason + "; open or openOrCreate resumes it, discard starts anew");
            }
        }
        NamedLink.removeSegment(place.dir, place.file, header.kind());
    }

    /** Why byte 0 could not be locked exclusively. */
    private static Later inUse(Header header, NamedLink link) {
        Lock.Mode mode;
        try {
            mode = Lock.heldByAnother(link.lock, NamedLink.BYTE_IN_USE);
        } catch (SysException e) {
            mode = Lock.Mode.UNLOCKED;
        }
        if (mode == Lock.Mode.SHARED) {
            throw Errors.fail(ErrorKind.ALREADY_EXISTS, "a live %s has this name; open it, or pick another name",
                    Layout.kindName(header.kind()));
        }
        return Later.raced("somebody was removing the segment");
    }

    /** Makes the whole of the segment, without a name if that may be and the system can. */
    void build(SegmentName place, boolean mayBeUnnamed) throws Later {
        int file = mayBeUnnamed ? Files.createUnnamed(place.dir) : -Errno.EOPNOTSUPP;
        int lock = -1;
        refuseWithoutDescriptors(file);
        if (file >= 0) {
            lock = Files.reopen(file);
            if (lock < 0) {
                // Without /proc a file cannot be opened twice, or named, but by a name.
                Files.close(file);
                file = -1;
                refuseWithoutDescriptors(lock);
            }
        }
        String name = null;
        if (file < 0) {
            name = randomDotName();
            file = Errors.checked(Files.createNew(place.dir, name), "making a file");
            lock = Files.openAt(place.dir, name, true);
            if (lock < 0) {
                Files.close(file);
                if (lock == -Errno.ENOENT) {
                    // `ramway clean` was faster than the lock.
                    throw Later.raced(VANISHED);
                }
                Files.unlink(place.dir, name);
                throw Errors.os(-lock, "opening the new file a second time");
            }
        }
        boolean whole = false;
        try {
            fill(place, file, lock, name);
            whole = true;
        } finally {
            if (!whole) {
                if (name != null) {
                    Files.unlink(place.dir, name);
                }
                Files.close(file);
                Files.close(lock);
            }
        }
    }

    /** Another way of making the file would need them as well. */
    private static void refuseWithoutDescriptors(int result) {
        if (result == -Errno.EMFILE || result == -Errno.ENFILE) {
            throw Errors.os(-result, "making a file; raise the limit of descriptors with ulimit -n, or close handles");
        }
    }

    private static String randomDotName() {
        byte[] random = new byte[8];
        new SecureRandom().nextBytes(random);
        return ".ramway-" + HexFormat.of().formatHex(random) + ".new";
    }

    /** Locks a new file, fills it in, and keeps it. */
    private void fill(SegmentName place, int file, int lock, String name) throws Later {
        NamedLink link;
        Header header;
        int linkDir = -1;
        int nameDir = -1;
        boolean whole = false;
        try {
            linkDir = Errors.checked(Files.dup(place.dir), "duplicating a descriptor");
            nameDir = name == null ? -1 : Errors.checked(Files.dup(place.dir), "duplicating a descriptor");
            link = new NamedLink(lock, linkDir, place.file, Files.stat(file).id());
            // Locked before it is filled in. `ramway clean`, which takes away what has a dot-name and no lock, may be faster.
            if (!Lock.tryLock(lock, NamedLink.BYTE_IN_USE, Lock.Mode.SHARED)) {
                throw Later.raced(VANISHED);
            }
            if (request.roleByte != NamedLink.NO_ROLE) {
                link.takeRole(request.roleByte, request.kind);
            }
            header = write(file, request.spec, request.options);
            whole = true;
        } catch (SysException e) {
            throw Errors.os(e, "looking at and locking the new file");
        } finally {
            if (!whole && linkDir >= 0) {
                Files.close(linkDir);
            }
            if (!whole && nameDir >= 0) {
                Files.close(nameDir);
            }
        }
        dotName = name;
        dotDir = nameDir;
        segment = new Segment(file, header, link);
    }

    /** Gives a new file its permissions, its space and its header page. */
    private static Header write(int file, Spec spec, Options options) {
        Errors.checked(Files.chmod(file, options.mode()), "setting the file's mode");
        Memory.allocate(file, spec, options.numaNode());
        Errors.checked(Files.truncate(file, spec.size()), "sizing the file");
        byte[] page = Header.format(spec);
        try {
            Files.writeAt(file, page, 0);
        } catch (SysException e) {
            throw Errors.os(e, "writing the header page");
        }
        return Header.check(page, spec.size());
    }

    /** Makes the segment appear under its name: 0, or the error with a minus sign. */
    int giveName(SegmentName place) {
        if (dotName == null) {
            return Files.linkUnnamed(segment.fd(), place.dir, place.file);
        }
        int result = Files.renameNew(place.dir, dotName, place.file);
        if (result == 0) {
            // It has its own name now: nothing to unlink.
            forgetDotName();
        }
        return result;
    }
}
