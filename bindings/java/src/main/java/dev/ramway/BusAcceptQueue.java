package dev.ramway;

import dev.ramway.sys.Poll;
import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.locks.Condition;

/** What the calls of {@link Listener#accept()} and the listener's thread tell each other. */
final class BusAcceptQueue {
    /** What one call of accept returns: a bus, or a failure of this side's. */
    record Result(Bus bus, RamwayException failure) {}

    /** The connectors that were refused or have given up. */
    record Refusals(long count, RamwayException last) {}

    private final Mutex lock = new Mutex();
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
    /** Written by the listener's thread. */
    private volatile Refusals refusals = new Refusals(0, null);

    BusAcceptQueue(int alarm) {
        this.alarm = alarm;
    }

    /** The next result, or null if the time is over before; {@link RingEnd#FOREVER} has no limit. */
    Result take(long nanos) throws InterruptedException {
        try (var _ = lock.holdInterruptibly()) {
            asking++;
            try {
                if (results.isEmpty()) {
                    wake();
                }
                while (results.isEmpty() && over == null) {
                    if (nanos == RingEnd.FOREVER) {
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
                // The wake-up of a call that was interrupted just then is another one's.
                if (!results.isEmpty()) {
                    arrived.signal();
                }
            }
        }
    }

    /** The next result if there is one now; else null, and there will be one as soon as somebody connects. */
    Result tryTake() {
        try (var _ = lock.hold()) {
            if (results.isEmpty() && over == null) {
                tried = true;
                wake();
                return null;
            }
            return next();
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
        try (var _ = lock.hold()) {
            return (asking > 0 || tried) && results.size() < most
                    && results.stream().noneMatch(result -> result.failure() != null);
        }
    }

    /** Hands something to a call of accept, now or later; false: the listener was closed. */
    boolean offer(Bus bus, RamwayException failure) {
        try (var _ = lock.hold()) {
            if (over != null) {
                return false;
            }
            tried = false;
            results.add(new Result(bus, failure));
            arrived.signal();
            return true;
        }
    }

    /** Counts a connector that was refused or has given up. */
    void refuse(RamwayException why) {
        refusals = new Refusals(refusals.count() + 1, why);
    }

    Refusals refusals() {
        return refusals;
    }

    boolean isOver() {
        try (var _ = lock.hold()) {
            return over != null;
        }
    }

    /** Ends it all: waiting calls are told why, the listener's thread is woken, and the peers that nobody took that we closed. */
    void end(RamwayException why) {
        List<Result> left;
        try (var _ = lock.hold()) {
            if (over == null) {
                wake();
                over = why;
            }
            left = List.copyOf(results);
            results.clear();
            arrived.signalAll();
        }
        for (Result result : left) {
            if (result.bus() != null) {
                result.bus().close();
            }
        }
    }
}
