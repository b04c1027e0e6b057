package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;

/** Named shared bytes, with notifications. */
public final class Region implements AutoCloseable {
    Region() {}

    /**
     * Creates a region of zeros.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param length in bytes, at least 1
     * @param options how
     * @return the region
     */
    public static Region create(String name, long length, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Opens a region that is there.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the region
     */
    public static Region open(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Opens a region, or creates it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param length in bytes, at least 1
     * @param options how
     * @return the region
     */
    public static Region openOrCreate(String name, long length, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Opens a region that is there, for reading only.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the region
     */
    public static Region openReadOnly(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /** {@return the bytes, for every thread, until the region is closed} */
    public MemorySegment data() {
        throw new UnsupportedOperationException();
    }

    /** {@return the bytes as a buffer in native byte order, of at most 2^31 - 1 of them} */
    public ByteBuffer buffer() {
        throw new UnsupportedOperationException();
    }

    /** {@return the number of bytes} */
    public long length() {
        throw new UnsupportedOperationException();
    }

    /** Counts one notification and wakes everybody who waits. */
    public void signal() {
        throw new UnsupportedOperationException();
    }

    /** {@return how many notifications there were, modulo 2^31} */
    public int notifications() {
        throw new UnsupportedOperationException();
    }

    /**
     * Waits until the count differs.
     *
     * @param seen what {@link #notifications} said before the data was looked at
     * @return the count
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public int await(int seen) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Waits until the count differs.
     *
     * @param seen what {@link #notifications} said before the data was looked at
     * @param timeout the longest wait
     * @return the count
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public int await(int seen, Duration timeout) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
