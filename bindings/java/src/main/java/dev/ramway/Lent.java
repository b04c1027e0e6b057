package dev.ramway;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory of a handle that a user has: a message, a batch or a slot. It is new for each one, so its own state says whether it
 * was given back, and a late use of it can never meet the next one's bytes.
 */
abstract class Lent {
    /** Whose it is; changes when another thread adopts it. */
    Gate.Holder holder;
    /** Given back. */
    boolean closed;
    /** What views live in, once there is one. */
    Arena arena;
    /** The arena is one thread's. */
    boolean isConfined;

    Lent(Gate.Holder holder) {
        this.holder = holder;
    }

    abstract IllegalStateException gone();

    /**
     * The arena of this one's views. A confined one, which is free when inlined and takes no other thread; so the thread that
     * asks for the first view becomes the owner.
     */
    final Arena views(Half end) {
        Arena a = arena;
        return a != null ? a : firstView(end);
    }

    private Arena firstView(Half end) {
        if (holder.thread != Thread.currentThread() && !end.adopt(this)) {
            throw gone();
        }
        isConfined = !end.sharedViews;
        Arena a = isConfined ? Arena.ofConfined() : Arena.ofShared();
        arena = a;
        // Another thread that adopts this one looks at `arena` after it has taken the handle away from its holder: either it
        // sees the view and leaves it alone, or this sees that it came.
        if (end.current() != holder && !end.isOwner(holder)) {
            arena = null;
            a.close();
            throw gone();
        }
        return a;
    }

    /** A view of the handle's data. */
    final MemorySegment view(Half end, long at, long length) {
        return Words.view(end.data + at, length, end.role == Role.PRODUCER, views(end));
    }

    /** Ends the views, and only them. */
    final void endViews() {
        Arena a = arena;
        if (a != null) {
            a.close();
            arena = null;
        }
    }

    /** Begins the end: false if it is over already. From here on views are dead and the caller gives the memory back. */
    final boolean end(Half end) {
        if (closed || holder.thread != Thread.currentThread() && !end.adopt(this)) {
            return false;
        }
        Arena a = arena;
        if (a != null) {
            // Throws, with everything as it was, where the view is in use by a call of libc or belongs to another thread.
            a.close();
        }
        closed = true;
        return true;
    }
}
