package dev.ramway;

import java.lang.foreign.MemorySegment;

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
public final class Receiver extends ReceivingEnd<Received> {
    private Receiver(Attachment a, Options options) {
        super(a, options, line(a, Role.CONSUMER), line(a, Role.PRODUCER));
        // Acquire: pairs with the producer's publish, and with the last consumer's release.
        head = Words.getLongAcquire(ring + Facts.OFF_HEAD);
        tail = Words.getLongAcquire(ring + Facts.OFF_TAIL);
        released = head;
        if (!Layout.positionsAgree(tail, head, capacity, a.align)) {
            throw fail(ErrorKind.CORRUPT);
        }
        announce();
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

    @Override
    long releasedWord() {
        return ring + Facts.OFF_HEAD;
    }

    @Override
    long closeSeenWord() {
        return mine + Facts.OFF_ROLE_CLOSE_SEEN;
    }

    @Override
    Received received(long word) {
        return new Received((int) (word >>> 32), copiedTag, (int) word);
    }

    @Override
    int header() {
        return Facts.FRAME_HEADER;
    }

    @Override
    long payloadMax() {
        return Facts.MESSAGE_MAX;
    }

    /**
     * Copies each byte of the next frame once and decides by none of them in the ring: a peer that rewrites what it sent cannot
     * disturb it. It gives the frame's first word, leaves its tag in copiedTag, and leaves.
     */
    @Override
    long copy(Holder h, byte[] array, MemorySegment memory, long room) {
        long at = data + (head & mask);
        long word = Words.getLong(at);
        copiedTag = Words.getLong(at + Facts.FRAME_TAG);
        long length = word & 0xFFFF_FFFFL;
        long size = frameSize(length);
        if (isImpossible(length, size, tail - head)) {
            throw corruptFrame(h);
        }
        try {
            if (length > room) {
                throw tooLong(length, room);
            }
            if (array != null) {
                Words.copyOut(at + Facts.FRAME_HEADER, array, 0, (int) length);
            } else {
                Words.copyOut(at + Facts.FRAME_HEADER, memory, length);
            }
            head += size;
            giveBack();
        } finally {
            leave(h);
        }
        return word;
    }
}
