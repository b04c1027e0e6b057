package dev.ramway;

import dev.ramway.sys.Cpu;
import dev.ramway.sys.Futex;
import dev.ramway.sys.Membarrier;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * How a handle waits: spin for a bounded time, then sleep, without ever missing a wake-up and without a fence on the waker's
 * hot path (ABI.md, section 7). One waiter at a time, the thread inside the call guard.
 */
final class Waiter {
    /** Spinning would only keep the peer from running. */
    private static final boolean ALONE = Cpu.count() == 1;

    private final RingEnd end;
    /** What calls that send and receive wait for. */
    private final Goal progress = new Goal() {
        @Override
        public boolean ready() {
            return end.ready();
        }

        @Override
        public RamwayException ended() {
            return end.ended();
        }

        @Override
        public long untilCheck() {
            return end.untilPeerCheck();
        }
    };
    private final Notifier notifier;
    private volatile WaitMode mode;
    /** How often a receiver polls before it enters the general wait. */
    int firstPolls;
    /** How often to poll before sleeping; it follows how long waits have lasted. */
    private int budget = Facts.SPIN_MAX;
    /** What this side's word holds while nobody has woken it. */
    private int armed;
    /** A call is in here. */
    private volatile boolean waiting;
    /** Another thread of this process wants the wait over: this one, or the next one where none is in progress. */
    private volatile boolean poked;
    /** A callback that is to come, or the last one. Guarded by the call guard. */
    private Poller.Entry callback;

    Waiter(RingEnd end, WaitMode mode) {
        this.end = end;
        notifier = new Notifier(end);
        setMode(mode);
    }

    void setMode(WaitMode mode) {
        this.mode = mode;
        firstPolls = mode == WaitMode.BLOCK || ALONE ? 0 : Facts.FIRST_POLLS;
    }

    /** Ends a wait that is in progress; false if there is none. From any thread. */
    boolean interrupt() {
        if (!waiting) {
            return false;
        }
        notifier.notifySleeper();
        return true;
    }

    /** Ends a wait as its deadline does: the one in progress, or else the next one. From any thread. */
    void poke() {
        poked = true;
        notifier.notifySleeper();
    }

    /** No interrupt touches the words after this. */
    void close() {
        notifier.close();
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

        /** How long until {@link #ended} is to be asked again, in ns. */
        long untilCheck();
    }

    /** Blocks until the end is ready, or throws why there is nothing to wait for any more. */
    void until(long nanos) throws InterruptedException {
        long start = System.nanoTime();
        waiting = true;
        try {
            if (!isOver(progress, start, nanos) && !spin(start, nanos)) {
                sleep(progress, start, nanos);
                boolean wasShort = System.nanoTime() - start < Facts.SHORT_WAIT_NANOS;
                budget = wasShort ? Math.min(2 * budget, Facts.SPIN_MAX) : Math.max(budget / 2, Facts.SPIN_MIN);
            }
        } finally {
            waiting = false;
        }
    }

    /** The same for a peer: a check costs a system call, so it sleeps at once. */
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
    static long left(long start, long nanos) {
        return nanos == RingEnd.FOREVER ? RingEnd.FOREVER : nanos - (System.nanoTime() - start);
    }

    /**
     * Throws if the wait must not go on. The end of the time comes last: what is there, and how the ring has ended, is found
     * out also by a call that has no time. True: ready.
     */
    private boolean isOver(Goal goal, long start, long nanos) throws InterruptedException {
        if (end.isClosed()) {
            throw end.fail(ErrorKind.DETACHED);
        }
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (left(start, nanos) > 0 && !poked) {
            return false;
        }
        poked = false;
        if (decide(goal)) {
            return true;
        }
        throw end.fail(ErrorKind.TIMED_OUT);
    }

    /** Polls for a bounded time, and forever in mode SPIN. True: ready. */
    private boolean spin(long start, long nanos) throws InterruptedException {
        if (end.ready()) {
            return true;
        }
        WaitMode how = mode;
        if (how == WaitMode.BLOCK || how == WaitMode.HYBRID && ALONE) {
            return false;
        }
        // On a virtual thread the peer may be one that waits for this very carrier.
        boolean virtual = Thread.currentThread().isVirtual();
        boolean yields = end.isPair && virtual;
        for (int spent = Facts.POLLS_PER_CANCEL_CHECK;; spent += Facts.POLLS_PER_CANCEL_CHECK) {
            if (poll(end.positionWord(), end.positionSeen(), Facts.POLLS_PER_CANCEL_CHECK) && end.ready()) {
                budget = Math.min(2 * budget, Facts.SPIN_MAX);
                return true;
            }
            if (yields) {
                Thread.yield();
            }
            if (isOver(progress, start, nanos)) {
                return true;
            }
            if (how == WaitMode.HYBRID) {
                if (spent >= budget) {
                    return false;
                }
            } else if (spent >= Facts.POLLS_PER_CHECK) {
                spent = 0;
                if (decide(progress)) {
                    return true;
                }
                how = mode;
                if (virtual) {
                    // A carrier that is yielded takes this thread again as long as it is the first in its queue, and another
                    // one, which may be the peer, would never begin. Parked, it is out of the way.
                    LockSupport.parkNanos(1);
                } else {
                    // The peer may be bound to this processor, and would not run before the end of our time slice.
                    Thread.yield();
                }
            }
        }
    }

    /** Polls a position until it is not the one that was seen, at most {@code polls} times. */
    private static boolean poll(long word, long seen, int polls) {
        for (int i = 0; i < polls; i++) {
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
        WakeOnInterrupt interrupts = virtual ? null : notifier.interrupts();
        notifier.sleeper = Thread.currentThread();
        if (interrupts != null) {
            interrupts.enter();
        }
        long word = end.waitWord();
        try {
            while (true) {
                long longest = arm();
                if (decide(goal) || isOver(goal, start, nanos)) {
                    return;
                }
                longest = Math.max(1, Math.min(Math.min(longest, goal.untilCheck()), left(start, nanos)));
                boolean woken = virtual ? Poller.park(word, armed, longest) : Futex.waitShared(word, armed, longest);
                // What it was woken for is nearly always there. Only to sleep again must it arm first, which costs a membarrier.
                if (woken && goal.ready()) {
                    return;
                }
            }
        } finally {
            if (interrupts != null) {
                interrupts.leave();
            }
            notifier.sleeper = null;
            end.disarm();
        }
    }

    /** One check: true for ready; an end is thrown. What was committed before the end is delivered before the end is. */
    private static boolean decide(Goal goal) {
        if (goal.ready()) {
            return true;
        }
        RamwayException end = goal.ended();
        if (end == null) {
            return false;
        }
        // The second check: the flag or the free lock was seen after the first.
        if (goal.ready()) {
            return true;
        }
        throw end;
    }

    /** {@link #decide}, for a call that does not wait. */
    boolean decideNow() {
        return decide(progress);
    }

    /**
     * Steps 1 and 2 of the sleep: say so, then order that before the check that follows. Returns how long the sleep may last, in
     * ns, and leaves in {@code armed} the value to sleep on.
     */
    private long arm() {
        armed = end.arm();
        if (end.membarrierCapable) {
            if (Membarrier.run()) {
                return end.longestSleep();
            }
            // It worked once and does not now: a seccomp filter was installed since.
            end.loseMembarrier();
        }
        VarHandle.fullFence();
        return end.mayMissWakeUps() ? Facts.UNORDERED_INTERVAL_NANOS : end.longestSleep();
    }

    /** Asks for one callback when the end may be ready or its stream over. Inside the call guard. */
    Registration whenReady(Runnable callback) {
        Poller.Entry e = this.callback;
        if (e != null && e.isPending()) {
            throw end.fail(ErrorKind.BUSY, "somebody waits by this handle already: one wait or callback at a time");
        }
        long longest = arm();
        boolean over;
        end.checkPeerAgain();
        try {
            over = decide(progress);
        } catch (RamwayException error) {
            // The call that follows says it.
            end.untold(error);
            over = true;
        }
        if (over) {
            end.disarm();
            end.checkPeerAgain();
        }
        e = new Poller.Entry(end, armed, callback, Math.min(longest, end.longestCallback()));
        this.callback = e;
        Poller.add(e, over);
        return e;
    }

    /** Interrupts a sleeper. The sleeper is told by something else before, and asks for it after it has armed. */
    private static final class Notifier {
        private final RingEnd end;
        private boolean closed;
        private WakeOnInterrupt interrupts;
        volatile Thread sleeper;

        Notifier(RingEnd end) {
            this.end = end;
        }

        /** Made by the first sleep of a platform thread. */
        WakeOnInterrupt interrupts() {
            if (interrupts == null) {
                interrupts = new WakeOnInterrupt(this::notifySleeper);
            }
            return interrupts;
        }

        void notifySleeper() {
            Thread t = sleeper;
            if (t != null && t.isVirtual()) {
                LockSupport.unpark(t);
                return;
            }
            // A thread's interrupt may come after the wait, and after everything is unmapped.
            synchronized (this) {
                if (!closed) {
                    end.wakeSelf();
                }
            }
        }

        synchronized void close() {
            closed = true;
        }
    }
}
