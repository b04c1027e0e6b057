package dev.ramway;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory of a handle that a user has: a message, a batch or a slot. It is new for each one, so its own state says whether it
 * was given back, and a late use of it can never meet the next one's bytes.
 */
abstract class HeldFrames {
    /** Whose it is; changes when another thread adopts it. */
    CallGuard.Holder holder;
    /** Given back. */
    boolean closed;
    /** What views live in, once there is one. */
    Arena arena;

    HeldFrames(CallGuard.Holder holder) {
        this.holder = holder;
    }

    abstract IllegalStateException gone();

    /**
     * A view of the handle's data. Its arena is a confined one, which costs nothing when inlined and takes no other thread; so
     * the thread that asks for the first view becomes the owner.
     *
     * <p>Nothing that keeps C2 from seeing the arena stands between its store and the load in {@link #end}, so that it knows the
     * arena's class there and not only its profile, which anybody's shared arena spoils.
     */
    final MemorySegment view(RingEnd end, long at, long length) {
        Arena a = arena;
        if (a != null) {
            return Words.view(end.data + at, length, end.role == Role.PRODUCER, a);
        }
        if (holder.thread != Thread.currentThread() && !end.adopt(this)) {
            throw gone();
        }
        if (end.sharedViews) {
            return sharedView(end, at, length);
        }
        CallGuard.Holder h = holder;
        h.viewing = true;
        // Another thread that adopts this one reads `viewing` after it has taken the handle away from its holder: either it
        // sees the view and leaves it alone, or this sees that it came.
        if (end.current() != h && !end.isOwner(h)) {
            throw gone();
        }
        a = Arena.ofConfined();
        MemorySegment view = Words.view(end.data + at, length, end.role == Role.PRODUCER, a);
        arena = a;
        return view;
    }

    /** A view for any thread, and so no reason against another one adopting this; but it has to see the arena then. */
    private MemorySegment sharedView(RingEnd end, long at, long length) {
        Arena a = Arena.ofShared();
        arena = a;
        if (end.current() != holder && !end.isOwner(holder)) {
            arena = null;
            a.close();
            throw gone();
        }
        // By what the arena has to run at its end, a holder of this view keeps the handle reachable.
        return Words.view(end.data + at, length, end.role == Role.PRODUCER, a).reinterpret(length, a, end::keep);
    }

    /** Ends the views, and only them. */
    final void endViews() {
        Arena a = arena;
        if (a != null) {
            a.close();
            arena = null;
            holder.viewing = false;
        }
    }

    /** Begins the end: false if it is over already. From here on views are dead and the caller gives the memory back. */
    final boolean end(RingEnd end) {
        if (closed || holder.thread != Thread.currentThread() && !end.adopt(this)) {
            return false;
        }
        Arena a = arena;
        if (a != null) {
            // Throws, with everything as it was, where the view is in use by a call of libc or belongs to another thread.
            a.close();
            holder.viewing = false;
        }
        closed = true;
        return true;
    }
}
