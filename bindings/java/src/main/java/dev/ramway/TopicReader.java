package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.Arrays;

/**
 * How a subscriber reads under each policy (ABI.md, section 19): what a {@link Subscriber} has besides a receiver. One that reads the
 * newest message has its position in seen, and head and released only say whether a message is out.
 */
abstract sealed class TopicReader extends ReceivingEnd<TopicMeta> permits Subscriber {
    /** What an attempt to take a frame came to. */
    private enum Outcome {
        WHOLE,
        OVERTAKEN,
        EJECTED,
        /** No correct publisher wrote this. */
        WRONG,
        /** For the caller's memory: nothing was done. */
        TOO_LONG
    }

    /** Copies have the remainder by this that the payload has in the log: no alignment is larger. */
    private static final long PLACE = Facts.ALIGN_MAX;

    final TopicLog log;
    private final TopicJoin join;
    final Policy policy;
    /** The slot's address; 0 for one that shows itself to nobody. */
    final long slot;
    /** The publisher waits for this subscriber. */
    final boolean gates;
    private final long positionWord;
    /** Messages are copied as they are received, because they can be overwritten while they are read. */
    private final boolean copies;
    /** This side may write to the subscribers' area. */
    final boolean writable;
    boolean durable;
    /** The number that the next message should have. */
    long expected;
    /** Where the message begins that was read last as the newest. */
    private long seen = Facts.NO_POSITION;
    /** The message that is out was read without moving on. */
    private boolean aside;
    /** How many messages were lost so far. */
    long lost;
    /** The number that was expected before the message or batch that is out. */
    private long from;
    /** This subscriber was ejected, and lost laggedBy, which is still to be told; then head = tail. */
    private boolean lagged;
    private long laggedBy;
    /** How much of frames is the batch that is out, and where in it the message is that was asked for last. */
    private int gathered;
    private int asked;
    /** A copy for the caller to keep, made when its length is known; null: none is wanted. */
    byte[] grown;
    /** Where the payload is that was taken last, and where the next copy may begin. */
    private long at;
    private long placed;

    TopicReader(Attachment a, Options options, Topic topic) {
        super(a, options, Publisher.publisherLine(a), Publisher.publisherLine(a));
        log = new TopicLog(a, this);
        policy = topic.policy;
        gates = policy == Policy.RELIABLE;
        positionWord = ring + (policy == Policy.LATEST ? Facts.OFF_TOPIC_LAST : Facts.OFF_TOPIC_TAIL);
        copies = a.payloads() != a.data;
        writable = !topic.readOnly;
        durable = topic.durable;
        join = new TopicJoin(this, log, ((TopicLink) a.link).link(), topic.labelBytes(), policy == Policy.LATEST);
        if (gates) {
            join.gating(topic.start, durable, nanos(options.timeout()));
        } else {
            join.beside(topic.start, topic.readOnly);
        }
        slot = join.slot;
        ownFlags = slot == 0 ? 0 : slot + Facts.OFF_SLOT_FLAGS;
        epoch = join.epoch;
        peerState = new PeerState(peer, false, join.closeSeen, a.link, role);
        lagged = join.lagged;
        laggedBy = join.lost;
        lost = laggedBy;
        // One that reads the newest message begins with it, not after it; the first of all has the number 1.
        expected = policy == Policy.LATEST ? Math.max(join.expected, 2) - 1 : join.expected;
        begin(policy == Policy.LATEST ? 0 : join.cursor);
    }

    private void begin(long position) {
        head = position;
        released = position;
        tail = position;
    }

    @Override
    String kind() {
        return "topic";
    }

    @Override
    long positionWord() {
        return positionWord;
    }

    @Override
    long positionSeen() {
        if (policy != Policy.LATEST) {
            return tail;
        }
        if (seen != Facts.NO_POSITION) {
            return seen;
        }
        // Where nothing was published yet, last is what moves.
        long last = log.last();
        return last == log.tail() ? last : Facts.NO_POSITION;
    }

    /** Only forward, in whole alignment steps; of what gates, up to released + capacity. A lossy one may be any number of laps behind. */
    @Override
    boolean takeTail(long now) {
        if (!copies && !lagged) {
            // Reliable, and never ejected: a ring's rule.
            return super.takeTail(now);
        }
        if (policy == Policy.LATEST) {
            // Acquire, in this order: tail is not older than last.
            return now != seen && now != log.tail();
        }
        return !lagged && !(gates && copies && TopicLog.isEjected(slot)) && move(now);
    }

    private boolean move(long now) {
        long moved = now - tail;
        if (gates ? !TopicLog.within(moved, capacity - (tail - released)) : moved < 0) {
            return false;
        }
        if ((moved & alignMask) != 0) {
            return false;
        }
        tail = now;
        return true;
    }

    @Override
    boolean ready() {
        if (lagged) {
            lagged = false;
            throw new LaggedException(laggedBy);
        }
        if (policy == Policy.LATEST) {
            return takeTail(log.last());
        }
        if (head != tail) {
            return true;
        }
        long now = log.tail();
        if (now == tail) {
            return false;
        }
        if (gates && copies && TopicLog.isEjected(slot)) {
            throw rejoined();
        }
        if (!move(now)) {
            throw corrupt();
        }
        return true;
    }

    /** Begins anew after having been ejected, at the oldest message that it has not received; nothing is out. What to say. */
    private RamwayException rejoined() {
        boolean stays = (TopicLog.state(slot) & Facts.SLOT_DURABLE) != 0;
        try {
            join.gate(slot, new Start(Start.Kind.AGAIN, expected), stays);
        } catch (RamwayException e) {
            return corrupt();
        }
        begin(join.cursor);
        laggedBy = Math.max(join.expected - expected, 0);
        expected = join.expected;
        epoch = join.epoch;
        countLost(laggedBy);
        return new LaggedException(laggedBy);
    }

    /** An ejection is told once, and not to nobody. */
    @Override
    final void untold(RamwayException e) {
        lagged |= e instanceof LaggedException;
    }

    private void countLost(long n) {
        if (n != 0) {
            lost += n;
            if (slot != 0) {
                // For those who watch.
                Words.setLongRelease(slot + Facts.OFF_SLOT_LOST, lost);
            }
        }
    }

    @Override
    int header() {
        return Facts.TOPIC_FRAME_HEADER;
    }

    @Override
    long payloadMax() {
        return Facts.TOPIC_MESSAGE_MAX;
    }

    /** Numbers rise, and each has one that can follow it. */
    @Override
    boolean follows(long frame) {
        long seq = Words.getLong(frame + Facts.TOPIC_FRAME_SEQ);
        long before = seq - expected;
        if ((before | seq) < 0) {
            return false;
        }
        expected = seq + 1;
        if (before != 0) {
            countLost(before);
        }
        return true;
    }

    @Override
    void keep(long[] kept, int at) {
        kept[at + 3] = expected - 1;
    }

    @Override
    Message handOut(Holder h) {
        from = expected;
        return copies ? handOutCopy(h) : super.handOut(h);
    }

    private Message handOutCopy(Holder h) {
        placed = 0;
        Outcome outcome = takeOne(null, null, Long.MAX_VALUE);
        if (outcome != Outcome.WHOLE) {
            return nothing(h, outcome);
        }
        setAside();
        long word = log.word;
        return new Message(this, h, null, at, (int) word, (int) (word >>> 32), log.tag);
    }

    /** What reads the newest message gives it out without moving on: head only says that one is out. */
    private void setAside() {
        if (policy == Policy.LATEST) {
            aside = true;
            head = released + 1;
        }
    }

    /** The end of a call that took nothing: null, or an error. It leaves. */
    private <T> T nothing(Holder h, Outcome outcome) {
        try {
            if (outcome == Outcome.WRONG) {
                throw corrupt();
            }
            if (outcome == Outcome.EJECTED) {
                throw rejoined();
            }
            return null;
        } finally {
            leave(h);
        }
    }

    /** Why the last batch has no messages. */
    private Outcome emptied = Outcome.WHOLE;

    @Override
    int gather(int max) {
        from = expected;
        if (!copies) {
            emptied = Outcome.WRONG;
            int count = super.gather(max);
            gathered = count * FRAME;
            return count;
        }
        placed = 0;
        int count = 0;
        emptied = Outcome.OVERTAKEN;
        while (count < max && (count == 0 || policy != Policy.LATEST)) {
            if (count > 0 && head == tail) {
                long now = log.tail();
                if (now == tail || !takeTail(now)) {
                    // The next call says why, if it was wrong.
                    break;
                }
            }
            if (count > 0 && placed + PLACE + capacity / 2 > 2 * capacity) {
                break;
            }
            Outcome outcome = takeOne(null, null, Long.MAX_VALUE);
            if (outcome != Outcome.WHOLE) {
                emptied = outcome;
                if (outcome == Outcome.WRONG && count > 0) {
                    die(ErrorKind.CORRUPT);
                }
                break;
            }
            int i = count * FRAME;
            if (i == frames.length) {
                frames = Arrays.copyOf(frames, 2 * i);
            }
            frames[i] = at;
            frames[i + 1] = log.word;
            frames[i + 2] = log.tag;
            frames[i + 3] = log.seq;
            count++;
        }
        if (count > 0) {
            setAside();
        }
        gathered = count * FRAME;
        return count;
    }

    @Override
    void noneGathered(Holder h) {
        nothing(h, emptied);
    }

    @Override
    long copy(Holder h, byte[] array, MemorySegment memory, long room) {
        from = expected;
        placed = 0;
        Outcome outcome = Outcome.OVERTAKEN;
        boolean done = false;
        try {
            outcome = takeOne(array, array == null ? memory : null, room);
            if (outcome == Outcome.TOO_LONG) {
                throw tooLong(log.length(), room);
            }
            if (outcome == Outcome.WHOLE) {
                copiedTag = log.tag;
                giveBack();
            }
            done = outcome != Outcome.WRONG && outcome != Outcome.EJECTED;
        } finally {
            if (done || outcome == Outcome.TOO_LONG || outcome == Outcome.OVERTAKEN) {
                leave(h);
            }
        }
        if (!done) {
            nothing(h, outcome);
        }
        return outcome == Outcome.WHOLE ? log.word : NOTHING;
    }

    @Override
    TopicMeta received(long word) {
        return new TopicMeta((int) (word >>> 32), copiedTag, (int) word, log.seq, log.time, log.seq - from);
    }

    /**
     * Takes the next message, or where that is overwritten, the next one that is intact: into one of the two if either is not null,
     * else to where {@code at} says, in the log or among the copies. Its header is in the log's fields.
     */
    private Outcome takeOne(byte[] array, MemorySegment memory, long room) {
        if (!copies) {
            return takeInPlace(array, memory, room);
        }
        for (int i = 0; i < Facts.OVERTAKEN_MAX; i++) {
            boolean newest = policy == Policy.LATEST;
            // Acquire, in this order: tail is not older than last.
            long pos = newest ? log.last() : head;
            long end = newest ? log.tail() : tail;
            Outcome outcome = log.isPosition(pos) ? copyFrame(pos, end, expected, gates, array, memory, room) : Outcome.WRONG;
            if (outcome == Outcome.WHOLE) {
                if (newest) {
                    seen = pos;
                } else {
                    head = pos + log.size();
                }
                moveOn();
                return outcome;
            }
            if (outcome != Outcome.OVERTAKEN) {
                return outcome;
            }
            if (!newest && !skip()) {
                return Outcome.WRONG;
            }
            if (!newest && head == tail) {
                return outcome;
            }
        }
        return Outcome.OVERTAKEN;
    }

    /** Takes the next message where it lies: nobody overwrites it before it is released. */
    private Outcome takeInPlace(byte[] array, MemorySegment memory, long room) {
        long pos = head;
        log.read(pos);
        if (!log.isPlausible(tail - pos) || Long.compareUnsigned(log.seq, expected) < 0) {
            return Outcome.WRONG;
        }
        if (log.length() > room) {
            return Outcome.TOO_LONG;
        }
        at = (pos & mask) + Facts.TOPIC_FRAME_HEADER;
        if (array != null) {
            Words.copyOut(data + at, array, 0, (int) log.length());
        } else if (memory != null) {
            Words.copyOut(data + at, memory, log.length());
        }
        head = pos + log.size();
        moveOn();
        return Outcome.WHOLE;
    }

    /** Expects what follows the message that was read last. */
    private void moveOn() {
        long before = log.seq - expected;
        expected = log.seq + 1;
        countLost(before);
    }

    /** Of one alone it is the number before the one that is expected. In a batch it is most often the one asked for last, or the next. */
    @Override
    long seq(long at, boolean batched) {
        return batched ? frames[find(at) + 3] : expected - 1;
    }

    @Override
    long lostBefore(long at, boolean batched) {
        if (!batched) {
            return expected - 1 - from;
        }
        int i = find(at);
        return frames[i + 3] - (i == 0 ? from : frames[i + 3 - FRAME] + 1);
    }

    /** Not checked, so that it is read when it is asked for; a copy has it where the log has it. */
    @Override
    long time(long at) {
        return Words.getLong(data + at - Facts.TOPIC_FRAME_HEADER + Facts.TOPIC_FRAME_TIME);
    }

    /** Where in frames the message of the batch is whose payload is there. */
    private int find(long at) {
        int i = asked < gathered ? asked : 0;
        while (frames[i] != at) {
            i = i + FRAME < gathered ? i + FRAME : 0;
        }
        asked = i;
        return i;
    }

    /**
     * Copies the frame at a position of one, if it was whole until after that.
     *
     * @param kept the publisher does not overwrite it unless it has ejected this subscriber
     */
    // Longer than what HotSpot's C2 compiles into a caller (Consumer.arrive says why): the checks are written out.
    private Outcome copyFrame(long pos, long end, long least, boolean kept, byte[] array, MemorySegment memory, long room) {
        long frame = log.data + (pos & mask);
        long word = Words.getLong(frame);
        long tag = Words.getLong(frame + Facts.FRAME_TAG);
        long seq = Words.getLong(frame + Facts.TOPIC_FRAME_SEQ);
        long time = Words.getLong(frame + Facts.TOPIC_FRAME_TIME);
        long state = kept ? slot + Facts.OFF_SLOT_STATE : 0;
        long claim = ring + Facts.OFF_TOPIC_CLAIM;
        // What was read is from before this, and only then is any number of it used.
        VarHandle.acquireFence();
        if (kept) {
            if ((Words.getLong(state) & Facts.SLOT_EJECTED) != 0) {
                return Outcome.EJECTED;
            }
        } else if (Long.compareUnsigned(Words.getLong(claim) - pos, capacity) > 0) {
            return Outcome.OVERTAKEN;
        }
        long length = word & 0xFFFF_FFFFL;
        long size = Facts.TOPIC_FRAME_HEADER + length + alignMask & ~alignMask;
        long left = end - pos;
        log.word = word;
        log.tag = tag;
        log.seq = seq;
        log.time = time;
        if (left < 0 || left > capacity || length > Facts.TOPIC_MESSAGE_MAX || size > left || seq == 0 || seq == -1
                || Long.compareUnsigned(seq, least) < 0) {
            return Outcome.WRONG;
        }
        if (length > room) {
            return Outcome.TOO_LONG;
        }
        long begin = placed + (pos - placed & PLACE - 1);
        long place = begin + Facts.TOPIC_FRAME_HEADER;
        long payload = frame + Facts.TOPIC_FRAME_HEADER;
        // A publisher that writes meanwhile makes this a mix of old and new bytes, which the check below throws away.
        if (grown != null) {
            grown = new byte[(int) length];
            Words.copyOut(payload, grown, 0, (int) length);
        } else if (array != null) {
            Words.copyOut(payload, array, 0, (int) length);
        } else if (memory != null) {
            Words.copyOut(payload, memory, length);
        } else {
            Words.copy(payload, data + place, length);
            Words.setLong(data + begin + Facts.TOPIC_FRAME_TIME, time);
        }
        VarHandle.acquireFence();
        if (kept) {
            if ((Words.getLong(state) & Facts.SLOT_EJECTED) != 0) {
                return Outcome.EJECTED;
            }
        } else if (Long.compareUnsigned(Words.getLong(claim) - pos, capacity) > 0) {
            return Outcome.OVERTAKEN;
        }
        at = place;
        placed = begin + size;
        return Outcome.WHOLE;
    }

    /**
     * Goes on at a frame that is intact, with half of the capacity to spare: at the very oldest it would be overtaken again at once.
     * False: tail is wrong.
     */
    private boolean skip() {
        long end = log.tail();
        long next = log.oldest(end, capacity / Facts.RESUME_FRACTION);
        long last = log.last();
        if (next == end && log.isPosition(last) && TopicLog.within(end - last, capacity)) {
            next = last;
        }
        if (!move(end)) {
            return false;
        }
        if (next - head > 0) {
            released = released == head ? next : released;
            head = next;
        }
        return true;
    }

    @Override
    void giveBack() {
        if (gates) {
            super.giveBack();
        } else if (aside || dead != null) {
            aside = false;
            head = released;
        } else {
            released = head;
        }
    }

    @Override
    long releasedWord() {
        return slot + Facts.OFF_SLOT_CURSOR;
    }

    /** Only a reliable one's is asked for later. */
    @Override
    long closeSeenWord() {
        return gates ? slot + Facts.OFF_SLOT_CLOSE_SEEN : 0;
    }

    /** How many bytes are published and not released. */
    @Override
    long bytesUnreleased() {
        if (policy == Policy.LATEST) {
            long last = log.last();
            return last == seen ? 0 : log.tail() - last;
        }
        return log.tail() - (gates ? TopicLog.cursor(slot) : released);
    }

    /** Copies the newest message, if it fits. False: there is none, or the publisher has overtaken this side again and again. */
    final boolean readNewest(byte[] array, MemorySegment memory, long room) {
        for (int i = 0; i < Facts.OVERTAKEN_MAX; i++) {
            // Acquire, in this order: tail is not older than last.
            long pos = log.last();
            long end = log.tail();
            if (pos == end) {
                return false;
            }
            Outcome outcome = log.isPosition(pos) ? copyFrame(pos, end, 0, false, array, memory, room) : Outcome.WRONG;
            if (outcome == Outcome.WRONG) {
                throw corrupt();
            }
            if (outcome == Outcome.WHOLE && policy == Policy.LATEST) {
                // It was seen: a wait is for a newer one.
                seen = pos;
                expected = Math.max(expected, log.seq + 1);
            }
            if (outcome != Outcome.OVERTAKEN) {
                return true;
            }
        }
        return false;
    }

    /** Reads the newest frame and gives where it ends; 0: there is none. */
    final long newestEnd() {
        try {
            return log.newest();
        } catch (RamwayException e) {
            throw corrupt();
        }
    }
}
