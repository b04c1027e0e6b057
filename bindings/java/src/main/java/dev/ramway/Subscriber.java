package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.time.Duration;

/**
 * A subscriber of a topic: a receiver that is one of many. {@link Topic} opens it.
 *
 * <p>Under {@link Policy#RELIABLE} its messages are views of the log until they are closed. Under the other policies, and where the
 * publisher may eject it ({@link Topic#mayEject}), they are copies that lie in memory of this process, which a publisher cannot
 * disturb. What is said of threads and of ends at {@link Receiver} holds here; a subscriber that was ejected gets
 * {@link LaggedException} once, and goes on.
 *
 * {@snippet :
 * try (Subscriber sub = Topic.open("ticks").lossy().subscriber()) {
 *     for (Message message : sub.messages()) {
 *         System.out.println(message.seq() + ": " + message.length() + " bytes, " + message.lost() + " lost before it");
 *     }
 * }
 * }
 */
// How it reads is TopicReader's.
public final class Subscriber extends TopicReader {
    private static final byte[] EMPTY = new byte[0];

    private final String label;

    private Subscriber(Attachment a, Options options, Topic topic) {
        super(a, options, topic);
        label = topic.label;
        announce();
    }

    /** Joins the topic of an attachment, which is released if that fails. */
    static Subscriber attach(Attachment attachment, Options options, Topic topic) {
        return attachment.attach(a -> new Subscriber(a, options, topic));
    }

    // How a subscriber sleeps, comes and goes.

    @Override
    long waitWord() {
        return log.word();
    }

    /** The join has said so. */
    @Override
    void sayAttached() {}

    @Override
    void wakePeer() {
        if (writable) {
            super.wakePeer();
        }
    }

    /** Without write access the publisher cannot be told, and the sleep is short. */
    @Override
    int arm() {
        return writable ? (int) Words.getAndOr(log.word(), Facts.WORD_ASLEEP) | (int) Facts.WORD_ASLEEP
                : (int) Words.getLongAcquire(log.word());
    }

    /** The bit stays, because another subscriber may sleep by it. It costs the publisher one wake-up call. */
    @Override
    void disarm() {}

    @Override
    void wakeSelf() {
        if (writable) {
            log.wakeSubscribers();
        }
    }

    @Override
    long longestSleep() {
        return writable ? Facts.POLL_INTERVAL_NANOS : Facts.UNORDERED_INTERVAL_NANOS;
    }

    /** The publisher loads the flags of slots when the count has changed. */
    @Override
    void loseMembarrier() {
        membarrierCapable = false;
        if (slot != 0) {
            super.loseMembarrier();
            log.countChange();
        }
    }

    /** One that does not gate wakes nobody, so there is nothing to agree on. */
    @Override
    void peerChanged() {
        peerFlags = peerState.flags();
        if (gates) {
            agree((peerFlags & Facts.ROLE_MEMBARRIER_CAPABLE) != 0);
        }
    }

    /** A slot that no longer gates would let the publisher overwrite what is out: it is left at the end of that. */
    @Override
    void closing() {}

    /** Leaves: the slot no longer gates, unless its cursor is to stay. */
    @Override
    void announceClose() {
        if (slot == 0) {
            return;
        }
        long keep = durable ? Facts.SLOT_GATING | Facts.SLOT_DURABLE | Facts.SLOT_EJECTED : 0;
        long state = TopicLog.state(slot);
        // It fails where the publisher ejects it meanwhile.
        while (!TopicLog.changeState(slot, state, TopicJoin.withoutFlags(state) | state & keep)) {
            state = TopicLog.state(slot);
        }
        log.countChange();
        wakePeer();
    }

    /**
     * {@return a copy of the newest message, whatever was received before: the same one again if there is no newer one; null before
     * the first, or where the publisher overtakes this call again and again} Never waits. What {@link #recv} gives next stays as it
     * was, but under {@link Policy#LATEST} that waits for a message newer than this one.
     *
     * @throws RamwayException BUSY while a message is out; CORRUPT, DETACHED
     */
    public MessageCopy latest() {
        Holder h = enter();
        try {
            grown = EMPTY;
            return readNewest(null, null, Long.MAX_VALUE)
                    ? new MessageCopy((int) (log.word >>> 32), log.tag, grown, log.seq, log.time, 0) : null;
        } finally {
            grown = null;
            leave(h);
        }
    }

    /**
     * {@link #latest()} into memory of the caller's: where its code is compiled together with this, nothing is allocated.
     *
     * @param target where to
     * @return what, or null if there is nothing
     * @throws RamwayException TOO_LARGE if it does not fit; BUSY while a message is out; CORRUPT, DETACHED
     */
    public TopicMeta latest(MemorySegment target) {
        long word = newestInto(null, target, target.byteSize());
        return word == NOTHING ? null : new TopicMeta((int) (word >>> 32), log.tag, (int) word, log.seq, log.time, 0);
    }

    /**
     * {@link #latest()} into an array of the caller's: where its code is compiled together with this, nothing is allocated.
     *
     * @param target where to
     * @return what, or null if there is nothing
     * @throws RamwayException TOO_LARGE if it does not fit; BUSY while a message is out; CORRUPT, DETACHED
     */
    public TopicMeta latest(byte[] target) {
        long word = newestInto(target, null, target.length);
        return word == NOTHING ? null : new TopicMeta((int) (word >>> 32), log.tag, (int) word, log.seq, log.time, 0);
    }

    private long newestInto(byte[] array, MemorySegment memory, long room) {
        Holder h = enter();
        try {
            if (!readNewest(array, memory, room)) {
                return NOTHING;
            }
            if (log.length() > room) {
                throw tooLong(log.length(), room);
            }
            return log.word;
        } finally {
            leave(h);
        }
    }

    /**
     * Waits for a message that is newer than the one that {@link #latest()} or this gave last: the newest one then. It is
     * {@link #recv()} in the words of a value that changes.
     *
     * @return the message; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException UNSUPPORTED under another policy, which receives in order
     */
    public Message waitNewer() throws InterruptedException {
        checkLatest();
        return recv();
    }

    /**
     * {@link #waitNewer()} with a limit.
     *
     * @param timeout the longest wait
     * @return the message; close gives it back
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws TimedOutException if none came
     */
    public Message waitNewer(Duration timeout) throws InterruptedException {
        checkLatest();
        return recv(timeout);
    }

    private void checkLatest() {
        if (policy != Policy.LATEST) {
            throw fail(ErrorKind.UNSUPPORTED, "waitNewer on a subscriber that receives in order: use recv, or open it with the policy "
                    + "LATEST");
        }
    }

    /**
     * Moves on so that the next message is the newest one. What that leaves out does not count as lost.
     *
     * @return how many messages that leaves out
     * @throws RamwayException UNSUPPORTED under {@link Policy#LATEST}, which reads the newest one anyway; BUSY while a message is out;
     *     LAGGED if the publisher has ejected this subscriber; CORRUPT, DETACHED
     */
    public long skipToNewest() {
        Holder h = enter();
        try {
            if (policy == Policy.LATEST) {
                throw fail(ErrorKind.UNSUPPORTED, "skipToNewest under the policy LATEST, which reads the newest message anyway");
            }
            ready();
            long end = newestEnd();
            if (end == 0 || log.seq < expected) {
                // It was received.
                return 0;
            }
            long skipped = log.seq - Math.max(expected, 1);
            head = end - log.size();
            tail = end;
            expected = log.seq;
            giveBack();
            return skipped;
        } finally {
            leave(h);
        }
    }

    /**
     * {@return how far it is behind. It may have changed when this returns}
     *
     * @throws RamwayException BUSY while a message is out; CORRUPT, DETACHED
     */
    public Lag lag() {
        Holder h = enter();
        try {
            long bytes = Math.min(Math.max(bytesUnreleased(), 0), capacity);
            boolean some = newestEnd() != 0;
            return new Lag(bytes, some && log.seq >= expected ? log.seq + 1 - Math.max(expected, 1) : 0);
        } finally {
            leave(h);
        }
    }

    /** {@return how many messages this handle has lost so far} */
    public long lost() {
        return ask(() -> lost, lost);
    }

    /** {@return how this subscriber reads} */
    public Policy policy() {
        return policy;
    }

    /** {@return the label that it was opened with; empty without one} */
    public String label() {
        return label;
    }

    /** Closes a durable subscriber for good: its label and position are forgotten. For any other it is {@link #close}. */
    public void unsubscribe() {
        durable = false;
        close();
    }
}
