package dev.ramway;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * What a client knows of its calls, and the rules of ABI.md, section 20, for them: which are in flight, which wait for a place, what is
 * owed to the server, and how many bytes nobody has taken yet. No I/O, and no lock of its own.
 *
 * <p>Invariants: each call that is published is in {@link #inFlight} until its final REPLY; each that is not is in {@link #queue} until
 * it is withdrawn or published. A call's outcome is decided once.
 */
final class RpcClientLedger {
    private final int maxInFlight;
    private final long maxBuffered;
    /** Told of a call that has something new for its owner. */
    private final Consumer<RpcCall> wake;
    private final Map<Long, RpcCall> inFlight = new HashMap<>();
    private final LinkedHashSet<RpcCall> queue = new LinkedHashSet<>();
    /** Those that owe a CANCEL or enough credit. */
    private final LinkedHashSet<RpcCall> owing = new LinkedHashSet<>();
    private long lastId;
    private long buffered;
    /** How the connection ended; null while it lasts. */
    private RamwayException over;
    private boolean ownClose;

    RpcClientLedger(int maxInFlight, long maxBuffered, Consumer<RpcCall> wake) {
        this.maxInFlight = maxInFlight;
        this.maxBuffered = maxBuffered;
        this.wake = wake;
    }

    int inFlight() {
        return inFlight.size();
    }

    long buffered() {
        return buffered;
    }

    int queued() {
        return queue.size();
    }

    boolean isOver() {
        return over != null;
    }

    /** Takes a new call. */
    void submit(RpcCall call) {
        if (over != null) {
            call.state = RpcCall.State.ENDED;
            fail(call, ended(false));
            return;
        }
        queue.add(call);
    }

    /** The call that owes something the longest; null: none does. It comes before every CALL. */
    RpcCall owing() {
        return owing.isEmpty() ? null : owing.getFirst();
    }

    /** What it owes was published. */
    void paid(RpcCall call) {
        if (!call.cancelOwed) {
            call.credit = Math.min(call.credit + call.creditOwed, RpcFrames.U32_MAX);
        }
        call.cancelOwed = false;
        call.creditOwed = 0;
        owing.remove(call);
    }

    /** The call to publish next; null: none waits, or there is no place. */
    RpcCall next() {
        return queue.isEmpty() || inFlight.size() >= maxInFlight ? null : queue.getFirst();
    }

    /** The id that the next CALL gets. */
    long nextId() {
        return lastId + 1;
    }

    /** Its CALL was published with {@link #nextId}. */
    void published(RpcCall call) {
        queue.remove(call);
        call.id = ++lastId;
        call.state = RpcCall.State.IN_FLIGHT;
        call.meta = null;
        call.body = null;
        inFlight.put(call.id, call);
    }

    /** Takes a REPLY. Corrupt is thrown. */
    void received(RpcFrames.Reply reply) {
        RpcCall call = inFlight.get(reply.id());
        if (call == null) {
            throw RpcFrames.corrupt("a REPLY to call %s, which is not in flight", Long.toUnsignedString(reply.id()));
        }
        if (reply.element()) {
            element(call, reply);
            return;
        }
        if (call.isStream() && reply.status() == RpcStatus.OK && reply.body().length != 0) {
            throw RpcFrames.corrupt("the end of a stream with a body of %d bytes", reply.body().length);
        }
        if (reply.status() == RpcStatus.CANCELLED && call.left() <= 0) {
            // The server's clock has said so a moment before this side asked its own.
            timeOut(call);
        }
        inFlight.remove(call.id);
        call.state = RpcCall.State.ENDED;
        call.cancelOwed = false;
        call.creditOwed = 0;
        owing.remove(call);
        if (call.isDecided()) {
            return;
        }
        if (reply.status() != RpcStatus.OK) {
            String text = reply.status() == RpcStatus.APPLICATION || reply.status() == RpcStatus.HANDLER_FAILED
                    ? new String(reply.body(), StandardCharsets.UTF_8) : "";
            fail(call, RpcException.of(reply.status(), reply.code(), text));
        } else if (call.isStream()) {
            call.complete = true;
            wake.accept(call);
        } else if (keep(call, reply)) {
            call.reply = new RpcReply(reply.body(), reply.meta());
            wake.accept(call);
        }
    }

    private void element(RpcCall call, RpcFrames.Reply reply) {
        if (!call.isStream()) {
            throw RpcFrames.corrupt("an element for call %d, which asked for one reply", call.id);
        }
        if (call.credit == 0) {
            throw RpcFrames.corrupt("an element for call %d beyond its credit", call.id);
        }
        call.credit--;
        if (!call.isDecided() && keep(call, reply)) {
            call.elements.add(new RpcReply(reply.body(), reply.meta()));
            wake.accept(call);
        }
    }

    /** Counts what is kept; false: it is too much, and the call has failed. */
    private boolean keep(RpcCall call, RpcFrames.Reply reply) {
        long bytes = reply.bytes();
        if (buffered + bytes > maxBuffered) {
            decide(call, RpcException.of(ErrorKind.TOO_LARGE, true, "a reply of " + bytes + " bytes, with " + buffered
                    + " bytes of replies that nobody has taken, is more than maxBuffered (" + maxBuffered
                    + "): take replies sooner, or raise it"));
            return false;
        }
        buffered += bytes;
        call.buffered += bytes;
        return true;
    }

    /** The owner takes the next element; null: there is none now. */
    RpcReply take(RpcCall call) {
        RpcReply element = call.elements.poll();
        if (element == null) {
            return null;
        }
        release(call, (long) element.body().length + element.meta().length);
        if (call.state == RpcCall.State.IN_FLIGHT && !call.cancelOwed && !call.isDecided()) {
            call.creditOwed = Math.min(call.creditOwed + 1, RpcFrames.U32_MAX);
            if (call.creditOwed >= call.creditStep()) {
                owing.add(call);
            }
        }
        return element;
    }

    /** The owner has the reply. */
    void taken(RpcCall call) {
        release(call, call.buffered);
    }

    private void release(RpcCall call, long bytes) {
        call.buffered -= bytes;
        buffered -= bytes;
    }

    /** The owner cancels. */
    void cancel(RpcCall call) {
        decide(call, RpcException.cancelled(call.state != RpcCall.State.QUEUED));
    }

    /** Its time is over by this side's clock. */
    void timeOut(RpcCall call) {
        boolean sent = call.state != RpcCall.State.QUEUED;
        decide(call, RpcException.of(ErrorKind.TIMED_OUT, sent, sent ? "the call's time was over before its reply came (TimedOut)"
                : "the call's time was over before it could be sent (TimedOut): it was withdrawn"));
    }

    /** Its owner has let go of it: what came is dropped, what comes will be. */
    void drop(RpcCall call) {
        cancel(call);
        clear(call);
    }

    /** Decides it before its final REPLY, or after it where the reply cannot be kept. */
    private void decide(RpcCall call, RpcException why) {
        if (call.isDecided()) {
            return;
        }
        if (call.state == RpcCall.State.QUEUED) {
            queue.remove(call);
            call.state = RpcCall.State.ENDED;
        } else if (call.state == RpcCall.State.IN_FLIGHT) {
            // Its place is free, and what it owes settled, only by its final REPLY.
            call.cancelOwed = true;
            call.creditOwed = 0;
            owing.add(call);
        }
        clear(call);
        fail(call, why);
    }

    private void clear(RpcCall call) {
        release(call, call.buffered);
        if (call.isStream()) {
            call.elements.clear();
        }
        call.meta = null;
        call.body = null;
    }

    private void fail(RpcCall call, RpcException why) {
        call.failure = why;
        wake.accept(call);
    }

    /** The connection is over: each call that is not decided ends with it. Elements that came before can still be taken. */
    void end(RamwayException why, boolean byThisSide) {
        if (over != null) {
            return;
        }
        over = why;
        ownClose = byThisSide;
        List<RpcCall> all = new ArrayList<>(inFlight.values());
        all.addAll(queue);
        inFlight.clear();
        queue.clear();
        owing.clear();
        for (RpcCall call : all) {
            boolean sent = call.state == RpcCall.State.IN_FLIGHT;
            call.state = RpcCall.State.ENDED;
            call.cancelOwed = false;
            call.creditOwed = 0;
            if (!call.isDecided()) {
                fail(call, ended(sent));
            }
        }
    }

    /** A server closes only when each call that it took has its final REPLY: what has none was not run. */
    private RpcException ended(boolean sent) {
        boolean mayHaveRun = sent && (ownClose || over.kind() != ErrorKind.CLOSED);
        RpcException e = RpcException.of(over.kind(), mayHaveRun, over.getMessage());
        e.initCause(over);
        return e;
    }
}
