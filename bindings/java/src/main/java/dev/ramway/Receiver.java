package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.concurrent.Flow;
import java.util.stream.Stream;

/** The receiving end of a ring; one per ring, in the whole system. */
public final class Receiver extends RingEnd {
    Receiver() {}

    /**
     * Creates a ring.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the receiving end
     */
    public static Receiver create(String name) {
        return create(name, Options.DEFAULT);
    }

    /**
     * Creates a ring.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the receiving end
     */
    public static Receiver create(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Attaches to a ring that is there.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the receiving end
     */
    public static Receiver open(String name) {
        return open(name, Options.DEFAULT);
    }

    /**
     * Attaches to a ring that is there.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the receiving end
     */
    public static Receiver open(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * Attaches to a ring, or creates it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @return the receiving end
     */
    public static Receiver openOrCreate(String name) {
        return openOrCreate(name, Options.DEFAULT);
    }

    /**
     * Attaches to a ring, or creates it.
     *
     * @param name a name in RAMWAY_DIR, or a path with a '/'
     * @param options how
     * @return the receiving end
     */
    public static Receiver openOrCreate(String name, Options options) {
        throw new UnsupportedOperationException();
    }

    /**
     * The next message. Waits for it.
     *
     * @return the message; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws ClosedException if the sender closed and everything was received
     * @throws PeerDeadException if the sender died and everything was received
     */
    public Message recv() throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * The next message. Waits for it.
     *
     * @param timeout the longest wait
     * @return the message; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws TimedOutException if none came
     */
    public Message recv(Duration timeout) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** {@return the next message, or null if there is none now} */
    public Message tryRecv() {
        throw new UnsupportedOperationException();
    }

    /**
     * Up to max messages, those that are there. Waits for the first.
     *
     * @param max at least 1
     * @return the batch; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Batch recvBatch(int max) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Up to max messages, those that are there. Waits for the first.
     *
     * @param max at least 1
     * @param timeout the longest wait
     * @return the batch; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Batch recvBatch(int max, Duration timeout) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return up to max messages, those that are there, or null if there is none now}
     *
     * @param max at least 1
     */
    public Batch tryRecvBatch(int max) {
        throw new UnsupportedOperationException();
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TooLarge if it does not fit: it stays.
     *
     * @param target where to
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Received recvInto(byte[] target) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TooLarge if it does not fit: it stays.
     *
     * @param target where to
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Received recvInto(MemorySegment target) throws InterruptedException {
        throw new UnsupportedOperationException();
    }

    /** {@return the messages until the sender closes, each good until the next one is asked for; PeerDead is thrown} */
    public Stream<Message> stream() {
        throw new UnsupportedOperationException();
    }

    /** {@return the messages until the sender closes, each good until the next one is asked for; PeerDead is thrown} */
    public Iterable<Message> messages() {
        throw new UnsupportedOperationException();
    }

    /** {@return copies of the messages, for one subscriber, from a virtual thread} */
    public Flow.Publisher<MessageCopy> publisher() {
        throw new UnsupportedOperationException();
    }

    /**
     * Calls back once, from a thread of Ramway's, when there may be a message, or the sender is gone.
     *
     * @param callback must not block
     * @return to call it off by closing it
     */
    public Registration whenReadable(Runnable callback) {
        throw new UnsupportedOperationException();
    }

    /** {@return how many bytes, headers and padding included, are there to be received} */
    public long pendingBytes() {
        throw new UnsupportedOperationException();
    }

    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
