package dev.ramway;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A lock for {@code try (var _ = mutex.hold())}. Unlike a monitor it does not keep the carrier of a virtual thread that waits for
 * it.
 */
final class Mutex {
    /** Held until it is closed. */
    interface Held extends AutoCloseable {
        @Override
        void close();
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final Held held = lock::unlock;

    Held hold() {
        lock.lock();
        return held;
    }

    Held holdInterruptibly() throws InterruptedException {
        lock.lockInterruptibly();
        return held;
    }

    /** Null where another thread holds it. */
    Held tryHold() {
        return lock.tryLock() ? held : null;
    }

    /** What is done, and may fail, while the lock is let go. */
    interface Outside<T, E extends Exception> {
        T run() throws E;
    }

    /** Lets the lock go for as long as something takes. Its holder holds it once. */
    <T, E extends Exception> T without(Outside<T, E> work) throws E {
        lock.unlock();
        try {
            return work.run();
        } finally {
            lock.lock();
        }
    }

    Condition newCondition() {
        return lock.newCondition();
    }
}
