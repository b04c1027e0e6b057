package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** Reserved space in a ring, to be filled in place. Closing it without a commit is an abort, which leaves nothing behind. */
public final class Slot implements AutoCloseable {
    Slot() {}

    /** {@return how many bytes were reserved} */
    public int length() {
        throw new UnsupportedOperationException();
    }

    /** {@return the room, writable, until commit or close} */
    public MemorySegment data() {
        throw new UnsupportedOperationException();
    }

    /** {@return the room as a buffer in native byte order, until commit or close} */
    public ByteBuffer buffer() {
        throw new UnsupportedOperationException();
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putByte(long offset, byte value) {
        throw new UnsupportedOperationException();
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putShort(long offset, short value) {
        throw new UnsupportedOperationException();
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putInt(long offset, int value) {
        throw new UnsupportedOperationException();
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putLong(long offset, long value) {
        throw new UnsupportedOperationException();
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putFloat(long offset, float value) {
        throw new UnsupportedOperationException();
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putDouble(long offset, double value) {
        throw new UnsupportedOperationException();
    }

    /**
     * Copies an array into the slot.
     *
     * @param offset in bytes
     * @param data what
     */
    public void put(long offset, byte[] data) {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends the message: it is visible when this returns.
     *
     * @param typeId the application's
     * @param tag the application's
     */
    public void commit(int typeId, long tag) {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends the message: it is visible when this returns.
     *
     * @param typeId the application's
     * @param tag the application's
     * @param length how many of the reserved bytes it has
     */
    public void commit(int typeId, long tag, int length) {
        throw new UnsupportedOperationException();
    }

    /**
     * Makes it a message, visible with the next flush.
     *
     * @param typeId the application's
     * @param tag the application's
     */
    public void commitUnflushed(int typeId, long tag) {
        throw new UnsupportedOperationException();
    }

    /**
     * Makes it a message, visible with the next flush.
     *
     * @param typeId the application's
     * @param tag the application's
     * @param length how many of the reserved bytes it has
     */
    public void commitUnflushed(int typeId, long tag, int length) {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
