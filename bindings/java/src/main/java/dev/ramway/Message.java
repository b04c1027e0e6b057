package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/** A received message: a view of the shared memory until it is closed. */
public final class Message implements AutoCloseable {
    Message() {}

    /** {@return the application's type id, an unsigned number} */
    public int typeId() {
        throw new UnsupportedOperationException();
    }

    /** {@return the application's tag} */
    public long tag() {
        throw new UnsupportedOperationException();
    }

    /** {@return the length of the payload in bytes} */
    public int length() {
        throw new UnsupportedOperationException();
    }

    /** {@return the payload where it lies, read-only, for this thread, until the message is closed} */
    public MemorySegment data() {
        throw new UnsupportedOperationException();
    }

    /** {@return the payload as a read-only buffer in native byte order, until the message is closed} */
    public ByteBuffer buffer() {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return a byte in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public byte getByte(long offset) {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return a short in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public short getShort(long offset) {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return a int in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public int getInt(long offset) {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return a long in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public long getLong(long offset) {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return a float in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public float getFloat(long offset) {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return a double in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public double getDouble(long offset) {
        throw new UnsupportedOperationException();
    }

    /**
     * Copies the payload, as much as fits.
     *
     * @param target where to
     * @return how many bytes that were
     */
    public int copyTo(byte[] target) {
        throw new UnsupportedOperationException();
    }

    /** {@return a copy of the payload} */
    public byte[] toByteArray() {
        throw new UnsupportedOperationException();
    }

    /** {@return a copy that any thread may keep} */
    public MessageCopy copy() {
        throw new UnsupportedOperationException();
    }

    /** {@return the message as a tensor; InvalidArgument if it is none} */
    public Tensor tensor() {
        throw new UnsupportedOperationException();
    }

    /** Gives the message back. Every view of it is dead from here on. Closing twice is fine. */
    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
