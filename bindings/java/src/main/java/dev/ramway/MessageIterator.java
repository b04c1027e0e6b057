package dev.ramway;

import java.util.Iterator;
import java.util.NoSuchElementException;

/** The messages of a receiver until its sender closes, each good until the next one is asked for. */
final class MessageIterator implements Iterator<Message> {
    private final ReceivingEnd<?> rx;
    /** What was given out last, or what {@link #hasNext} has found. */
    private Message current;
    private boolean found;
    private boolean ended;

    MessageIterator(ReceivingEnd<?> rx) {
        this.rx = rx;
    }

    @Override
    public boolean hasNext() {
        if (found || ended) {
            return found;
        }
        drop();
        try {
            current = rx.recv();
        } catch (ClosedException end) {
            ended = true;
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw rx.fail(ErrorKind.INTERRUPTED);
        }
        rx.looped = current;
        found = true;
        return true;
    }

    @Override
    public Message next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        found = false;
        return current;
    }

    /** Gives the last one back. */
    void drop() {
        Message m = current;
        current = null;
        found = false;
        if (m != null) {
            m.close();
        }
    }
}
