package dev.ramway;

import dev.ramway.sys.Membarrier;
import java.lang.foreign.Arena;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * Lets one thread at a time into a handle, and close in from any, without a fence per call.
 *
 * <p>The handle is biased to the thread that used it last, its {@link Holder}. A call stores {@code inside} and then loads
 * {@code holder}; a thread that closes, or takes the handle over, stores {@code holder} and then loads
 * {@code inside}. One of the two has to see the other's store, so there must be a full fence between the two on both sides.
 * The call's is left out: a locked instruction costs a call more than all the rest of it. The other side makes up for it by a
 * membarrier or, without one, by closing a shared arena, for which the virtual machine stops each thread at a safepoint. What
 * keeps the compiler from exchanging a call's two is that the load is an opaque one.
 *
 * <p>{@code inside} stays set while a message, batch or slot is out. A handle that wanders from thread to thread gets a lock
 * around each call instead of a barrier per move.
 */
abstract class CallGuard {
    /** A thread that uses the handle. */
    static final class Holder {
        static final Holder NOBODY = new Holder(null);

        final Thread thread;
        /** 1 in a call, and while something is out. */
        int inside;
        /** There is a view of what is out, for this thread only. */
        boolean viewing;

        Holder(Thread thread) {
            this.thread = thread;
        }
    }

    private static final VarHandle HOLDER;
    private static final VarHandle INSIDE;
    /** After this many changes of the thread a handle is locked call by call: a barrier takes as long as a thousand locks. */
    private static final int MOVES = 64;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            HOLDER = lookup.findVarHandle(CallGuard.class, "holder", Holder.class);
            INSIDE = lookup.findVarHandle(Holder.class, "inside", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /** Whose calls need not take the lock: the owner, or nobody if the handle is closed, dead or shared. */
    private Holder holder = Holder.NOBODY;
    /** Held by what is not a call: opening, changes of the thread, closing, and questions from any thread. */
    final Mutex lock = new Mutex();
    /** The thread that used the handle last. With the lock. */
    private Holder owner = Holder.NOBODY;
    private int moves;
    /** Locked call by call. With the lock; read without it, where a stale false only takes the lock. */
    private boolean shared;
    /** Close was called. */
    private volatile boolean closed;
    /** Nothing is mapped any more. With the lock. */
    private boolean finished;
    /** What this handle is dead of, or null. Written inside the guard. */
    ErrorKind dead;

    /** Whether a user holds frames of this handle. Certain to its owner, and while nobody is inside. */
    abstract boolean isOut();

    /** Gives back what a loop over messages has left out. By its thread or after its end; false: there is no such loop. */
    boolean dropLooped() {
        return false;
    }

    /** The error of a state that the handle is in. */
    abstract RamwayException fail(ErrorKind kind);

    /** That something is out, as an error. */
    abstract RamwayException busy();

    /** Ends the wait of a call that is in progress; false if none waits. From any thread. */
    abstract boolean interruptWait();

    /** Whether the kernel gives membarriers. */
    abstract boolean isMembarrierCapable();

    /** It has another owner. With the lock. */
    abstract void owned(Holder h);

    /** Close was called while something is out: tells the peer what it can be told. With the lock. */
    void closing() {}

    /** Tells the peer and releases everything. With the lock, and nobody inside. */
    abstract void finish();

    /** Begins a call, or throws; {@link #leave} ends it. */
    final Holder enter() {
        Holder h = holder;
        if (h.thread == Thread.currentThread() && h.inside == 0) {
            h.inside = 1;
            if (!Words.KEEP_ORDER) {
                // Of other virtual machines it is not known that they leave the two in order.
                VarHandle.fullFence();
            }
            if ((Holder) HOLDER.getOpaque(this) == h) {
                return h;
            }
            INSIDE.setRelease(h, 0);
        }
        return enterSlowly();
    }

    /** Ends a call, or the use of held frames. */
    final void leave(Holder h) {
        // Release: what the call did to the handle's fields goes before it, for the next thread.
        INSIDE.setRelease(h, 0);
        if ((Holder) HOLDER.getOpaque(this) != h) {
            left();
        }
    }

    /** Who the handle is biased to right now. */
    final Holder current() {
        return (Holder) HOLDER.getOpaque(this);
    }

    /** Whether what this holder had out is still its. */
    final boolean isOwner(Holder h) {
        try (var _ = lock.hold()) {
            return owner == h;
        }
    }

    private Holder enterSlowly() {
        try (var _ = lock.hold()) {
            if (closed) {
                // A loop that was left before the close is over now, and the close with it.
                dropLooped();
                settle();
                throw fail(ErrorKind.DETACHED);
            }
            if (dead != null) {
                throw fail(dead);
            }
            Holder h = owner;
            if (h.thread == Thread.currentThread()) {
                // Inside with nothing out was left by an error in the middle of a call, such as a StackOverflowError.
                if (h.inside != 0 && isOut() && !dropLooped()) {
                    throw busy();
                }
            } else {
                // A loop that its thread did not end before its own end is over as well.
                if (!isVacant(h) && !(isOut() && dropLooped())) {
                    bias(h);
                    throw isOut() ? busy() : new IllegalStateException("a sender or receiver is used by two threads at once; "
                            + "only close, peerAlive and peerEpoch may be called beside another call");
                }
                h = new Holder(Thread.currentThread());
                moved(h);
            }
            h.inside = 1;
            bias(h);
            return h;
        }
    }

    /** Takes the handle away from its holder, and says whether that is outside. With the lock. */
    private boolean isVacant(Holder h) {
        if (h.thread == null) {
            return true;
        }
        takeAway();
        return (int) INSIDE.getAcquire(h) == 0;
    }

    /** From here on each call of the holder takes the lock, and what it did before is visible. */
    private void takeAway() {
        HOLDER.setVolatile(this, Holder.NOBODY);
        // Shared, the holder's calls take the lock as it is.
        if (!shared && !(isMembarrierCapable() && Membarrier.run())) {
            Arena.ofShared().close();
        }
    }

    private void moved(Holder h) {
        owner = h;
        owned(h);
        if (++moves > MOVES) {
            shared = true;
        }
    }

    /** Has each call take the lock from here on, for a handle that many threads use in turn. Before its first call. */
    final void shareCalls() {
        try (var _ = lock.hold()) {
            shared = true;
        }
    }

    /** Lets a holder's calls in without the lock, if the handle's state allows it. */
    private void bias(Holder h) {
        if (!closed && !shared && dead == null) {
            HOLDER.setVolatile(this, h);
        }
    }

    /** Makes every call from now on ask for the state. Inside the guard. */
    final void die(ErrorKind kind) {
        if (dead == null) {
            dead = kind;
            HOLDER.setVolatile(this, Holder.NOBODY);
        }
    }

    /** The rest of leave: the handle was closed or died meanwhile, or is shared. */
    private void left() {
        if (shared) {
            // Between the store of inside and the load of closed; close has them in the other order.
            VarHandle.fullFence();
            if (!closed) {
                return;
            }
        }
        try (var _ = lock.hold()) {
            settle();
        }
    }

    /** Finishes a close once nobody is inside and nothing is out. With the lock. */
    private void settle() {
        if (closed && !finished && (int) INSIDE.getAcquire(owner) == 0) {
            finished = true;
            finish();
        }
    }

    /**
     * Makes held frames this thread's. False: they were given back. It throws where another thread has a view of them.
     */
    final boolean adopt(HeldFrames frames) {
        try (var _ = lock.hold()) {
            Holder h = frames.holder;
            if (owner != h || frames.closed) {
                return false;
            }
            takeAway();
            if (frames.closed) {
                // Its holder is giving it back.
                bias(h);
                return false;
            }
            if (h.viewing && h.thread.isAlive()) {
                bias(h);
                throw new WrongThreadException("another thread has a view of this: close it there, or see shareViews");
            }
            if (h.viewing) {
                // Confined to a thread that is no more: nobody can use the view, and nobody can end it.
                frames.arena = null;
            }
            Holder mine = new Holder(Thread.currentThread());
            mine.inside = 1;
            frames.holder = mine;
            moved(mine);
            bias(mine);
            return true;
        }
    }

    /** Gives back what a holder had out, in any state of the handle. */
    final void giveBackSlowly(Holder h, Runnable last) {
        try (var _ = lock.hold()) {
            // Another thread has adopted it in the same moment, and gives it back.
            if (owner == h) {
                last.run();
                INSIDE.setRelease(h, 0);
                settle();
            }
        }
    }

    /** Closes, from any thread. */
    final void shut() {
        Holder h;
        try (var _ = lock.hold()) {
            if (closed) {
                return;
            }
            closed = true;
            h = owner;
            takeAway();
            if (h.thread == Thread.currentThread() && h.inside != 0 && !isOut()) {
                h.inside = 0;
            }
            settle();
            if (!finished && isOut()) {
                closing();
            }
            if (finished || h.thread == Thread.currentThread()) {
                return;
            }
        }
        // Another thread is in a call, which ends now, or has something out: then the end of that finishes the close.
        long began = System.nanoTime();
        for (long pause = 20_000; (int) INSIDE.getAcquire(h) != 0; pause = Math.min(2 * pause, 1_000_000)) {
            // A guess from here, where its thread may be about to change it: what is out may be so for long, a call is not.
            long limit = isOut() ? 1_000_000 : 1_000_000_000;
            if (!interruptWait() && System.nanoTime() - began > limit) {
                break;
            }
            LockSupport.parkNanos(pause);
        }
        left();
    }

    /** {@return whether this handle is closed. Any thread may ask} */
    public final boolean isClosed() {
        return closed;
    }

    /** Whether nothing is mapped any more. With the lock. */
    final boolean isFinished() {
        return finished;
    }
}
