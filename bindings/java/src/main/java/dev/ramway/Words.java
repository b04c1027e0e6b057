package dev.ramway;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.Locale;

/**
 * Words of mapped memory by their address, in a handle's own calls. An access costs one instruction, because segment and
 * layout are constants; what keeps the memory mapped meanwhile is the {@link CallGuard}, and what keeps an address inside is
 * arithmetic on positions that were checked. Users' views are segments of their own, with bounds and a life.
 */
final class Words {
    /** All addresses. */
    static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);
    private static final MemorySegment READ_ONLY = ALL.asReadOnly();
    private static final VarHandle LONG = JAVA_LONG.varHandle();
    private static final VarHandle INT = JAVA_INT.varHandle();

    /**
     * Whether a release store stays before an acquire load that follows it, without a fence. The language does not promise
     * it; C2, C1 and the interpreter of HotSpot put a barrier for the compiler around every ordered access of memory outside
     * of the heap. Of other virtual machines and compilers that is not known: there every publish fences (docs/adr/0022).
     */
    static final boolean KEEP_ORDER = isHotSpot();

    private Words() {}

    private static boolean isHotSpot() {
        String machine = System.getProperty("java.vm.name", "");
        String all = (machine + ' ' + System.getProperty("java.vm.version", "") + ' '
                + System.getProperty("java.vendor.version", "")).toLowerCase(Locale.ROOT);
        return (machine.contains("HotSpot") || machine.contains("OpenJDK")) && !all.contains("graal") && !all.contains("jvmci");
    }

    static long getLong(long address) {
        // Opaque: read exactly once, so that a peer that rewrites it cannot pass a check with one value and be used with another.
        return (long) LONG.getOpaque(ALL, address);
    }

    static long getLongAcquire(long address) {
        return (long) LONG.getAcquire(ALL, address);
    }

    /** For memory that nobody reads before a later release store. */
    static void setLong(long address, long value) {
        ALL.set(JAVA_LONG, address, value);
    }

    static void setLongRelease(long address, long value) {
        LONG.setRelease(ALL, address, value);
    }

    /** A full fence too, as the next two are. */
    static long getAndAdd(long address, long delta) {
        return (long) LONG.getAndAdd(ALL, address, delta);
    }

    static long getAndOr(long address, long bits) {
        return (long) LONG.getAndBitwiseOr(ALL, address, bits);
    }

    static boolean compareAndSet(long address, long expected, long value) {
        return LONG.compareAndSet(ALL, address, expected, value);
    }

    static int getInt(long address) {
        return (int) INT.getOpaque(ALL, address);
    }

    static int getIntAcquire(long address) {
        return (int) INT.getAcquire(ALL, address);
    }

    /** Sequentially consistent, and with its full fence never on the hot path. */
    static void setInt(long address, int value) {
        INT.setVolatile(ALL, address, value);
        VarHandle.fullFence();
    }

    /** Memory as a user sees it: with bounds, and with an arena's life. Inlined, a confined arena and its view cost nothing. */
    static MemorySegment view(long address, long length, boolean writable, Arena arena) {
        return (writable ? ALL : READ_ONLY).asSlice(address, length).reinterpret(length, arena, null);
    }

    /** Copies into a slot, of whose room the caller knows. */
    static void copyIn(byte[] from, int offset, long to, int length) {
        MemorySegment.copy(from, offset, ALL, java.lang.foreign.ValueLayout.JAVA_BYTE, to, length);
    }

    /** Copies into a slot, of whose room the caller knows. */
    static void copyIn(MemorySegment from, long to, long length) {
        MemorySegment.copy(from, 0, ALL, to, length);
    }

    /** Copies a frame that was checked to memory of this process's own. */
    static void copy(long from, long to, long length) {
        MemorySegment.copy(ALL, from, ALL, to, length);
    }

    /** Copies out of a frame that was checked. */
    static void copyOut(long from, byte[] to, int offset, int length) {
        MemorySegment.copy(ALL, java.lang.foreign.ValueLayout.JAVA_BYTE, from, to, offset, length);
    }

    /** Copies out of a frame that was checked. */
    static void copyOut(long from, MemorySegment to, long length) {
        MemorySegment.copy(ALL, from, to, 0, length);
    }
}
