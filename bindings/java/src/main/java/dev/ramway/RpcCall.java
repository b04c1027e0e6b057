package dev.ramway;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/** One call, as the client keeps it. All of it with the client's lock. */
final class RpcCall {
    /** How far it has come. */
    enum State {
        /** Not published; it has no id. */
        QUEUED,
        /** Published, and its final REPLY has not come. */
        IN_FLIGHT,
        /** Its final REPLY came, or it was never published and never will be. */
        ENDED
    }

    final int method;
    /** How many elements may be under way; 0: one reply. */
    final int window;
    /** When the call was made, and its time limit from there, in ns. */
    final long start = System.nanoTime();
    final long limit;
    /** Null once it is published. */
    byte[] meta;
    byte[] body;

    long id;
    State state = State.QUEUED;
    /** The outcome: one of these, or of a stream that is complete {@link #complete}. */
    RpcReply reply;
    RpcException failure;
    boolean complete;
    /** Elements that nobody has taken yet. */
    final ArrayDeque<RpcReply> elements;
    /** What the reply or the elements count that nobody has taken yet. */
    long buffered;
    /** How many more elements the server may send. */
    long credit;
    /** Elements that were taken and not yet said so. */
    long creditOwed;
    boolean cancelOwed;
    /** Who waits for it. */
    final List<Thread> waiting = new ArrayList<>(1);

    RpcCall(int method, int window, long limit, byte[] meta, byte[] body) {
        this.method = method;
        this.window = window;
        this.limit = limit;
        this.meta = meta;
        this.body = body;
        credit = window;
        elements = window == 0 ? null : new ArrayDeque<>();
    }

    boolean isStream() {
        return window != 0;
    }

    /** Whether its outcome is known. */
    boolean isDecided() {
        return reply != null || failure != null || complete;
    }

    /** Whether there is something for its owner. */
    boolean isReady() {
        return isDecided() || isStream() && !elements.isEmpty();
    }

    /** How much time it has left, in ns. */
    long left() {
        return Waiter.left(start, limit);
    }

    /** How much credit is owed before it is worth a frame: with less, the server still has some. */
    long creditStep() {
        return Math.max(1, window / 2);
    }
}
