package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Lock;
import dev.ramway.sys.SysException;
import java.security.SecureRandom;
import java.util.HexFormat;

/**
 * How a named segment is created: whole, or not at all. Holds one that is whole and locked but has no name yet; kept
 * when somebody else was faster, for the next attempt.
 */
final class SegmentStage {
    private static final String VANISHED = "the new segment vanished before it had its name";

    private final SegmentRequest request;
    private Segment segment;
    /** The file's name until it has its own, where the file system knows no files without a name; else null. */
    private String dotName;
    /** The directory of the dot-name. */
    private int dotDir = -1;

    SegmentStage(SegmentRequest request) {
        this.request = request;
    }

    /** Throws away what has not got its name. */
    void drop() {
        if (segment == null) {
            return;
        }
        if (dotName != null) {
            Files.unlink(dotDir, dotName);
            forgetDotName();
        }
        // Nothing leads to the file, so the last one out finds nothing to remove.
        segment.drop();
        segment = null;
    }

    private void forgetDotName() {
        Files.close(dotDir);
        dotDir = -1;
        dotName = null;
    }

    Segment create(SegmentName place) throws RetryLater {
        SegmentFile.checkFileSystem(place.dir, request.options().allowDisk());
        makeWay(place);
        if (segment == null) {
            build(place, true);
        }
        int result = giveName(place);
        switch (result) {
            case 0:
                Segment named = segment;
                segment = null;
                return named;
            case -Errno.EEXIST:
                throw RetryLater.raced("another process created the same name");
            case -Errno.ENOENT:
                // `ramway clean` took the dot-name for a dead one's; or the directory is gone.
                drop();
                throw RetryLater.raced(VANISHED);
            default:
                throw Errors.os(-result, "giving the segment its name");
        }
    }

    /** Removes a stale segment without contents that has the name. Anything else there is AlreadyExists. */
    private void makeWay(SegmentName place) throws RetryLater {
        SegmentFile file;
        SegmentHeader header;
        try {
            file = SegmentFile.open(place, true);
            if (file == null) {
                return;
            }
            header = file.headerOrClose();
        } catch (RamwayException e) {
            throw switch (e.kind()) {
                case INVALID_ARGUMENT, ABI_MISMATCH, CORRUPT -> Errors.of(ErrorKind.ALREADY_EXISTS, "the name is taken: " + e.detail());
                default -> e;
            };
        }
        try {
            boolean discards = header.ofAnotherBoot() || request.mode() == OpenMode.CREATE && request.options().discard();
            SegmentRemoval removal = SegmentRemoval.tryRemove(place, file, header.kind(),
                    () -> discards ? null : SegmentUndelivered.reasonToKeep(file.fd(), header));
            switch (removal.outcome()) {
                case REMOVED -> { }
                case KEPT -> throw Errors.of(ErrorKind.ALREADY_EXISTS,
                        removal.reason() + "; open or openOrCreate resumes it, discard starts anew");
                case IN_USE -> throw Errors.fail(ErrorKind.ALREADY_EXISTS, "a live %s has this name; open it, or pick another name",
                        Layout.kindName(header.kind()));
                case BEING_REMOVED -> throw RetryLater.raced("another process was removing the segment");
                case CHANGED -> throw RetryLater.nameChanged("it was checked");
            }
        } finally {
            Files.close(file.fd());
        }
    }

    /** Makes the whole of the segment, without a name if that may be and the system can. */
    void build(SegmentName place, boolean mayBeUnnamed) throws RetryLater {
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
                    throw RetryLater.raced(VANISHED);
                }
                Files.unlink(place.dir, name);
                throw Errors.os(-lock, "opening the new file a second time");
            }
        }
        try {
            fill(place, file, lock, name);
        } catch (Throwable t) {
            if (name != null) {
                Files.unlink(place.dir, name);
            }
            Files.close(file);
            Files.close(lock);
            throw t;
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
        return Facts.STAGED_PREFIX + HexFormat.of().formatHex(random) + Facts.STAGED_SUFFIX;
    }

    /** Locks a new file, fills it in, and keeps it. On an error file and lock stay the caller's. */
    private void fill(SegmentName place, int file, int lock, String name) throws RetryLater {
        int linkDir = Errors.checked(Files.dup(place.dir), "duplicating a descriptor");
        int nameDir = -1;
        try {
            nameDir = name == null ? -1 : Errors.checked(Files.dup(place.dir), "duplicating a descriptor");
            SegmentLink link = new SegmentLink(lock, linkDir, place.file, Files.stat(file).id());
            // Locked before it is filled in. `ramway clean`, which takes away what has a dot-name and no lock, may be faster.
            if (!Lock.tryLock(lock, Facts.BYTE_IN_USE, Lock.Mode.SHARED)) {
                throw RetryLater.raced(VANISHED);
            }
            if (request.roleByte() != SegmentLink.NO_ROLE) {
                link.takeRole(request.roleByte(), request.kind());
            }
            segment = new Segment(file, write(file), link);
            dotName = name;
            dotDir = nameDir;
        } catch (SysException e) {
            closeAll(linkDir, nameDir);
            throw Errors.os(e, "locking and writing the new file");
        } catch (Throwable t) {
            closeAll(linkDir, nameDir);
            throw t;
        }
    }

    private static void closeAll(int linkDir, int nameDir) {
        Files.close(linkDir);
        if (nameDir >= 0) {
            Files.close(nameDir);
        }
    }

    /** Gives a new file its permissions, its space and its header page. */
    private SegmentHeader write(int file) throws SysException {
        SegmentSpec spec = request.spec();
        Errors.checked(Files.chmod(file, request.options().mode()), "setting the file's mode");
        SegmentMapping.allocate(file, spec, request.options().numaNode());
        Errors.checked(Files.truncate(file, spec.size()), "sizing the file");
        byte[] page = SegmentHeader.format(spec);
        Files.writeAt(file, page, 0);
        return SegmentHeader.check(page, spec.size());
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
