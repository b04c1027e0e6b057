package dev.ramway;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * What a server knows of one client's calls, and the rules of ABI.md, section 20, for them: which have no final REPLY yet, whose time
 * ends next, which replies wait for room, and how many bytes are copied. No I/O, and no lock of its own.
 *
 * <p>Invariants: a call is in {@link #open} until its final REPLY is published. {@link #bytes} is the sum of the requests whose handlers
 * have not ended, the elements that wait for credit, and {@link #parked}.
 */
final class RpcServerLedger {
    /**
     * A REPLY that is to be sent.
     *
     * @param call null: it was refused
     */
    record Out(long id, RpcServerCall call, RpcStatus status, boolean element, int code, byte[] meta, byte[] body) {
        long bytes() {
            return (long) meta.length + body.length;
        }

        byte[] header() {
            return RpcFrames.replyHeader(status, element, code, meta.length);
        }
    }

    private final int maxInFlight;
    private final long maxBytes;
    private final Map<Long, RpcServerCall> open = new HashMap<>();
    private final TreeSet<RpcServerCall> limited = new TreeSet<>(RpcServerLedger::byEnd);
    private final ArrayDeque<Out> parked = new ArrayDeque<>();
    private long lastId;
    private long bytes;
    private boolean draining;

    RpcServerLedger(int maxInFlight, long maxBytes) {
        this.maxInFlight = maxInFlight;
        this.maxBytes = maxBytes;
    }

    private static int byEnd(RpcServerCall a, RpcServerCall b) {
        // Differences of System.nanoTime, which may wrap.
        long later = a.start + a.limit - (b.start + b.limit);
        return later != 0 ? Long.signum(later) : Long.compare(a.id, b.id);
    }

    void drain() {
        draining = true;
    }

    boolean isDraining() {
        return draining;
    }

    int open() {
        return open.size();
    }

    long bytes() {
        return bytes;
    }

    /** All calls without a final REPLY that is published. */
    List<RpcServerCall> calls() {
        return new ArrayList<>(open.values());
    }

    /**
     * Takes the id of the next CALL, which asks for so many bytes; the status to answer with if it is not to be run, or null. Corrupt is
     * thrown.
     */
    RpcStatus admit(long id, int method, long size) {
        if (id != lastId + 1) {
            throw RpcFrames.corrupt("a CALL with the id %s, expected %d", Long.toUnsignedString(id), lastId + 1);
        }
        lastId = id;
        if (draining && !RpcFrames.isReserved(method)) {
            return RpcStatus.DRAINING;
        }
        return open.size() >= maxInFlight || size > maxBytes - bytes ? RpcStatus.OVERLOADED : null;
    }

    /** Begins a call that was admitted. */
    void begin(RpcServerCall call, long size) {
        call.requestBytes = size;
        bytes += size;
        open.put(call.id, call);
        if (call.limit != RingEnd.FOREVER) {
            limited.add(call);
        }
    }

    /** The call of a CANCEL; null: it has ended. Corrupt is thrown. */
    RpcServerCall cancelled(long id) {
        return find(id, "a CANCEL");
    }

    /** Takes a CREDIT; its call, or null: it has ended. Corrupt is thrown. */
    RpcServerCall credited(long id, long n) {
        RpcServerCall call = find(id, "a CREDIT");
        if (call != null) {
            if (!call.isStream()) {
                throw RpcFrames.corrupt("a CREDIT for call %d, which asked for one reply", id);
            }
            call.credit = Math.min(call.credit + n, RpcFrames.U32_MAX);
        }
        return call;
    }

    private RpcServerCall find(long id, String what) {
        if (id <= 0 || id > lastId) {
            throw RpcFrames.corrupt("%s for call %s, which it has not made", what, Long.toUnsignedString(id));
        }
        return open.get(id);
    }

    /** The call whose time is over, once; null: none. */
    RpcServerCall expired() {
        RpcServerCall first = limited.isEmpty() ? null : limited.first();
        if (first == null || first.left() > 0) {
            return null;
        }
        limited.remove(first);
        return first;
    }

    /** How long until the next call's time is over, in ns. */
    long untilExpiry() {
        return limited.isEmpty() ? RingEnd.FOREVER : Math.max(0, limited.first().left());
    }

    /** The handler has ended: its request is not needed any more. */
    void ended(RpcServerCall call) {
        call.state = RpcServerCall.State.ENDED;
        bytes -= call.requestBytes;
        call.requestBytes = 0;
        dropElement(call);
        limited.remove(call);
    }

    /** Keeps an element that has no credit; false: it is more than may be copied. */
    boolean keepElement(RpcServerCall call, byte[] meta, byte[] element) {
        long size = (long) element.length + meta.length;
        if (size > maxBytes - bytes) {
            return false;
        }
        bytes += size;
        call.element = element;
        call.elementMeta = meta;
        return true;
    }

    void dropElement(RpcServerCall call) {
        if (call.element != null) {
            bytes -= (long) call.element.length + call.elementMeta.length;
            call.element = null;
            call.elementMeta = null;
        }
    }

    /** Whether replies wait for room: then what comes has to wait behind them. */
    boolean isParking() {
        return !parked.isEmpty();
    }

    /** Keeps a REPLY that does not fit now; false: it is more than may be copied. */
    boolean park(Out out) {
        if (out.bytes() > maxBytes - bytes) {
            return false;
        }
        bytes += out.bytes();
        parked.add(out);
        return true;
    }

    /** The REPLY to send next; null: none waits. */
    Out parked() {
        return parked.peek();
    }

    /** The first of those that wait was published. */
    void unparked() {
        bytes -= parked.remove().bytes();
    }

    /** A REPLY was published. */
    void published(Out out) {
        if (!out.element()) {
            open.remove(out.id());
        }
    }

    /** The client is gone. */
    void clear() {
        open.clear();
        limited.clear();
        parked.clear();
    }
}
