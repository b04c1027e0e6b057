package dev.ramway;

import java.time.Duration;
import java.util.Objects;

/**
 * How a call of an {@link RpcClient} is made. Immutable: start from {@link #DEFAULT}.
 *
 * @param timeout the call's time limit, from the moment of the call; null: none
 * @param meta metadata of the request: bytes that the application defines, a trace or a token; empty: none
 * @param window of a stream: how many elements may be under way, at least 1
 */
public record CallOptions(Duration timeout, byte[] meta, int window) {
    /** No limit, no metadata, 16 elements under way. */
    public static final CallOptions DEFAULT = new CallOptions(null, new byte[0], Facts.RPC_WINDOW_DEFAULT);

    /** Copies what could be changed. */
    public CallOptions {
        meta = Objects.requireNonNull(meta, "meta").clone();
        if (window < 1) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a window of %d elements: expected at least 1", window);
        }
        if (timeout != null) {
            RingEnd.nanos(timeout);
        }
    }

    /**
     * {@return the same, but for this}
     *
     * @param timeout the call's time limit; null: none
     */
    public CallOptions withTimeout(Duration timeout) {
        return new CallOptions(timeout, meta, window);
    }

    /**
     * {@return the same, but for this}
     *
     * @param meta metadata of the request
     */
    public CallOptions withMeta(byte[] meta) {
        return new CallOptions(timeout, meta, window);
    }

    /**
     * {@return the same, but for this}
     *
     * @param window of a stream: how many elements may be under way, at least 1
     */
    public CallOptions withWindow(int window) {
        return new CallOptions(timeout, meta, window);
    }

    /** The time limit in nanoseconds. */
    long nanos() {
        return timeout == null ? RingEnd.FOREVER : RingEnd.nanos(timeout);
    }
}
