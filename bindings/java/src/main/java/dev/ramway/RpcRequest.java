package dev.ramway;

import java.time.Duration;
import java.util.Objects;
import java.util.Optional;

/** What a handler is asked. For the handler's thread; {@link #isCancelled} for any. */
public final class RpcRequest {
    private final RpcServerCall call;
    private final byte[] body;
    private final byte[] meta;

    RpcRequest(RpcServerCall call, byte[] body, byte[] meta) {
        this.call = call;
        this.body = body;
        this.meta = meta;
    }

    /** {@return the method's number, unsigned} */
    public int method() {
        return call.method;
    }

    /** {@return the request's bytes, which are the handler's own} */
    public byte[] body() {
        return body;
    }

    /** {@return the request's metadata; empty if there are none} */
    public byte[] meta() {
        return meta;
    }

    /** {@return how much time the call has left, zero once it is over; empty: it has no limit} */
    public Optional<Duration> remaining() {
        long left = call.left();
        return left == RingEnd.FOREVER ? Optional.empty() : Optional.of(Duration.ofNanos(Math.max(0, left)));
    }

    /**
     * {@return whether the client cancelled the call or is gone, its time is over, or the server ends} What the handler gives after
     * that nobody gets. Its thread is interrupted too.
     */
    public boolean isCancelled() {
        return call.isStopped() || call.left() <= 0;
    }

    /** {@return the user that the client acted as when the connection was made; an unsigned number} */
    public int peerUid() {
        return call.connection.bus.peerUid();
    }

    /** {@return the client's process when the connection was made; 0 if it has no number in our PID namespace} */
    public int peerPid() {
        return call.connection.bus.peerPid();
    }

    /**
     * An error of the application's, to be thrown.
     *
     * @param code the application's number, unsigned
     * @param text what went wrong
     * @return the exception: {@code throw request.fail(404, "no such key")}
     */
    public RpcException fail(int code, String text) {
        return new RpcException(code, text);
    }

    /**
     * Sets the metadata of the reply; of a stream, of its next element, or of its end if none follows.
     *
     * @param meta bytes that the application defines; they are not to be changed any more
     */
    public void replyMeta(byte[] meta) {
        call.replyMeta = Objects.requireNonNull(meta, "meta");
    }
}
