package dev.ramway;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * What receiving needs whatever the frames are: a {@link Receiver} adds a ring's (ABI.md, section 5), a {@link Subscriber} a
 * topic's (section 19).
 */
abstract sealed class Consumer extends RingEnd permits ReceivingEnd {
    /** What is kept of a frame of a batch: where its payload is, its first word, its tag, its number. */
    static final int FRAME = 4;
    /** No frame's first word, because no frame is as long. */
    static final long NOTHING = -1;

    /**
     * Where the next frame begins; from released, which the shared word holds, to head is out. Invariant: released <= head <=
     * tail and tail - released <= capacity, wrapping.
     */
    long head;
    long released;
    /** The shared one as last seen. */
    long tail;
    /** A sleeping sender is woken once no more than this is unread. */
    private final long threeQuarters;
    /** The frames of the batch that is out, each number read once and checked; used again for the next batch. */
    long[] frames = new long[FRAME * 32];
    /** The tag of the message that was copied last. */
    long copiedTag;
    /** Who took out the batch that is out. */
    private Holder batchHolder;
    private volatile boolean abandoned;
    /** What a loop over messages has given out last. */
    Message looped;
    private final BackOff backOff;

    Consumer(Attachment a, Options options, long mine, long peer) {
        super(a, options, mine, peer);
        threeQuarters = capacity - capacity / Facts.WAKE_FRACTION;
        backOff = new BackOff(capacity / 4);
    }

    /** The longest payload that any frame has. */
    abstract long payloadMax();

    /** Checks what a topic's frame says besides a ring's, after the rest of it, and moves on. False: no correct publisher wrote it. */
    boolean follows(long frame) {
        return true;
    }

    /** Keeps of a batch's frame what follows checked. */
    void keep(long[] kept, int at) {}

    /** Whether no correct peer writes such a frame where so many bytes are published. */
    final boolean isImpossible(long length, long size, long left) {
        return size > left || length > payloadMax();
    }

    /**
     * Takes the next frame out, or gives null if nothing is there after all, which never happens on a ring. The one place where
     * messages in the ring are made, so that C2 can do without them. It leaves if it throws.
     */
    Message handOut(Holder h) {
        long place = head & mask;
        // A frame's header is within the published bytes, which are a positive multiple of align. With data + place in a variable, C2
        // makes code of the loop in gather that takes 15 % longer.
        long word = Words.getLong(data + place);
        long tag = Words.getLong(data + place + Facts.FRAME_TAG);
        long length = word & 0xFFFF_FFFFL;
        long size = frameSize(length);
        if (isImpossible(length, size, tail - head) || !follows(data + place)) {
            throw corruptFrame(h);
        }
        head += size;
        return new Message(this, h, null, place + header(), (int) length, (int) (word >>> 32), tag);
    }

    /** Keeps the next frames, max at most, in {@link #frames}; how many: 0 if the first is wrong, or nothing is there after all. */
    int gather(int max) {
        long[] kept = frames;
        long pos = head;
        int count = 0;
        while (count < max) {
            if (pos == tail) {
                head = pos;
                long now = Words.getLongAcquire(positionWord());
                if (now == tail) {
                    break;
                }
                if (!takeTail(now)) {
                    // The next call says so.
                    die(ErrorKind.CORRUPT);
                    break;
                }
            }
            long place = pos & mask;
            long word = Words.getLong(data + place);
            long length = word & 0xFFFF_FFFFL;
            long size = frameSize(length);
            if (isImpossible(length, size, tail - pos) || !follows(data + place)) {
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
            kept[i] = place + header();
            kept[i + 1] = word;
            kept[i + 2] = Words.getLong(data + place + Facts.FRAME_TAG);
            keep(kept, i);
            pos += size;
            count++;
        }
        head = pos;
        return count;
    }

    /**
     * Copies the next frame's payload into one of the two and gives its first word, or {@link #NOTHING} if nothing is there after
     * all, which never happens on a ring. It leaves.
     */
    abstract long copy(Holder h, byte[] array, MemorySegment memory, long room);

    /** The number of a topic's message that is out, by where its payload is. */
    long seq(long at, boolean batched) {
        return 0;
    }

    /** When it was published. */
    long time(long at) {
        return 0;
    }

    /** How many messages were lost just before it. */
    long lostBefore(long at, boolean batched) {
        return 0;
    }

    /** Where this side says what it has released. */
    abstract long releasedWord();

    /** Begins again a call that has found nothing after all, and waits for a message. Never on a ring. */
    private Holder enterAgain(long start, long nanos) throws InterruptedException {
        // There may be something all the time, so that no wait finds out that this one is over.
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        long left = Waiter.left(start, nanos);
        if (left <= 0) {
            throw fail(ErrorKind.TIMED_OUT);
        }
        Thread.yield();
        Holder h = enter();
        if (head == tail && !pollToWait()) {
            arrive(h, left);
        }
        return h;
    }

    /** The next message, after a wait of up to {@code nanos}. */
    final Message take(long nanos) throws InterruptedException {
        Holder h = enter();
        if (head == tail && !pollToWait()) {
            arrive(h, nanos);
        }
        Message message = handOut(h);
        return message != null ? message : takeLater(nanos);
    }

    /** The rest of {@link #take} where what was there is there no more. */
    private Message takeLater(long nanos) throws InterruptedException {
        long start = System.nanoTime();
        while (true) {
            Message message = handOut(enterAgain(start, nanos));
            if (message != null) {
                return message;
            }
        }
    }

    /** Waits for a message without taking it, up to {@code nanos}; false: the time was over, or {@link Waiter#poke} ended the wait. */
    final boolean awaitMessage(long nanos) throws InterruptedException {
        Holder h = enter();
        if (head == tail && !poll()) {
            try {
                arrive(h, nanos);
            } catch (TimedOutException e) {
                return false;
            }
        }
        leave(h);
        return true;
    }

    /** The next message, or null. */
    final Message takeNow() {
        Holder h = enter();
        if (head == tail && !poll() && !arrivedNow(h)) {
            return null;
        }
        return handOut(h);
    }

    final RamwayException corruptFrame(Holder h) {
        RamwayException e = corrupt();
        leave(h);
        return e;
    }

    /** The first check of a call that waits, which may {@link BackOff} before it. */
    private boolean pollToWait() {
        if (waiter.firstPolls > 0 && backOff.isDue()) {
            backOff.pause();
        }
        return poll();
    }

    /** One check of the shared tail. False: nothing came, or what came is wrong, which the general wait finds out. */
    private boolean poll() {
        long now = Words.getLongAcquire(positionWord());
        return now != positionSeen() && takeTail(now);
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
        long seen = positionSeen();
        long word = positionWord();
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
    boolean takeTail(long now) {
        long moved = now - tail;
        if (Long.compareUnsigned(moved, capacity - (tail - released)) > 0 || (moved & alignMask) != 0) {
            return false;
        }
        backOff.found(moved, frameSize(Words.getLong(data + (tail & mask)) & 0xFFFF_FFFFL));
        tail = now;
        return true;
    }

    @Override
    boolean ready() {
        if (head != tail) {
            return true;
        }
        long now = Words.getLongAcquire(positionWord());
        if (now == tail) {
            return false;
        }
        if (!takeTail(now)) {
            throw corrupt();
        }
        return true;
    }

    @Override
    long positionWord() {
        return ring + Facts.OFF_TAIL;
    }

    @Override
    long positionSeen() {
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

    /** Where this side says which close of the peer was delivered; 0: nowhere. */
    abstract long closeSeenWord();

    @Override
    final RamwayException ending(RamwayException end) {
        int epoch = end.kind() == ErrorKind.CLOSED ? peerState.closedEpoch() : 0;
        long word = closeSeenWord();
        if (epoch != 0 && word != 0) {
            // A receiver that sees this close as delivered sees head where it was when it was delivered.
            Words.setInt(word, epoch);
        }
        return super.ending(end);
    }

    /**
     * Takes out up to max messages, those that are there, after a wait for the first of up to {@code nanos}, and gives how many. The
     * batch is made by the caller: this is large enough to be compiled by itself, and what it returned would have to be allocated.
     */
    final int takeMany(int max, long nanos) throws InterruptedException {
        if (max < 1) {
            throw noBatch(max);
        }
        Holder h = enter();
        if (head == tail && !pollToWait()) {
            arrive(h, nanos);
        }
        int count = gather(max);
        if (count == 0) {
            long start = System.nanoTime();
            do {
                noneGathered(h);
                h = enterAgain(start, nanos);
                count = gather(max);
            } while (count == 0);
        }
        batchHolder = h;
        return count;
    }

    /** Takes out up to max messages, those that are there, and gives how many; 0: there is none, and nothing is out. */
    final int takeManyNow(int max) {
        if (max < 1) {
            throw noBatch(max);
        }
        Holder h = enter();
        if (head == tail && !poll() && !arrivedNow(h)) {
            return 0;
        }
        int count = gather(max);
        if (count == 0) {
            noneGathered(h);
        }
        batchHolder = h;
        return count;
    }

    private RamwayException noBatch(int max) {
        return fail(ErrorKind.INVALID_ARGUMENT, "a batch of at most %d messages: ask for at least 1", max);
    }

    /** What {@link #takeMany} took out. */
    final Batch batch(int count) {
        return new Batch(this, batchHolder, count);
    }

    /** The end of a call where {@link #gather} gave none: it leaves, and throws if there is an error. */
    void noneGathered(Holder h) {
        throw corruptFrame(h);
    }

    @Override
    final boolean isOut() {
        return head != released;
    }

    @Override
    final RamwayException busy() {
        return fail(ErrorKind.BUSY, "a message or batch of this " + (at.area == null ? "receiver" : "subscriber")
                + " is out: close it first");
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
    void giveBack() {
        if (dead != null) {
            // Not published by a dead handle; but nothing is out any more, so that close has nothing to wait for.
            head = released;
            return;
        }
        long end = head;
        released = end;
        // Release: our reads of the frames go before the position that lets the sender overwrite them.
        publish(releasedWord(), end);
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
        long word = copy(h, target, MemorySegment.NULL, room);
        return word != NOTHING ? word : intoLater(target, MemorySegment.NULL, room, nanos);
    }

    /** Receives into memory, after a wait of up to {@code nanos}. */
    final long into(MemorySegment target, long nanos) throws InterruptedException {
        long room = target.byteSize();
        Holder h = enter();
        if (head == tail && !poll()) {
            arrive(h, nanos);
        }
        long word = copy(h, null, target, room);
        return word != NOTHING ? word : intoLater(null, target, room, nanos);
    }

    /** The rest of {@link #into} where what was there is there no more. */
    private long intoLater(byte[] array, MemorySegment memory, long room, long nanos) throws InterruptedException {
        long start = System.nanoTime();
        while (true) {
            long word = copy(enterAgain(start, nanos), array, memory, room);
            if (word != NOTHING) {
                return word;
            }
        }
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

    /** Refuses a target that is too short. */
    final RamwayException tooLong(long length, long room) {
        return fail(ErrorKind.TOO_LARGE, "the message has %d bytes, the target only %d: it stays in the %s; receive it into a longer one",
                length, room, kind());
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
    void closing() {
        announceClose();
    }

    /** Closes without a word, as if the process had been killed. */
    final void giveUp() {
        abandoned = true;
        shut();
    }

    @Override
    final void beforeClose() {
        if (!abandoned) {
            announceClose();
        }
    }
}
