package dev.ramway;

import dev.ramway.sys.Futex;
import dev.ramway.sys.Membarrier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.Objects;
import java.util.function.Supplier;

/** What the ends of rings and topics have in common. */
// The endpoint: a role's line and the peer's, who fences, whether the peer lives, waiting, and closing. Senders and receivers add
// their positions and what they do with them. The fields are the business of the one thread inside the call guard. How a side says
// in shared memory that it is there, sleeps or goes is here as the two roles of a ring do it; the ends of a topic do it in their own way.
public abstract sealed class RingEnd extends CallGuard implements AutoCloseable permits Producer, Consumer {
    /** A wait without a limit, in nanoseconds. */
    static final long FOREVER = Long.MAX_VALUE;
    /** No wait at all. */
    static final long NOW = -1;

    // The hot path's fields stand within 128 bytes of the object's start, as far as they do now: eight bytes more before them, and a
    // slot's commit took 3 % longer, because the instructions that reach them were longer.
    final Role role;
    /** Where the ring's words are, this role's line and the peer's: addresses. */
    final long ring;
    final long mine;
    final long peer;
    /** Where the data begins, 2 * capacity bytes. */
    final long data;
    final long capacity;
    final long mask;
    final long alignMask;
    /** An ending is forever (bus, pair). On a named ring a successor may attach. */
    final boolean isFinal;
    final Attachment at;
    /** Only a close can tell, because both ends are in one process. */
    final boolean isPair;
    /** Guards {@link #window}: closed before the memory goes, so that no thread is left in a getter. */
    private final Arena views = Arena.ofShared();
    /** What goes when this handle is unreachable. */
    private final Resources resources;
    private Cleaner.Cleanable cleanable;
    /** Lives as long as this does: the other half of a bus, whose socket is the death notice of both. */
    Object companion;
    /**
     * Getters of messages and slots do without {@link #window}: a quarter less for a round trip (docs/adr/0022). They check the same but
     * for one thing, that no other thread ends the message and closes the handle in the same moment.
     */
    private static final boolean UNGUARDED = Boolean.getBoolean("ramway.unguarded");
    /** The data for getters of messages and slots. */
    private final MemorySegment window;
    final Waiter waiter;
    /** Where the flags are that this side writes; 0: it writes none. */
    long ownFlags;
    /** Publish without a fence, because the peer makes up for it with a membarrier when it goes to sleep. */
    private boolean fenceFree;
    /** This process is registered with membarrier, and it worked. */
    boolean membarrierCapable;
    /** The peer's flags as last acted upon. */
    int peerFlags;
    /** The word that the peer sleeps on, of a topic the publisher. */
    private final long peerWaitWord;
    int epoch;
    /** Views made from now on are for any thread. */
    boolean sharedViews;
    /** What is known of the peer, and the rule for its end. */
    PeerState peerState;
    /**
     * The last epoch of the peer that was found closed or dead, or 0. A successor holds the lock before it raises the epoch:
     * between the two it must not pass for the peer that is gone.
     */
    private volatile int gone;
    /** When this handle last asked the kernel whether the peer lives, by any call. */
    private long peerChecked = System.nanoTime();
    /** The peer was gone at the last check, also from another thread: check again at once. */
    private volatile boolean checkAgain;

    /** Where the line of a ring's role is. */
    static long line(Attachment a, Role role) {
        return a.header.address() + a.block + role.line();
    }

    /** Prepares the end; the positions are checked next, and {@link #announce} makes it known. */
    RingEnd(Attachment a, Options options, long mine, long peer) {
        at = a;
        role = a.role;
        ring = a.header.address() + a.block;
        this.mine = mine;
        this.peer = peer;
        ownFlags = mine + Facts.OFF_ROLE_FLAGS;
        peerWaitWord = a.area == null ? peer + Facts.OFF_ROLE_WAIT : a.area.address() + Facts.OFF_SUBS_WAIT;
        MemorySegment payloads = a.payloads();
        data = payloads.address();
        capacity = a.capacity;
        mask = capacity - 1;
        alignMask = a.align - 1;
        isFinal = a.link.isFinal();
        isPair = a.link == Link.NONE;
        peerState = PeerState.of(a, mine, peer);
        membarrierCapable = options.membarrier() && Membarrier.isAvailable();
        window = payloads.reinterpret(2 * capacity, views, this::keep);
        resources = new Resources(a, mine, peer, isPair);
        waiter = new Waiter(this, options.waitMode());
    }

    /** What getters of messages and slots access, at an {@link #offset}. */
    final MemorySegment memory() {
        return UNGUARDED ? Words.ALL : window;
    }

    /** Where in {@link #memory} a place in the mirrored data is. */
    final long offset(long place) {
        return UNGUARDED ? data + place : place;
    }

    /** The address of the peer's position. */
    abstract long positionWord();

    /** What was last seen there. */
    abstract long positionSeen();

    /** Whether a call that waits can go on, after a check of the shared position. Corrupt is thrown. */
    abstract boolean ready();

    /** What a role does before it says that it closed. */
    abstract void beforeClose();

    /**
     * Says "I am here" in this role's words, and wakes the peer so that it checks (ABI.md, section 6). The order of the stores
     * counts; each is sequentially consistent, so the last one before the wake-up is the full fence as well.
     */
    final void announce() {
        sayAttached();
        wakePeer();
        peerChanged();
        cleanable = HandleCleaner.watch(this, resources);
    }

    /** The words of {@link #announce}. */
    void sayAttached() {
        Words.setInt(waitWord(), 0);
        Words.setInt(mine + Facts.OFF_ROLE_FLAGS, membarrierCapable ? Facts.ROLE_MEMBARRIER_CAPABLE : 0);
        int next = Words.getInt(mine + Facts.OFF_ROLE_EPOCH) + 1;
        epoch = next == 0 ? 1 : next;
        Words.setInt(mine + Facts.OFF_ROLE_EPOCH, epoch);
    }

    /** The word that this side sleeps on, an int. */
    long waitWord() {
        return mine + Facts.OFF_ROLE_WAIT;
    }

    /** Says that this side is about to sleep, which is a full fence, and gives the value to sleep on. */
    int arm() {
        Words.setInt(waitWord(), 1);
        return 1;
    }

    /** Says that it sleeps no more. A waker that still sees 1 makes one call too many. */
    void disarm() {
        Words.setInt(waitWord(), 0);
    }

    /** Ends a sleep of this side's own, from any thread. */
    void wakeSelf() {
        wake(waitWord());
    }

    /** How long this side may sleep even where every wake-up arrives, in ns. */
    long longestSleep() {
        return Facts.POLL_INTERVAL_NANOS;
    }

    /** Keeps an error that nobody was told, where it would not be found again. */
    void untold(RamwayException e) {}

    /** After how long a callback comes even without a wake-up, in ns. */
    long longestCallback() {
        return FOREVER;
    }

    /** Whether a waker does not fence, so that a side that cannot make up for it may miss a wake-up. */
    boolean mayMissWakeUps() {
        return (peerState.flags() & Facts.ROLE_FENCE_FREE) != 0;
    }

    /** Membarrier does not work any more: tells the wakers to fence again. */
    void loseMembarrier() {
        membarrierCapable = false;
        Words.setInt(ownFlags, Words.getInt(ownFlags) & ~Facts.ROLE_MEMBARRIER_CAPABLE);
    }

    /** Says "I closed", after everything was published, and wakes the peer. */
    void announceClose() {
        announceClose(mine, peer);
    }

    private static void announceClose(long mine, long peer) {
        Words.setInt(mine + Facts.OFF_ROLE_FLAGS, Words.getInt(mine + Facts.OFF_ROLE_FLAGS) | Facts.ROLE_CLOSED);
        wake(peer + Facts.OFF_ROLE_WAIT);
    }

    /** Wakes the peer whether it waits or not. */
    void wakePeer() {
        wake(peerWaitWord);
    }

    /** Wakes who sleeps on a word of its own. */
    static void wake(long word) {
        Words.setInt(word, 0);
        Futex.wakeAll(word);
    }

    /**
     * Stores a position of this side's. Release: what was read or written before goes before it. Fenced unless both sides
     * agreed that it need not be, so that the load of the peer's wait word that follows is not done before it.
     */
    final void publish(long word, long position) {
        Words.setLongRelease(word, position);
        if (!fenceFree) {
            VarHandle.fullFence();
        }
    }

    /** After a publish: whether the peer sleeps or has changed its flags. */
    final boolean peerSleepsOrChanged() {
        // Acquire is what keeps the compiler from moving the load over the store of the position.
        return Words.getIntAcquire(peerWaitWord) != 0 || Words.getInt(peer + Facts.OFF_ROLE_FLAGS) != peerFlags;
    }

    /**
     * Acts on {@link #peerSleepsOrChanged}. What was agreed on just now holds for this publish too: peerChanged fences, and the
     * wait word is loaded once more after it.
     */
    final void wakeOrUpdate() {
        peerChanged();
        // Any value but 0 is a waiter: a hostile one costs its writer a wake-up.
        if (Words.getIntAcquire(peerWaitWord) != 0) {
            wakePeer();
        }
    }

    /**
     * Acts on the peer's flags: who fences, and, where it is final, whether a consumer has closed. A producer's close is acted
     * on where the ring is found empty, because what it sent before is delivered first.
     */
    void peerChanged() {
        int flags = peerState.flags();
        peerFlags = flags;
        agree((flags & Facts.ROLE_MEMBARRIER_CAPABLE) != 0);
        if (role == Role.PRODUCER && isFinal && (flags & Facts.ROLE_CLOSED) != 0) {
            die(ErrorKind.CLOSED);
        }
    }

    /** Says in this side's flags whether it fences before it wakes: not, where every peer can make up for that. */
    final void agree(boolean peersCan) {
        fenceFree = Words.KEEP_ORDER && membarrierCapable && peersCan;
        // This side is the only writer of its flags. The store is a full fence, in any case: "I am fence-free" is visible before
        // the first publish without a fence, and a sleeper that no longer sees it can rely on fences from here on.
        int own = Words.getInt(ownFlags) & ~Facts.ROLE_FENCE_FREE;
        Words.setInt(ownFlags, fenceFree ? own | Facts.ROLE_FENCE_FREE : own);
    }

    /** The length of what precedes a payload. */
    abstract int header();

    /** How many bytes a frame with a payload of that length takes. No overflow up to 2^32. */
    final long frameSize(long length) {
        return (header() + length + alignMask) & ~alignMask;
    }

    /** What this is an end of. */
    String kind() {
        return "ring";
    }

    /** Ends this handle for what the peer wrote. */
    final RamwayException corrupt() {
        die(ErrorKind.CORRUPT);
        return fail(dead);
    }

    @Override
    final RamwayException fail(ErrorKind kind) {
        return aboutRing(Errors.of(kind, kind != ErrorKind.CORRUPT ? null
                : "the " + kind() + "'s positions or a frame's length are not what any correct peer writes; this handle stays dead. "
                        + "Recreate the " + kind() + ", and see SECURITY.md if the peer is not trusted"));
    }

    /** An error with a text about this ring. */
    final RamwayException fail(ErrorKind kind, String format, Object... arguments) {
        return aboutRing(Errors.fail(kind, format, arguments));
    }

    /** Adds what was tried; a pair has no name. */
    private RamwayException aboutRing(RamwayException e) {
        String doing = role == Role.PRODUCER ? "sending" : "receiving";
        String to = role == Role.PRODUCER ? " to" : " from";
        return Errors.about(e, at.name.isEmpty() ? doing : doing + to, at.name);
    }

    /** {@link #ended(boolean)}, with system calls if it is time for them. */
    final RamwayException ended() {
        return ended(isTimeToCheckPeer());
    }

    /**
     * How the ring has ended, or null. The epoch of a peer that ended is kept in {@link #gone}.
     *
     * @param askKernel whether to spend system calls on whether the peer lives
     */
    RamwayException ended(boolean askKernel) {
        PeerState.End end = peerState.end(askKernel);
        if (end == null) {
            return null;
        }
        if (end.reason() == PeerState.Reason.NAME_GONE) {
            // No successor can ever attach.
            return vanished();
        }
        gone = end.epoch();
        return fail(end.reason() == PeerState.Reason.CLOSED ? ErrorKind.CLOSED : ErrorKind.PEER_DEAD);
    }

    /**
     * Whether it is time to ask the kernel whether the peer lives; a caller that gets true asks. The clock is the handle's: with
     * one of each call's, a loop of short waits would never ask.
     */
    private boolean isTimeToCheckPeer() {
        long now = System.nanoTime();
        if (!checkAgain && now - peerChecked < Facts.POLL_INTERVAL_NANOS) {
            return false;
        }
        checkAgain = false;
        peerChecked = now;
        return true;
    }

    /** Has the next call that finds nothing ask the kernel. From any thread. */
    final void checkPeerAgain() {
        checkAgain = true;
    }

    @Override
    final boolean interruptWait() {
        return waiter.interrupt();
    }

    @Override
    final boolean isMembarrierCapable() {
        return membarrierCapable;
    }

    @Override
    final void finish() {
        beforeClose();
        waiter.close();
        // No getter of a message, in any thread, gets past this.
        views.close();
        resources.orderly = true;
        cleanable.clean();
    }

    @Override
    final void owned(Holder h) {
        resources.owner = h;
    }

    /** The arena's last act, of no effect: what an arena has to run keeps this reachable for as long as its memory is in use. */
    final void keep(MemorySegment memory) {
        Reference.reachabilityFence(this);
    }

    /** What a handle holds, without the handle. */
    private static final class Resources implements Runnable {
        private final Attachment at;
        private final long mine;
        private final long peer;
        private final boolean isPair;
        /** The handle was closed, so its peer is told. */
        boolean orderly;
        volatile Holder owner = Holder.NOBODY;

        Resources(Attachment at, long mine, long peer, boolean isPair) {
            this.at = at;
            this.mine = mine;
            this.peer = peer;
            this.isPair = isPair;
        }

        /** Nobody is inside. Forgotten, it is as if this process had died; only that between two threads nobody could see it. */
        @Override
        public void run() {
            if (!orderly && isPair) {
                announceClose(mine, peer);
            }
            if (!orderly && (owner.viewing || UNGUARDED)) {
                // Somebody may still use a view, or be in a getter, which knows nothing of the handle: its addresses stay.
                at.link.close();
            } else {
                at.release();
            }
        }
    }

    /** Whether it is ready now; how the stream has ended is thrown. The closed flag is checked every time, the kernel at times. */
    final boolean isReadyNow() {
        try {
            return waiter.decideNow();
        } catch (ClosedException | PeerDeadException end) {
            throw ending(end);
        }
    }

    /** Waits up to so long until it is ready. */
    final void await(long nanos) throws InterruptedException {
        try {
            waiter.until(nanos);
        } catch (ClosedException | PeerDeadException end) {
            throw ending(end);
        }
    }

    /** Records an end that is about to be thrown. */
    RamwayException ending(RamwayException end) {
        // A dead peer is still dead at the next call, and a vanished name still gone.
        checkPeerAgain();
        if (isFinal) {
            die(end.kind());
        }
        return end;
    }

    /** How long until it is time to ask the kernel again whether the peer lives, in ns. */
    final long untilPeerCheck() {
        return Facts.POLL_INTERVAL_NANOS - (System.nanoTime() - peerChecked);
    }

    /** What a wait for a peer waits for. An attach wakes this side, whether it waits or not. */
    private final class PeerWait implements Waiter.Goal {
        private final int before = peerState.epoch();
        // A peer that closed or died stays so under its epoch: its successor holds the lock before it raises the epoch, and the
        // lock alone would pass for the life of the predecessor.
        private final boolean alive = before != 0 && before != gone && !peerState.hasClosed() && peerState.isAlive();

        PeerWait() {
            if (!alive) {
                gone = before;
            }
        }

        @Override
        public boolean ready() {
            return alive || peerState.epoch() != before;
        }

        @Override
        public RamwayException ended() {
            if (isFinal) {
                return RingEnd.this.ended(true);
            }
            return at.link.vanished() ? vanished() : null;
        }

        @Override
        public long untilCheck() {
            return Facts.POLL_INTERVAL_NANOS;
        }
    }

    private int awaitPeer(long nanos) throws InterruptedException {
        awaitPeer(this::peerWait, nanos);
        return peerEpoch();
    }

    /** Waits for a peer, or what the goal says, inside the call guard; it sleeps at once. */
    final void awaitPeer(Supplier<Waiter.Goal> goal, long nanos) throws InterruptedException {
        Holder h = enter();
        try {
            waiter.untilPeer(goal.get(), nanos);
        } finally {
            leave(h);
        }
    }

    /** What {@link #waitForPeer} waits for. */
    Waiter.Goal peerWait() {
        return new PeerWait();
    }

    final RamwayException vanished() {
        return fail(ErrorKind.CLOSED, "the segment's name was removed while it was in use (rm, or systemd's RemoveIPC): no "
                + "peer can find it any more. Create it again");
    }

    /** What any thread may ask, or another answer where nothing is mapped any more. */
    final <T> T ask(Supplier<T> question, T finished) {
        try (var _ = lock.hold()) {
            return isFinished() ? finished : question.get();
        }
    }

    /** Bytes published and not released, clamped because the peer could write anything. Any thread may ask. */
    final long bytesBetween() {
        return ask(() -> {
            long between = bytesUnreleased();
            return Long.compareUnsigned(between, capacity) > 0 ? capacity : between;
        }, 0L);
    }

    /** The same, not clamped. */
    long bytesUnreleased() {
        return Words.getLong(ring + Facts.OFF_TAIL) - Words.getLong(ring + Facts.OFF_HEAD);
    }

    /** How often the other side was attached. */
    int epochOfPeer() {
        return peerState.epoch();
    }

    /** Whether the other side is attached and its process lives. */
    boolean isPeerAlive() {
        return peerState.epoch() != 0 && !peerState.hasClosed() && peerState.isAlive();
    }

    /** A time-out in nanoseconds; what is too long to be counted is forever. */
    static long nanos(Duration timeout) {
        Objects.requireNonNull(timeout, "timeout");
        if (timeout.isNegative()) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a timeout of %s is below zero: leave it out to wait for as long as it takes",
                    timeout);
        }
        return timeout.getSeconds() >= FOREVER / 1_000_000_000L ? FOREVER : timeout.toNanos();
    }

    /**
     * {@return the number of bytes of the data area; a frame takes 16 bytes more than its payload (of a topic 32), rounded up to
     * align}
     */
    public final long capacity() {
        return capacity;
    }

    /** {@return what every payload's address is a multiple of, in bytes} */
    public final int align() {
        return (int) alignMask + 1;
    }

    /**
     * {@return the longest payload that ever fits, in bytes: min(capacity - 16, 2^31 - 17), and it fits whenever the ring is empty;
     * of a topic min(capacity / 2 - 32, 2^31 - 33)}
     */
    public final int maxMessageLength() {
        return at.area == null ? Layout.maxMessageLength(capacity) : Layout.maxTopicMessageLength(capacity);
    }

    /** {@return how often this role has been attached, this handle included; 1 is the first} */
    public final int epoch() {
        return epoch;
    }

    /**
     * {@return how often the other role has been attached; 0: never yet. A change means that a successor took over. Of a publisher's
     * handle: how often a subscriber came, went or began anew. Any thread may ask; 0 once the handle is closed}
     */
    public final int peerEpoch() {
        return ask(this::epochOfPeer, 0);
    }

    /**
     * {@return whether the other role is attached and its process lives; of a publisher's handle: whether there is a reliable
     * subscriber. A stopped process is alive. One system call, on a topic one for each slot; any thread may ask; false once the
     * handle is closed}
     */
    public final boolean peerAlive() {
        return ask(this::isPeerAlive, false);
    }

    /**
     * Waits until a living peer is attached that has not closed, for as long as it takes; at once if one is. A peer that attaches
     * during the call counts also if it has gone again: its messages may be there. After a receive or send that ended with
     * PEER_DEAD or CLOSED on a named ring, this waits for the successor.
     *
     * @return the peer's epoch, an unsigned number
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws RamwayException CLOSED if the ring's name was removed, or on a bus or pair whose peer has closed; PEER_DEAD on a bus
     *     whose peer died; BUSY while a message, batch or slot is out; DETACHED after close
     */
    public final int waitForPeer() throws InterruptedException {
        return awaitPeer(FOREVER);
    }

    /**
     * {@link #waitForPeer()} with a limit.
     *
     * @param timeout the longest wait; zero checks once
     * @return the peer's epoch, an unsigned number
     * @throws InterruptedException if the thread is interrupted while it waits
     * @throws TimedOutException if no peer came
     * @throws RamwayException as of {@link #waitForPeer()}
     */
    public final int waitForPeer(Duration timeout) throws InterruptedException {
        return awaitPeer(nanos(timeout));
    }

    /** {@return the name that this end was opened by; that of the listener on a bus, empty on a pair} */
    public final String name() {
        return at.name;
    }

    /**
     * Says how blocking calls of this handle wait from now on. Any thread may.
     *
     * @param mode how
     */
    public final void waitMode(WaitMode mode) {
        waiter.setMode(Objects.requireNonNull(mode, "mode"));
    }

    /**
     * Says what views of a message, batch or slot may be used by.
     *
     * <p>Normally a view belongs to the thread that asked for it, which also has to close what it is a view of. Where another
     * thread has to be able to, views can be of the shared kind: each of them then costs 0.1 ms or more at the close, because
     * the virtual machine stops every thread to be sure that none is using it. Getters, copies and {@link Message#read} work
     * from any thread as it is.
     *
     * @param shared whether views made from now on are for any thread
     */
    public final void shareViews(boolean shared) {
        sharedViews = shared;
    }

    /**
     * Closes the handle. Any thread may at any time: a call of another one that waits ends with the kind
     * {@link ErrorKind#DETACHED}. While a message, batch or slot is out, the end of that finishes the close; a sender is told at
     * once that its receiver closed. Closing twice is fine.
     */
    @Override
    public abstract void close();
}
