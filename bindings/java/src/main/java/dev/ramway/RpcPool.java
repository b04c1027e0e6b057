package dev.ramway;

import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/**
 * Runs the handlers of all clients, a bounded number at a time. The clients that have calls waiting are served in turn, and one of them
 * has at most half of the places, rounded up, as long as others wait.
 */
final class RpcPool {
    private final Executor executor;
    private final int most;
    private final int half;
    private final Mutex lock = new Mutex();
    /** Those that have calls waiting, the next to be served first. With the lock. */
    private final ArrayDeque<Share> waiting = new ArrayDeque<>();
    private int running;

    /** One client's part. With the pool's lock. */
    static final class Share {
        private final LinkedHashSet<RpcServerCall> queue = new LinkedHashSet<>();
        private int running;
    }

    RpcPool(Executor executor, int most) {
        this.executor = executor;
        this.most = most;
        half = (most + 1) / 2;
    }

    /** Has a call run when it is its turn; false: the executor refuses, and it is not run. */
    boolean submit(Share share, RpcServerCall call) {
        try (var _ = lock.hold()) {
            if (share.queue.isEmpty()) {
                waiting.add(share);
            }
            share.queue.add(call);
            if (running == most) {
                return true;
            }
            running++;
        }
        try {
            executor.execute(this::work);
            return true;
        } catch (RejectedExecutionException e) {
            try (var _ = lock.hold()) {
                running--;
                // Those that run take it when they have ended.
                return running > 0 || !remove(share, call);
            }
        }
    }

    /** Takes back a call that does not run yet; false: it runs, or has run. */
    boolean withdraw(Share share, RpcServerCall call) {
        try (var _ = lock.hold()) {
            return remove(share, call);
        }
    }

    private boolean remove(Share share, RpcServerCall call) {
        boolean there = share.queue.remove(call);
        if (there && share.queue.isEmpty()) {
            waiting.remove(share);
        }
        return there;
    }

    /** One of the threads: it runs calls until none waits. */
    private void work() {
        Share last = null;
        while (true) {
            RpcServerCall call;
            try (var _ = lock.hold()) {
                if (last != null) {
                    last.running--;
                }
                last = next();
                if (last == null) {
                    running--;
                    return;
                }
                call = last.queue.removeFirst();
                last.running++;
                if (!last.queue.isEmpty()) {
                    waiting.add(last);
                }
            }
            call.run();
        }
    }

    /** The client to be served next, taken out; null: none waits. With the lock. */
    private Share next() {
        Share fallback = null;
        for (Share each : waiting) {
            if (each.running < half) {
                waiting.remove(each);
                return each;
            }
            fallback = fallback == null ? each : fallback;
        }
        // All that wait have their half, so nobody else does.
        if (fallback != null) {
            waiting.remove(fallback);
        }
        return fallback;
    }
}
