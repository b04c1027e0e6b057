package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;

/**
 * What is asked of the memory behind a segment's data. What was asked for is verified or is an error; nothing is a hint
 * that may have been ignored.
 *
 * @param hugePages put it into huge pages
 * @param lockMemory lock it in memory
 * @param prefault fault it in now
 */
public record Placement(boolean hugePages, boolean lockMemory, boolean prefault) {
    private static final int MADV_HUGEPAGE = 14;
    private static final int MADV_POPULATE_READ = 22;
    private static final int MADV_POPULATE_WRITE = 23;
    private static final int MADV_COLLAPSE = 25;

    private static final String THP = "/sys/kernel/mm/transparent_hugepage";

    private static final int MADVISE = Platform.pick(28, 233);
    private static final int MLOCK = Platform.pick(149, 228);
    private static final VarHandle WORD = JAVA_INT.varHandle();

    /**
     * The size of the pages that {@link #hugePages} means.
     *
     * @throws SysException.Setting where there are none
     */
    public static long hugePageSize() throws SysException.Setting {
        String file = THP + "/hpage_pmd_size";
        long size = Space.number(Files.text(file)).orElse(0);
        if (size <= 0 || Long.bitCount(size) != 1) {
            throw new SysException.Setting("this kernel has no transparent huge pages (" + file + " cannot be read)");
        }
        return size;
    }

    /**
     * Does to a live shared mapping what is asked for. The same bytes are mapped {@code copies} times, back to back.
     * Unmapping undoes all of it.
     *
     * @throws SysException that says why not
     */
    public void apply(MemorySegment memory, int copies) throws SysException {
        long at = memory.address();
        long length = memory.byteSize() / copies;
        // Huge pages before everything that faults pages in: what is small then has to be collapsed.
        if (hugePages) {
            useHugePages(at, length, copies);
        }
        if (prefault) {
            populate(memory);
        }
        if (lockMemory) {
            // One copy: the other one's pages are the same, and would count against the limit twice.
            lock(at, length);
        }
    }

    /** 0 or the error. */
    private static int madvise(long at, long length, int advice) {
        return (int) -Libc.syscallAgain(MADVISE, at, length, advice, 0, 0, 0);
    }

    private static void lock(long at, long length) throws SysException {
        int errno = (int) -Libc.syscallAgain(MLOCK, at, length, 0, 0, 0, 0);
        if (errno == 0) {
            return;
        }
        long limit = Limits.of(Limits.LOCKED_MEMORY);
        long locked = Space.field(Files.text("/proc/self/status"), "VmLck:").orElse(0) << 10;
        // EAGAIN is mlock's other way to say that there is no memory.
        throw new SysException(errno == Errno.EAGAIN ? Errno.ENOMEM : errno, "lockMemory: mlock of " + length
                + " bytes; this process has " + locked + " bytes locked, RLIMIT_MEMLOCK is "
                + (limit == Long.MAX_VALUE ? "unlimited" : limit + " bytes")
                + " (raise it with ulimit -l, LimitMEMLOCK= or CAP_IPC_LOCK)");
    }

    private static void populate(MemorySegment memory) throws SysException {
        boolean writable = !memory.isReadOnly();
        int errno = madvise(memory.address(), memory.byteSize(), writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
        if (errno == Errno.EINVAL) {
            // Before Linux 5.14. The pages are allocated, so that no fault is fatal.
            touch(memory, writable);
        } else if (errno != 0) {
            throw new SysException(errno, "prefault of " + memory.byteSize() + " bytes");
        }
    }

    /** Faults every page in, for writing if it is writable, and leaves its bytes as they are. */
    static void touch(MemorySegment memory, boolean writable) {
        for (long at = 0; at < memory.byteSize(); at += Mapping.pageSize()) {
            // Other processes write here by stores that an atomic never tears.
            int value = (int) WORD.getVolatile(memory, at);
            if (writable) {
                // Writes back what is there; if that fails, another has just written, which faults as well.
                WORD.compareAndSet(memory, at, value, value);
            }
        }
    }

    private static void useHugePages(long at, long length, int copies) throws SysException {
        long huge = hugePageSize();
        if (at % huge != 0 || length % huge != 0) {
            throw new SysException.Setting("hugePages: the data (" + length + " bytes) is not made of whole huge pages of "
                    + huge + " bytes; the process that creates the segment has to ask for them too");
        }
        long whole = length * copies;
        // Whether the advice is followed is checked below, so that kernels which refuse the one but not the other are
        // served.
        int advised = madvise(at, whole, MADV_HUGEPAGE);
        // Puts the file's small pages together (Linux 6.1+) and maps the result, whatever shmem_enabled says except deny.
        // EAGAIN: a page was in use just then.
        int collapsed = madvise(at, whole, MADV_COLLAPSE);
        for (int again = 0; again < 3 && collapsed == Errno.EAGAIN; again++) {
            collapsed = madvise(at, whole, MADV_COLLAPSE);
        }
        long have = mappedHuge(at, whole);
        if (have >= whole) {
            return;
        }
        String setting = Files.text(THP + "/shmem_enabled").trim();
        throw new SysException.Setting("hugePages: " + have + " of " + whole + " mapped bytes are in huge pages (MADV_HUGEPAGE: "
                + said(advised) + "; MADV_COLLAPSE, Linux 6.1+: " + said(collapsed) + "); " + THP + "/shmem_enabled is \""
                + (setting.isEmpty() ? "unreadable" : setting) + "\": set it to \"advise\" as root");
    }

    private static String said(int errno) {
        return errno == 0 ? "ok" : Errno.text(errno);
    }

    /** How many bytes of the mappings in this address range the kernel maps by huge pages. */
    static long mappedHuge(long start, long length) {
        long total = 0;
        boolean inside = false;
        for (String line : Files.text("/proc/self/smaps").split("\n")) {
            String[] words = line.trim().split("\\s+");
            if (words[0].endsWith(":")) {
                if (inside && words.length > 1 && (words[0].equals("ShmemPmdMapped:") || words[0].equals("FilePmdMapped:"))) {
                    total += Space.number(words[1]).orElse(0) << 10;
                }
                continue;
            }
            String[] range = words[0].split("-", 2);
            if (range.length == 2) {
                long first = Long.parseUnsignedLong(range[0], 16);
                long end = Long.parseUnsignedLong(range[1], 16);
                // Unsigned: the last lines are of kernel addresses.
                inside = Long.compareUnsigned(first, start + length) < 0 && Long.compareUnsigned(end, start) > 0;
            }
        }
        return total;
    }
}
