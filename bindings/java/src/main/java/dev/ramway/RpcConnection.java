package dev.ramway;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.Condition;

/**
 * A server's side of one client. One thread reads its frames and never waits for room: a reply that does not fit is parked, and sent when
 * the ring says that there is room. Only while the refusal of a call does not fit is this client not read.
 *
 * <p>Replies are sent by the threads that run handlers, by the reading thread, and by the callback for room, each with the lock.
 */
final class RpcConnection implements Runnable {
    /** All threads of this process run on one processor. */
    private static final boolean SHARES_PROCESSOR = Runtime.getRuntime().availableProcessors() == 1;

    final Bus bus;
    private final RpcServer server;
    private final RpcServerMethods methods;
    private final RpcPool pool;
    private final RpcPool.Share share = new RpcPool.Share();
    private final Sender sender;
    private final Receiver receiver;
    private final Mutex lock = new Mutex();
    private final Condition refused = lock.newCondition();
    private final RpcServerLedger ledger;
    /** The answer to a call that is not run, as long as it does not fit into the ring. With the lock. */
    private RpcServerLedger.Out refusal;
    /** A callback comes when there is room. With the lock. */
    private boolean roomAsked;
    /** Sending failed: the reading thread ends the connection. With the lock. */
    private RamwayException broken;
    /** With the lock. */
    private boolean over;
    /** The call that the reading thread is to run next; null: none. That thread's own. */
    private RpcServerCall inline;
    /**
     * The call that the reading thread is to give to the pool once it has let go of the lock: the thread that runs it may begin at once,
     * on this processor, and would wait for the lock. Null: none. The reading thread's own.
     */
    private RpcServerCall pooled;
    /** A handler was given to the pool since the last wait. The reading thread's own. */
    private boolean handedOver;

    RpcConnection(RpcServer server, Bus bus, RpcServerMethods methods, RpcPool pool, int maxInFlight, long maxBytes) {
        this.server = server;
        this.bus = bus;
        this.methods = methods;
        this.pool = pool;
        sender = bus.sender();
        receiver = bus.receiver();
        sender.shareCalls();
        ledger = new RpcServerLedger(maxInFlight, maxBytes == 0 ? Facts.RPC_BYTES_FACTOR * receiver.capacity() : maxBytes);
    }

    @Override
    public void run() {
        boolean corrupt = false;
        try {
            while (mayRead()) {
                long longest = expire();
                if (longest > 0 && receiver.awaitMessage(longest)) {
                    round();
                }
                if (handedOver && SHARES_PROCESSOR) {
                    // This thread would poll where the handler is to run.
                    Thread.yield();
                }
                handedOver = false;
            }
        } catch (RamwayException e) {
            // It closed, died, or broke the format; or this side has closed.
            corrupt = e.kind() == ErrorKind.CORRUPT;
        } catch (InterruptedException e) {
            // Nobody knows this thread but those who can only want it to end.
            Thread.currentThread().interrupt();
        } finally {
            end(!corrupt);
            server.gone(this);
        }
    }

    /** Waits while a refusal does not fit; false: the connection is over. */
    private boolean mayRead() throws InterruptedException {
        try (var _ = lock.holdInterruptibly()) {
            while (refusal != null && !over && broken == null) {
                long longest = ledger.untilExpiry();
                if (longest == RingEnd.FOREVER) {
                    refused.await();
                } else if (refused.awaitNanos(longest) <= 0) {
                    expire();
                }
            }
            if (broken != null) {
                throw broken;
            }
            return !over;
        }
    }

    /** Ends the calls whose time is over, and says how long until the next one's is, in ns. */
    private long expire() {
        try (var _ = lock.hold()) {
            for (RpcServerCall call = ledger.expired(); call != null; call = ledger.expired()) {
                stop(call, RpcStatus.TIMED_OUT);
            }
            return Math.max(1, ledger.untilExpiry());
        }
    }

    private void round() {
        for (int i = 0; i < Facts.RPC_FRAMES_PER_ROUND; i++) {
            boolean more;
            try (Message message = receiver.tryRecv()) {
                if (message == null) {
                    return;
                }
                more = take(message);
            }
            if (inline != null) {
                RpcServerCall call = inline;
                inline = null;
                handle(call);
                more = more && mayGoOn();
            } else if (pooled != null) {
                RpcServerCall call = pooled;
                pooled = null;
                handOver(call);
            }
            if (!more) {
                return;
            }
        }
    }

    private void handOver(RpcServerCall call) {
        handedOver = pool.submit(share, call);
        if (!handedOver) {
            try (var _ = lock.hold()) {
                finish(call, RpcStatus.OVERLOADED);
            }
        }
    }

    private boolean mayGoOn() {
        try (var _ = lock.hold()) {
            return !over && refusal == null && broken == null;
        }
    }

    /** Takes a frame; false: no other one is to be read now. Corrupt is thrown. */
    private boolean take(Message message) {
        RpcFrames.FromClient frame = RpcFrames.fromClient(message);
        try (var _ = lock.hold()) {
            if (over) {
                return false;
            }
            switch (frame) {
                case RpcFrames.Call call -> take(call, message);
                case RpcFrames.Cancel cancel -> {
                    RpcServerCall call = ledger.cancelled(cancel.id());
                    if (call != null) {
                        stop(call, RpcStatus.CANCELLED);
                    }
                }
                case RpcFrames.Credit credit -> {
                    RpcServerCall call = ledger.credited(credit.id(), credit.n());
                    if (call != null && call.element != null) {
                        sendWaiting(call);
                    }
                }
            }
            return refusal == null && broken == null;
        }
    }

    private void take(RpcFrames.Call frame, Message message) {
        long size = message.length() - Facts.RPC_HEADER;
        RpcStatus no = ledger.admit(frame.id(), frame.method(), size);
        if (no != null) {
            RpcServerLedger.Out out = new RpcServerLedger.Out(frame.id(), null, no, false, 0, RpcFrames.NONE, RpcFrames.NONE);
            if (ledger.isParking() || !put(out)) {
                refusal = out;
                askForRoom(out);
            }
            return;
        }
        RpcServerCall call = new RpcServerCall(this, frame, frame.meta(message), frame.body(message));
        ledger.begin(call, size);
        if (RpcFrames.isReserved(call.method)) {
            answerOwn(call);
            return;
        }
        call.handler = methods.find(call.method);
        if (call.handler == null) {
            finish(call, RpcStatus.NO_SUCH_METHOD);
        } else if (call.handler.one() == null && !call.isStream()) {
            finish(call, RpcStatus.HANDLER_FAILED, 0, RpcFrames.NONE, ("method " + Integer.toUnsignedString(call.method)
                    + " replies with a stream: call it as one").getBytes(StandardCharsets.UTF_8));
        } else if (call.handler.inline()) {
            inline = call;
        } else {
            pooled = call;
        }
    }

    /** Ramway's own methods. */
    private void answerOwn(RpcServerCall call) {
        if (call.method == Facts.METHOD_PING) {
            finish(call, RpcStatus.OK);
        } else if (call.method == Facts.METHOD_DESCRIBE && !call.isStream()) {
            finish(call, RpcStatus.OK, 0, RpcFrames.NONE, methods.describe());
        } else {
            finish(call, RpcStatus.NO_SUCH_METHOD);
        }
    }

    /** Runs the handler of a call, or goes on with its stream. On a thread of the pool, or on the reading one. */
    void handle(RpcServerCall call) {
        RpcRequest request;
        try (var _ = lock.hold()) {
            if (call.state == RpcServerCall.State.ENDED) {
                return;
            }
            boolean begins = call.state == RpcServerCall.State.QUEUED;
            if (begins && (call.isStopped() || call.left() <= 0)) {
                finish(call, call.isStopped() && call.left() > 0 ? RpcStatus.CANCELLED : RpcStatus.TIMED_OUT);
                return;
            }
            call.state = RpcServerCall.State.RUNNING;
            call.thread = Thread.currentThread();
            request = call.request;
            call.request = null;
        }
        Result result;
        try {
            result = call.isStream() ? stream(call, request) : new Result(RpcStatus.OK, 0, call.handler.one().handle(request));
            if (result == null) {
                return;
            }
            Objects.requireNonNull(result.body(), "the handler's reply");
        } catch (Throwable t) {
            result = failure(t);
        }
        if (call.elements != null) {
            // An interrupt was for the handler, and none comes any more.
            try (var _ = lock.hold()) {
                leave(call);
            }
            close(call);
        }
        try (var _ = lock.hold()) {
            leave(call);
            boolean stopped = call.isStopped() || call.left() <= 0;
            if (stopped) {
                finish(call, RpcStatus.CANCELLED);
            } else {
                boolean meta = result.status() == RpcStatus.OK || result.status() == RpcStatus.APPLICATION;
                finish(call, result.status(), result.code(), meta ? call.takeReplyMeta() : RpcFrames.NONE, result.body());
            }
        }
    }

    /** How a handler ended. */
    private record Result(RpcStatus status, int code, byte[] body) {}

    private static Result failure(Throwable t) {
        if (t instanceof RpcException e && e.status().orElse(null) == RpcStatus.APPLICATION) {
            return new Result(RpcStatus.APPLICATION, e.code(), e.text().getBytes(StandardCharsets.UTF_8));
        }
        return new Result(RpcStatus.HANDLER_FAILED, 0, String.valueOf(t).getBytes(StandardCharsets.UTF_8));
    }

    /** Its thread is needed no more; an interrupt was for the handler. With the lock. */
    private static void leave(RpcServerCall call) {
        call.thread = null;
        if (call.isStopped()) {
            Thread.interrupted();
        }
    }

    private static void close(RpcServerCall call) {
        if (call.elements instanceof AutoCloseable open) {
            try {
                open.close();
            } catch (Exception e) {
                // The call has its outcome.
                Objects.requireNonNull(e);
            }
        }
        call.elements = null;
    }

    /** Sends elements as long as there is credit and room. Null: the stream waits, and the call is another thread's from here on. */
    private Result stream(RpcServerCall call, RpcRequest request) throws Exception {
        if (call.elements == null && call.handler.one() != null) {
            call.elements = List.of(call.handler.one().handle(request)).iterator();
        } else if (call.elements == null) {
            call.elements = Objects.requireNonNull(call.handler.many().handle(request), "the handler's iterator");
        }
        while (!call.isStopped() && call.left() > 0) {
            if (!call.elements.hasNext()) {
                return new Result(RpcStatus.OK, 0, RpcFrames.NONE);
            }
            byte[] element = Objects.requireNonNull(call.elements.next(), "an element");
            try (var _ = lock.hold()) {
                if (call.isStopped()) {
                    break;
                }
                if (!offer(call, call.takeReplyMeta(), element)) {
                    return new Result(RpcStatus.REPLY_TOO_LARGE, 0, RpcFrames.NONE);
                }
                if (call.state == RpcServerCall.State.WAITING) {
                    leave(call);
                    return null;
                }
            }
        }
        return new Result(RpcStatus.CANCELLED, 0, RpcFrames.NONE);
    }

    /** Sends an element, or keeps it, so that the call waits; false: it is too long. With the lock. */
    private boolean offer(RpcServerCall call, byte[] meta, byte[] element) {
        if (Facts.RPC_HEADER + RpcFrames.length(null, meta, element) > sender.maxMessageLength()) {
            return false;
        }
        if (call.credit == 0) {
            call.state = RpcServerCall.State.WAITING;
            return ledger.keepElement(call, meta, element);
        }
        call.credit--;
        RpcServerLedger.Out out = new RpcServerLedger.Out(call.id, call, RpcStatus.OK, true, 0, meta, element);
        if (ledger.isParking() || !put(out)) {
            if (!ledger.park(out)) {
                return false;
            }
            call.state = RpcServerCall.State.WAITING;
            askForRoom(out);
        }
        return true;
    }

    /** Sends the element that has waited for credit, and lets the stream go on. With the lock. */
    private void sendWaiting(RpcServerCall call) {
        byte[] meta = call.elementMeta;
        byte[] element = call.element;
        ledger.dropElement(call);
        call.state = RpcServerCall.State.RUNNING;
        // What was kept until now can be kept as what is parked.
        offer(call, meta, element);
        if (call.state == RpcServerCall.State.RUNNING) {
            resume(call);
        }
    }

    /** Has a stream go on. With the lock. */
    private void resume(RpcServerCall call) {
        call.state = RpcServerCall.State.RUNNING;
        if (!pool.submit(share, call)) {
            finish(call, RpcStatus.HANDLER_FAILED, 0, RpcFrames.NONE, "the executor refuses to go on".getBytes(StandardCharsets.UTF_8));
        }
    }

    /** Tells a call to stop, and answers one that has not begun with the status. With the lock. */
    private void stop(RpcServerCall call, RpcStatus unbegun) {
        if (call.isStopped() || call.state == RpcServerCall.State.ENDED) {
            return;
        }
        call.stop();
        if (call.state == RpcServerCall.State.QUEUED && pool.withdraw(share, call)) {
            finish(call, unbegun);
        } else if (call.state == RpcServerCall.State.WAITING) {
            ledger.dropElement(call);
            resume(call);
        }
    }

    private void finish(RpcServerCall call, RpcStatus status) {
        finish(call, status, 0, RpcFrames.NONE, RpcFrames.NONE);
    }

    /** The call has ended: sends or parks its final REPLY. With the lock. */
    private void finish(RpcServerCall call, RpcStatus status, int code, byte[] meta, byte[] body) {
        ledger.ended(call);
        if (over) {
            return;
        }
        RpcServerLedger.Out out = new RpcServerLedger.Out(call.id, call, status, false, code, meta, body);
        if (Facts.RPC_HEADER + RpcFrames.length(null, meta, body) > sender.maxMessageLength()) {
            out = tooLarge(call);
        }
        if (!ledger.isParking() && put(out)) {
            published(out);
            return;
        }
        if (!ledger.park(out)) {
            out = tooLarge(call);
            ledger.park(out);
        }
        askForRoom(ledger.parked());
    }

    private static RpcServerLedger.Out tooLarge(RpcServerCall call) {
        return new RpcServerLedger.Out(call.id, call, RpcStatus.REPLY_TOO_LARGE, false, 0, RpcFrames.NONE, RpcFrames.NONE);
    }

    private void published(RpcServerLedger.Out out) {
        ledger.published(out);
        if (ledger.isDraining() && ledger.open() == 0) {
            server.changed();
        }
    }

    /** Publishes a REPLY; false: there is no room now. Once sending has failed all are dropped. With the lock. */
    private boolean put(RpcServerLedger.Out out) {
        if (broken != null) {
            return true;
        }
        try {
            return sender.putNow(Facts.TYPE_ID_REPLY, out.id(), out.header(), out.meta(), out.body());
        } catch (RamwayException e) {
            fail(e);
            return true;
        }
    }

    private void fail(RamwayException e) {
        broken = e;
        refused.signal();
        receiver.waiter.poke();
    }

    private void askForRoom(RpcServerLedger.Out out) {
        if (roomAsked || broken != null) {
            return;
        }
        roomAsked = true;
        try {
            sender.whenWritable((int) RpcFrames.length(out.header(), out.meta(), out.body()), this::roomCame);
        } catch (RamwayException e) {
            fail(e);
        }
    }

    /** Sends what was parked, in its order, and then the refusal. */
    private void roomCame() {
        try (var _ = lock.hold()) {
            roomAsked = false;
            if (over) {
                return;
            }
            for (RpcServerLedger.Out out = ledger.parked(); out != null; out = ledger.parked()) {
                if (!put(out)) {
                    askForRoom(out);
                    return;
                }
                ledger.unparked();
                published(out);
                if (out.element() && out.call().state == RpcServerCall.State.WAITING) {
                    resume(out.call());
                }
            }
            if (refusal != null && !put(refusal)) {
                askForRoom(refusal);
            } else if (refusal != null) {
                refusal = null;
                refused.signal();
                server.changed();
            }
        }
    }

    /** New calls are refused from here on. */
    void drain() {
        try (var _ = lock.hold()) {
            ledger.drain();
        }
    }

    /** Whether each call that was taken has its final REPLY published. */
    boolean isIdle() {
        try (var _ = lock.hold()) {
            return over || ledger.open() == 0 && refusal == null;
        }
    }

    /** Tells each call to stop. */
    void cancelAll() {
        try (var _ = lock.hold()) {
            for (RpcServerCall call : ledger.calls()) {
                stop(call, RpcStatus.CANCELLED);
            }
        }
    }

    /** Ends the connection: in an orderly way where each call that was taken has its final REPLY published. */
    void close() {
        end(true);
    }

    private void end(boolean mayBeOrderly) {
        boolean orderly;
        try (var _ = lock.hold()) {
            if (over) {
                return;
            }
            orderly = mayBeOrderly && isIdle();
            over = true;
            for (RpcServerCall call : ledger.calls()) {
                stop(call, RpcStatus.CANCELLED);
            }
            ledger.clear();
            refused.signal();
        }
        if (orderly) {
            bus.close();
        } else {
            bus.hangUp();
        }
    }
}
