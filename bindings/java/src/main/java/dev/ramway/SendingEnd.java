package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.OptionalLong;

/** What the sending end of a ring and the publisher of a topic have in common: every way to send. */
public abstract sealed class SendingEnd extends Producer permits Sender, Publisher {
    SendingEnd(Attachment a, Options options, long mine, long peer) {
        super(a, options, mine, peer);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data an array, the whole of it
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, byte[] data) throws InterruptedException {
        put(typeId, 0, data, FOREVER);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data an array, the whole of it
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, long tag, byte[] data) throws InterruptedException {
        put(typeId, tag, data, FOREVER);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data an array, the whole of it
     * @param timeout the longest wait
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, long tag, byte[] data, Duration timeout) throws InterruptedException {
        put(typeId, tag, data, nanos(timeout));
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data an array, the whole of it
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, byte[] data) {
        return putNow(typeId, 0, data);
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data an array, the whole of it
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, long tag, byte[] data) {
        return putNow(typeId, tag, data);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data a buffer, from its position to its limit; neither is changed
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, ByteBuffer data) throws InterruptedException {
        put(typeId, 0, MemorySegment.ofBuffer(data), FOREVER);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data a buffer, from its position to its limit; neither is changed
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, long tag, ByteBuffer data) throws InterruptedException {
        put(typeId, tag, MemorySegment.ofBuffer(data), FOREVER);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data a buffer, from its position to its limit; neither is changed
     * @param timeout the longest wait
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, long tag, ByteBuffer data, Duration timeout) throws InterruptedException {
        put(typeId, tag, MemorySegment.ofBuffer(data), nanos(timeout));
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data a buffer, from its position to its limit; neither is changed
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, ByteBuffer data) {
        return putNow(typeId, 0, MemorySegment.ofBuffer(data));
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data a buffer, from its position to its limit; neither is changed
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, long tag, ByteBuffer data) {
        return putNow(typeId, tag, MemorySegment.ofBuffer(data));
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data memory, the whole segment
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, MemorySegment data) throws InterruptedException {
        put(typeId, 0, data, FOREVER);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data memory, the whole segment
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, long tag, MemorySegment data) throws InterruptedException {
        put(typeId, tag, data, FOREVER);
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data memory, the whole segment
     * @param timeout the longest wait
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, long tag, MemorySegment data, Duration timeout) throws InterruptedException {
        put(typeId, tag, data, nanos(timeout));
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data memory, the whole segment
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, MemorySegment data) {
        return putNow(typeId, 0, data);
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param tag the application's: a correlation id, a time stamp, a key
     * @param data memory, the whole segment
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, long tag, MemorySegment data) {
        return putNow(typeId, tag, data);
    }

    /**
     * Room for a message, to be filled in place. Waits for it.
     *
     * @param length in bytes
     * @return the slot; close without commit is an abort
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Slot reserve(int length) throws InterruptedException {
        return openSlot(length, FOREVER);
    }

    /**
     * Room for a message, to be filled in place. Waits for it.
     *
     * @param length in bytes
     * @param timeout the longest wait
     * @return the slot; close without commit is an abort
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Slot reserve(int length, Duration timeout) throws InterruptedException {
        return openSlot(length, nanos(timeout));
    }

    /**
     * Room for a message, if there is now.
     *
     * @param length in bytes
     * @return the slot, or null if the ring is full
     */
    public Slot tryReserve(int length) {
        return openSlotNow(length);
    }

    /**
     * {@link #sendBatch(int, long, List)} with tag 0.
     *
     * @param typeId the application's
     * @param messages what to send
     * @return how many were sent
     * @throws InterruptedException if the thread is interrupted while it waits for room for the first one
     */
    public int sendBatch(int typeId, List<byte[]> messages) throws InterruptedException {
        return putAll(typeId, 0, messages, FOREVER);
    }

    /**
     * Sends messages and publishes them together, or earlier where the ring fills up: then it waits for room. Where one cannot be
     * sent this ends with how many were, and the next call meets the error (or, where it was an interrupt, the thread is still
     * interrupted); it throws only if none was sent.
     *
     * @param typeId the application's
     * @param tag the application's, the same for all
     * @param messages what to send
     * @return how many were sent
     * @throws InterruptedException if the thread is interrupted while it waits for room for the first one
     */
    public int sendBatch(int typeId, long tag, List<byte[]> messages) throws InterruptedException {
        return putAll(typeId, tag, messages, FOREVER);
    }

    /**
     * {@link #sendBatch(int, long, List)} with a limit for all of it.
     *
     * @param typeId the application's
     * @param tag the application's, the same for all
     * @param messages what to send
     * @param timeout the longest wait
     * @return how many were sent
     * @throws InterruptedException if the thread is interrupted while it waits for room for the first one
     * @throws TimedOutException if none was sent
     */
    public int sendBatch(int typeId, long tag, List<byte[]> messages, Duration timeout) throws InterruptedException {
        return putAll(typeId, tag, messages, nanos(timeout));
    }

    /**
     * Sends one message gathered from several pieces.
     *
     * @param typeId the application's
     * @param tag the application's
     * @param parts the pieces
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public void sendVectored(int typeId, long tag, MemorySegment... parts) throws InterruptedException {
        gather(typeId, tag, parts);
    }

    /**
     * Room for the elements of a tensor, to be filled in place. Waits for it as {@link #reserve(int)} does.
     *
     * @param type of the elements
     * @param shape the outermost dimension first; without any it is one element
     * @return the slot; close without commit is an abort
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException INVALID_ARGUMENT for more than 32 dimensions, or if the product of those other than 0 and of the
     *     element's size is 2^63 or more; TOO_LARGE if the elements and 71 bytes, and 8 more for each dimension, are more than
     *     {@link #maxMessageLength}; the others of {@link #reserve(int)}
     */
    public TensorSlot reserveTensor(ElementType type, long... shape) throws InterruptedException {
        return TensorSlot.open(this, type, shape, FOREVER);
    }

    /**
     * {@link #reserveTensor(ElementType, long...)} with a limit.
     *
     * @param type of the elements
     * @param shape the outermost dimension first; without any it is one element
     * @param timeout the longest wait
     * @return the slot; close without commit is an abort
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public TensorSlot reserveTensor(ElementType type, long[] shape, Duration timeout) throws InterruptedException {
        return TensorSlot.open(this, type, shape, nanos(timeout));
    }

    /**
     * Room for the elements of a tensor, if there is now.
     *
     * @param type of the elements
     * @param shape the outermost dimension first; without any it is one element
     * @return the slot, or null if the ring is full
     */
    public TensorSlot tryReserveTensor(ElementType type, long... shape) {
        return TensorSlot.openNow(this, type, shape);
    }

    /**
     * Sends a tensor by a copy of its elements, and waits for room.
     *
     * @param type of the elements
     * @param shape the outermost dimension first; without any it is one element
     * @param tag the application's
     * @param elements in C order, little-endian
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     * @throws RamwayException those of {@link #reserveTensor(ElementType, long...)}, and INVALID_ARGUMENT if there are not as many
     *     elements as the shape says
     */
    public void sendTensor(ElementType type, long[] shape, long tag, MemorySegment elements) throws InterruptedException {
        TensorSlot.check(type, shape, elements);
        TensorSlot.open(this, type, shape, FOREVER).commit(tag, elements);
    }

    /**
     * {@link #sendTensor(ElementType, long[], long, MemorySegment)} with a limit.
     *
     * @param type of the elements
     * @param shape the outermost dimension first; without any it is one element
     * @param tag the application's
     * @param elements in C order, little-endian
     * @param timeout the longest wait
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void sendTensor(ElementType type, long[] shape, long tag, MemorySegment elements, Duration timeout)
            throws InterruptedException {
        TensorSlot.check(type, shape, elements);
        TensorSlot.open(this, type, shape, nanos(timeout)).commit(tag, elements);
    }

    /**
     * Sends a tensor by a copy of its elements if there is room now.
     *
     * @param type of the elements
     * @param shape the outermost dimension first; without any it is one element
     * @param tag the application's
     * @param elements in C order, little-endian
     * @return false if the ring is full
     */
    public boolean trySendTensor(ElementType type, long[] shape, long tag, MemorySegment elements) {
        TensorSlot.check(type, shape, elements);
        TensorSlot slot = TensorSlot.openNow(this, type, shape);
        if (slot != null) {
            slot.commit(tag, elements);
        }
        return slot != null;
    }

    /** Makes every {@link Slot#commitUnflushed} so far visible, also while a slot is open. Never waits. */
    public void flush() {
        flushAll();
    }

    /**
     * {@return the tag of the last message that is visible to receivers (0 if it was sent without one), by any sender of
     * this ring; empty before the first, and once the handle is closed. A restarted producer asks this where to go on. Any
     * thread may ask}
     */
    public OptionalLong lastTag() {
        return tagAtTail();
    }

    /**
     * {@return how many bytes, headers and padding included, are visible to the receiver and not released. It may have changed
     * when this returns. Any thread may ask; 0 once the handle is closed}
     */
    public long pendingBytes() {
        return bytesBetween();
    }

    /**
     * Calls back once, from a thread of Ramway's, when there may be room for a message of this length, or the receiver is gone,
     * or this handle is closed: at once if it is so already. One callback may be outstanding; a blocking call of this handle
     * brings it about early. After it, {@link #trySend} says what it was.
     *
     * @param length in bytes
     * @param callback must not block
     * @return to call it off by closing it
     */
    public Registration whenWritable(int length, Runnable callback) {
        return whenRoom(length, Objects.requireNonNull(callback, "callback"));
    }

    /**
     * Gives the role up without telling the receiver that this was all: it is told PeerDead, as if this process had been killed,
     * so that half a stream does not pass for a whole one. What was committed is delivered; an open slot is not, and its end
     * lets the role go. On a pair this is close, because there only a close tells.
     */
    public void abandon() {
        giveUp();
    }

    /**
     * Flushes, tells the receiver that this was all, and gives the role up. While a slot is open, its commit (which still sends
     * it) or close finishes this. {@inheritDoc}
     */
    @Override
    public void close() {
        shut();
    }
}
