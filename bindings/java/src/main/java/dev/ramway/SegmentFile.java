package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.FileId;
import dev.ramway.sys.FileSystems;
import dev.ramway.sys.Files;
import dev.ramway.sys.Stat;

/**
 * The file behind a segment: what may be opened, on which file systems, and whether a name still leads to it.
 *
 * @param fd its descriptor, the caller's to close
 * @param stat what it was when it was opened
 */
record SegmentFile(int fd, Stat stat) {
    /**
     * A file's first page, zero beyond its end.
     *
     * @param bytes {@link Layout#HEADER_SIZE} of them
     * @param fileSize the file's length
     */
    record Page(byte[] bytes, long fileSize) {
        /** What it says, checked. */
        SegmentHeader header() {
            return SegmentHeader.check(bytes, fileSize);
        }
    }

    /** The header, checked; on an error the file is closed. */
    SegmentHeader headerOrClose() {
        try {
            return readPage(fd).header();
        } catch (Throwable t) {
            Files.close(fd);
            throw t;
        }
    }

    /** Opens a regular file without side effects on anything else. null: nothing has this name. */
    static SegmentFile open(SegmentName name, boolean writable) {
        Stat named = Errors.during("checking the name", () -> Files.statAt(name.dir, name.file));
        if (named == null) {
            return null;
        }
        checkRegular(named);
        int fd = Files.openAt(name.dir, name.file, writable);
        if (fd == -Errno.ENOENT) {
            return null;
        }
        Errors.checked(fd, "opening the file");
        try {
            Stat stat = Errors.during("checking the file", () -> Files.stat(fd));
            checkRegular(stat);
            return new SegmentFile(fd, stat);
        } catch (Throwable t) {
            Files.close(fd);
            throw t;
        }
    }

    private static void checkRegular(Stat stat) {
        if (!stat.isRegular()) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "this is %s, not a segment; it is left as it is", stat.describe());
        }
    }

    /** Refuses file systems that cannot do what segments rest on. */
    static void checkFileSystem(int fd, boolean allowDisk) {
        FileSystems.Judged fs = Errors.during("asking for the file system's type", () -> FileSystems.judge(fd));
        if (fs.fitness() == FileSystems.Fitness.UNSUITABLE) {
            throw Errors.fail(ErrorKind.UNSUPPORTED,
                    "this is a file system of type %s, where shared mappings or locks cannot be relied on; use %s", fs.name(),
                    Files.GOOD_PLACE);
        }
        if (fs.fitness() == FileSystems.Fitness.DISK && !allowDisk) {
            throw Errors.fail(ErrorKind.UNSUPPORTED,
                    "this is a file system on a disk, whose pages are written back; use %s, or allowDisk", Files.GOOD_PLACE);
        }
    }

    /** Reads a file's first page and its length. No mapping: a truncated file is an error and not a signal. */
    static Page readPage(int fd) {
        return Errors.during("reading the header page", () -> {
            Stat stat = Files.stat(fd);
            byte[] page = new byte[Facts.HEADER_SIZE];
            Files.readAt(fd, page, page.length, 0);
            return new Page(page, stat.size());
        });
    }

    /** Whether the name still leads to this file. */
    static boolean leadsTo(int dir, String file, FileId id) {
        return Errors.orElse(false, () -> {
            Stat stat = Files.statAt(dir, file);
            return stat != null && stat.id().equals(id);
        });
    }
}
