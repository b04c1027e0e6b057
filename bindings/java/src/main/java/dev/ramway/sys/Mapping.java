package dev.ramway.sys;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Mappings of files. What is mapped stays until {@link #unmap}: its segments are of global scope, and that is the caller's to mind. */
public final class Mapping {
    private static final int PROT_NONE = 0;
    private static final int PROT_READ = 1;
    private static final int PROT_WRITE = 2;
    private static final int MAP_SHARED = 1;
    private static final int MAP_PRIVATE = 2;
    private static final int MAP_FIXED = 0x10;
    private static final int MAP_ANONYMOUS = 0x20;
    private static final int MAP_NORESERVE = 0x4000;

    private static final int MMAP = Platform.pick(9, 222);
    private static final int MUNMAP = Platform.pick(11, 215);

    private static final int PAGE_SIZE = askPageSize();
    private static final int PAGE_SIZE_DEFAULT = 4096;
    private static final int AT_PAGESZ = 6;
    private static final long HUGE = 2 << 20;

    private Mapping() {}

    /** The size of a page of memory in bytes. */
    public static int pageSize() {
        return PAGE_SIZE;
    }

    /**
     * Maps bytes of a file, shared. Offset and length are multiples of the page, and the caller has checked that the file
     * holds them.
     *
     * @return the memory; read-only if it is not to be written, because a store would end the process
     * @throws SysException if there is no address space or memory for it
     */
    public static MemorySegment map(int fd, long offset, long length, boolean writable) throws SysException {
        long align = largePage(fd, length);
        if (align <= PAGE_SIZE) {
            return memory(checked(mmap(0, length, protection(writable), MAP_SHARED, fd, offset)), length, writable);
        }
        long at = reserve(length, align);
        mapOver(at, at, length, fd, offset, length, writable);
        return memory(at, length, writable);
    }

    /**
     * Maps bytes of a file twice, back to back: byte i and byte i + capacity are one byte of memory. To be undone with
     * {@link #unmap}. Both numbers are multiples of the page, and the caller has checked that the file holds the bytes.
     *
     * @return the memory, 2 * capacity bytes; read-only if it is not to be written
     * @throws SysException if there is no address space or memory for it
     */
    public static MemorySegment mirror(int fd, long offset, long capacity, boolean writable) throws SysException {
        if (capacity <= 0 || capacity > 1L << 61) {
            throw new SysException(Errno.ENOMEM, "");
        }
        long at = reserve(2 * capacity, largePage(fd, capacity));
        for (int half = 0; half < 2; half++) {
            mapOver(at + half * capacity, at, 2 * capacity, fd, offset, capacity, writable);
        }
        return memory(at, 2 * capacity, writable);
    }

    /**
     * Memory of this process alone, all zero, of which the kernel gives what is written to. To be undone with {@link #unmap}.
     *
     * @throws SysException if there is no address space for it
     */
    public static MemorySegment privately(long length) throws SysException {
        return memory(checked(mmap(0, length, protection(true), MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)), length, true);
    }

    /** There is no system call for it: the kernel tells each process by a number in the vector that starts it. */
    private static int askPageSize() {
        ByteBuffer pairs = ByteBuffer.wrap(Files.bytes("/proc/self/auxv")).order(ByteOrder.nativeOrder());
        while (pairs.remaining() >= 16) {
            long key = pairs.getLong();
            long value = pairs.getLong();
            if (key == AT_PAGESZ) {
                return (int) value;
            }
        }
        // Without /proc. A larger page than this is met at the first mmap, as EINVAL.
        return PAGE_SIZE_DEFAULT;
    }

    private static long mmap(long at, long length, int protection, int flags, int fd, long offset) {
        return Libc.syscall(MMAP, at, length, protection, flags, fd, offset);
    }

    private static void munmap(long at, long length) {
        Libc.syscall(MUNMAP, at, length, 0, 0, 0, 0);
    }

    /** Undoes {@link #map} and {@link #mirror}. Nobody may use the memory any more. */
    public static void unmap(MemorySegment memory) {
        munmap(memory.address(), memory.byteSize());
    }

    private static int protection(boolean writable) {
        return writable ? PROT_READ | PROT_WRITE : PROT_READ;
    }

    /** A mapping as a segment. Right because exactly these bytes have just been mapped. */
    private static MemorySegment memory(long at, long length, boolean writable) {
        MemorySegment whole = MemorySegment.ofAddress(at).reinterpret(length);
        return writable ? whole : whole.asReadOnly();
    }

    private static long checked(long result) throws SysException {
        if (result < 0 && result >= -4095) {
            throw new SysException((int) -result, "");
        }
        return result;
    }

    /** Maps a window of a file inside a reservation, which nobody else uses; on an error the reservation goes. */
    private static void mapOver(long at, long reserved, long reservedLength, int fd, long offset, long length, boolean writable)
            throws SysException {
        try {
            checked(mmap(at, length, protection(writable), MAP_SHARED | MAP_FIXED, fd, offset));
        } catch (SysException e) {
            munmap(reserved, reservedLength);
            throw e;
        }
    }

    /** Takes address space without memory, beginning at a multiple of align (a power of two). */
    private static long reserve(long length, long align) throws SysException {
        long slack = align > PAGE_SIZE ? align : 0;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        long base = checked(mmap(0, length + slack, PROT_NONE, flags, -1, 0));
        if (slack == 0) {
            return base;
        }
        long before = -base & (align - 1);
        long at = base + before;
        // What was only taken to find a multiple goes back; nobody knows of it.
        if (before > 0) {
            munmap(base, before);
        }
        if (slack - before > 0) {
            munmap(at + length, slack - before);
        }
        return at;
    }

    /**
     * The alignment that lets the kernel use huge pages for a mapping: the file's own page on hugetlbfs (where it is a
     * must), else 2 MiB for a mapping that can hold one.
     */
    private static long largePage(int fd, long length) throws SysException {
        Files.FileSystem fs = Files.fileSystem(fd);
        if (fs.type() == FileSystems.HUGETLBFS) {
            return Math.max(fs.blockSize(), PAGE_SIZE);
        }
        return length >= HUGE ? HUGE : PAGE_SIZE;
    }
}
