package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** The consumer's part of the ring's protocol (ABI.md, section 5): what a {@link Receiver} does. */
abstract sealed class Consumer extends RingEnd permits Receiver {
    /** What is kept of a frame of a batch: where its payload is, its first word, its tag. */
    static final int FRAME = 3;
    /** No frame's first word, because no frame is as long. */
    static final long NOTHING = -1;

    /**
     * Where the next frame begins; from released, which the shared word holds, to head is out. Invariant: released <= head <=
     * tail and tail - released <= capacity, wrapping.
     */
    private long head;
    private long released;
    /** The shared one as last seen. */
    private long tail;
    /** A sleeping sender is woken once no more than this is unread. */
    private final long threeQuarters;
    /** The frames of the batch that is out, each number read once and checked; used again for the next batch. */
    long[] frames = new long[FRAME * 32];
    /** The tag of the message that was copied last. */
    private long copiedTag;
    /** What a loop over messages has given out last. */
    Message looped;

    Consumer(Attachment a, Options options) {
        super(a, options);
        // Acquire: pairs with the producer's publish, and with the last consumer's release.
        head = Words.getLongAcquire(ring + Facts.OFF_HEAD);
        tail = Words.getLongAcquire(ring + Facts.OFF_TAIL);
        released = head;
        if (!Layout.positionsAgree(tail, head, capacity, a.align)) {
            throw fail(ErrorKind.CORRUPT);
        }
        threeQuarters = capacity - capacity / Facts.WAKE_FRACTION;
        announce();
    }

    /** The next message, after a wait of up to {@code nanos}. */
    final Message take(long nanos) throws InterruptedException {
        Holder h = enter();
        if (head == tail && !poll()) {
            arrive(h, nanos);
        }
        return handOut(h);
    }

    /** The next message, or null. */
    final Message takeNow() {
        Holder h = enter();
        if (head == tail && !poll() && !arrivedNow(h)) {
            return null;
        }
        return handOut(h);
    }

    /** Takes the frame at head out of the ring. The one place where messages are made, so that C2 can do without them. */
    private Message handOut(Holder h) {
        long at = head & mask;
        // A frame's first 16 bytes are within the published bytes, which are a positive multiple of align.
        long word = Words.getLong(data + at);
        long tag = Words.getLong(data + at + Facts.FRAME_TAG);
        long length = word & 0xFFFF_FFFFL;
        long size = Layout.frameSize(length, alignMask);
        if (isImpossible(length, size, head)) {
            throw corruptFrame(h);
        }
        head += size;
        return new Message((Receiver) this, h, null, at + Facts.FRAME_HEADER, (int) length, (int) (word >>> 32), tag);
    }

    /** Whether no correct peer publishes such a frame at a position: one that ends beyond the tail, or is too long. */
    private boolean isImpossible(long length, long size, long at) {
        return size > tail - at || length > Facts.MESSAGE_MAX;
    }

    private RamwayException corruptFrame(Holder h) {
        RamwayException e = corrupt();
        leave(h);
        return e;
    }

    /** One check of the shared tail. False: nothing came, or what came is wrong, which the general wait finds out. */
    private boolean poll() {
        long now = Words.getLongAcquire(ring + Facts.OFF_TAIL);
        return now != tail && takeTail(now);
    }

    /**
     * Waits for a message. The first polls cost less than the general wait: an answer that comes within a microsecond is found
     * here. It leaves if it throws.
     *
     * <p>The polls are written out so that this has more than 325 bytecodes: what is longer than that (FreqInlineSize) HotSpot's
     * C2 compiles by itself and never into a caller, however often it is called. With it, a receive would be a "big method",
     * which is not compiled into the user's loop, and the message would have to be made.
     */
    private void arrive(Holder h, long nanos) throws InterruptedException {
        long seen = tail;
        long word = ring + Facts.OFF_TAIL;
        long now = seen;
        if (waiter.firstPolls > 0) {
            // To poll again at once takes the line away from a peer that is about to write it.
            Thread.onSpinWait();
            Thread.onSpinWait();
            for (int polls = waiter.firstPolls; polls > 0; polls -= 10) {
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
                Thread.onSpinWait();
                now = Words.getLongAcquire(word);
                if (now != seen) {
                    break;
                }
            }
        }
        if (now != seen && takeTail(now)) {
            return;
        }
        boolean there = false;
        try {
            if (!ready()) {
                await(nanos);
            }
            there = true;
        } finally {
            if (!there) {
                leave(h);
            }
        }
    }

    /**
     * Checks a shared tail that moved, once, and takes it: it may only move forward, up to released + capacity, in whole
     * alignment steps.
     */
    private boolean takeTail(long now) {
        long moved = now - tail;
        if (Long.compareUnsigned(moved, capacity - (tail - released)) > 0 || (moved & alignMask) != 0) {
            return false;
        }
        tail = now;
        return true;
    }

    @Override
    final boolean ready() {
        if (head != tail) {
            return true;
        }
        long now = Words.getLongAcquire(ring + Facts.OFF_TAIL);
        if (now == tail) {
            return false;
        }
        if (!takeTail(now)) {
            throw corrupt();
        }
        return true;
    }

    @Override
    final long positionWord() {
        return ring + Facts.OFF_TAIL;
    }

    @Override
    final long positionSeen() {
        return tail;
    }

    /** For a receive that does not wait, where the first check found nothing. It leaves unless a message is there after all. */
    private boolean arrivedNow(Holder h) {
        boolean there = false;
        try {
            there = isReadyNow();
            return there;
        } finally {
            if (!there) {
                leave(h);
            }
        }
    }

    @Override
    final RamwayException ending(RamwayException end) {
        int epoch = end.kind() == ErrorKind.CLOSED ? peerState.closedEpoch() : 0;
        if (epoch != 0) {
            // A receiver that sees this close as delivered sees head where it was when it was delivered.
            Words.setInt(mine + Facts.OFF_ROLE_CLOSE_SEEN, epoch);
        }
        return super.ending(end);
    }

    /** Up to max messages, those that are there, after a wait for the first of up to {@code nanos}. */
    final Batch takeMany(int max, long nanos) throws InterruptedException {
        if (max < 1) {
            throw noBatch(max);
        }
        Holder h = enter();
        if (head == tail && !poll()) {
            arrive(h, nanos);
        }
        return handOutMany(h, max);
    }

    /** Up to max messages, those that are there, or null. */
    final Batch takeManyNow(int max) {
        if (max < 1) {
            throw noBatch(max);
        }
        Holder h = enter();
        if (head == tail && !poll() && !arrivedNow(h)) {
            return null;
        }
        return handOutMany(h, max);
    }

    private RamwayException noBatch(int max) {
        return fail(ErrorKind.INVALID_ARGUMENT, "a batch of at most %d messages: ask for at least 1", max);
    }

    private Batch handOutMany(Holder h, int max) {
        int count = gather(max);
        if (count == 0) {
            throw corruptFrame(h);
        }
        return new Batch((Receiver) this, h, count);
    }

    private int gather(int max) {
        long[] kept = frames;
        long at = head;
        int count = 0;
        while (count < max) {
            if (at == tail) {
                head = at;
                long now = Words.getLongAcquire(ring + Facts.OFF_TAIL);
                if (now == tail) {
                    break;
                }
                if (!takeTail(now)) {
                    // The next call says so.
                    die(ErrorKind.CORRUPT);
                    break;
                }
            }
            long place = at & mask;
            long word = Words.getLong(data + place);
            long length = word & 0xFFFF_FFFFL;
            long size = Layout.frameSize(length, alignMask);
            if (isImpossible(length, size, at)) {
                if (count > 0) {
                    die(ErrorKind.CORRUPT);
                }
                break;
            }
            int i = count * FRAME;
            if (i == kept.length) {
                kept = Arrays.copyOf(kept, 2 * i);
                frames = kept;
            }
            kept[i] = place + Facts.FRAME_HEADER;
            kept[i + 1] = word;
            kept[i + 2] = Words.getLong(data + place + Facts.FRAME_TAG);
            at += size;
            count++;
        }
        head = at;
        return count;
    }

    @Override
    final boolean isOut() {
        return head != released;
    }

    @Override
    final RamwayException busy() {
        return fail(ErrorKind.BUSY, "a message or batch of this receiver is out: close it first");
    }

    @Override
    final boolean dropLooped() {
        Message m = looped;
        // No holder: seen from another thread, in the middle of its making.
        Holder h = m == null ? null : m.holder;
        if (h == null || h.thread != Thread.currentThread() && h.thread.isAlive()) {
            return false;
        }
        looped = null;
        if (m.isGone()) {
            return false;
        }
        m.close();
        return true;
    }

    /** Gives back what is out. */
    final void release(Holder h) {
        if (current() != h) {
            giveBackSlowly(h, this::giveBack);
            return;
        }
        giveBack();
        leave(h);
    }

    /**
     * Releases every frame that is out, and wakes the sender if it sleeps and a quarter of the ring is free or the ring is
     * drained. (Otherwise the wake-up is put off, not dropped: one of the two comes true before this side can find the ring
     * empty, and close wakes in any case.)
     */
    private void giveBack() {
        if (dead != null) {
            // Not published by a dead handle; but nothing is out any more, so that close has nothing to wait for.
            head = released;
            return;
        }
        long end = head;
        released = end;
        // Release: our reads of the frames go before the position that lets the sender overwrite them.
        publish(ring + Facts.OFF_HEAD, end);
        // By the tail last seen, which may be behind: then this says "free" too often, never too rarely.
        if (tail - end <= threeQuarters && peerSleepsOrChanged()) {
            wakeOrUpdate();
        }
    }

    /**
     * Receives into an array, after a wait of up to {@code nanos}, and gives the frame's first word. The record is made by the
     * caller: this is large enough to be compiled by itself, and what it returned would have to be allocated.
     */
    final long into(byte[] target, long nanos) throws InterruptedException {
        // First: what throws in here has to leave.
        int room = target.length;
        Holder h = enter();
        if (head == tail && !poll()) {
            arrive(h, nanos);
        }
        return copy(h, target, MemorySegment.NULL, room);
    }

    /** Receives into memory, after a wait of up to {@code nanos}. */
    final long into(MemorySegment target, long nanos) throws InterruptedException {
        long room = target.byteSize();
        Holder h = enter();
        if (head == tail && !poll()) {
            arrive(h, nanos);
        }
        return copy(h, null, target, room);
    }

    /** Receives into one of the two, or gives {@link #NOTHING}. */
    final long intoNow(byte[] array, MemorySegment memory) {
        long room = array != null ? array.length : memory.byteSize();
        Holder h = enter();
        if (head == tail && !poll() && !arrivedNow(h)) {
            return NOTHING;
        }
        return copy(h, array, memory, room);
    }

    /** What was copied, of whose frame this is the first word. */
    final Received received(long word) {
        return new Received((int) (word >>> 32), copiedTag, (int) word);
    }

    /**
     * Copies each byte of the next frame once and decides by none of them in the ring: a peer that rewrites what it sent cannot
     * disturb it. It gives the frame's first word, leaves its tag in copiedTag, and leaves.
     */
    private long copy(Holder h, byte[] array, MemorySegment memory, long room) {
        long at = data + (head & mask);
        long word = Words.getLong(at);
        copiedTag = Words.getLong(at + Facts.FRAME_TAG);
        long length = word & 0xFFFF_FFFFL;
        long size = Layout.frameSize(length, alignMask);
        if (isImpossible(length, size, head)) {
            throw corruptFrame(h);
        }
        try {
            if (length > room) {
                throw fail(ErrorKind.TOO_LARGE, "the message has %d bytes, the target only %d: it stays in the ring; "
                        + "receive it into a longer one", length, room);
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

    /** Asks for a callback. */
    final Registration whenMessage(Runnable callback) {
        Holder h = enter();
        try {
            return waiter.whenReady(callback);
        } finally {
            leave(h);
        }
    }

    /**
     * A sender that waits for room learns at once that none comes; held frames stay unreleased, and the role taken, until they are
     * given back.
     */
    @Override
    final void closing() {
        announceClose();
    }

    @Override
    final void beforeClose() {
        announceClose();
    }
}
