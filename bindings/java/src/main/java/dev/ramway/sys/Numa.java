package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Which NUMA node the pages of shared memory are on. */
public final class Numa {
    private static final String NODES = "/sys/devices/system/node/";
    private static final int MBIND = Platform.pick(237, 235);
    private static final int GET_MEMPOLICY = Platform.pick(239, 236);
    private static final int MPOL_BIND = 2;
    /** Give a node, and that of the page at the address. */
    private static final int NODE_OF_ADDRESS = 1 | 2;
    /** As many nodes as any kernel has. */
    private static final int BITS = 1024;

    private Numa() {}

    /** Whether this machine has the node. */
    public static boolean exists(int node) {
        return node >= 0 && node < BITS && java.nio.file.Files.exists(java.nio.file.Path.of(NODES + "node" + node));
    }

    /** The nodes that this machine has, such as 0-3. */
    public static String nodes() {
        String online = Files.text(NODES + "online").trim();
        return online.isEmpty() ? "0" : online;
    }

    /**
     * Tells a file that these bytes belong on the node: shared memory keeps that with the file, so that it holds for the
     * allocation that follows and for every process.
     *
     * @throws SysException if the kernel refuses
     */
    public static void prefer(int fd, long offset, long length, int node) throws SysException {
        MemorySegment map = Mapping.map(fd, offset, length, false);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mask = arena.allocate(BITS / 8, 8);
            mask.setAtIndex(JAVA_LONG, node / 64, 1L << node % 64);
            // The kernel takes one off the number of bits.
            int errno = (int) -Libc.syscall(MBIND, map.address(), length, MPOL_BIND, mask.address(), BITS + 1, 0);
            if (errno != 0) {
                throw new SysException(errno, "numaNode: binding " + length + " bytes to node " + node);
            }
        } finally {
            Mapping.unmap(map);
        }
    }

    /**
     * Checks where the first, the middle and the last page are.
     *
     * @throws SysException.Setting if they are elsewhere
     * @throws SysException if the kernel does not say
     */
    public static void verify(MemorySegment data, int node) throws SysException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment found = arena.allocate(8, 8);
            for (long at : new long[] {0, data.byteSize() / 2, data.byteSize() - 1}) {
                int errno = (int) -Libc.syscall(GET_MEMPOLICY, found.address(), 0, 0, data.address() + at, NODE_OF_ADDRESS, 0);
                if (errno != 0) {
                    throw new SysException(errno, "numaNode: asking where a page is");
                }
                if (found.get(JAVA_INT, 0) != node) {
                    throw new SysException.Setting("numaNode: the data is on node " + found.get(JAVA_INT, 0) + ", not on node " + node
                            + "; pages are placed when the segment is made: let the process that makes it ask for the node");
                }
            }
        }
    }
}
