package dev.ramway;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reserved space in a ring, to be filled in place. Closing it without a commit is an abort, which leaves nothing behind. It
 * holds whatever an earlier message left there. After a commit or close every method throws {@link IllegalStateException}.
 *
 * {@snippet :
 * try (Slot slot = tx.reserve(100)) {
 *     slot.putLong(0, price);
 *     slot.commit(7, 0, 8);
 * }
 * }
 */
public final class Slot extends HeldFrames implements AutoCloseable {
    private final Producer tx;
    /** Where in the mirrored data it begins. */
    private final long at;
    private final int length;

    Slot(Producer tx, CallGuard.Holder holder, long at, int length) {
        super(holder);
        this.tx = tx;
        this.at = at;
        this.length = length;
    }

    @Override
    IllegalStateException gone() {
        return new IllegalStateException("slot used after its commit or close");
    }

    private long at(long offset, long size) {
        if (closed) {
            throw gone();
        }
        if (offset < 0 || offset > length - size) {
            throw new IndexOutOfBoundsException(size + " bytes at " + offset + " of a slot of " + length);
        }
        return at + offset;
    }

    /** The same, in what getters access. */
    private long place(long offset, long size) {
        return tx.offset(at(offset, size));
    }

    /** {@return how many bytes were reserved} */
    public int length() {
        at(0, 0);
        return length;
    }

    /**
     * {@return the room, writable, aligned to the ring's alignment, until commit or close. For the thread that asks, which then
     * has to end the slot, unless {@link RingEnd#shareViews} says otherwise}
     */
    public MemorySegment data() {
        return view(tx, at(0, 0), length);
    }

    /** {@return the room as a buffer in native byte order, until commit or close} */
    public ByteBuffer buffer() {
        return data().asByteBuffer().order(ByteOrder.nativeOrder());
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putByte(long offset, byte value) {
        tx.memory().set(JAVA_BYTE, place(offset, 1), value);
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putShort(long offset, short value) {
        tx.memory().set(JAVA_SHORT_UNALIGNED, place(offset, 2), value);
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putInt(long offset, int value) {
        tx.memory().set(JAVA_INT_UNALIGNED, place(offset, 4), value);
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putLong(long offset, long value) {
        tx.memory().set(JAVA_LONG_UNALIGNED, place(offset, 8), value);
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putFloat(long offset, float value) {
        tx.memory().set(JAVA_FLOAT_UNALIGNED, place(offset, 4), value);
    }

    /**
     * Writes in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putDouble(long offset, double value) {
        tx.memory().set(JAVA_DOUBLE_UNALIGNED, place(offset, 8), value);
    }

    /**
     * Copies an array into the slot.
     *
     * @param offset in bytes
     * @param data what
     */
    public void put(long offset, byte[] data) {
        MemorySegment.copy(data, 0, tx.memory(), JAVA_BYTE, place(offset, data.length), data.length);
    }

    /**
     * Copies memory into the slot.
     *
     * @param offset in bytes
     * @param data what
     */
    public void put(long offset, MemorySegment data) {
        MemorySegment.copy(data, 0, tx.memory(), place(offset, data.byteSize()), data.byteSize());
    }

    /**
     * Sends the message: it is visible when this returns.
     *
     * @param typeId the application's
     * @param tag the application's
     */
    public void commit(int typeId, long tag) {
        endFor(typeId);
        tx.commitSlot(holder, length, typeId, tag, true);
    }

    /**
     * Sends the message: it is visible when this returns. An error (INVALID_ARGUMENT for a length beyond what was reserved or a
     * reserved type id, or what the handle is dead of) aborts the slot.
     *
     * @param typeId the application's
     * @param tag the application's
     * @param length how many of the reserved bytes it has
     */
    public void commit(int typeId, long tag, int length) {
        endFor(typeId);
        commitOf(typeId, tag, length, true);
    }

    /**
     * Makes it a message, visible with the next flush.
     *
     * @param typeId the application's
     * @param tag the application's
     */
    public void commitUnflushed(int typeId, long tag) {
        endFor(typeId);
        tx.commitSlot(holder, length, typeId, tag, false);
    }

    /**
     * Makes it a message, visible with {@link Sender#flush}, with the next flushed message, or when the sender has to wait, finds
     * the ring full or closes.
     *
     * @param typeId the application's
     * @param tag the application's
     * @param length how many of the reserved bytes it has
     */
    public void commitUnflushed(int typeId, long tag, int length) {
        endFor(typeId);
        commitOf(typeId, tag, length, false);
    }

    /** A commit with any type id, Ramway's own too. */
    void finish(int typeId, long tag, int length, boolean flush) {
        endOnce();
        commitOf(typeId, tag, length, flush);
    }

    /**
     * Begins a user's commit. What follows it gets the slot's fields and not the slot: where HotSpot does not compile that into the
     * caller (the flush of a batch, in a loop that rarely comes to it), each slot would have to be made.
     */
    private void endFor(int typeId) {
        if (!Producer.isUsers(typeId)) {
            close();
            throw tx.reserved(typeId);
        }
        endOnce();
    }

    private void endOnce() {
        if (!end(tx)) {
            throw gone();
        }
    }

    private void commitOf(int typeId, long tag, int length, boolean flush) {
        if (length < 0 || length > this.length) {
            tx.abortSlot(holder);
            throw tx.fail(ErrorKind.INVALID_ARGUMENT, "%d bytes committed of a slot of %d", length, this.length);
        }
        tx.commitSlot(holder, length, typeId, tag, flush);
    }

    /** Gives the slot up; nothing of it remains. After a commit it does nothing. */
    @Override
    public void close() {
        // Asked here first: what has never happened here is not compiled, and a view's arena then needs not be made.
        if (!closed && end(tx)) {
            tx.abortSlot(holder);
        }
    }
}
