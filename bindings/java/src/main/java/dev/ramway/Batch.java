package dev.ramway;

import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Objects;

/**
 * Several messages that are released together. After close every method, and every message, throws {@link IllegalStateException}.
 *
 * <p>Where the code that uses a batch is compiled together with the receive (a loop, not too large), neither the batch nor its
 * messages are ever made, and nothing is allocated; elsewhere a batch takes 40 bytes, and each message 56.
 */
public final class Batch extends HeldFrames implements AutoCloseable, Iterable<Message> {
    private final Consumer rx;
    private final int size;

    Batch(Consumer rx, CallGuard.Holder holder, int size) {
        super(holder);
        this.rx = rx;
        this.size = size;
    }

    @Override
    IllegalStateException gone() {
        return new IllegalStateException("batch used after close");
    }

    /** {@return the number of messages, at least 1} */
    public int size() {
        if (closed) {
            throw gone();
        }
        return size;
    }

    /**
     * {@return message number index; closing it does nothing, it is given back with the batch}
     *
     * @param index from 0 to size() - 1
     */
    public Message get(int index) {
        Objects.checkIndex(index, size());
        long[] frames = rx.frames;
        int i = index * Consumer.FRAME;
        long word = frames[i + 1];
        return new Message(rx, holder, this, frames[i], (int) word, (int) (word >>> 32), frames[i + 2]);
    }

    @Override
    public Iterator<Message> iterator() {
        return new Messages(this);
    }

    private static final class Messages implements Iterator<Message> {
        private final Batch batch;
        private int next;

        Messages(Batch batch) {
            this.batch = batch;
        }

        @Override
        public boolean hasNext() {
            return next < batch.size;
        }

        @Override
        public Message next() {
            if (next >= batch.size) {
                throw new NoSuchElementException();
            }
            return batch.get(next++);
        }
    }

    /** Gives all messages back at once. Closing twice is fine. */
    @Override
    public void close() {
        if (end(rx)) {
            rx.release(holder);
        }
    }
}
