package dev.ramway;

import dev.ramway.sys.Futex;
import dev.ramway.sys.Membarrier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;

/** What the two ends of a ring have in common. Its fields are the business of the one thread inside the gate. */
abstract class Half extends Gate implements Waiter.Goal {
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
    final String name;
    final Attachment at;
    /** Only a close can tell, because both ends are in one process. */
    final boolean isPair;
    /** What users see through, but for views: shut before the memory goes, so that no thread is left looking. */
    private final Arena life = Arena.ofShared();
    /** What goes when this handle is unreachable. */
    private final Rest rest;
    private Cleaner.Cleanable cleanable;
    /** Lives as long as this does: the other half of a bus, whose socket is the death notice of both. */
    Object companion;
    final MemorySegment window;
    final Waiter waiter;
    /** Publish without a fence, because the peer makes up for it with a membarrier when it goes to sleep. */
    boolean plain;
    /** This process is registered with membarrier, and it worked. */
    boolean can;
    /** The peer's flags as last acted upon. */
    int peerFlags;
    int epoch;
    /** Views of the user's are for any thread. */
    boolean sharedViews;
    /** When this handle last asked the system whether the peer lives, in whichever call. */
    private long looked = System.nanoTime();
    /** What is known of the peer, and the rule for its end. */
    final PeerState peerState;
    /**
     * The last epoch of the peer that was found closed or dead, or 0. A successor holds the lock before it raises the epoch: between
     * the two it must not pass for the peer that is gone.
     */
    volatile int gone;
    /** The peer was gone when somebody looked last, also from another thread: look again at once. */
    private volatile boolean suspect;

    /** Prepares the half; the positions are checked next, and {@link #announce} makes it known. */
    Half(Attachment a, Options options) {
        at = a;
        name = a.name;
        role = a.role;
        ring = a.header.address() + a.block;
        mine = ring + role.line();
        peer = ring + role.other().line();
        data = a.data.address();
        capacity = a.capacity;
        mask = capacity - 1;
        alignMask = a.align - 1;
        isFinal = a.link.isFinal();
        isPair = a.link == Link.NONE;
        peerState = PeerState.of(a, mine, peer);
        can = options.membarrier() && Membarrier.can();
        window = a.data.reinterpret(2 * capacity, life, this::keep);
        rest = new Rest(a, mine, peer, isPair);
        waiter = new Waiter(this, options.waitMode());
    }

    /** The peer's position, as an address, and what was last seen there. */
    abstract long positionWord();

    abstract long positionSeen();

    /**
     * Says "I am here" in this role's words, and wakes the peer so that it looks (ABI.md, section 6). The order of the stores
     * counts; each is sequentially consistent, so the last one before the wake-up is the full fence as well.
     */
    final void announce() {
        Words.setInt(mine + Layout.ROLE_WAIT, 0);
        Words.setInt(mine + Layout.ROLE_FLAGS, can ? Layout.ROLE_MEMBARRIER_CAPABLE : 0);
        int next = Words.getInt(mine + Layout.ROLE_EPOCH) + 1;
        epoch = next == 0 ? 1 : next;
        Words.setInt(mine + Layout.ROLE_EPOCH, epoch);
        wakePeer();
        peerChanged();
        cleanable = Forgotten.watch(this, rest);
    }

    /** Says "I closed", after everything was published, and wakes the peer. */
    final void announceClose() {
        announceClose(mine, peer);
    }

    private static void announceClose(long mine, long peer) {
        Words.setInt(mine + Layout.ROLE_FLAGS, Words.getInt(mine + Layout.ROLE_FLAGS) | Layout.ROLE_CLOSED);
        wake(peer);
    }

    /** Wakes the peer whether it waits or not. */
    final void wakePeer() {
        wake(peer);
    }

    private static void wake(long peer) {
        Words.setInt(peer + Layout.ROLE_WAIT, 0);
        Futex.wakeAll(peer + Layout.ROLE_WAIT);
    }

    /**
     * Stores a position of this side's. Release: what was read or written before goes before it. Fenced unless both sides
     * agreed that it need not be, so that the load of the peer's wait word that follows is not done before it.
     */
    final void publish(long word, long position) {
        Words.setLongRelease(word, position);
        if (!plain) {
            VarHandle.fullFence();
        }
    }

    /** Whether, after a publish, the peer sleeps or has changed its flags. */
    final boolean peerStirs() {
        // Acquire is what keeps the compiler from moving the load over the store of the position.
        return Words.getIntAcquire(peer + Layout.ROLE_WAIT) != 0 || Words.getInt(peer + Layout.ROLE_FLAGS) != peerFlags;
    }

    /**
     * Acts on that. What was agreed on just now holds for this publish too: peerChanged fences, and the wait word is loaded
     * once more after it.
     */
    final void stirred() {
        peerChanged();
        // Any value but 0 is a waiter: a hostile one costs its writer a wake-up.
        if (Words.getIntAcquire(peer + Layout.ROLE_WAIT) != 0) {
            wakePeer();
        }
    }

    /**
     * Acts on the peer's flags: who fences, and, where it is final, whether a consumer has closed. A producer's close is acted
     * on where the ring is found empty, because what it sent before is delivered first.
     */
    final void peerChanged() {
        int flags = Words.getIntAcquire(peer + Layout.ROLE_FLAGS);
        peerFlags = flags;
        plain = Words.PLAIN && can && (flags & Layout.ROLE_MEMBARRIER_CAPABLE) != 0;
        // This role is the only writer of its flags. The store is a full fence, in any case: "I am plain" is visible before
        // the first publish without a fence, and a sleeper that no longer sees it can rely on fences from here on.
        int own = Words.getInt(mine + Layout.ROLE_FLAGS) & ~Layout.ROLE_FENCE_FREE;
        Words.setInt(mine + Layout.ROLE_FLAGS, plain ? own | Layout.ROLE_FENCE_FREE : own);
        if (role == Role.PRODUCER && isFinal && (flags & Layout.ROLE_CLOSED) != 0) {
            die(ErrorKind.CLOSED);
        }
    }

    /** Ends this handle for what the peer wrote. */
    final RamwayException corrupt() {
        die(ErrorKind.CORRUPT);
        return fail(dead);
    }

    @Override
    final RamwayException fail(ErrorKind kind) {
        return told(Errors.of(kind, kind != ErrorKind.CORRUPT ? null
                : "the ring's positions or a frame's length are not what any correct peer writes; this handle stays dead. "
                        + "Recreate the ring, and see SECURITY.md if the peer is not trusted"));
    }

    /** An error with a text about this ring. */
    final RamwayException fail(ErrorKind kind, String format, Object... arguments) {
        return told(Errors.fail(kind, format, arguments));
    }

    /** What errors say was tried; a pair has no name to go on with. */
    private RamwayException told(RamwayException e) {
        String doing = role == Role.PRODUCER ? "sending" : "receiving";
        String to = role == Role.PRODUCER ? " to" : " from";
        return Errors.about(e, name.isEmpty() ? doing : doing + to, name);
    }

    @Override
    public final RamwayException ended() {
        return ended(isMoment());
    }

    /**
     * How the ring has ended, or null. The epoch of a peer that ended is kept in {@link #gone}.
     *
     * @param askKernel whether to spend system calls on whether the peer lives
     */
    final RamwayException ended(boolean askKernel) {
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
     * Whether it is time to ask the system whether the peer lives; then that time begins anew. The clock is the handle's: with
     * one of each call's, a loop of short waits would never ask.
     */
    final boolean isMoment() {
        long now = System.nanoTime();
        if (!suspect && now - looked < Waiter.ROUND) {
            return false;
        }
        suspect = false;
        looked = now;
        return true;
    }

    @Override
    public final long untilCheck() {
        return Math.max(1, Waiter.ROUND - (System.nanoTime() - looked));
    }

    /** Has the next call that finds nothing ask the system. From any thread. */
    final void lookAgain() {
        suspect = true;
    }

    @Override
    final boolean interruptWait() {
        return waiter.interrupt();
    }

    @Override
    final boolean canMembarrier() {
        return can;
    }

    /** What a role does last, before it says that it closed. */
    abstract void lastWords();

    @Override
    final void finish() {
        lastWords();
        waiter.close();
        // No getter of a message, in whichever thread, gets past this.
        life.close();
        rest.orderly = true;
        cleanable.clean();
    }

    @Override
    final void owned(Holder h) {
        rest.owner = h;
    }

    /** The arena's last act, of no effect: what an arena has to run keeps this reachable for as long as its memory is in use. */
    final void keep(MemorySegment memory) {
        Reference.reachabilityFence(this);
    }

    /** What a handle holds, without the handle. */
    private static final class Rest implements Runnable {
        private final Attachment at;
        private final long mine;
        private final long peer;
        private final boolean isPair;
        /** The handle said goodbye itself. */
        boolean orderly;
        volatile Holder owner = Holder.NOBODY;

        Rest(Attachment at, long mine, long peer, boolean isPair) {
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
            if (!orderly && owner.viewing) {
                // Somebody may still look at a view, which knows nothing of the handle: its addresses stay.
                at.link.close();
            } else {
                at.release();
            }
        }
    }

    /** Waits up to so long for a living peer, or for one that attaches meanwhile: it may have sent and gone again. Its epoch. */
    final int peerWithin(long nanos) throws InterruptedException {
        Holder h = enter();
        try {
            waiter.untilPeer(new PeerWait(), nanos);
            return peerState.epoch();
        } finally {
            leave(h);
        }
    }

    /** The wait for a peer. An attach wakes this side, whether it waits or not. */
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
                return Half.this.ended(true);
            }
            return at.link.vanished() ? vanished() : null;
        }

        @Override
        public long untilCheck() {
            return Waiter.ROUND;
        }
    }

    private RamwayException vanished() {
        return fail(ErrorKind.CLOSED, "the segment's name was removed while it was in use (rm, or systemd's RemoveIPC): no "
                + "peer can find it any more. Create it again");
    }

    /** A question about the peer that any thread may ask. */
    final int peerEpochNow() {
        lock.lock();
        try {
            return isFinished() ? 0 : peerState.epoch();
        } finally {
            lock.unlock();
        }
    }

    /** A question about the peer that any thread may ask. */
    final boolean peerAliveNow() {
        lock.lock();
        try {
            return !isFinished() && peerState.epoch() != 0 && !peerState.hasClosed() && peerState.isAlive();
        } finally {
            lock.unlock();
        }
    }

    /** Bytes published and not released, clamped because the peer could write anything. Any thread may ask. */
    final long bytesBetween() {
        lock.lock();
        try {
            if (isFinished()) {
                return 0;
            }
            long between = Words.getLong(ring + Layout.OFF_TAIL) - Words.getLong(ring + Layout.OFF_HEAD);
            return Long.compareUnsigned(between, capacity) > 0 ? capacity : between;
        } finally {
            lock.unlock();
        }
    }
}
