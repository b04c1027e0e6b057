package dev.ramway;

import dev.ramway.sys.Cpu;
import dev.ramway.sys.Futex;
import dev.ramway.sys.Membarrier;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * How a handle waits: spin for a bounded time, then sleep, without ever missing a wake-up and without a fence on the waker's
 * hot path (ABI.md, section 7). One waiter at a time, the thread inside the gate.
 */
final class Waiter {
    /** The longest sleep before another look at whether the peer lives, in ns. A blocked side learns of a death within two. */
    static final long ROUND = 100_000_000;
    /** The longest sleep where the waker does not fence and this side cannot make it. */
    private static final long UNORDERED_ROUND = 1_000_000;
    /** Looks, at 25 ns, are about what a sleep costs; the least are left where waits have been long (docs/adr/0018). */
    private static final int SPIN_MAX = 3000;
    private static final int SPIN_MIN = 32;
    /** Looks of a side that never sleeps between two looks at the clock and the peer: 50 µs. */
    private static final int SPIN_ROUND = 2000;
    /** A receiver's looks before it enters the general wait: more than a round trip takes. */
    private static final int NEAR = 32;
    /** Looks before the spin asks whether it was called off: about 1 µs. */
    private static final int CHUNK = 40;
    /** A wait that was over before this would have been better spent spinning to the end, in ns. */
    private static final long SHORT_WAIT = 110_000;
    /** Spinning would only keep the peer from running. */
    private static final boolean ALONE = Cpu.count() == 1;

    private final Half half;
    private final Bell bell;
    private volatile WaitMode mode;
    /** How many looks a receiver spends before it waits in earnest. */
    int near;
    /** How many looks to spend before sleeping. */
    private int budget = SPIN_MAX;
    /** A call is in here. */
    private volatile boolean waiting;
    /** A callback that is to come, or the last one. Guarded by the gate. */
    private Poller.Entry callback;

    Waiter(Half half, WaitMode mode) {
        this.half = half;
        bell = new Bell(half.mine + Layout.ROLE_WAIT);
        setMode(mode);
    }

    void setMode(WaitMode mode) {
        this.mode = mode;
        near = mode == WaitMode.BLOCK || ALONE ? 0 : NEAR;
    }

    /** Ends a wait that is in progress; false if there is none. From any thread. */
    boolean interrupt() {
        if (!waiting) {
            return false;
        }
        bell.ring();
        return true;
    }

    /** No interrupt touches the words after this. */
    void close() {
        bell.close();
        Poller.Entry e = callback;
        if (e != null) {
            // It is told that the handle is closed by its next call.
            e.fire();
        }
    }

    /** What a wait is for. */
    interface Goal {
        /** Whether the wait is over. Corrupt is thrown. */
        boolean ready();

        /** Asked while {@link #ready} says false: how the stream has ended, or null. */
        RamwayException ended();

        /** How long until {@link #ended} is to be asked again, in ns; at least 1. */
        long untilCheck();
    }

    /** Blocks until the half is ready, or throws why there is nothing to wait for any more. */
    void until(long nanos) throws InterruptedException {
        long start = System.nanoTime();
        waiting = true;
        try {
            if (!isOver(half, start, nanos) && !spin(start, nanos)) {
                sleep(half, start, nanos);
                budget = System.nanoTime() - start < SHORT_WAIT ? Math.min(2 * budget, SPIN_MAX) : Math.max(budget / 2, SPIN_MIN);
            }
        } finally {
            waiting = false;
        }
    }

    /** The same for a peer, which a system call looks for: it sleeps at once. */
    void untilPeer(Goal peer, long nanos) throws InterruptedException {
        long start = System.nanoTime();
        waiting = true;
        try {
            if (!isOver(peer, start, nanos)) {
                sleep(peer, start, nanos);
            }
        } finally {
            waiting = false;
        }
    }

    /** What is left of a wait, in ns. */
    private static long left(long start, long nanos) {
        return nanos == RingEnd.FOREVER ? RingEnd.FOREVER : nanos - (System.nanoTime() - start);
    }

    /**
     * Throws if the wait must not go on. The end of the time comes last: what is there, and how the ring has ended, is found out
     * also by who has no time. True: ready.
     */
    private boolean isOver(Goal goal, long start, long nanos) throws InterruptedException {
        if (half.isClosed()) {
            throw half.fail(ErrorKind.DETACHED);
        }
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (left(start, nanos) > 0) {
            return false;
        }
        if (decide(goal)) {
            return true;
        }
        throw half.fail(ErrorKind.TIMED_OUT);
    }

    /** Looks for a bounded time, and forever in mode SPIN. True: ready. */
    private boolean spin(long start, long nanos) throws InterruptedException {
        if (half.ready()) {
            return true;
        }
        WaitMode how = mode;
        if (how == WaitMode.BLOCK || how == WaitMode.HYBRID && ALONE) {
            return false;
        }
        // On a virtual thread the peer may be one that waits for this very carrier.
        boolean virtual = Thread.currentThread().isVirtual();
        boolean gentle = half.isPair && virtual;
        for (int spent = CHUNK;; spent += CHUNK) {
            if (look(half.positionWord(), half.positionSeen(), CHUNK) && half.ready()) {
                budget = Math.min(2 * budget, SPIN_MAX);
                return true;
            }
            if (gentle) {
                Thread.yield();
            }
            if (isOver(half, start, nanos)) {
                return true;
            }
            if (how == WaitMode.HYBRID) {
                if (spent >= budget) {
                    return false;
                }
            } else if (spent >= SPIN_ROUND) {
                spent = 0;
                if (decide(half)) {
                    return true;
                }
                how = mode;
                if (virtual) {
                    // A carrier that is yielded takes this thread again as long as it finds it where it looks first, and another
                    // one, which may be the peer, would never begin. Parked, it is out of the way.
                    LockSupport.parkNanos(1);
                } else {
                    // The peer may be bound to this processor, and would not run before the end of our time slice.
                    Thread.yield();
                }
            }
        }
    }

    /** Looks at a position until it is not the one that was seen, or so many times. */
    private static boolean look(long word, long seen, int looks) {
        for (int i = 0; i < looks; i++) {
            if (Words.getLongAcquire(word) != seen) {
                return true;
            }
            Thread.onSpinWait();
        }
        return false;
    }

    /** The one loop that arms, checks again and sleeps. It returns when the goal is ready, and throws like {@link #until}. */
    private void sleep(Goal goal, long start, long nanos) throws InterruptedException {
        Poller.Entry e = callback;
        if (e != null) {
            // One waiter per word. "There may be a message" is true soon enough.
            e.fire();
        }
        boolean virtual = Thread.currentThread().isVirtual();
        WakeOnInterrupt interrupts = virtual ? null : bell.interrupts();
        bell.sleeper = Thread.currentThread();
        if (interrupts != null) {
            interrupts.enter();
        }
        long word = half.mine + Layout.ROLE_WAIT;
        try {
            while (true) {
                long longest = arm();
                if (decide(goal) || isOver(goal, start, nanos)) {
                    return;
                }
                longest = Math.max(1, Math.min(Math.min(longest, goal.untilCheck()), left(start, nanos)));
                boolean woken = virtual ? Poller.park(word, 1, longest) : Futex.waitShared(word, 1, longest);
                // What it was woken for is nearly always there. Only to sleep again must it arm first, which costs a membarrier.
                if (woken && goal.ready()) {
                    return;
                }
            }
        } finally {
            if (interrupts != null) {
                interrupts.leave();
            }
            bell.sleeper = null;
            // A waker that still sees 1 makes one call too many.
            Words.setInt(word, 0);
        }
    }

    /** One look: true for ready, or how it ended. What was committed before the end is delivered before the end is. */
    private static boolean decide(Goal goal) {
        if (goal.ready()) {
            return true;
        }
        RamwayException end = goal.ended();
        if (end == null) {
            return false;
        }
        // The second look: the flag or the free lock was seen after ready had looked.
        if (goal.ready()) {
            return true;
        }
        throw end;
    }

    /** Steps 1 and 2 of the sleep: store 1, then order that store before the look that follows. It says how long to sleep. */
    private long arm() {
        Words.setInt(half.mine + Layout.ROLE_WAIT, 1);
        if (half.can) {
            if (Membarrier.run()) {
                return ROUND;
            }
            // It worked once and does not now (a seccomp filter was installed since): tell the waker to fence again.
            half.can = false;
            Words.setInt(half.mine + Layout.ROLE_FLAGS, Words.getInt(half.mine + Layout.ROLE_FLAGS) & ~Layout.ROLE_MEMBARRIER_CAPABLE);
        }
        VarHandle.fullFence();
        return (Words.getIntAcquire(half.peer + Layout.ROLE_FLAGS) & Layout.ROLE_FENCE_FREE) != 0 ? UNORDERED_ROUND : ROUND;
    }

    /** Asks for one callback when the half may be ready or at its end. Inside the gate. */
    Registration whenReady(Runnable callback) {
        Poller.Entry e = this.callback;
        if (e != null && e.isPending()) {
            throw half.fail(ErrorKind.BUSY, "somebody waits by this handle already: one wait or callback at a time");
        }
        long longest = arm();
        boolean over;
        half.lookAgain();
        try {
            over = decide(half);
        } catch (RamwayException end) {
            // The call that follows says it.
            over = true;
        }
        if (over) {
            Words.setInt(half.mine + Layout.ROLE_WAIT, 0);
            half.lookAgain();
        }
        e = new Poller.Entry(half, callback, longest);
        this.callback = e;
        Poller.add(e, over);
        return e;
    }

    /** Interrupts a sleeper. The sleeper is told by something else before, and asks for it after it has armed. */
    private static final class Bell {
        private final long word;
        private boolean closed;
        private WakeOnInterrupt interrupts;
        volatile Thread sleeper;

        Bell(long word) {
            this.word = word;
        }

        /** Made by the first sleep of a platform thread. */
        WakeOnInterrupt interrupts() {
            if (interrupts == null) {
                interrupts = new WakeOnInterrupt(this::ring);
            }
            return interrupts;
        }

        void ring() {
            Thread t = sleeper;
            if (t != null && t.isVirtual()) {
                LockSupport.unpark(t);
                return;
            }
            // A thread's interrupt may come after the wait, and after everything is unmapped.
            synchronized (this) {
                if (!closed) {
                    Words.setInt(word, 0);
                    Futex.wakeAll(word);
                }
            }
        }

        synchronized void close() {
            closed = true;
        }
    }
}
