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
import java.util.function.Function;

/**
 * A received message: a view of the shared memory (or a {@link Subscriber}'s copy) until it is closed. After that every method,
 * and every access through what {@link #data} and {@link #buffer} gave, throws {@link IllegalStateException}; none ever shows
 * another message's bytes.
 *
 * <p>Getters, copies, {@link #read} and close work from any thread that has the message, one at a time. A peer that is not
 * trusted may change the bytes while they are read: then copy first, with {@link Receiver#recvInto(byte[])}.
 *
 * <p>Where the code that uses a message is compiled together with the receive (a loop, not too large), neither the message nor
 * its arena are ever made, and nothing is allocated; elsewhere a message takes 56 bytes, and {@link #data} 120.
 */
public final class Message extends HeldFrames implements AutoCloseable {
    private final Consumer rx;
    /** What it goes back with, or null. */
    private final Batch batch;
    /** Where in the mirrored data the payload begins. */
    private final long at;
    private final int length;
    private final int typeId;
    private final long tag;

    Message(Consumer rx, CallGuard.Holder holder, Batch batch, long at, int length, int typeId, long tag) {
        super(holder);
        this.rx = rx;
        this.batch = batch;
        this.at = at;
        this.length = length;
        this.typeId = typeId;
        this.tag = tag;
    }

    @Override
    IllegalStateException gone() {
        return new IllegalStateException("message used after close");
    }

    boolean isGone() {
        return batch == null ? closed : batch.closed;
    }

    private void check() {
        if (isGone()) {
            throw gone();
        }
    }

    private long at(long offset, int size) {
        check();
        if (offset < 0 || offset > length - size) {
            throw new IndexOutOfBoundsException(size + " bytes at " + offset + " of a message of " + length);
        }
        return at + offset;
    }

    /** The same, in what getters access. */
    private long place(long offset, int size) {
        return rx.offset(at(offset, size));
    }

    /**
     * {@return what the sender said the payload is, an unsigned number below {@link Ring#RESERVED_TYPE_IDS} for an application's}
     */
    public int typeId() {
        check();
        return typeId;
    }

    /** {@return the sender's tag, 0 if it gave none} */
    public long tag() {
        check();
        return tag;
    }

    /** {@return the message's number: the first one of a topic has 1; 0 on a ring} */
    public long seq() {
        check();
        return rx.seq(at, batch != null);
    }

    /**
     * {@return when a topic's message was published, wall clock, in nanoseconds since 1970; 0 without {@link Topic#timestamps}, and on
     * a ring}
     */
    public long time() {
        check();
        return rx.time(at);
    }

    /** {@return how many messages were lost just before this one, of a topic; 0 on a ring, which loses none} */
    public long lost() {
        check();
        return rx.lostBefore(at, batch != null);
    }

    /** {@return the length of the payload in bytes} */
    public int length() {
        check();
        return length;
    }

    /**
     * {@return the payload where it lies, read-only, aligned to the ring's alignment, until the message is closed. For the
     * thread that asks, which then has to close the message, unless {@link Receiver#shareViews} says otherwise}
     */
    public MemorySegment data() {
        check();
        return batch == null ? view(rx, at, length) : batch.view(rx, at, length);
    }

    /** {@return the payload as a read-only buffer in native byte order, otherwise like {@link #data}} */
    public ByteBuffer buffer() {
        return data().asByteBuffer().order(ByteOrder.nativeOrder());
    }

    /**
     * Shows the payload to a function. The segment is dead when the function has returned, so that any thread may close the
     * message then.
     *
     * @param reader gets the payload, read-only
     * @param <R> what it makes of it
     * @return what the function gave
     */
    public <R> R read(Function<? super MemorySegment, ? extends R> reader) {
        check();
        HeldFrames frames = batch == null ? this : batch;
        boolean first = frames.arena == null;
        MemorySegment payload = frames.view(rx, at, length);
        if (!first) {
            return reader.apply(payload);
        }
        try {
            return reader.apply(payload);
        } finally {
            frames.endViews();
        }
    }

    /**
     * {@return a byte in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public byte getByte(long offset) {
        return rx.memory().get(JAVA_BYTE, place(offset, 1));
    }

    /**
     * {@return a short in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public short getShort(long offset) {
        return rx.memory().get(JAVA_SHORT_UNALIGNED, place(offset, 2));
    }

    /**
     * {@return an int in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public int getInt(long offset) {
        return rx.memory().get(JAVA_INT_UNALIGNED, place(offset, 4));
    }

    /**
     * {@return a long in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public long getLong(long offset) {
        return rx.memory().get(JAVA_LONG_UNALIGNED, place(offset, 8));
    }

    /**
     * {@return a float in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public float getFloat(long offset) {
        return rx.memory().get(JAVA_FLOAT_UNALIGNED, place(offset, 4));
    }

    /**
     * {@return a double in native byte order, from any offset}
     *
     * @param offset in bytes
     */
    public double getDouble(long offset) {
        return rx.memory().get(JAVA_DOUBLE_UNALIGNED, place(offset, 8));
    }

    /**
     * Copies the payload, as much as fits.
     *
     * @param target where to
     * @return how many bytes that were
     */
    public int copyTo(byte[] target) {
        int n = Math.min(length, target.length);
        MemorySegment.copy(rx.memory(), JAVA_BYTE, place(0, 0), target, 0, n);
        return n;
    }

    /** {@return a copy of the payload} */
    public byte[] toByteArray() {
        check();
        byte[] copy = new byte[length];
        copyTo(copy);
        return copy;
    }

    /** A copy of a part. */
    byte[] copyOf(int from, int size) {
        byte[] copy = new byte[size];
        MemorySegment.copy(rx.memory(), JAVA_BYTE, place(from, size), copy, 0, size);
        return copy;
    }

    /** {@return a copy that any thread may keep} */
    public MessageCopy copy() {
        return new MessageCopy(typeId(), tag, toByteArray(), seq(), time(), lost());
    }

    /**
     * {@return the message as a tensor, whose elements lie in it: good as long as the message, and for whom {@link #data} is}
     *
     * @throws RamwayException INVALID_ARGUMENT, with what is wrong, if it is none
     */
    public Tensor tensor() {
        return Tensor.of(typeId(), data());
    }

    /**
     * Gives the message back. Every view of it is dead from here on. Closing twice is fine. A message of a {@link Batch} goes
     * back with that, and not before. It throws {@link WrongThreadException}, and changes nothing, where another thread has a
     * view of it.
     */
    @Override
    public void close() {
        if (batch == null && end(rx)) {
            rx.release(holder);
        }
    }
}
