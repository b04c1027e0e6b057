package dev.ramway;

import java.util.OptionalLong;

/**
 * The sending end of a ring; one per ring, in the whole system.
 *
 * <p>A message is visible to the receiver when the call that sends it returns, and is delivered even if this process is killed
 * right after. No call allocates or enters the kernel unless it waits or wakes somebody who does.
 *
 * <p>One thread at a time may use it, and may hand it to another; a second one at the same time gets an
 * {@link IllegalStateException}. {@link #close}, {@link #peerAlive}, {@link #peerEpoch}, {@link #pendingBytes} and
 * {@link #lastTag} are for any thread. A wait parks a virtual thread, and an interrupt ends it at once.
 *
 * {@snippet :
 * try (Sender tx = Sender.create("ticks", Options.DEFAULT.withCapacity(1 << 20))) {
 *     tx.send(7, "hello".getBytes());
 * }
 * }
 *
 * <p>Every call that sends throws {@link RamwayException} of these kinds, and then nothing of its message was sent: TOO_LARGE
 * for more than {@link #maxMessageLength} bytes; INVALID_ARGUMENT for a reserved type id; CLOSED or PEER_DEAD if there is no
 * room and nobody left to make any (on a bus CLOSED as soon as the peer closed); TIMED_OUT; BUSY while a slot is open; CORRUPT;
 * DETACHED after close.
 */
public final class Sender extends SendingEnd {
    /** The receiver's position as last seen; limit is a capacity more. */
    private long head;
    /** The last committed frame's. */
    private long tag;
    /** Which of the two last-tag records is written next. */
    private int nextLastTag;

    private Sender(Attachment a, Options options) {
        super(a, options, line(a, Role.PRODUCER), line(a, Role.CONSUMER));
        // Acquire: pairs with the last producer's publish and the consumer's release.
        tail = Words.getLongAcquire(ring + Facts.OFF_TAIL);
        head = Words.getLongAcquire(ring + Facts.OFF_HEAD);
        published = tail;
        limit = head + capacity;
        if (!Layout.positionsAgree(tail, head, capacity, a.align)) {
            throw fail(ErrorKind.CORRUPT);
        }
        // Overwrite the record that is not the last frame's, and clear one that a kill left ahead of tail: the next frame may
        // end right there.
        for (int i = 0; i < 2; i++) {
            long at = ring + Facts.OFF_LAST_TAGS + i * Facts.LAST_TAG_SIZE;
            if (Words.getLong(at + Facts.LAST_TAG_END) != tail) {
                Words.setLongRelease(at + Facts.LAST_TAG_END, Facts.NO_POSITION);
            } else if (i == 0) {
                nextLastTag = 1;
            }
        }
        announce();
    }

    /** Takes the producer's role of an attachment (ABI.md, section 6), which is released if that fails. */
    static Sender attach(Attachment attachment, Options options) {
        return attachment.attach(a -> new Sender(a, options));
    }

    private static Sender open(String name, OpenMode mode, Options options) {
        return HandleCleaner.freeingSpace(() -> attach(Attachment.named(name, mode, options, Role.PRODUCER), options));
    }

    /**
     * Makes a ring that must be new, and is its sender. The name ([A-Za-z0-9._-]{1,80}, not starting with a dot, not ending in
     * ".sock") stands in the Ramway directory: RAMWAY_DIR, else /dev/shm/ramway-&lt;euid&gt;. With a "/" in it, it is a path. The
     * name goes when the last handle does, unless messages (or an orderly close) are undelivered.
     *
     * @param name a name, or a path with a '/'
     * @return the sending end
     */
    public static Sender create(String name) {
        return create(name, Options.DEFAULT);
    }

    /**
     * Makes a ring that must be new, and is its sender. The name ([A-Za-z0-9._-]{1,80}, not starting with a dot, not ending in
     * ".sock") stands in the Ramway directory: RAMWAY_DIR, else /dev/shm/ramway-&lt;euid&gt;. With a "/" in it, it is a path. The
     * name goes when the last handle does, unless messages (or an orderly close) are undelivered.
     *
     * @param name a name, or a path with a '/'
     * @param options how
     * @return the sending end
     */
    public static Sender create(String name, Options options) {
        return open(name, OpenMode.CREATE, options);
    }

    /**
     * The sender of a ring that exists, also of one that dead processes left: its messages are still there. NOT_FOUND if there
     * is none, BUSY if it has a sender; see {@link Options#timeout}.
     *
     * @param name a name, or a path with a '/'
     * @return the sending end
     */
    public static Sender open(String name) {
        return open(name, Options.DEFAULT);
    }

    /**
     * The sender of a ring that exists, also of one that dead processes left: its messages are still there. NOT_FOUND if there
     * is none, BUSY if it has a sender; see {@link Options#timeout}.
     *
     * @param name a name, or a path with a '/'
     * @param options how
     * @return the sending end
     */
    public static Sender open(String name, Options options) {
        return open(name, OpenMode.OPEN, options);
    }

    /**
     * The sender of the ring behind a descriptor that this process made by {@link Ring#unnamed(Options)} or has inherited; it stays
     * the caller's, and is needed no more after this.
     *
     * @param fd the descriptor
     * @return the end
     */
    public static Sender fromFd(int fd) {
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
    public static Sender fromFd(int fd, Options options) {
        return HandleCleaner.freeingSpace(() -> attach(Attachment.descriptor(fd, options, Role.PRODUCER), options));
    }

    /**
     * Opens a ring if it exists, and makes it if not. INVALID_ARGUMENT if it exists with another capacity or alignment.
     *
     * @param name a name, or a path with a '/'
     * @return the sending end
     */
    public static Sender openOrCreate(String name) {
        return openOrCreate(name, Options.DEFAULT);
    }

    /**
     * Opens a ring if it exists, and makes it if not. INVALID_ARGUMENT if it exists with another capacity or alignment.
     *
     * @param name a name, or a path with a '/'
     * @param options how
     * @return the sending end
     */
    public static Sender openOrCreate(String name, Options options) {
        return open(name, OpenMode.OPEN_OR_CREATE, options);
    }

    @Override
    int header() {
        return Facts.FRAME_HEADER;
    }

    @Override
    boolean hasPeerChanged() {
        return Words.getInt(peer + Facts.OFF_ROLE_FLAGS) != peerFlags;
    }

    @Override
    void commit(long length, int typeId, long tag) {
        long at = data + (tail & mask);
        // Non-atomic stores: nobody reads them before tail is published.
        Words.setLong(at, length | (long) typeId << 32);
        Words.setLong(at + Facts.FRAME_TAG, tag);
        if (this.tag != tag) {
            this.tag = tag;
        }
        tail += frameSize(length);
    }

    @Override
    void flushNow() {
        long end = tail;
        if (end == published) {
            return;
        }
        if (tag != 0) {
            // A kill between any two of the stores leaves this record not matching tail, and the other one matching if it did.
            long at = ring + Facts.OFF_LAST_TAGS + nextLastTag * Facts.LAST_TAG_SIZE;
            nextLastTag ^= 1;
            Words.setLong(at + Facts.LAST_TAG_END, end);
            Words.setLong(at + Facts.LAST_TAG_TAG, tag);
        }
        published = end;
        publish(ring + Facts.OFF_TAIL, end);
        if (peerSleepsOrChanged()) {
            wakeOrUpdate();
        }
    }

    @Override
    long positionWord() {
        return ring + Facts.OFF_HEAD;
    }

    @Override
    long positionSeen() {
        return head;
    }

    /**
     * Whether need bytes are free, after a load of the shared position. It is checked here, once, before it is used: it may
     * only move forward, up to what was published, in whole alignment steps.
     */
    @Override
    boolean ready() {
        // Acquire: the consumer's last reads of the space it gave back come before our writes to it.
        long now = Words.getLongAcquire(ring + Facts.OFF_HEAD);
        long moved = now - head;
        if (Long.compareUnsigned(moved, published - head) > 0 || (moved & alignMask) != 0) {
            throw corrupt();
        }
        head = now;
        limit = now + capacity;
        return need <= limit - tail;
    }

    @Override
    OptionalLong lastTagNow() {
        long end = Words.getLongAcquire(ring + Facts.OFF_TAIL);
        if (end == Layout.firstPosition(align())) {
            return OptionalLong.empty();
        }
        for (int i = 0; i < 2; i++) {
            long at = ring + Facts.OFF_LAST_TAGS + i * Facts.LAST_TAG_SIZE;
            if (Words.getLong(at + Facts.LAST_TAG_END) == end) {
                return OptionalLong.of(Words.getLong(at + Facts.LAST_TAG_TAG));
            }
        }
        return OptionalLong.of(0);
    }
}
