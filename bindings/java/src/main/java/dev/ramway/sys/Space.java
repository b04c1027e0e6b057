package dev.ramway.sys;

import java.util.List;
import java.util.OptionalLong;

/** Taking the space of a file, so that what is too big is an error now and not a signal later. */
public final class Space {
    // Long enough that checking the limits costs little, short enough that a full machine is noticed.
    private static final long STEP = 16 << 20;
    // Left to page tables, the process itself and everybody else, at most; of a small limit a 32nd part.
    private static final long HEADROOM = 16 << 20;

    private static final int FALLOCATE = Platform.pick(285, 47);

    private Space() {}

    /**
     * Takes the space of bytes in a file, growing it where it is shorter, after a check of every limit that a later page
     * fault would meet as SIGBUS or the OOM killer. On failure a part may be taken: throw the file away.
     *
     * @throws SysException.Limit that says which limit is in the way
     * @throws SysException if the kernel refuses for another reason
     */
    public static void allocate(int fd, long offset, long length) throws SysException {
        long end = offset + length;
        if (offset < 0 || length < 0 || end < 0) {
            throw new SysException.Limit(length + " bytes asked at offset " + offset + ": more than any file can hold");
        }
        if (length == 0) {
            return;
        }
        long fileLimit = Limits.of(Limits.FILE_SIZE);
        if (end > fileLimit) {
            throw new SysException.Limit(end + " bytes asked, limited by RLIMIT_FSIZE (ulimit -f) = " + fileLimit + " bytes");
        }
        int type = Files.fileSystem(fd).type();
        // Its pages are memory for as long as it lives, not a cache of a disk.
        boolean inMemory = type == FileSystems.TMPFS || type == FileSystems.RAMFS;
        List<ControlGroup> groups = inMemory ? ControlGroup.ofThisProcess() : List.of();
        for (long at = offset; at < end;) {
            // All that is still missing, so that what can never fit is refused before it has starved others.
            check(fd, inMemory, groups, end - at);
            long step = Math.min(end - at, STEP);
            // On a signal the kernel gives the step's pages back, and it is made again; signals are rarer than steps.
            int result = (int) Libc.syscallAgain(FALLOCATE, fd, 0, at, step, 0, 0);
            if (result != 0) {
                throw new SysException(-result, "allocating " + length + " bytes (" + (at - offset) + " done)");
            }
            at += step;
        }
    }

    /** Whether {@code needed} more bytes are available now. A limit that cannot be read does not limit. */
    private static void check(int fd, boolean inMemory, List<ControlGroup> groups, long needed) throws SysException {
        Files.FileSystem fs = Files.fileSystem(fd);
        // A memfd, and a tmpfs mounted with size=0, count no blocks: no limit of the file system's.
        if (fs.blocks() != 0) {
            long fragments = Math.min(fs.available(), Long.MAX_VALUE / Math.max(fs.fragment(), 1));
            compare(needed, fragments * fs.fragment(), "its file system's free space (df)");
        }
        if (!inMemory) {
            return;
        }
        String meminfo = Files.text("/proc/meminfo");
        OptionalLong total = field(meminfo, "MemTotal:");
        OptionalLong available = field(meminfo, "MemAvailable:");
        if (total.isPresent() && available.isPresent()) {
            long free = lessHeadroom(available.getAsLong() << 10, total.getAsLong() << 10);
            compare(needed, free, "the machine's MemAvailable (/proc/meminfo)");
        }
        for (ControlGroup group : groups) {
            ControlGroup.Room room = group.room();
            if (room != null) {
                compare(needed, lessHeadroom(room.left(), room.limit()),
                        "the control group's limit (" + group.limitFile() + " = " + room.limit() + ")");
            }
        }
    }

    private static void compare(long needed, long available, String limit) throws SysException.Limit {
        if (needed > available) {
            throw new SysException.Limit(needed + " bytes asked, " + available + " available, limited by " + limit);
        }
    }

    private static long lessHeadroom(long available, long total) {
        return available - Math.min(available, Math.min(total / 32, HEADROOM));
    }

    /** The number after the line that starts with exactly this word. Simple means: this is on every program's way. */
    static OptionalLong field(String text, String name) {
        for (int at = 0; at >= 0 && at < text.length(); at = next(text, at)) {
            if (!text.startsWith(name, at)) {
                continue;
            }
            int begin = at + name.length();
            int end = begin;
            while (end < text.length() && text.charAt(end) == ' ') {
                end++;
            }
            if (end == begin) {
                continue;
            }
            begin = end;
            while (end < text.length() && text.charAt(end) > ' ') {
                end++;
            }
            return number(text.substring(begin, end));
        }
        return OptionalLong.empty();
    }

    /** Where the next line begins, below 0 if there is none. */
    private static int next(String text, int at) {
        int end = text.indexOf('\n', at);
        return end < 0 ? -1 : end + 1;
    }

    static OptionalLong number(String text) {
        try {
            return OptionalLong.of(Long.parseUnsignedLong(text.trim()));
        } catch (NumberFormatException e) {
            return OptionalLong.empty();
        }
    }
}
