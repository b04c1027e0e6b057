package dev.ramway;

import dev.ramway.sys.Futex;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.locks.LockSupport;

/**
 * A stretch of named memory that any number of processes have mapped, with a count of notifications to wait for.
 *
 * <p>Ramway brings no order into what they write: use a {@link VarHandle} of a {@link ValueLayout} for what needs one, or
 * {@link #signal} and {@link #await}: what was written before a signal is seen after the await that it ended.
 *
 * {@snippet :
 * try (Region region = Region.openOrCreate("prices", 4096)) {
 *     int seen = region.notifications();
 *     region.data().set(ValueLayout.JAVA_LONG, 0, 42);
 *     region.signal();
 *     region.await(seen);
 * }
 * }
 *
 * <p>All calls may be made from any number of threads, virtual ones too. A handle that is forgotten releases the region when it
 * is collected, and with it every {@link #data} and {@link #buffer} that came from it.
 */
public final class Region implements AutoCloseable {

    /** How long close waits for a buffer of the region that is being read or written by the system, in ns. */
    private static final long BORROWED_NANOS = 1_000_000_000L;
    private static final long PAUSE_NANOS = 100_000;

    static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

    private final String name;
    private final SegmentMapping mapping;
    private final long length;
    private final boolean readOnly;
    private final WaitMode mode;
    /**
     * The segments that users hold are of this arena, which unmaps nothing: once it is closed every access of theirs throws, and
     * then nobody but a wait can be using the memory.
     */
    private final Arena users = Arena.ofShared();
    /** What goes when this handle is unreachable. */
    private final Cleaner.Cleanable rest;
    private final MemorySegment data;
    private final MemorySegment header;

    private final Mutex lock = new Mutex();
    /** How many waits use the memory, through segments that are not of that arena. */
    private volatile int waits;
    private volatile boolean closed;
    /** The name was removed. */
    private volatile boolean gone;
    /** When a wait last checked whether the name is still there. The clock is the handle's, so that short waits check too. */
    private volatile long nameChecked = System.nanoTime();

    private Region(String name, SegmentMapping mapping, long length, boolean readOnly, WaitMode mode) {
        this.name = name;
        this.mapping = mapping;
        this.length = length;
        this.readOnly = readOnly;
        this.mode = mode;
        data = mapping.data().asSlice(0, length).reinterpret(length, users, this::keep);
        header = mapping.header().reinterpret(mapping.header().byteSize(), users, null);
        rest = HandleCleaner.watch(this, mapping::release);
    }

    /**
     * Creates a region of zeros, with the default options.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param length in bytes, at least 1
     * @return the region
     * @throws RamwayException as {@link #create(String, long, Options)}
     */
    public static Region create(String name, long length) {
        return create(name, length, Options.DEFAULT);
    }

    /**
     * Creates a region of zeros. It lives until its last handle is closed, in any process.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param length in bytes, at least 1
     * @param options how; those about rings do not count here
     * @return the region
     * @throws RamwayException INVALID_ARGUMENT for a length below 1 or an impossible name, ALREADY_EXISTS if the name is
     *     in use or holds what is persistent, NO_SPACE if there is not enough memory or room in its file system, UNSUPPORTED for
     *     a file system without shared mappings or a setting that an option needs, PERMISSION_DENIED, INTERRUPTED, OS
     */
    public static Region create(String name, long length, Options options) {
        return open(name, OpenMode.CREATE, length, options, false);
    }

    /**
     * Opens a region that is there, for reading and writing, without waiting for it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the region
     * @throws RamwayException as {@link #open(String, Options)}
     */
    public static Region open(String name) {
        return open(name, Options.DEFAULT);
    }

    /**
     * Opens a region that is there, for reading and writing.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the region
     * @throws RamwayException NOT_FOUND if nothing has this name until the time-out, PERMISSION_DENIED, INVALID_ARGUMENT if
     *     it is something else, ABI_MISMATCH or CORRUPT if it is no region of this version; it is left as it is
     */
    public static Region open(String name, Options options) {
        return open(name, OpenMode.OPEN, 0, options, false);
    }

    /**
     * Opens a region, or creates it, with the default options.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param length in bytes, at least 1
     * @return the region
     * @throws RamwayException as {@link #openOrCreate(String, long, Options)}
     */
    public static Region openOrCreate(String name, long length) {
        return openOrCreate(name, length, Options.DEFAULT);
    }

    /**
     * Opens a region, or creates it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param length in bytes, at least 1
     * @param options how
     * @return the region
     * @throws RamwayException as {@link #create(String, long, Options)} and {@link #open(String, Options)}; INVALID_ARGUMENT if
     *     it is there with another length
     */
    public static Region openOrCreate(String name, long length, Options options) {
        return open(name, OpenMode.OPEN_OR_CREATE, length, options, false);
    }

    /**
     * Opens a region that is there, without the permission to write and without waiting for it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the region
     * @throws RamwayException as {@link #openReadOnly(String, Options)}
     */
    public static Region openReadOnly(String name) {
        return openReadOnly(name, Options.DEFAULT);
    }

    /**
     * Opens a region that is there, without the permission to write. Such a handle cannot signal, and waits by polling every
     * millisecond.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the region
     * @throws RamwayException as {@link #open(String, Options)}
     */
    public static Region openReadOnly(String name, Options options) {
        return open(name, OpenMode.OPEN, 0, options, true);
    }

    private static Region open(String name, OpenMode mode, long length, Options options, boolean readOnly) {
        Objects.requireNonNull(name, "name");
        return HandleCleaner.freeingSpace(() -> SegmentRequest.named(name, mode, Facts.KIND_REGION, () -> {
            options.check(mode);
            if (options.capacity() != 0 || options.align() != 0) {
                throw Errors.of(ErrorKind.INVALID_ARGUMENT, (options.capacity() != 0 ? "capacity" : "align")
                        + " is for rings; a region has a length");
            }
            SegmentSpec spec = mode == OpenMode.OPEN ? null
                    : SegmentSpec.region(length, SegmentMapping.granule(options)).named(options.persistent());
            return new SegmentRequest(name, mode, Facts.KIND_REGION, spec, SegmentLink.NO_ROLE, readOnly, options,
                    found -> refuseOther(found.blocks()[0].length(), length)).open(s -> map(name, s, readOnly, options));
        }));
    }

    private static void refuseOther(long there, long wanted) {
        if (wanted != 0 && there != wanted) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "it exists with a length of %d bytes, not the %d asked for", there, wanted);
        }
    }

    private static Region map(String name, Segment segment, boolean readOnly, Options options) {
        BlockGeometry g = segment.header().blocks()[0];
        SegmentMapping mapping = SegmentMapping.map(segment.fd(), g, false, !readOnly, !readOnly, segment.link(), options);
        return new Region(name, mapping, g.length(), readOnly, options.waitMode());
    }

    /**
     * {@return the bytes themselves, for every thread, until the region is closed: then each access throws
     * IllegalStateException}
     *
     * <p>What is written here is there for everybody, and what is read may change while it is read. Of a read-only handle
     * it is read-only. Its first byte is aligned to at least 4096.
     *
     * @throws RamwayException DETACHED if the region is closed
     */
    public MemorySegment data() {
        checkOpen();
        return data;
    }

    /**
     * {@return the bytes as a buffer in native byte order, of at most 2^31 - 1 of them}
     *
     * <p>As {@link #data} otherwise. While a channel reads or writes it, {@link #close} waits.
     *
     * @throws RamwayException DETACHED if the region is closed
     */
    public ByteBuffer buffer() {
        checkOpen();
        try {
            return data.asSlice(0, Math.min(data.byteSize(), Integer.MAX_VALUE)).asByteBuffer().order(ByteOrder.nativeOrder());
        } catch (IllegalStateException e) {
            throw detached();
        }
    }

    /** {@return the number of bytes, as it was asked for when the region was created; also after close} */
    public long length() {
        return length;
    }

    /** {@return whether this handle cannot write} */
    public boolean isReadOnly() {
        return readOnly;
    }

    /** {@return whether this handle is closed} */
    public boolean isClosed() {
        return closed;
    }

    /**
     * Counts one notification and wakes everybody who waits, after everything that this thread wrote before. Never blocks,
     * and makes a system call only if somebody sleeps.
     *
     * @throws RamwayException PERMISSION_DENIED on a read-only handle, DETACHED if the region is closed
     */
    public void signal() {
        if (readOnly) {
            throw Errors.about(Errors.of(ErrorKind.PERMISSION_DENIED, "it was opened read-only"), "signalling the region", name);
        }
        try {
            // Release: a thread that acquires the count sees what was written before.
            int before = (int) WORD.getAndAddRelease(header, word(), Facts.NOTIFY_ONE);
            if ((before & Facts.NOTIFY_WAITING) != 0) {
                wakeAll(header);
            }
        } catch (IllegalStateException e) {
            throw detached();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    /**
     * {@return how many notifications there were, modulo 2^31. What was written before them is visible}
     *
     * @throws RamwayException DETACHED if the region is closed
     */
    public int notifications() {
        try {
            // Acquire: pairs with the release in signal.
            return (int) WORD.getAcquire(header, word()) >>> 1;
        } catch (IllegalStateException e) {
            throw detached();
        }
    }

    /**
     * Waits until the count differs, for as long as it takes. Any number of notifications count as one.
     *
     * @param seen what {@link #notifications} or the last await said before the data was nameChecked at
     * @return the count
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException CLOSED if the region's name was removed meanwhile (nobody can join any more), DETACHED if the
     *     region is closed, also while this waits
     */
    public int await(int seen) throws InterruptedException {
        return await(seen, Long.MAX_VALUE);
    }

    /**
     * Waits until the count differs.
     *
     * @param seen what {@link #notifications} or the last await said before the data was nameChecked at
     * @param timeout the longest wait; zero checks once
     * @return the count
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws TimedOutException if the time-out passed
     * @throws RamwayException as {@link #await(int)}
     */
    public int await(int seen, Duration timeout) throws InterruptedException {
        return await(seen, RingEnd.nanos(timeout));
    }

    private int await(int seen, long nanos) throws InterruptedException {
        long start = System.nanoTime();
        int count = notifications();
        if (count != seen) {
            return count;
        }
        try (var _ = lock.hold()) {
            checkOpen();
            waits++;
        }
        try {
            return new RegionWait(this, seen, start, nanos).await();
        } finally {
            try (var _ = lock.hold()) {
                waits--;
            }
            Reference.reachabilityFence(this);
        }
    }

    /**
     * Ends the use of the region; calls that wait end with DETACHED. The last handle's close removes the name unless the
     * region is persistent. Safe from any thread, and more than once.
     *
     * @throws RamwayException BUSY if the system is reading or writing a {@link #buffer} of it, for a second by now: the
     *     region is still open then
     */
    @Override
    public void close() {
        try (var _ = lock.hold()) {
            if (closed) {
                return;
            }
            closeUsers();
            closed = true;
        }
        // Once in any case: a signal may have been shut out between its count and its wake-up.
        wakeAll(mapping.header());
        // No wait begins any more; one that is just going to sleep is disturbed again.
        while (waits != 0) {
            LockSupport.parkNanos(PAUSE_NANOS);
            wakeAll(mapping.header());
        }
        rest.clean();
    }

    /** The arena's last act, of no effect: what an arena has to run keeps this reachable for as long as its memory is in use. */
    private void keep(MemorySegment memory) {
        Reference.reachabilityFence(this);
    }

    /** Closes the users' arena: after it no access through segments that users know is under way, and none can begin. */
    private void closeUsers() {
        long start = System.nanoTime();
        while (true) {
            try {
                users.close();
                return;
            } catch (IllegalStateException e) {
                if (System.nanoTime() - start > BORROWED_NANOS) {
                    throw Errors.about(Errors.of(ErrorKind.BUSY, "a channel is reading or writing its buffer"), "closing the region",
                            name);
                }
            }
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    /**
     * Wakes everybody who sleeps on the word, without a notification: they check and sleep again. For waits of this handle
     * that have another reason to end, and after a notification. The bit goes first: a waiter that sets it again from now on sleeps
     * on a value that has the notification in it, or checks for the other reason.
     */
    private void wakeAll(MemorySegment through) {
        if (!readOnly) {
            WORD.getAndBitwiseAnd(through, word(), ~Facts.NOTIFY_WAITING);
            Futex.wakeAll(wordAddress());
        }
    }

    /**
     * A waiting thread was interrupted. The virtual machine may call this long after the wait, from the interrupting thread:
     * hence through a segment of the users' arena.
     */
    void interrupt() {
        try {
            wakeAll(header);
        } catch (IllegalStateException e) {
            // Closed: that has woken everybody.
            return;
        }
    }

    /** The word, for waits: they hold the mapping. */
    MemorySegment words() {
        return mapping.header();
    }

    long word() {
        return Facts.BLOCK0 + Facts.OFF_NOTIFY;
    }

    long wordAddress() {
        return mapping.header().address() + word();
    }

    WaitMode mode() {
        return mode;
    }

    /** Whether it is time to check the name again; a caller that gets true checks. */
    boolean isTimeToCheckName() {
        long now = System.nanoTime();
        if (!gone && now - nameChecked < Facts.POLL_INTERVAL_NANOS) {
            return false;
        }
        nameChecked = now;
        return true;
    }

    /** Whether the name is gone, which it stays. */
    boolean vanished() {
        if (!gone) {
            gone = mapping.link().vanished();
        }
        return gone;
    }

    private void checkOpen() {
        if (closed) {
            throw detached();
        }
    }

    RamwayException detached() {
        return Errors.about(Errors.of(ErrorKind.DETACHED, null), "using the region", name);
    }

    RamwayException waitEnded(ErrorKind kind, String text) {
        return Errors.about(Errors.of(kind, text), "waiting for the region", name);
    }
}
