package dev.ramway;

import java.util.Arrays;

/**
 * What a publisher that cannot go on does about the subscribers that are in its way: it removes the dead ones, and ejects those that
 * have been in the way for too long.
 */
final class TopicPatrol {
    private final TopicLog log;
    private final SegmentLink link;
    /** In ns; 0: never. */
    final long ejectAfter;
    /** The system was asked for the locks since this side could go on last, and when. */
    private boolean asked;
    private long askedAt;
    /** By slot, since when it is in the way (0: it is not), at which cursor and in which state. */
    private final long[] since;
    private final long[] cursors;
    private final long[] states;

    TopicPatrol(TopicLog log, SegmentLink link, long ejectAfter) {
        this.log = log;
        this.link = link;
        this.ejectAfter = ejectAfter;
        since = new long[log.slots];
        cursors = new long[log.slots];
        states = new long[log.slots];
    }

    /** The publisher is not blocked. */
    void goOn() {
        if (asked) {
            asked = false;
            Arrays.fill(since, 0);
        }
    }

    /** Checks every slot that keeps a frame that ends at {@code end} out. True: one of them no longer does. */
    boolean check(long limit, long end, long published) {
        long now = System.nanoTime();
        if (!asked) {
            // A subscriber that was killed is found after an interval, as a ring's peer is.
            asked = true;
            askedAt = now;
        }
        boolean ask = now - askedAt >= Facts.POLL_INTERVAL_NANOS;
        if (ask) {
            askedAt = now;
        }
        boolean freed = false;
        for (int i = 0; i < log.slots; i++) {
            long slot = log.slot(i);
            // The state first, then the lock: a slot that was taken anew since has another epoch, and the exchange fails.
            long state = TopicLog.state(slot);
            long cursor = TopicLog.cursor(slot);
            if ((state & Facts.SLOT_GATING) == 0 || !TopicLog.within(limit - cursor, log.capacity)
                    || TopicLog.within(end - cursor, log.capacity)) {
                since[i] = 0;
            } else if (ask && (state & Facts.SLOT_DURABLE) == 0 && !link.livesAt(Facts.BYTE_SLOT + i)) {
                // A full fence as well, and so is the one below: a subscriber that joins this slot now sees the change before it
                // sees what this side writes next.
                freed |= TopicLog.changeState(slot, state, TopicJoin.withoutFlags(state));
            } else if (isOverdue(i, state, cursor, now)) {
                Words.setLongRelease(slot + Facts.OFF_SLOT_EJECT_SEQ, seqAt(cursor, published));
                freed |= TopicLog.changeState(slot, state, state & ~(long) Facts.SLOT_GATING | Facts.SLOT_EJECTED);
            }
        }
        return freed;
    }

    /** Whether the slot has been in the way for too long at its cursor. */
    private boolean isOverdue(int i, long state, long cursor, long now) {
        if (since[i] == 0 || cursors[i] != cursor || states[i] != state) {
            since[i] = now | 1;
            cursors[i] = cursor;
            states[i] = state;
            return false;
        }
        return ejectAfter != 0 && now - since[i] >= ejectAfter;
    }

    /** For how long the slot has been in the way, in ns. */
    long blocksFor(int i) {
        return since[i] == 0 ? 0 : System.nanoTime() - since[i];
    }

    /** The number of the frame at a cursor, which may be any number; 0 where there can be none. */
    long seqAt(long cursor, long published) {
        long unread = published - cursor;
        if (!log.isPosition(cursor) || unread == 0 || !TopicLog.within(unread, log.capacity)) {
            return 0;
        }
        log.read(cursor);
        return log.seq;
    }
}
