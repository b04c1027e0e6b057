package dev.ramway;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/**
 * A call that is under way. Any thread may use it. {@link #close} lets go of it: a call that is not decided is cancelled.
 *
 * <p>Replies are received by the threads that wait for a call of the client. Where none does, nothing is received.
 */
public final class RpcPending implements AutoCloseable {
    private final RpcChannel channel;
    private final RpcCall call;

    RpcPending(RpcChannel channel, RpcCall call) {
        this.channel = channel;
        this.call = call;
    }

    /**
     * Waits for the reply. The same reply may be asked for again.
     *
     * @return the reply
     * @throws InterruptedException if the thread is interrupted while it waits; the call goes on
     * @throws RpcException if there is none
     */
    public RpcReply get() throws InterruptedException {
        channel.await(call, RingEnd.FOREVER);
        return channel.takeReply(call);
    }

    /**
     * Waits for the reply, for at most this long.
     *
     * @param timeout the longest wait; the call goes on after it
     * @return the reply
     * @throws InterruptedException if the thread is interrupted while it waits; the call goes on
     * @throws TimedOutException if the wait was over before
     * @throws RpcException if there is no reply
     */
    public RpcReply get(Duration timeout) throws InterruptedException {
        if (!channel.await(call, RingEnd.nanos(timeout))) {
            throw Errors.of(ErrorKind.TIMED_OUT, null);
        }
        return channel.takeReply(call);
    }

    /**
     * {@return the reply if it is there, or null}
     *
     * @throws RpcException if there is none and there will be none
     */
    public RpcReply tryGet() {
        channel.check(call);
        return channel.takeReply(call);
    }

    /** {@return whether the outcome is known, without receiving} */
    public boolean isDone() {
        return channel.isDecided(call);
    }

    /** Cancels the call, unless its outcome is known: it ends with the status CANCELLED. The server is told. */
    public void cancel() {
        channel.cancel(call);
    }

    /**
     * {@return a future of the reply} A virtual thread waits for it. To cancel the future cancels the call.
     */
    public CompletableFuture<RpcReply> toCompletableFuture() {
        CompletableFuture<RpcReply> future = new CompletableFuture<>();
        Thread.ofVirtual().name("ramway-call").start(() -> {
            try {
                future.complete(get());
            } catch (Throwable t) {
                future.completeExceptionally(t);
            }
        });
        future.whenComplete((_, _) -> {
            if (future.isCancelled()) {
                cancel();
            }
        });
        return future;
    }

    /** Lets go of the call: it is cancelled unless its outcome is known, and its reply is dropped. */
    @Override
    public void close() {
        channel.drop(call);
    }
}
