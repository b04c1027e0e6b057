package dev.ramway;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_LONG_UNALIGNED;

import java.lang.foreign.MemorySegment;

/**
 * Messages that are written in place one after another and become visible together: at {@link #flush}, at close, or earlier
 * where the ring fills up. The cheapest way to send many, because where the code around it is compiled with it the position
 * stays in a register from message to message. For the thread that made it; no other call of its sender sends meanwhile.
 *
 * {@snippet :
 * try (SendBatch batch = tx.startBatch()) {
 *     for (long price : prices) {
 *         batch.add(7, 0, 8);
 *         batch.putLong(0, price);
 *     }
 * }
 * }
 */
public final class SendBatch implements AutoCloseable {
    private final Sender tx;
    private final Gate.Holder holder;
    /** Where the next frame begins; the sender's own follows at a flush. */
    private long tail;
    /** Up to where there is room. */
    private long limit;
    /** The payload of the message added last, in the mirrored data, and its length. */
    private long at;
    private int length;
    private long tag;
    private boolean closed;

    SendBatch(Sender tx, Gate.Holder holder, long tail, long limit) {
        this.tx = tx;
        this.holder = holder;
        this.tail = tail;
        this.limit = limit;
    }

    /** The memory is mapped as long as its thread has not closed this. */
    private void check() {
        if (closed) {
            throw new IllegalStateException("batch used after close");
        }
        if (holder.thread != Thread.currentThread()) {
            throw new WrongThreadException("a batch is for the thread that began it");
        }
    }

    /**
     * Adds a message, to be filled by the put methods until the next one is added. Waits for room, after a flush. It holds
     * whatever an earlier message left there. If it throws, nothing of this message is sent, and the earlier ones are.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's
     * @param length in bytes
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public void add(int typeId, long tag, int length) throws InterruptedException {
        check();
        long size = tx.frameSize(length);
        // Positions wrap; what is left is less than 2^62.
        if (length < 0 || length > tx.longest || size > limit - tail || !Producer.isUsers(typeId)) {
            this.length = 0;
            tx.growBatch(typeId, tail, this.tag, length);
            limit = tx.batchLimit();
        }
        long place = tail & tx.mask;
        Words.setLong(tx.data + place, length & 0xFFFF_FFFFL | (long) typeId << 32);
        Words.setLong(tx.data + place + Layout.FRAME_TAG, tag);
        at = tx.data + place + Layout.FRAME_HEADER;
        this.length = length;
        this.tag = tag;
        tail += size;
    }

    /**
     * Adds a message with a copy of an array. Otherwise like {@link #add(int, long, int)}.
     *
     * @param typeId the application's
     * @param tag the application's
     * @param data the whole of it
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public void add(int typeId, long tag, byte[] data) throws InterruptedException {
        add(typeId, tag, data.length);
        Words.copyIn(data, 0, at, data.length);
    }

    private long at(long offset, int size) {
        check();
        if (offset < 0 || offset > length - size) {
            throw new IndexOutOfBoundsException(size + " bytes at " + offset + " of a message of " + length);
        }
        return at + offset;
    }

    /**
     * Writes into the message added last, in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putByte(long offset, byte value) {
        Words.ALL.set(JAVA_BYTE, at(offset, 1), value);
    }

    /**
     * Writes into the message added last, in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putInt(long offset, int value) {
        Words.ALL.set(JAVA_INT_UNALIGNED, at(offset, 4), value);
    }

    /**
     * Writes into the message added last, in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putLong(long offset, long value) {
        Words.ALL.set(JAVA_LONG_UNALIGNED, at(offset, 8), value);
    }

    /**
     * Writes into the message added last, in native byte order, at any offset.
     *
     * @param offset in bytes
     * @param value what
     */
    public void putDouble(long offset, double value) {
        Words.ALL.set(JAVA_DOUBLE_UNALIGNED, at(offset, 8), value);
    }

    /**
     * Copies memory into the message added last.
     *
     * @param offset in bytes
     * @param data what
     */
    public void put(long offset, MemorySegment data) {
        long size = data.byteSize();
        check();
        if (offset < 0 || offset > length - size) {
            throw new IndexOutOfBoundsException(size + " bytes at " + offset + " of a message of " + length);
        }
        Words.copyIn(data, at + offset, size);
    }

    /** Makes every message added so far visible; nothing more can be put into the last one. Never waits. */
    public void flush() {
        check();
        length = 0;
        tx.flushBatch(tail, tag);
    }

    /** Makes every message visible and ends the batch. Closing twice is fine. */
    @Override
    public void close() {
        if (!closed) {
            check();
            closed = true;
            tx.endBatch(holder, tail, tag);
        }
    }
}
