package dev.ramway;

import dev.ramway.sys.Lock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * How a subscriber comes: which slot it takes, where it begins, and how it makes sure that nothing from there on is overwritten
 * before the publisher knows of it (ABI.md, section 19). The fields that are not final are what came of it.
 */
final class TopicJoin {
    /**
     * For how long a slot or a label is tried again that is taken, however short the time-out is: another subscriber that looks for its
     * slot has a lock for an instant. In ns.
     */
    private static final long INSTANT = 5_000_000;
    /** How many labels an error names at most: there can be 1024 of 64 bytes. */
    private static final int LABELS_NAMED = 8;
    /** The bits of a slot that is, or was and may be again, a reliable subscriber's. */
    static final int RELIABLE = Facts.SLOT_GATING | Facts.SLOT_DURABLE | Facts.SLOT_EJECTED;

    private final RingEnd end;
    private final TopicLog log;
    private final SegmentLink link;
    private final byte[] label;
    private final boolean hasLabel;
    /** The slot's: whether this process can membarrier, and whether it reads the newest message. */
    private final int flags;

    /** The slot's address; 0 for one that shows itself to nobody. */
    long slot;
    int epoch = 1;
    /** The publisher's epoch whose close a durable predecessor has seen, or 0. */
    int closeSeen;
    long cursor;
    /** The number of the message at cursor. */
    long expected;
    /** A durable predecessor was ejected, and lost so many messages. */
    boolean lagged;
    long lost;

    TopicJoin(RingEnd end, TopicLog log, SegmentLink link, byte[] text, boolean readsNewest) {
        this.end = end;
        this.log = log;
        this.link = link;
        label = Arrays.copyOf(text, Facts.LABEL_MAX);
        hasLabel = text.length != 0;
        flags = (end.membarrierCapable ? Facts.SLOT_FLAG_MEMBARRIER_CAPABLE : 0) | (readsNewest ? Facts.SLOT_FLAG_LATEST : 0);
    }

    /** Begins without holding the publisher back, and takes a free slot, if there is one, so that others see it. */
    void beside(Start from, boolean readOnly) {
        cursor = log.begin(from.kind() == Start.Kind.DEFAULT ? new Start(Start.Kind.NOW, 0) : from);
        expected = log.expected;
        // Only the upper half is for such subscribers, so that they keep no reliable one out.
        if (readOnly || !takeFree((log.slots + 1) / 2)) {
            return;
        }
        fill();
        Words.setLongRelease(slot + Facts.OFF_SLOT_CURSOR, cursor);
        begin(TopicLog.state(slot), Facts.SLOT_ACTIVE);
        log.countChange();
    }

    /** The state of a slot that is taken anew. No exchange: nobody else changes the state of a slot that does not gate. */
    private long begin(long state, int bits) {
        long next = next(state, bits);
        Words.setLongRelease(slot + Facts.OFF_SLOT_STATE, next);
        epoch = (int) (next >>> 32);
        return next;
    }

    private static long next(long state, int bits) {
        int epoch = (int) (state >>> 32) + 1;
        return (long) (epoch == 0 ? 1 : epoch) << 32 | bits;
    }

    /** The state of a slot that nobody has. */
    static long withoutFlags(long state) {
        return state & ~0xFFFF_FFFFL;
    }

    /** Writes who this is. */
    private void fill() {
        Words.setInt(slot + Facts.OFF_SLOT_FLAGS, flags);
        Words.setInt(slot + Facts.OFF_SLOT_CLOSE_SEEN, 0);
        Words.setLongRelease(slot + Facts.OFF_SLOT_LOST, 0);
        Words.setLongRelease(slot + Facts.OFF_SLOT_EJECT_SEQ, 0);
        Words.copyIn(label, 0, slot + Facts.OFF_SLOT_LABEL, label.length);
    }

    /**
     * Begins as one that the publisher waits for. While it is Busy it is tried again, up to the time-out: a predecessor that was
     * killed has its label and its slot until the kernel has closed its files.
     */
    void gating(Start from, boolean durable, long timeout) {
        SegmentOpening.retry(Math.max(timeout, INSTANT), () -> {
            if (!hasLabel) {
                join(from, durable);
                return this;
            }
            // Only one at a time searches for a label's slot.
            if (!Errors.during("locking byte 2 of the topic", () -> Lock.tryLock(link.lock, Facts.BYTE_JOIN, Lock.Mode.EXCLUSIVE))) {
                throw RetryLater.raced(Errors.of(ErrorKind.BUSY,
                        "another subscriber with a label was joining, at each attempt until the deadline: try again"));
            }
            try {
                join(from, durable);
                return this;
            } finally {
                Lock.unlock(link.lock, Facts.BYTE_JOIN);
            }
        });
    }

    private void join(Start from, boolean durable) throws RetryLater {
        if (!find()) {
            fill();
            gate(slot, from, durable);
            return;
        }
        Words.setInt(slot + Facts.OFF_SLOT_FLAGS, flags);
        closeSeen = Words.getInt(slot + Facts.OFF_SLOT_CLOSE_SEEN);
        long state = TopicLog.state(slot);
        if ((state & Facts.SLOT_EJECTED) != 0 && (log.flags & Facts.TOPIC_MAY_EJECT) == 0) {
            throw end.fail(ErrorKind.CORRUPT);
        }
        if ((state & Facts.SLOT_GATING) != 0 && resume(state)) {
            for (long s = TopicLog.state(slot); !durable && !TopicLog.changeState(slot, s, s & ~(long) Facts.SLOT_DURABLE);) {
                // It takes the cursor up, and lets it go at its end.
                s = TopicLog.state(slot);
            }
            return;
        }
        // The publisher has ejected the predecessor.
        long first = Words.getLong(slot + Facts.OFF_SLOT_EJECT_SEQ);
        gate(slot, new Start(Start.Kind.AGAIN, first), durable);
        lagged = true;
        lost = first != 0 && expected > first ? expected - first : 0;
    }

    /** Takes up the cursor of a durable predecessor. False: it was ejected. */
    private boolean resume(long state) {
        long at = TopicLog.cursor(slot);
        if (!log.isPosition(at) || !TopicLog.within(log.tail() - at, log.capacity)) {
            throw end.fail(ErrorKind.CORRUPT);
        }
        long next = next(state, Facts.SLOT_ACTIVE | Facts.SLOT_GATING | Facts.SLOT_DURABLE);
        if (!TopicLog.changeState(slot, state, next)) {
            return false;
        }
        log.countChange();
        RingEnd.wake(log.area + Facts.OFF_SUBS_WAIT);
        try {
            cursor = log.settle(new TopicLog.Choice(at, 0, 0), true);
        } catch (RamwayException e) {
            // What was read there may be overwritten since.
            if (TopicLog.isEjected(slot)) {
                return false;
            }
            throw e;
        }
        if (TopicLog.isEjected(slot)) {
            return false;
        }
        expected = log.expected;
        epoch = (int) (next >>> 32);
        return true;
    }

    /** Locks the slot of the label, or a free one. True: it is a durable predecessor's. */
    private boolean find() throws RetryLater {
        for (int i = 0; hasLabel && i < log.slots; i++) {
            long s = log.slot(i);
            // Of the others a label does not count: of one that nobody waits for, and of one that has left, whose slot somebody may be
            // taking just now who has not written its own label yet.
            if ((TopicLog.state(s) & RELIABLE) == 0 || !isMine(s)) {
                continue;
            }
            boolean durable = (TopicLog.state(s) & Facts.SLOT_DURABLE) != 0;
            if (durable && link.takeSlot(i)) {
                // It may have been given up before the lock was taken.
                if ((TopicLog.state(s) & Facts.SLOT_DURABLE) != 0 && isMine(s)) {
                    slot = s;
                    return true;
                }
                link.letSlotGo();
            } else if (durable || link.livesAt(Facts.BYTE_SLOT + i)) {
                throw RetryLater.busy(String.format("a reliable subscriber with the label '%s' is attached already: close it, or take "
                        + "another label", shown(label)));
            }
        }
        if (!takeFree(0)) {
            throw RetryLater.busy(noSlot());
        }
        return false;
    }

    private boolean isMine(long s) {
        return Arrays.equals(TopicLog.label(s), label);
    }

    /** What to say where every slot is taken: by whom. */
    private String noSlot() {
        int[] counts = new int[3];
        List<String> labels = new ArrayList<>();
        for (int i = 0; i < log.slots; i++) {
            long s = log.slot(i);
            long state = TopicLog.state(s);
            boolean away = (state & Facts.SLOT_DURABLE) != 0 && !link.livesAt(Facts.BYTE_SLOT + i);
            counts[away ? 1 : (state & RELIABLE) != 0 ? 0 : 2]++;
            byte[] text = TopicLog.label(s);
            if (text[0] != 0) {
                labels.add("'" + shown(text) + "'");
            }
        }
        String[] whom = {"by reliable subscribers", "for durable subscribers that are away", "by lossy or latest subscribers"};
        List<String> by = new ArrayList<>();
        for (int i = 0; i < counts.length; i++) {
            if (counts[i] > 0) {
                by.add(counts[i] + " " + whom[i]);
            }
        }
        if (labels.size() > LABELS_NAMED) {
            int more = labels.size() - LABELS_NAMED;
            labels = new ArrayList<>(labels.subList(0, LABELS_NAMED));
            labels.add(more + " more");
        }
        return String.format("all %d slots of the topic are taken: %s%s. Close a subscriber, unsubscribe a durable one, or create the "
                + "topic with more slots; ramway inspect shows the processes", log.slots, String.join(", ", by),
                labels.isEmpty() ? "" : " (labels: " + String.join(", ", labels) + ")");
    }

    /** A label for an error: whoever may write to the topic can put control characters there. */
    private static String shown(byte[] label) {
        StringBuilder shown = new StringBuilder();
        TopicLog.labelText(label).codePoints().forEach(c -> {
            if (Character.isISOControl(c) || !Character.isDefined(c)) {
                shown.append(String.format("\\u%04x", c));
            } else {
                shown.appendCodePoint(c);
            }
        });
        return shown.toString();
    }

    /** Locks the first free slot from a number on. */
    private boolean takeFree(int from) {
        for (int i = from; i < log.slots; i++) {
            long s = log.slot(i);
            if ((TopicLog.state(s) & Facts.SLOT_DURABLE) != 0 || !link.takeSlot(i)) {
                continue;
            }
            // It may have become durable before the lock was taken.
            if ((TopicLog.state(s) & Facts.SLOT_DURABLE) == 0) {
                slot = s;
                return true;
            }
            link.letSlotGo();
        }
        return false;
    }

    /** Begins with a slot that gates, whose lock is held; durable: its cursor is to stay. */
    void gate(long s, Start from, boolean durable) {
        slot = s;
        boolean joined = false;
        try {
            for (int i = 0; i < TopicLog.ATTEMPTS && !joined; i++) {
                joined = tryGate(from, durable, i == 0 || TopicLog.isEjected(slot));
            }
            if (!joined) {
                throw end.fail(ErrorKind.CORRUPT);
            }
        } finally {
            if (!joined) {
                // Back to no subscriber.
                Words.setLongRelease(slot + Facts.OFF_SLOT_STATE, withoutFlags(TopicLog.state(slot)));
                log.countChange();
            }
        }
    }

    /** One choice of where to begin. False: it was overtaken, or the publisher has ejected this side already. */
    private boolean tryGate(Start from, boolean durable, boolean anew) {
        TopicLog.Choice choice = log.choose(from);
        // The cursor and the flags go first.
        Words.setLongRelease(slot + Facts.OFF_SLOT_CURSOR, choice.cursor());
        long state = anew ? begin(TopicLog.state(slot), Facts.SLOT_ACTIVE | Facts.SLOT_GATING) : TopicLog.state(slot);
        // Each time: the publisher may have taken the choice before for one that it need not wait for. A full fence as well: it
        // pairs with the publisher's between its claim and its load of the count.
        log.countChange();
        long claim = Words.getLongAcquire(log.block + Facts.OFF_TOPIC_CLAIM);
        // The publisher may be blocked by what this slot has said before.
        RingEnd.wake(log.area + Facts.OFF_SUBS_WAIT);
        if (!TopicLog.within(claim - choice.cursor(), log.capacity)) {
            return false;
        }
        try {
            cursor = log.settle(choice, true);
        } catch (RamwayException e) {
            // Nothing has kept what was read there.
            if (TopicLog.isEjected(slot)) {
                return false;
            }
            throw e;
        }
        if (TopicLog.isEjected(slot)) {
            return false;
        }
        expected = log.expected;
        if (cursor != choice.cursor()) {
            // Forward only, so the publisher needs no count.
            Words.setLongRelease(slot + Facts.OFF_SLOT_CURSOR, cursor);
        }
        // Last, so that a join that is cut off by a kill leaves nothing that gates.
        return !durable || TopicLog.changeState(slot, state, state | Facts.SLOT_DURABLE);
    }
}
