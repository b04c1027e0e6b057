package dev.ramway;

import dev.ramway.sys.Poll;
import java.util.ArrayDeque;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** What the calls of {@link Listener#accept()} and the listener's thread tell each other. */
final class AcceptQueue {
    /** What one call of accept returns: a bus, or a failure of this side's. */
    record Result(Bus bus, RamwayException failure) {}

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition arrived = lock.newCondition();
    /** Each is for one call. */
    private final ArrayDeque<Result> results = new ArrayDeque<>();
    /** Wakes the listener's thread. Not used any more once {@link #over} is set. */
    private final int alarm;
    /** How many calls wait. */
    private int asking;
    /** A call that does not wait has found nothing since the last bus came: one is wanted all the same. */
    private boolean tried;
    /** What calls of accept are told from now on; null while the listener listens. */
    private RamwayException over;
    private long refused;
    private RamwayException lastRefusal;

    AcceptQueue(int alarm) {
        this.alarm = alarm;
    }

    /** The next result, or null if the time is over before; below 0 is forever. */
    Result take(long nanos) throws InterruptedException {
        lock.lockInterruptibly();
        try {
            asking++;
            try {
                if (results.isEmpty()) {
                    wake();
                }
                while (results.isEmpty() && over == null) {
                    if (nanos < 0) {
                        arrived.await();
                    } else if (nanos == 0) {
                        return null;
                    } else {
                        nanos = Math.max(arrived.awaitNanos(nanos), 0);
                    }
                }
                return next();
            } finally {
                asking--;
            }
        } finally {
            // The wake-up of a call that was interrupted just then is another one's.
            if (!results.isEmpty()) {
                arrived.signal();
            }
            lock.unlock();
        }
    }

    /** The next result if there is one now; else null, and there will be one as soon as somebody connects. */
    Result tryTake() {
        lock.lock();
        try {
            if (results.isEmpty() && over == null) {
                tried = true;
                wake();
                return null;
            }
            return next();
        } finally {
            lock.unlock();
        }
    }

    private Result next() {
        if (over != null) {
            throw Errors.of(over.kind(), over.detail());
        }
        Result result = results.poll();
        // There may be room for one more handshake.
        wake();
        return result;
    }

    private void wake() {
        if (over == null) {
            Poll.wake(alarm);
        }
    }

    /** Whether to take another connector. A failure is told to somebody first, so none spins. */
    boolean wants(int most) {
        lock.lock();
        try {
            return (asking > 0 || tried) && results.size() < most
                    && results.stream().noneMatch(result -> result.failure() != null);
        } finally {
            lock.unlock();
        }
    }

    /** Hands something to a call of accept, now or later; false: the listener was closed. */
    boolean offer(Bus bus, RamwayException failure) {
        lock.lock();
        try {
            if (over != null) {
                return false;
            }
            tried = false;
            results.add(new Result(bus, failure));
            arrived.signal();
            return true;
        } finally {
            lock.unlock();
        }
    }

    void refuse(RamwayException why) {
        lock.lock();
        try {
            refused++;
            lastRefusal = why;
        } finally {
            lock.unlock();
        }
    }

    long refused() {
        lock.lock();
        try {
            return refused;
        } finally {
            lock.unlock();
        }
    }

    RamwayException lastRefusal() {
        lock.lock();
        try {
            return lastRefusal;
        } finally {
            lock.unlock();
        }
    }

    boolean isOver() {
        lock.lock();
        try {
            return over != null;
        } finally {
            lock.unlock();
        }
    }

    /** Ends it all: waiting calls are told why, the listener's thread is woken, and the peers whom nobody took that we closed. */
    void end(RamwayException why) {
        Result[] left;
        lock.lock();
        try {
            if (over == null) {
                wake();
                over = why;
            }
            left = results.toArray(Result[]::new);
            results.clear();
            arrived.signalAll();
        } finally {
            lock.unlock();
        }
        for (Result result : left) {
            if (result.bus() != null) {
                result.bus().close();
            }
        }
    }
}
