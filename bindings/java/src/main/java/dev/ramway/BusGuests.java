package dev.ramway;

import java.util.concurrent.atomic.AtomicInteger;

/** Whom a listener takes: for which use, and how many at a time. Safe for any number of threads. */
final class BusGuests {
    private final BusUse use;
    private final boolean onlyOne;
    private final int most;
    /** Those that were told that they are welcome and have not left. */
    private final AtomicInteger inside = new AtomicInteger();

    private BusGuests(BusUse use, boolean onlyOne, int most) {
        this.use = use;
        this.onlyOne = onlyOne;
        this.most = most;
    }

    /** Connectors of a plain bus; the listener does not count them. */
    static BusGuests plain(boolean onlyOne) {
        return new BusGuests(BusUse.PLAIN, onlyOne, Integer.MAX_VALUE);
    }

    /** Clients of an RPC server, so many at a time. */
    static BusGuests clients(int most, int maxInFlight) {
        return new BusGuests(BusUse.serve(maxInFlight), false, most);
    }

    BusUse use() {
        return use;
    }

    /** At most one connector is ever told that it is welcome. */
    boolean onlyOne() {
        return onlyOne;
    }

    /** Counts one more; false: there are as many as there may be. Each that is counted {@link #leave}s once. */
    boolean enter() {
        if (!use.isRpc()) {
            return true;
        }
        if (inside.incrementAndGet() <= most) {
            return true;
        }
        inside.decrementAndGet();
        return false;
    }

    void leave() {
        if (use.isRpc()) {
            inside.decrementAndGet();
        }
    }
}
