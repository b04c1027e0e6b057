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
 * The receiving end of a ring; one per ring, in the whole system.
 *
 * <p>A received message is a view of the shared memory, and one message or batch is out at a time: close gives it back, and the
 * next receive before that is BUSY. If this process is killed before the close, the next receiver gets the message again.
 *
 * <p>One thread at a time may use it, and may hand it to another; a second one at the same time gets an
 * {@link IllegalStateException}. {@link #close}, {@link #peerAlive}, {@link #peerEpoch} and {@link #pendingBytes} are for any
 * thread. A wait parks a virtual thread, and an interrupt ends it at once.
 *
 * {@snippet :
 * try (Receiver rx = Receiver.open("ticks")) {
 *     while (true) {
 *         try (Message message = rx.recv()) {
 *             total += message.getLong(0);
 *         }
 *     }
 * } catch (ClosedException end) {
 *     // the sender closed, and everything was received
 * }
 * }
 *
 * <p>A receive throws {@link RamwayException} of these kinds, after the last message: CLOSED if the sender closed, PEER_DEAD if
 * it died (within 200 ms after the kernel has closed its files). On a named ring both end when a successor attaches, so calling
 * again is meaningful; a sender that never attached is waited for. TIMED_OUT; BUSY; CORRUPT; DETACHED after close.
 */
public final class Receiver extends Consumer {
    /** How many messages a batch has at most where nothing else is asked for. */
    public static final int BATCH = Facts.BATCH_DEFAULT;

    private Receiver(Attachment a, Options options) {
        super(a, options);
    }

    /** Takes the consumer's role of an attachment (ABI.md, section 6), which is released if that fails. */
    static Receiver attach(Attachment attachment, Options options) {
        return attachment.attach(a -> new Receiver(a, options));
    }

    private static Receiver open(String name, OpenMode mode, Options options) {
        return HandleCleaner.freeingSpace(() -> attach(Attachment.named(name, mode, options, Role.CONSUMER), options));
    }

    /**
     * Makes a ring that must be new, and is its receiver: either side may make it. See {@link Sender#create(String)}.
     *
     * @param name a name, or a path with a '/'
     * @return the receiving end
     */
    public static Receiver create(String name) {
        return create(name, Options.DEFAULT);
    }

    /**
     * Makes a ring that must be new, and is its receiver: either side may make it. See {@link Sender#create(String, Options)}.
     *
     * @param name a name, or a path with a '/'
     * @param options how
     * @return the receiving end
     */
    public static Receiver create(String name, Options options) {
        return open(name, OpenMode.CREATE, options);
    }

    /**
     * The receiver of a ring that exists. It starts with what is undelivered. NOT_FOUND if there is none, BUSY if it has a
     * receiver; see {@link Options#timeout}.
     *
     * @param name a name, or a path with a '/'
     * @return the receiving end
     */
    public static Receiver open(String name) {
        return open(name, Options.DEFAULT);
    }

    /**
     * The receiver of a ring that exists. It starts with what is undelivered. NOT_FOUND if there is none, BUSY if it has a
     * receiver; see {@link Options#timeout}.
     *
     * @param name a name, or a path with a '/'
     * @param options how
     * @return the receiving end
     */
    public static Receiver open(String name, Options options) {
        return open(name, OpenMode.OPEN, options);
    }

    /**
     * The receiver of the ring behind a descriptor that this process made by {@link Ring#unnamed(Options)} or has inherited; it
     * stays the caller's, and is needed no more after this.
     *
     * @param fd the descriptor
     * @return the end
     */
    public static Receiver fromFd(int fd) {
        return fromFd(fd, Options.DEFAULT);
    }

    /**
     * {@link #fromFd(int)} with options.
     *
     * @param fd the descriptor
     * @param options how
     * @return the end
     * @throws RamwayException INVALID_ARGUMENT if it leads to something else; BUSY if the role is taken; ABI_MISMATCH, CORRUPT
     */
    public static Receiver fromFd(int fd, Options options) {
        return HandleCleaner.freeingSpace(() -> attach(Attachment.descriptor(fd, options, Role.CONSUMER), options));
    }

    /**
     * Opens a ring if it exists, and makes it if not. INVALID_ARGUMENT if it exists with another capacity or alignment.
     *
     * @param name a name, or a path with a '/'
     * @return the receiving end
     */
    public static Receiver openOrCreate(String name) {
        return openOrCreate(name, Options.DEFAULT);
    }

    /**
     * Opens a ring if it exists, and makes it if not. INVALID_ARGUMENT if it exists with another capacity or alignment.
     *
     * @param name a name, or a path with a '/'
     * @param options how
     * @return the receiving end
     */
    public static Receiver openOrCreate(String name, Options options) {
        return open(name, OpenMode.OPEN_OR_CREATE, options);
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
        return takeMany(BATCH, FOREVER);
    }

    /**
     * Up to max messages, those that are there. Waits for the first. The handle keeps 24 bytes for each, which the next batch
     * uses again.
     *
     * @param max at least 1
     * @return the batch; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Batch recvBatch(int max) throws InterruptedException {
        return takeMany(max, FOREVER);
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
        return takeMany(max, nanos(timeout));
    }

    /** {@return up to {@link #BATCH} messages, those that are there now, or null if there is none} */
    public Batch tryRecvBatch() {
        return takeManyNow(BATCH);
    }

    /**
     * {@return up to max messages, those that are there, or null if there is none now}
     *
     * @param max at least 1
     */
    public Batch tryRecvBatch(int max) {
        return takeManyNow(max);
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TOO_LARGE if it does not fit: it stays. Each byte
     * is copied once: the one way to receive that a peer cannot disturb by rewriting what it sent.
     *
     * @param target where to
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Received recvInto(byte[] target) throws InterruptedException {
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
    public Received recvInto(byte[] target, Duration timeout) throws InterruptedException {
        return received(into(target, nanos(timeout)));
    }

    /**
     * Receives into memory of the caller's and gives the message back at once. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @return what
     * @throws InterruptedException if the thread is interrupted while it waits
     */
    public Received recvInto(MemorySegment target) throws InterruptedException {
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
    public Received recvInto(MemorySegment target, Duration timeout) throws InterruptedException {
        return received(into(target, nanos(timeout)));
    }

    /**
     * Receives into memory of the caller's, if something is there now. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @return what, or null if there is no message now
     */
    public Received tryRecvInto(byte[] target) {
        long word = intoNow(target, MemorySegment.NULL);
        return word == NOTHING ? null : received(word);
    }

    /**
     * Receives into memory of the caller's, if something is there now. TOO_LARGE if it does not fit: it stays.
     *
     * @param target where to
     * @return what, or null if there is no message now
     */
    public Received tryRecvInto(MemorySegment target) {
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
