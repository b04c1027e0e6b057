package dev.ramway;

import java.util.Iterator;

/** Several messages that are released together. */
public final class Batch implements AutoCloseable, Iterable<Message> {
    Batch() {}

    /** {@return the number of messages, at least 1} */
    public int size() {
        throw new UnsupportedOperationException();
    }

    /**
     * {@return message number index; closing it does nothing, it is given back with the batch}
     *
     * @param index from 0 to size() - 1
     */
    public Message get(int index) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Iterator<Message> iterator() {
        throw new UnsupportedOperationException();
    }

    /** Gives all messages back at once. */
    @Override
    public void close() {
        throw new UnsupportedOperationException();
    }
}
