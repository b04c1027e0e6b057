package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Objects;
import java.util.Spliterator;
import java.util.Spliterators;
import java.util.concurrent.Flow;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * What the receiving end of a ring and a subscriber of a topic have in common: every way to receive.
 *
 * @param <R> what a receive into the caller's memory says of the message
 */
public abstract sealed class ReceivingEnd<R> extends Consumer permits Receiver, TopicReader {
    /** How many messages a batch has at most where nothing else is asked for. */
    public static final int BATCH = Facts.BATCH_DEFAULT;

    ReceivingEnd(Attachment a, Options options, long mine, long peer) {
        super(a, options, mine, peer);
    }

    /** What was copied last, of whose frame this is the first word. */
    abstract R received(long word);

    /**
     * The next message. Waits for it.
     *
     * @return the message; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws ClosedException if the sender closed and everything was received
     * @throws PeerDeadException if the sender died and everything was received
     */
    public Message recv() throws InterruptedException {
        return take(FOREVER);
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
        return take(nanos(timeout));
    }

    /** {@return the next message, or null if there is none now} */
    public Message tryRecv() {
        return takeNow();
    }

    /**
     * Up to {@link #BATCH} messages, those that are there, released together. Waits for the first.
     *
     * @return the batch
     * @throws InterruptedException if the thread is interrupted while it waits; nothing was received
     */
    public Batch recvBatch() throws InterruptedException {
        return batch(takeMany(BATCH, FOREVER));
    }

    /**
     * Up to max messages, those that are there. Waits for the first. The handle keeps 32 bytes for each, which the next batch
     * uses again.
     *
     * @param max at least 1
     * @return the batch; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Batch recvBatch(int max) throws InterruptedException {
        return batch(takeMany(max, FOREVER));
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
        return batch(takeMany(max, nanos(timeout)));
    }

    /** {@return up to {@link #BATCH} messages, those that are there now, or null if there is none} */
    public Batch tryRecvBatch() {
        return tryRecvBatch(BATCH);
    }

    /**
     * {@return up to max messages, those that are there, or null if there is none now}
     *
     * @param max at least 1
     */
    public Batch tryRecvBatch(int max) {
        int count = takeManyNow(max);
        return count == 0 ? null : batch(count);
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TOO_LARGE if it does not fit: it stays. Each byte
     * is copied once: the one way to receive that a peer cannot disturb by rewriting what it sent.
     *
     * @param target where to
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public R recvInto(byte[] target) throws InterruptedException {
        return received(into(target, FOREVER));
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @param timeout the longest wait
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public R recvInto(byte[] target, Duration timeout) throws InterruptedException {
        return received(into(target, nanos(timeout)));
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public R recvInto(MemorySegment target) throws InterruptedException {
        return received(into(target, FOREVER));
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @param timeout the longest wait
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public R recvInto(MemorySegment target, Duration timeout) throws InterruptedException {
        return received(into(target, nanos(timeout)));
    }

    /**
     * Receives into memory of the caller's, if something is there now. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @return what, or null if there is no message now
     */
    public R tryRecvInto(byte[] target) {
        long word = intoNow(target, MemorySegment.NULL);
        return word == NOTHING ? null : received(word);
    }

    /**
     * Receives into memory of the caller's, if something is there now. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @return what, or null if there is no message now
     */
    public R tryRecvInto(MemorySegment target) {
        long word = intoNow(null, target);
        return word == NOTHING ? null : received(word);
    }

    /**
     * The messages until the sender closes, each good until the next one is asked for, in any way. An interrupt ends it
     * with the kind INTERRUPTED and leaves the thread's flag set.
     *
     * @return a sequential stream; one that is not read to its end gives its last message back when it is closed, or when the
     *     receiver is used again
     */
    public Stream<Message> stream() {
        MessageIterator loop = new MessageIterator(this);
        return StreamSupport.stream(
                Spliterators.spliteratorUnknownSize(loop, Spliterator.ORDERED | Spliterator.NONNULL), false).onClose(loop::drop);
    }

    /**
     * The messages until the sender closes, each good until the next one is asked for, in any way. An interrupt ends it
     * with the kind INTERRUPTED and leaves the thread's flag set.
     *
     * @return for one loop; 56 bytes are allocated for each message
     */
    public Iterable<Message> messages() {
        return () -> new MessageIterator(this);
    }

    /**
     * Copies of the messages, from a virtual thread that receives only what was asked for and ends with the subscription. A
     * second subscriber while there is one is refused. The stream completes when the sender closes, and fails as a receive does.
     *
     * @return the publisher; until its subscription ends the receiver is its, but for close
     */
    public Flow.Publisher<MessageCopy> publisher() {
        return new MessagePublisher(this);
    }

    /**
     * Calls back once, from a thread of Ramway's, when there may be a message, or the sender is gone, or this handle is closed:
     * at once if it is so already. One callback may be outstanding; a blocking call of this handle brings it about early. After
     * it, {@link #tryRecv} says what it was.
     *
     * @param callback must not block
     * @return to call it off by closing it
     */
    public Registration whenReadable(Runnable callback) {
        return whenMessage(Objects.requireNonNull(callback, "callback"));
    }

    /**
     * {@return how many bytes, headers and padding included, are published and not released. It may have changed when this
     * returns. Any thread may ask; 0 once the handle is closed}
     */
    public long pendingBytes() {
        return bytesBetween();
    }

    /**
     * Tells the sender that nothing more will be read, and gives the role up. What is not released stays for the next receiver
     * of a named ring. {@inheritDoc}
     */
    @Override
    public void close() {
        // Left by a loop that has ended early, of this thread or of one that is no more: nobody else would give it back.
        dropLooped();
        shut();
    }
}
