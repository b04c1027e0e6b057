package dev.ramway;

import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/**
 * The one publisher of a topic, in the whole system: a sender whose log many read. {@link Topic} opens it.
 *
 * <p>Sending waits for the slowest reliable subscriber where the log is full, and for nobody where there is none. A subscriber never
 * ends it: no call throws CLOSED or PEER_DEAD because of one, only CLOSED where the topic's name was removed. What is said of
 * threads at {@link Sender} holds here. {@link #waitForPeer} waits for a reliable subscriber.
 *
 * {@snippet :
 * try (Publisher pub = Topic.openOrCreate("ticks").publisher()) {
 *     pub.send(7, "to everybody".getBytes());
 * }
 * }
 */
// How far it may write, and how a message becomes visible (ABI.md, section 19); all else is a sender's.
// Invariant: tail <= limit <= claimed <= start of the last published frame + capacity, wrapping.
public final class Publisher extends SendingEnd {
    private final TopicLog log;
    private final TopicPatrol patrol;
    private final SegmentLink link;
    private final boolean timestamps;
    private final boolean lossyOnly;
    /** The number of the next message. */
    private long next;
    /** Where the last committed frame begins, and where the last published one does: that one stays intact. */
    private long start;
    private long last;
    /** What the shared claim holds. */
    private long claimed;
    /** How far the slots let it write, if any gates, by a scan that still stands; before it {@code seen} was loaded. */
    private long slotsGate;
    private boolean gated;
    private boolean scanned;
    private int seen;
    /** The slot that the gate is of. */
    private int blocker;
    /** The subscribers' word as last acted upon, always even. */
    private long wordSeen;

    private Publisher(Attachment a, Options options, boolean timestamps, long ejectAfter) {
        super(a, options, publisherLine(a), publisherLine(a));
        log = new TopicLog(a, this);
        link = ((TopicLink) a.link).link();
        patrol = new TopicPatrol(log, link, ejectAfter);
        this.timestamps = timestamps;
        lossyOnly = (log.flags & Facts.TOPIC_LOSSY_ONLY) != 0;
        resume(a.geometry);
        announce();
    }

    static long publisherLine(Attachment a) {
        return a.header.address() + a.block + Facts.OFF_TOPIC_PUBLISHER;
    }

    /** Takes the publisher's role of an attachment, which is released if that fails. */
    static Publisher attach(Attachment attachment, Options options, boolean timestamps, long ejectAfter) {
        return attachment.attach(a -> new Publisher(a, options, timestamps, ejectAfter));
    }

    /** Goes on after what an earlier publisher has published. */
    private void resume(BlockGeometry g) {
        // The role's lock orders these after the last publisher's stores, and nobody else writes them.
        long end = log.tail();
        long newest = log.last();
        claimed = Words.getLong(ring + Facts.OFF_TOPIC_CLAIM);
        if (!TopicLog.positionsAgree(end, newest, claimed, g)) {
            throw fail(ErrorKind.CORRUPT);
        }
        long found = newest;
        long seq = 0;
        // A predecessor that was killed between its stores of tail and last leaves more than one frame.
        for (long at = newest; at != end; at += log.size()) {
            log.read(at);
            if (!log.isPlausible(end - at) || Long.compareUnsigned(log.seq, seq) <= 0 || log.seq < 0) {
                throw fail(ErrorKind.CORRUPT);
            }
            found = at;
            seq = log.seq;
        }
        next = seq + 1;
        for (int i = 0; i < Facts.TOPIC_CHUNKS; i++) {
            long entry = ring + Facts.OFF_TOPIC_STARTS + 8L * i;
            if (!TopicLog.within(end - Words.getLong(entry), capacity)) {
                // It is of a frame that was never published.
                Words.setLongRelease(entry, end);
            }
        }
        if (found != newest) {
            Words.setLongRelease(ring + Facts.OFF_TOPIC_LAST, found);
        }
        start = found;
        last = found;
        tail = end;
        published = end;
        limit = end;
        wordSeen = Words.getLongAcquire(log.word()) & ~Facts.WORD_ASLEEP;
        // Nobody gates on a topic that is lossy only: there is nothing to scan.
        scanned = lossyOnly;
    }

    @Override
    String kind() {
        return "topic";
    }

    @Override
    int header() {
        return Facts.TOPIC_FRAME_HEADER;
    }

    @Override
    boolean hasPeerChanged() {
        return false;
    }

    @Override
    void commit(long length, int typeId, long tag) {
        long at = data + (tail & mask);
        // Non-atomic stores: nobody reads them before tail is published.
        Words.setLong(at, length | (long) typeId << 32);
        Words.setLong(at + Facts.FRAME_TAG, tag);
        Words.setLong(at + Facts.TOPIC_FRAME_SEQ, next);
        Words.setLong(at + Facts.TOPIC_FRAME_TIME, timestamps ? now() : 0);
        start = tail;
        next++;
        tail += frameSize(length);
    }

    private static long now() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000_000L + now.getNano();
    }

    @Override
    void flushNow() {
        long end = tail;
        if (end == published) {
            return;
        }
        published = end;
        last = start;
        // Release, in this order: who reads at last sees the frame there, and a tail behind it.
        Words.setLongRelease(ring + Facts.OFF_TOPIC_TAIL, end);
        publish(ring + Facts.OFF_TOPIC_LAST, start);
        long word = Words.getLongAcquire(log.word());
        if (word != wordSeen) {
            wordMoved(word);
        }
    }

    /** Acts on a word that is not the one seen last: somebody sleeps, or subscribers came or went. */
    private void wordMoved(long word) {
        if (wakeSleepers(word)) {
            scanned = lossyOnly;
            // Fences; what was agreed on just now holds for this publish too.
            peerChanged();
            wakeSleepers(Words.getLongAcquire(log.word()));
        }
    }

    /** Whether subscribers came or went. */
    private boolean wakeSleepers(long word) {
        long now = word;
        if ((word & Facts.WORD_ASLEEP) != 0) {
            // Clears the bit and counts in one step, so that no other sleeper can undo it.
            now = Words.getAndAdd(log.word(), Facts.WORD_ASLEEP) + Facts.WORD_ASLEEP;
            dev.ramway.sys.Futex.wakeAll(log.word());
        }
        boolean changed = now >>> 32 != wordSeen >>> 32;
        // Even, whatever a hostile subscriber stores.
        wordSeen = now & ~Facts.WORD_ASLEEP;
        return changed;
    }

    /** What is polled while waiting: the cursor that is in the way. */
    @Override
    long positionWord() {
        return gated ? log.slot(blocker) + Facts.OFF_SLOT_CURSOR : log.word();
    }

    @Override
    long positionSeen() {
        return gated ? slotsGate - capacity : wordSeen;
    }

    /** Whether need bytes may be written, after having done what can be done about those that are in the way. */
    @Override
    boolean ready() {
        if (need <= limit - tail) {
            return true;
        }
        while (!advance(tail, need)) {
            if (tail != published) {
                // The last published message moves on, and with it how far this side may write.
                flushNow();
            } else if (patrol.check(limit, tail + need, published)) {
                // A dead subscriber was removed, or one was ejected.
                scanned = lossyOnly;
            } else {
                return false;
            }
        }
        patrol.goOn();
        return true;
    }

    /**
     * Moves the limit so that size bytes fit at pos, if it may: reads the slots, announces in claim what is about to be overwritten,
     * and then makes sure that no subscriber joined meanwhile. All positions are distances from pos: none of them lies before it.
     */
    private boolean advance(long pos, long size) {
        long chunk = capacity / Facts.TOPIC_CHUNKS;
        long want = (pos + size + chunk - 1 & -chunk) - pos;
        if (!scanned || gated && Long.compareUnsigned(slotsGate - pos, want) < 0) {
            scan(log.changes());
        }
        long keepLast = last + capacity - pos;
        long gate = gateFrom(pos, keepLast);
        if (size > gate) {
            return false;
        }
        // The first frame that is noted in a part of the data stays noted for the lap: a later one would put intact history out of
        // reach.
        long entry = ring + Facts.OFF_TOPIC_STARTS + 8 * ((pos & mask) / chunk);
        if ((Words.getLong(entry) & -chunk) != (pos & -chunk)) {
            Words.setLongRelease(entry, pos);
        }
        long claim = Math.max(claimed - pos, Math.min(want, keepLast));
        if (pos + claim != claimed) {
            claimed = pos + claim;
            Words.setLongRelease(ring + Facts.OFF_TOPIC_CLAIM, claimed);
            // A subscriber that joins stores its slot, fences, and loads the claim. Either it sees this claim, or the load below
            // sees its change.
            VarHandle.fullFence();
            int now = log.changes();
            if (now != seen && !lossyOnly) {
                scan(now);
                gate = gateFrom(pos, keepLast);
            }
        }
        long room = Math.min(claim, gate);
        limit = pos + room;
        return size <= room;
    }

    /** How far beyond pos this side may write. */
    private long gateFrom(long pos, long keepLast) {
        return gated ? Math.min(keepLast, slotsGate - pos) : keepLast;
    }

    /** Reads how far the slots let this side write. changes was loaded before. */
    private void scan(int changes) {
        gated = false;
        scanned = true;
        seen = changes;
        long most = 0;
        for (int i = 0; i < log.slots && !lossyOnly; i++) {
            long slot = log.slot(i);
            if ((TopicLog.state(slot) & Facts.SLOT_GATING) == 0) {
                continue;
            }
            long behind = limit - TopicLog.cursor(slot);
            // More than the capacity: it is choosing anew, and finds out by the claim; or its words are wrong.
            if (TopicLog.within(behind, capacity) && (!gated || behind > most)) {
                gated = true;
                most = behind;
                blocker = i;
            }
        }
        slotsGate = limit - most + capacity;
    }

    @Override
    OptionalLong lastTagNow() {
        if (published == last) {
            return OptionalLong.empty();
        }
        return OptionalLong.of(Words.getLong(data + (last & mask) + Facts.FRAME_TAG));
    }

    /** The slowest reliable subscriber's. */
    @Override
    long bytesUnreleased() {
        long most = 0;
        for (int i = 0; i < log.slots; i++) {
            long lag = published - TopicLog.cursor(log.slot(i));
            // More than the capacity is a slot that does not gate.
            if ((TopicLog.state(log.slot(i)) & Facts.SLOT_GATING) != 0 && TopicLog.within(lag, capacity)) {
                most = Math.max(most, lag);
            }
        }
        return most;
    }

    // How a publisher sleeps, comes and goes.

    @Override
    long waitWord() {
        return log.area + Facts.OFF_SUBS_WAIT;
    }

    @Override
    void sayAttached() {
        Words.setLongRelease(ring + Facts.OFF_TOPIC_EJECT_AFTER, patrol.ejectAfter);
        super.sayAttached();
    }

    @Override
    void announceClose() {
        Words.setInt(ownFlags, Words.getInt(ownFlags) | Facts.ROLE_CLOSED);
        wakePeer();
    }

    @Override
    void wakePeer() {
        log.wakeSubscribers();
    }

    /**
     * Every subscriber that has a slot must be able to make up for a fence that is left out. One without a slot that cannot sleeps
     * for short intervals.
     */
    @Override
    void peerChanged() {
        boolean can = true;
        for (int i = 0; i < log.slots; i++) {
            long slot = log.slot(i);
            can &= (TopicLog.state(slot) & Facts.SLOT_ACTIVE) == 0
                    || (Words.getIntAcquire(slot + Facts.OFF_SLOT_FLAGS) & Facts.SLOT_FLAG_MEMBARRIER_CAPABLE) != 0;
        }
        agree(can);
    }

    /** Nobody tells when a subscriber is to be ejected. */
    @Override
    long longestSleep() {
        long after = patrol.ejectAfter;
        return after == 0 ? Facts.POLL_INTERVAL_NANOS
                : Math.min(Facts.POLL_INTERVAL_NANOS, Math.max(after, Facts.UNORDERED_INTERVAL_NANOS));
    }

    /** Nor when one dies: the call that follows the callback finds out. */
    @Override
    long longestCallback() {
        return Facts.POLL_INTERVAL_NANOS - 1;
    }

    @Override
    boolean mayMissWakeUps() {
        for (int i = 0; i < log.slots; i++) {
            long slot = log.slot(i);
            if ((TopicLog.state(slot) & Facts.SLOT_GATING) != 0
                    && (Words.getIntAcquire(slot + Facts.OFF_SLOT_FLAGS) & Facts.SLOT_FLAG_FENCE_FREE) != 0) {
                return true;
            }
        }
        return false;
    }

    /** Subscribers come and go, and none of them ends a publisher. */
    @Override
    RamwayException ended(boolean askKernel) {
        return askKernel && link.vanished() ? vanished() : null;
    }

    @Override
    int epochOfPeer() {
        return log.changes();
    }

    @Override
    boolean isPeerAlive() {
        return living() != 0;
    }

    @Override
    Waiter.Goal peerWait() {
        return new SubscribersWait(1);
    }

    /** How many reliable subscribers live. A system call for each. */
    private int living() {
        int n = 0;
        for (int i = 0; i < log.slots; i++) {
            if ((TopicLog.state(log.slot(i)) & Facts.SLOT_GATING) != 0 && link.livesAt(Facts.BYTE_SLOT + i)) {
                n++;
            }
        }
        return n;
    }

    private final class SubscribersWait implements Waiter.Goal {
        private final int wanted;

        SubscribersWait(int wanted) {
            this.wanted = wanted;
            flushNow();
        }

        @Override
        public boolean ready() {
            return wanted == 0 || living() >= wanted;
        }

        @Override
        public RamwayException ended() {
            return Publisher.this.ended(true);
        }

        @Override
        public long untilCheck() {
            return Facts.POLL_INTERVAL_NANOS;
        }
    }

    /** {@return the number of the last message that was committed, by any publisher of this topic; 0 before the first} */
    public long seq() {
        Holder h = enter();
        leave(h);
        return next - 1;
    }

    /**
     * Lets the next message's number be {@code lost} higher than it would be: every subscriber then counts that many messages as
     * lost before it. For bridges and replays, whose own source has a gap.
     *
     * @param lost how many
     * @throws RamwayException INVALID_ARGUMENT if it is below 0, or no number would be left; DETACHED, CORRUPT
     */
    public void skipSeq(long lost) {
        Holder h = enter();
        try {
            if (lost < 0 || lost >= Long.MAX_VALUE - next) {
                throw fail(ErrorKind.INVALID_ARGUMENT, "%d messages lost after number %d: no such numbers", lost, next - 1);
            }
            next += lost;
        } finally {
            leave(h);
        }
    }

    /**
     * Waits until so many reliable subscribers are attached and their processes live, for as long as it takes; at once if they are
     * there. Others do not count: the publisher does not wait for them. What was committed is flushed.
     *
     * @param wanted from 0 to the topic's number of slots
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException INVALID_ARGUMENT if the topic has fewer slots; UNSUPPORTED if it takes no reliable subscribers;
     *     CLOSED if the topic's name was removed, so that nobody can come; BUSY while a slot is open; DETACHED, CORRUPT
     */
    public void waitForSubscribers(int wanted) throws InterruptedException {
        awaitSubscribers(wanted, FOREVER);
    }

    /**
     * {@link #waitForSubscribers(int)} with a limit.
     *
     * @param wanted from 0 to the topic's number of slots
     * @param timeout the longest wait
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws TimedOutException if they did not come
     */
    public void waitForSubscribers(int wanted, Duration timeout) throws InterruptedException {
        awaitSubscribers(wanted, nanos(timeout));
    }

    private void awaitSubscribers(int wanted, long nanos) throws InterruptedException {
        if (wanted < 0 || wanted > log.slots) {
            throw fail(ErrorKind.INVALID_ARGUMENT, "waiting for %d subscribers: the topic has %d slots; create it with more", wanted,
                    log.slots);
        }
        if (wanted > 0 && lossyOnly) {
            throw fail(ErrorKind.UNSUPPORTED, "waiting for %d subscribers: the topic takes no reliable ones (its creator said lossyOnly), "
                    + "and others do not count", wanted);
        }
        awaitPeer(() -> new SubscribersWait(wanted), nanos);
    }

    /**
     * {@return who has a slot: every reliable subscriber, and of the others those that could take one} A system call for each.
     *
     * @throws RamwayException BUSY while a slot is open; DETACHED after close
     */
    public List<SubscriberInfo> subscribers() {
        Holder h = enter();
        try {
            List<SubscriberInfo> all = new ArrayList<>();
            long newest = published == last ? 0 : Words.getLong(data + (last & mask) + Facts.TOPIC_FRAME_SEQ);
            for (int i = 0; i < log.slots; i++) {
                SubscriberInfo one = TopicLog.inspect(i, log.slot(i), published, newest, at.geometry,
                        cursor -> patrol.seqAt(cursor, published), slot -> link.livesAt(Facts.BYTE_SLOT + slot), patrol.blocksFor(i));
                if (one != null) {
                    all.add(one);
                }
            }
            return all;
        } finally {
            leave(h);
        }
    }
}
