package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;

/** The sending end of a ring; one per ring, in the whole system. */
public final class Sender extends RingEnd {
    Sender() {}

    /**
     * Creates a ring.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the sending end
     */
    public static Sender create(String name) {
        return create(name, Options.DEFAULT);
    }

    /**
     * Creates a ring.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the sending end
     */
    public static Sender create(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Attaches to a ring that is there.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the sending end
     */
    public static Sender open(String name) {
        return open(name, Options.DEFAULT);
    }

    /**
     * Attaches to a ring that is there.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the sending end
     */
    public static Sender open(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Attaches to a ring, or creates it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the sending end
     */
    public static Sender openOrCreate(String name) {
        return openOrCreate(name, Options.DEFAULT);
    }

    /**
     * Attaches to a ring, or creates it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the sending end
     */
    public static Sender openOrCreate(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data an array, the whole of it
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, byte[] data) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data an array, the whole of it
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, byte[] data) {
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data a buffer, from its position to its limit; neither is changed
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, ByteBuffer data) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data a buffer, from its position to its limit; neither is changed
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, ByteBuffer data) {
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
    }

    /**
     * Sends a message, and waits for room.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data memory, the whole segment
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was sent
     */
    public void send(int typeId, MemorySegment data) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends a message if there is room now.
     *
     * @param typeId the application's, below {@link Ring#RESERVED_TYPE_IDS}
     * @param data memory, the whole segment
     * @return false if the ring is full
     */
    public boolean trySend(int typeId, MemorySegment data) {
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
    }

    /**
     * Room for a message, to be filled in place. Waits for it.
     *
     * @param length in bytes
     * @return the slot; close without commit is an abort
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Slot reserve(int length) throws InterruptedException {
        throw new UnsupportedOperationException();
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
        throw new UnsupportedOperationException();
    }

    /**
     * Room for a message, if there is now.
     *
     * @param length in bytes
     * @return the slot, or null if the ring is full
     */
    public Slot tryReserve(int length) {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends messages and publishes them together.
     *
     * @param typeId the application's
     * @param messages what to send
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public void sendBatch(int typeId, List<byte[]> messages) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Sends one message gathered from several pieces.
     *
     * @param typeId the application's
     * @param tag the application's
     * @param parts the pieces
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public void sendGathered(int typeId, long tag, MemorySegment... parts) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** Makes every {@link Slot#commitUnflushed} so far visible. Never waits. */
    public void flush() {
        throw new UnsupportedOperationException();
    }

    /** {@return the tag of the last message that is visible to receivers, by whichever sender; empty before the first} */
    public OptionalLong lastTag() {
        throw new UnsupportedOperationException();
    }

    /** {@return how many bytes, headers and padding included, the receiver has not released} */
    public long pendingBytes() {
        throw new UnsupportedOperationException();
    }

    /**
     * Calls back once, from a thread of Ramway's, when there may be room for a message of this length, or the receiver is gone.
     *
     * @param length in bytes
     * @param callback must not block
     * @return to call it off by closing it
     */
    public Registration whenWritable(int length, Runnable callback) {
        throw new UnsupportedOperationException();
    }

    /** Gives the role up without telling the receiver that this was all: it is told PeerDead. */
    public void abandon() {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
