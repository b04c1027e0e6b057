package dev.ramway;

import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.concurrent.Flow;

/**
 * The elements of a call whose reply is a stream. The server sends as many as {@link CallOptions#window} says and then waits until
 * some have been taken. Any thread may use it. {@link #close} lets go of it: a stream that is not complete is cancelled.
 */
public final class RpcStream implements AutoCloseable, Iterable<RpcReply> {
    private final RpcChannel channel;
    private final RpcCall call;

    RpcStream(RpcChannel channel, RpcCall call) {
        this.channel = channel;
        this.call = call;
    }

    /**
     * The next element. Waits for it.
     *
     * @return the element; null: the stream is complete
     * @throws InterruptedException if the thread is interrupted while it waits; the stream goes on
     * @throws RpcException if the stream failed; the elements before that have been given
     */
    public RpcReply next() throws InterruptedException {
        return next(RingEnd.FOREVER);
    }

    /**
     * The next element. Waits for it, for at most this long.
     *
     * @param timeout the longest wait; the stream goes on after it
     * @return the element; null: the stream is complete
     * @throws InterruptedException if the thread is interrupted while it waits; the stream goes on
     * @throws TimedOutException if the wait was over before
     * @throws RpcException if the stream failed; the elements before that have been given
     */
    public RpcReply next(Duration timeout) throws InterruptedException {
        return next(RingEnd.nanos(timeout));
    }

    private RpcReply next(long nanos) throws InterruptedException {
        long start = System.nanoTime();
        while (true) {
            if (!channel.await(call, Math.max(0, Waiter.left(start, nanos)))) {
                throw Errors.of(ErrorKind.TIMED_OUT, null);
            }
            RpcReply element = channel.takeElement(call);
            if (element != null || channel.isComplete(call)) {
                return element;
            }
            // Another thread has taken it.
        }
    }

    /**
     * {@return the next element if it is there, or null: none now, or the stream is complete, see {@link #isComplete}}
     *
     * @throws RpcException if the stream failed
     */
    public RpcReply tryNext() {
        channel.check(call);
        return channel.takeElement(call);
    }

    /** {@return whether the stream is complete and each element was taken} */
    public boolean isComplete() {
        return channel.isComplete(call);
    }

    /**
     * {@return the elements in a loop} An interrupt ends it with the kind INTERRUPTED. Leaving the loop early does not cancel: see
     * {@link #close}.
     */
    @Override
    public Iterator<RpcReply> iterator() {
        return new Elements();
    }

    private final class Elements implements Iterator<RpcReply> {
        private RpcReply found;

        @Override
        public boolean hasNext() {
            try {
                found = found != null ? found : RpcStream.this.next();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw Errors.of(ErrorKind.INTERRUPTED, null);
            }
            return found != null;
        }

        @Override
        public RpcReply next() {
            if (!hasNext()) {
                throw new NoSuchElementException();
            }
            RpcReply element = found;
            found = null;
            return element;
        }
    }

    /**
     * {@return the elements for one subscriber} A virtual thread calls it, one call after another; an element is taken once the
     * subscriber has asked for it. To cancel the subscription cancels the call.
     */
    public Flow.Publisher<RpcReply> publisher() {
        return new RpcPublisher(channel, call);
    }

    /** Cancels the call, unless it has ended: the stream ends with the status CANCELLED. The server is told. */
    public void cancel() {
        channel.cancel(call);
    }

    /** Lets go of the stream: it is cancelled unless it has ended, and its elements are dropped. */
    @Override
    public void close() {
        channel.drop(call);
    }
}
