package dev.ramway;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * A client's connection, shared by any number of threads.
 *
 * <p>One of those that wait receives for all of them, the leader: it hands each reply to its call and wakes the call's owner. The others,
 * the followers, are parked. A leader that leaves wakes one follower, which becomes the next leader; one that was woken and no longer
 * needs it wakes another one. Whether there is a leader is found out and a follower registered in one step with the lock, so there
 * is never a follower without a leader, or without one that was woken.
 *
 * <p>Nobody waits for room: what does not fit stays in the ledger, and is sent when the ring says that there is room.
 */
final class RpcChannel {
    final Mutex lock = new Mutex();
    final Bus bus;
    private final String name;
    private final Sender sender;
    private final Receiver receiver;
    private final RpcClientLedger ledger;
    /** The thread that receives; null: nobody. */
    private Thread leader;
    private final LinkedHashSet<Thread> followers = new LinkedHashSet<>();
    /** A callback comes when there is room. */
    private boolean roomAsked;
    /** Nothing can be sent any more; the receiving side finds out why. */
    private boolean sendOver;

    RpcChannel(String name, Bus bus, long maxBuffered) {
        this.name = name;
        this.bus = bus;
        sender = bus.sender();
        receiver = bus.receiver();
        sender.shareCalls();
        ledger = new RpcClientLedger((int) Math.min(bus.maxInFlight & RpcFrames.U32_MAX, Integer.MAX_VALUE),
                maxBuffered == 0 ? Facts.RPC_BYTES_FACTOR * receiver.capacity() : maxBuffered, this::wake);
    }

    /** Makes a call and sends it if it can be sent now. */
    RpcCall start(int method, byte[] body, byte[] meta, int window, long nanos) {
        RpcCall call = new RpcCall(method, window, nanos, meta, body);
        long length = Facts.RPC_HEADER + RpcFrames.length(null, meta, body);
        if (length > sender.maxMessageLength()) {
            throw RpcException.of(ErrorKind.TOO_LARGE, false, "calling '" + name + "': a request of " + body.length
                    + " bytes can never fit, the ring takes at most " + (sender.maxMessageLength() - Facts.RPC_HEADER) + " (TooLarge)");
        }
        try (var _ = lock.hold()) {
            ledger.submit(call);
            flush();
        }
        return call;
    }

    /** Sends what can be sent: what is owed first, then calls in their order. With the lock. */
    private void flush() {
        while (!sendOver && !roomAsked && !ledger.isOver()) {
            RpcCall owing = ledger.owing();
            RpcCall call = owing != null ? owing : ledger.next();
            if (call == null) {
                return;
            }
            try {
                if (owing != null) {
                    pay(owing);
                } else if (call.left() <= 0) {
                    ledger.timeOut(call);
                } else {
                    send(call);
                }
            } catch (RamwayException e) {
                sendOver = true;
                if (e.kind() == ErrorKind.CORRUPT) {
                    ledger.end(e, false);
                }
            }
        }
    }

    private void pay(RpcCall call) {
        byte[] payload = call.cancelOwed ? RpcFrames.NONE : RpcFrames.credit(call.creditOwed);
        int type = call.cancelOwed ? Facts.TYPE_ID_CANCEL : Facts.TYPE_ID_CREDIT;
        if (sender.putNow(type, call.id, null, RpcFrames.NONE, payload)) {
            ledger.paid(call);
        } else {
            askForRoom(payload.length);
        }
    }

    private void send(RpcCall call) {
        byte[] header = RpcFrames.callHeader(RpcFrames.timeoutMicros(call.left()), call.meta.length, call.method, call.window);
        if (sender.putNow(Facts.TYPE_ID_CALL, ledger.nextId(), header, call.meta, call.body)) {
            ledger.published(call);
        } else {
            askForRoom((int) RpcFrames.length(header, call.meta, call.body));
        }
    }

    private void askForRoom(int length) {
        roomAsked = true;
        sender.whenWritable(length, this::roomCame);
    }

    private void roomCame() {
        try (var _ = lock.hold()) {
            roomAsked = false;
            flush();
        }
    }

    /** Wakes who waits for a call. With the lock. */
    private void wake(RpcCall call) {
        for (Thread each : call.waiting) {
            if (each == leader) {
                // It finds out by itself if it is the one that just received.
                if (each != Thread.currentThread()) {
                    receiver.waiter.poke();
                }
            } else {
                LockSupport.unpark(each);
            }
        }
    }

    /** Wakes the next leader if there is none. With the lock. */
    private void passOn() {
        if (leader == null && !followers.isEmpty()) {
            LockSupport.unpark(followers.removeFirst());
        }
    }

    /**
     * Waits until there is something for the owner of a call, receiving for all calls if nobody else does. A call whose time is over
     * is decided here.
     *
     * @return false if {@code nanos} passed before
     */
    boolean await(RpcCall call, long nanos) throws InterruptedException {
        long start = System.nanoTime();
        Thread me = Thread.currentThread();
        boolean checked = false;
        try (var _ = lock.hold()) {
            if (call.isReady()) {
                return true;
            }
            call.waiting.add(me);
            try {
                while (true) {
                    if (call.isReady()) {
                        return true;
                    }
                    long own = call.left();
                    if (own <= 0) {
                        ledger.timeOut(call);
                        flush();
                        return true;
                    }
                    long left = Waiter.left(start, nanos);
                    if (left <= 0 && checked) {
                        return false;
                    }
                    checked = true;
                    if (Thread.interrupted()) {
                        throw new InterruptedException();
                    }
                    long longest = Math.max(0, Math.min(own, left));
                    if (leader == null) {
                        lead(me, longest);
                    } else if (longest > 0) {
                        follow(me, longest);
                    }
                }
            } finally {
                call.waiting.remove(me);
                passOn();
            }
        }
    }

    private void follow(Thread me, long longest) {
        followers.add(me);
        lock.without(() -> {
            LockSupport.parkNanos(this, longest);
            return null;
        });
        followers.remove(me);
    }

    /** Receives once. The lock is let go meanwhile. */
    private void lead(Thread me, long longest) throws InterruptedException {
        leader = me;
        try {
            List<RpcFrames.Reply> replies = lock.without(() -> receive(longest));
            for (RpcFrames.Reply each : replies) {
                ledger.received(each);
            }
            flush();
        } catch (RamwayException e) {
            end(e, false);
        } catch (RuntimeException | Error e) {
            // Frames may be lost.
            end(Errors.fail(ErrorKind.OS, "receiving failed: %s", e), false);
            throw e;
        } finally {
            leader = null;
        }
    }

    private List<RpcFrames.Reply> receive(long longest) throws InterruptedException {
        if (longest > 0 && !receiver.awaitMessage(longest)) {
            return List.of();
        }
        try (Batch batch = receiver.tryRecvBatch(Facts.RPC_FRAMES_PER_ROUND)) {
            if (batch == null) {
                return List.of();
            }
            int size = batch.size();
            List<RpcFrames.Reply> replies = new ArrayList<>(size);
            for (int i = 0; i < size; i++) {
                replies.add(RpcFrames.fromServer(batch.get(i)));
            }
            return replies;
        }
    }

    /** The connection is over. With the lock. */
    private void end(RamwayException why, boolean byThisSide) {
        ledger.end(Errors.about(why, "calling", name), byThisSide);
        // The halves are closed; a thread that is inside one of them leaves at once, and does not need the lock for it.
        bus.close();
    }

    void close() {
        try (var _ = lock.hold()) {
            end(Errors.of(ErrorKind.CLOSED, "this client was closed"), true);
        }
    }

    boolean isOver() {
        try (var _ = lock.hold()) {
            return ledger.isOver();
        }
    }

    int inFlight() {
        try (var _ = lock.hold()) {
            return ledger.inFlight();
        }
    }

    /** Receives what is there, if nobody else does. */
    void check(RpcCall call) {
        boolean interrupted = Thread.interrupted();
        try {
            await(call, 0);
        } catch (InterruptedException e) {
            interrupted = true;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Whether it has failed and there is no element left. */
    boolean hasFailed(RpcCall call) {
        try (var _ = lock.hold()) {
            return call.failure != null && call.elements.isEmpty();
        }
    }

    /** The outcome's reply, taken; null: none yet. The failure is thrown. */
    RpcReply takeReply(RpcCall call) {
        try (var _ = lock.hold()) {
            if (call.failure != null) {
                throw call.failure.again();
            }
            ledger.taken(call);
            return call.reply;
        }
    }

    /** The next element, taken; null: none now. The failure is thrown once there is no element left. */
    RpcReply takeElement(RpcCall call) {
        try (var _ = lock.hold()) {
            RpcReply element = ledger.take(call);
            if (element != null) {
                flush();
            } else if (call.failure != null) {
                throw call.failure.again();
            }
            return element;
        }
    }

    boolean isComplete(RpcCall call) {
        try (var _ = lock.hold()) {
            return call.complete && call.elements.isEmpty();
        }
    }

    boolean isDecided(RpcCall call) {
        try (var _ = lock.hold()) {
            return call.isDecided();
        }
    }

    /** Cancels, unless it is decided. */
    void cancel(RpcCall call) {
        try (var _ = lock.hold()) {
            ledger.cancel(call);
            flush();
        }
    }

    /** Nobody takes anything of it any more. */
    void drop(RpcCall call) {
        try (var _ = lock.hold()) {
            ledger.drop(call);
            flush();
        }
    }
}
