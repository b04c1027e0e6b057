package dev.ramway;

import dev.ramway.sys.Futex;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.function.LongUnaryOperator;

/** A mapped topic: its shared words, and what both of its sides read of it (ABI.md, section 19). For the thread inside the call guard. */
final class TopicLog {
    /** How often something is read again before this side gives up against what is no correct publisher. */
    static final int ATTEMPTS = 100_000;

    private final RingEnd end;
    /** Addresses: the block, the subscribers' area, the data. */
    final long block;
    final long area;
    final long data;
    final long capacity;
    final int align;
    final int slots;
    /** The creator's. */
    final int flags;
    private final long[] entries = new long[Facts.TOPIC_CHUNKS + 1];

    /** The header read last: its first word, which is the length and the type id, and the others. */
    long word;
    long tag;
    long seq;
    long time;

    TopicLog(Attachment a, RingEnd end) {
        this.end = end;
        block = a.header.address() + a.block;
        area = a.area.address();
        data = a.data.address();
        capacity = a.capacity;
        align = a.align;
        slots = a.geometry.slots();
        flags = a.geometry.flags();
    }

    /** Whether the positions could be those of a topic that nobody writes at this moment. */
    static boolean positionsAgree(long tail, long last, long claim, BlockGeometry g) {
        return isPosition(tail, g.align()) && isPosition(last, g.align()) && within(tail - last, g.capacity())
                && within(claim - tail, g.capacity()) && within(claim - last, g.capacity())
                && (last != tail || tail == Layout.firstTopicPosition(g.align()));
    }

    /** Whether a frame can begin there. */
    static boolean isPosition(long position, int align) {
        return (position & align - 1) == Layout.firstTopicPosition(align);
    }

    boolean isPosition(long position) {
        return isPosition(position, align);
    }

    /** Whether a distance of two positions is at most this. */
    static boolean within(long distance, long most) {
        return Long.compareUnsigned(distance, most) <= 0;
    }

    /** A label as a slot holds it, as text. Anything may have been written there. */
    static String labelText(byte[] label) {
        int length = 0;
        while (length < label.length && label[length] != 0) {
            length++;
        }
        return new String(label, 0, length, StandardCharsets.UTF_8);
    }

    static byte[] label(long slot) {
        byte[] label = new byte[Facts.LABEL_MAX];
        Words.copyOut(slot + Facts.OFF_SLOT_LABEL, label, 0, label.length);
        return label;
    }

    /** Asks whether a slot's holder lives; a system call. */
    interface Lives {
        boolean test(int slot);
    }

    /**
     * Who has a slot, of a mapped topic or of a copy of its words; null if nobody has, and no durable subscriber's cursor is kept there.
     *
     * @param newest the number of the newest message
     * @param seqAt the number of the message at a position, 0 where there can be none
     */
    static SubscriberInfo inspect(int i, long slot, long tail, long newest, BlockGeometry g, LongUnaryOperator seqAt, Lives lives,
            long blocksFor) {
        long state = state(slot);
        long cursor = cursor(slot);
        boolean reliable = (state & TopicJoin.RELIABLE) != 0;
        if (!reliable && (state & Facts.SLOT_ACTIVE) == 0) {
            return null;
        }
        boolean latest = (Words.getIntAcquire(slot + Facts.OFF_SLOT_FLAGS) & Facts.SLOT_FLAG_LATEST) != 0;
        Lag lag = null;
        long bytes = tail - cursor;
        if ((state & Facts.SLOT_GATING) != 0 && within(bytes, g.capacity()) && isPosition(cursor, g.align())) {
            long first = seqAt.applyAsLong(cursor);
            lag = new Lag(bytes, first != 0 && first <= newest ? newest - first + 1 : 0);
        }
        return new SubscriberInfo(i, (int) (state >>> 32), reliable ? Policy.RELIABLE : latest ? Policy.LATEST : Policy.LOSSY,
                labelText(label(slot)), (state & Facts.SLOT_DURABLE) != 0, lives.test(i), (state & Facts.SLOT_EJECTED) != 0, lag,
                Words.getLong(slot + Facts.OFF_SLOT_LOST), Duration.ofNanos(blocksFor));
    }

    long slot(int index) {
        return area + Facts.OFF_SUBS_SLOTS + (long) Facts.SLOT_SIZE * index;
    }

    /** Acquire: what the slot's holder wrote before is visible. */
    static long state(long slot) {
        return Words.getLongAcquire(slot + Facts.OFF_SLOT_STATE);
    }

    /** Acquire: the subscriber's last reads of what it gave back come before our writes to it. */
    static long cursor(long slot) {
        return Words.getLongAcquire(slot + Facts.OFF_SLOT_CURSOR);
    }

    /** A full fence. False: the state was another. */
    static boolean changeState(long slot, long from, long to) {
        return Words.compareAndSet(slot + Facts.OFF_SLOT_STATE, from, to);
    }

    long tail() {
        return Words.getLongAcquire(block + Facts.OFF_TOPIC_TAIL);
    }

    long last() {
        return Words.getLongAcquire(block + Facts.OFF_TOPIC_LAST);
    }

    long word() {
        return area + Facts.OFF_SUBS_WORD;
    }

    /** How often a subscriber has come or gone. */
    int changes() {
        return (int) (Words.getLongAcquire(word()) >>> 32);
    }

    /** Says that one came, went, or chose its cursor anew, after its slot says so. A full fence. */
    void countChange() {
        Words.getAndAdd(word(), Facts.WORD_CHANGE);
    }

    /** Wakes every subscriber; the count changes, so that one that is about to sleep does not. A full fence. */
    void wakeSubscribers() {
        Words.getAndAdd(word(), Facts.WORD_WAKE);
        Futex.wakeAll(word());
    }

    /** Reads the header at a position of a frame, each number once. At any such position it lies in the mapping. */
    void read(long position) {
        long at = data + (position & capacity - 1);
        word = Words.getLong(at);
        tag = Words.getLong(at + Facts.FRAME_TAG);
        seq = Words.getLong(at + Facts.TOPIC_FRAME_SEQ);
        time = Words.getLong(at + Facts.TOPIC_FRAME_TIME);
    }

    /** The length of the payload of the frame read last. */
    long length() {
        return word & 0xFFFF_FFFFL;
    }

    /** How many bytes it takes. */
    long size() {
        return Facts.TOPIC_FRAME_HEADER + length() + align - 1 & -align;
    }

    /**
     * Whether it lies within the left bytes that are published, and has a number that another can follow. More than the capacity is
     * not left of a frame that is intact: it would lead out of the log.
     */
    boolean isPlausible(long left) {
        return within(left, capacity) && length() <= Facts.TOPIC_MESSAGE_MAX && size() <= left && seq != 0 && seq != -1;
    }

    /** Whether a frame may be overwritten already, or at any moment. What was read of it before is from before. */
    boolean isOvertaken(long position) {
        VarHandle.acquireFence();
        return !within(Words.getLong(block + Facts.OFF_TOPIC_CLAIM) - position, capacity);
    }

    /** Whether the publisher has ejected the subscriber of a slot. What was read before is from before. */
    static boolean isEjected(long slot) {
        VarHandle.acquireFence();
        return (Words.getLong(slot + Facts.OFF_SLOT_STATE) & Facts.SLOT_EJECTED) != 0;
    }

    /**
     * Reads the frame at any position. False: there is none, or it was overtaken. kept: a slot keeps it, so that the claim, which
     * goes beyond what a slot lets the publisher write, says nothing.
     */
    private boolean find(long position, long tail, boolean kept) {
        if (!isPosition(position)) {
            return false;
        }
        read(position);
        return (kept || !isOvertaken(position)) && isPlausible(tail - position);
    }

    /** Reads the newest frame and gives where it ends; 0 before the first, which is no end. */
    long newest() {
        for (int i = 0; i < ATTEMPTS; i++) {
            // Acquire, in this order: tail is not older than last.
            long last = last();
            long tail = tail();
            if (last == tail) {
                return 0;
            }
            if (find(last, tail, false)) {
                return last + size();
            }
            // Not a yield: a publisher that overtakes runs, and so many yields on a busy machine take minutes.
            Thread.onSpinWait();
        }
        throw end.fail(ErrorKind.CORRUPT);
    }

    /** The oldest frame that is noted and at most within bytes behind the claim, else tail. */
    long oldest(long tail, long within) {
        loadEntries();
        // After the entries: it is not older than any of them.
        long claim = Words.getLongAcquire(block + Facts.OFF_TOPIC_CLAIM);
        long oldest = tail;
        for (long entry : entries) {
            long behind = tail - entry;
            if (isPosition(entry) && within(behind, capacity) && within(claim - entry, within) && behind > tail - oldest) {
                oldest = entry;
            }
        }
        return oldest;
    }

    /**
     * Where frames begin by the publisher's notes. The newest one is among them: it is always intact, and nothing else may be where
     * messages are long.
     */
    private void loadEntries() {
        for (int i = 0; i < Facts.TOPIC_CHUNKS; i++) {
            entries[i] = Words.getLongAcquire(block + Facts.OFF_TOPIC_STARTS + 8L * i);
        }
        entries[Facts.TOPIC_CHUNKS] = last();
    }

    /** The newest noted frame whose number is at most this, else the oldest. */
    private long notedBefore(long number) {
        long tail = tail();
        long found = oldest(tail, capacity);
        long best = 0;
        loadEntries();
        for (long entry : entries) {
            if (within(tail - entry, capacity) && find(entry, tail, false) && Long.compareUnsigned(seq, number) <= 0
                    && Long.compareUnsigned(seq, best) > 0) {
                found = entry;
                best = seq;
            }
        }
        return found;
    }

    /**
     * Where to begin.
     *
     * @param first go on from the cursor to the first frame with at least this number; 0: begin there
     * @param expected the number to expect, whatever is found; 0: that of the first frame
     */
    record Choice(long cursor, long first, long expected) {}

    /** The position to begin at, not settled yet. */
    Choice choose(Start from) {
        long after = newest();
        long newest = after == 0 ? 0 : seq;
        if (after == 0) {
            after = tail();
        }
        long n = from.number();
        Choice afterNewest = new Choice(after, 0, newest + 1);
        return switch (from.kind()) {
            case NOW -> afterNewest;
            case HISTORY -> n == 0 ? afterNewest : Long.compareUnsigned(n, newest) < 0
                    ? new Choice(notedBefore(newest - n + 1), newest - n + 1, 0) : new Choice(oldest(tail(), capacity), 0, 0);
            // A number that the topic has not reached is of another topic of this name, or from the future.
            case AFTER_SEQ -> Long.compareUnsigned(n, newest) >= 0 ? afterNewest : new Choice(notedBefore(n + 1), n + 1, n + 1);
            case AGAIN -> Long.compareUnsigned(n, newest) > 0 ? afterNewest : new Choice(notedBefore(n), n, 0);
            case DEFAULT, OLDEST -> new Choice(oldest(tail(), capacity), 0, 0);
        };
    }

    /** The number of the message at the settled position. */
    long expected;

    /**
     * Goes from a chosen position, which a slot keeps or whose frames are checked, to the first frame to read, and leaves in
     * {@code expected} the number to expect there. No position of a frame: overtaken.
     */
    long settle(Choice choice, boolean kept) {
        long at = choice.cursor();
        // A frame for each step is the most there can be, unless the publisher writes on meanwhile.
        for (long steps = Math.max(ATTEMPTS, capacity / align); steps > 0; steps--) {
            if (!isPosition(at)) {
                break;
            }
            long tail = tail();
            expected = choice.expected();
            if (at == tail) {
                if (expected != 0 || findNumber(tail)) {
                    return at;
                }
                // Something has come since.
                continue;
            }
            if (!find(at, tail, kept)) {
                if (!kept && isOvertaken(at)) {
                    return Facts.NO_POSITION;
                }
                break;
            }
            if (Long.compareUnsigned(seq, choice.first()) >= 0) {
                expected = expected != 0 ? expected : seq;
                return at;
            }
            at += size();
        }
        throw end.fail(ErrorKind.CORRUPT);
    }

    /** Leaves in {@code expected} the number of the message that is to come at tail. False: it has come meanwhile. */
    private boolean findNumber(long tail) {
        long at = newest();
        expected = 1;
        if (at == 0) {
            return true;
        }
        // A publisher that was killed between its stores of tail and last leaves frames between the two.
        while (at != tail) {
            if (!find(at, tail, false)) {
                return false;
            }
            at += size();
        }
        expected = seq + 1;
        return true;
    }

    /** Where a subscriber begins that nobody waits for. */
    long begin(Start from) {
        for (int i = 0; i < ATTEMPTS; i++) {
            long at = settle(choose(from), false);
            if (at != Facts.NO_POSITION) {
                return at;
            }
        }
        throw end.fail(ErrorKind.CORRUPT);
    }
}
