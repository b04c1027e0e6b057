package dev.ramway;

import java.time.Duration;
import java.util.Objects;

/**
 * How a ring or region is to be made or opened, and how its handle waits. Immutable: start from {@link #DEFAULT}.
 *
 * {@snippet :
 * var options = Options.DEFAULT.withCapacity(8 << 20).withTimeout(Duration.ofSeconds(5));
 * try (Sender tx = Sender.create("frames", options)) { }
 * }
 *
 * @param capacity the ring's size in bytes, frame headers (16 bytes a message) included, rounded up to a power of two
 *        of at least a page; 0, the default, is 1 MiB for a new ring and whatever an existing one has
 * @param align what each payload's address is a multiple of, in bytes: a power of two from 16 to 4096; 0, the default,
 *        is 16 for a new ring and whatever an existing one has
 * @param discard lets create, and only that, throw away undelivered messages that dead processes left; never those of live ones
 * @param persistent makes a new segment keep its name when its last handle goes
 * @param allowDisk accepts a file system that is not in memory
 * @param lockMemory locks the data in memory; an error names RLIMIT_MEMLOCK if that is in the way
 * @param hugePages puts the data into huge pages and checks that it is there
 * @param prefault faults the whole data in now instead of on first use
 * @param mode the permission bits of a new segment's file, whatever the umask; 0600 by default
 * @param timeout how long opening waits for a name that is not there yet, and for a role that is taken; not at all by
 *        default
 * @param waitMode how blocking calls of the handle wait; {@link WaitMode#HYBRID} by default
 * @param membarrier whether this process may use membarrier, which takes a fence off each message and costs up to 12
 *        ms once; true by default, false too with RAMWAY_MEMBARRIER=0 in the environment
 * @param numaNode the NUMA node that a new segment's data is put on, and where an existing one's has to be; -1, the default, is any
 */
public record Options(long capacity, int align, boolean discard, boolean persistent, boolean allowDisk,
            boolean lockMemory, boolean hugePages, boolean prefault, int mode, Duration timeout, WaitMode waitMode,
            boolean membarrier, int numaNode) {
    /** 1 MiB, payloads aligned to 16 bytes, hybrid waiting, no waiting for names. */
    public static final Options DEFAULT = new Options(0, 0, false, false, false, false, false, false, 0600,
            Duration.ZERO, WaitMode.HYBRID, true, -1);

    /** What is no value at all is refused here; what cannot be right, where it is used, with the name it was for. */
    public Options {
        Objects.requireNonNull(timeout, "timeout");
        Objects.requireNonNull(waitMode, "waitMode");
    }

    /**
     * {@return the same, but for this}
     *
     * @param capacity the ring's size in bytes, frame headers (16 bytes a message) included, rounded up to a power of
     *        two of at least a page; 0, the default, is 1 MiB for a new ring and whatever an existing one has
     */
    public Options withCapacity(long capacity) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param align what each payload's address is a multiple of, in bytes: a power of two from 16 to 4096; 0, the
     *        default, is 16 for a new ring and whatever an existing one has
     */
    public Options withAlign(int align) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param discard lets create, and only that, throw away undelivered messages that dead processes left; never those of live ones
     */
    public Options withDiscard(boolean discard) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param persistent makes a new segment keep its name when its last handle goes
     */
    public Options withPersistent(boolean persistent) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param allowDisk accepts a file system that is not in memory
     */
    public Options withAllowDisk(boolean allowDisk) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param lockMemory locks the data in memory; an error names RLIMIT_MEMLOCK if that is in the way
     */
    public Options withLockMemory(boolean lockMemory) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param hugePages puts the data into huge pages and checks that it is there
     */
    public Options withHugePages(boolean hugePages) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param prefault faults the whole data in now instead of on first use
     */
    public Options withPrefault(boolean prefault) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param mode the permission bits of a new segment's file, whatever the umask; 0600 by default
     */
    public Options withMode(int mode) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param timeout how long opening waits for a name that is not there yet, and for a role that is taken; not at all
     *        by default
     */
    public Options withTimeout(Duration timeout) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param waitMode how blocking calls of the handle wait; {@link WaitMode#HYBRID} by default
     */
    public Options withWaitMode(WaitMode waitMode) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param membarrier whether this process may use membarrier, which takes a fence off each message and costs up to
     *        12 ms once; true by default, false too with RAMWAY_MEMBARRIER=0 in the environment
     */
    public Options withMembarrier(boolean membarrier) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /**
     * {@return the same, but for this}
     *
     * @param numaNode the NUMA node that a new segment's data is put on, and where an existing one's has to be; -1, the
     *        default, is any
     */
    public Options withNumaNode(int numaNode) {
        return new Options(capacity, align, discard, persistent, allowDisk, lockMemory, hugePages, prefault, mode,
            timeout, waitMode, membarrier, numaNode);
    }

    /** Refuses what would be ignored by an opening of this kind. */
    void check(OpenMode mode) {
        if (mode != OpenMode.CREATE && discard) {
            throw Errors.of(ErrorKind.INVALID_ARGUMENT, "discard applies to create only; open and openOrCreate throw nothing away");
        }
        if (mode == OpenMode.OPEN && (persistent || this.mode != DEFAULT.mode)) {
            throw Errors.of(ErrorKind.INVALID_ARGUMENT, (persistent ? "persistent" : "mode")
                    + " applies where a segment is made; open takes what is there");
        }
        if (numaNode != -1) {
            SegmentMapping.checkNode(numaNode);
        }
    }
}
