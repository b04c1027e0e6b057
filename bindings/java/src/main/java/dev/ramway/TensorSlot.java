package dev.ramway;

import java.lang.foreign.MemorySegment;

/**
 * Room for the elements of one tensor, to be written in place; the rules are those of a {@link Slot}. Closing it without a
 * commit is an abort, which leaves nothing behind.
 *
 * {@snippet :
 * try (TensorSlot slot = tx.reserveTensor(ElementType.FLOAT32, 480, 640)) {
 *     slot.data().setAtIndex(ValueLayout.JAVA_FLOAT, 0, 1f);
 *     slot.commit(0);
 * }
 * }
 */
public final class TensorSlot implements AutoCloseable {
    private final Slot slot;
    private final MemorySegment data;
    private final int length;

    private TensorSlot(Slot slot, MemorySegment data, int length) {
        this.slot = slot;
        this.data = data;
        this.length = length;
    }

    /** A slot for a tensor, after a wait for room of up to {@code nanos}. */
    static TensorSlot open(Producer sender, ElementType type, long[] shape, long nanos) throws InterruptedException {
        return in(sender.openSlot(Tensor.room(type, shape, sender.maxMessageLength()), nanos), type, shape);
    }

    /** A slot for a tensor, or null if the ring is full. */
    static TensorSlot openNow(Producer sender, ElementType type, long[] shape) {
        Slot slot = sender.openSlotNow(Tensor.room(type, shape, sender.maxMessageLength()));
        return slot == null ? null : in(slot, type, shape);
    }

    private static TensorSlot in(Slot slot, ElementType type, long[] shape) {
        try {
            MemorySegment payload = slot.data();
            long offset = Tensor.writeHeader(payload, type, shape);
            long length = Tensor.length(type, shape);
            return new TensorSlot(slot, payload.asSlice(offset, length), (int) (offset + length));
        } catch (Throwable t) {
            slot.close();
            throw t;
        }
    }

    /** Refuses elements that are not as many as the shape says. What is no tensor at all is refused where a slot is opened. */
    static void check(ElementType type, long[] shape, MemorySegment elements) {
        long length = Tensor.length(type, shape);
        if (length >= 0 && length != elements.byteSize()) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "%d bytes for %s of the shape %s: that is %d",
                    elements.byteSize(), type.formatName(), Tensor.show(shape), length);
        }
    }

    /** Sends these elements. */
    void commit(long tag, MemorySegment elements) {
        // An error leaves nothing: the slot is given up.
        try (this) {
            data.copyFrom(elements);
            commit(tag);
        }
    }

    /**
     * {@return the room for the elements, in C order, little-endian, writable until commit or close} Its address is a multiple
     * of 64. For the thread that opened the slot.
     */
    public MemorySegment data() {
        return data;
    }

    /**
     * Sends the tensor: it is visible when this returns.
     *
     * @param tag the application's
     */
    public void commit(long tag) {
        slot.finish(Tensor.TYPE_ID, tag, length, true);
    }

    /**
     * Makes it a message, visible with the next {@link Sender#flush}.
     *
     * @param tag the application's
     */
    public void commitUnflushed(long tag) {
        slot.finish(Tensor.TYPE_ID, tag, length, false);
    }

    /** Gives the slot up, unless it was committed; nothing of it remains. */
    @Override
    public void close() {
        slot.close();
    }
}
