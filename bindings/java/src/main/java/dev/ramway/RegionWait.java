package dev.ramway;

import dev.ramway.sys.Cpu;
import dev.ramway.sys.Futex;
import java.util.concurrent.locks.LockSupport;

/** One wait for a region's count to differ. Its region stays mapped meanwhile. */
final class RegionWait {

    private final Region region;
    private final int seen;
    private final long start;
    private final long timeout;
    private final boolean virtual = Thread.currentThread().isVirtual();

    /**
     * A wait that began at a time.
     *
     * @param seen the count that the caller has seen
     * @param start of {@link System#nanoTime}
     * @param timeout in nanoseconds, {@link Long#MAX_VALUE} for none
     */
    RegionWait(Region region, int seen, long start, long timeout) {
        this.region = region;
        this.seen = seen;
        this.start = start;
        this.timeout = timeout;
    }

    int await() throws InterruptedException {
        boolean spins = region.mode() != WaitMode.BLOCK && Cpu.count() > 1;
        while (true) {
            if (spins) {
                spin();
            }
            int value = load();
            if (value >>> 1 != seen) {
                return value >>> 1;
            }
            long left = timeout - (System.nanoTime() - start);
            checkEnd();
            if (checkName()) {
                continue;
            }
            if (left <= 0) {
                throw region.waitEnded(ErrorKind.TIMED_OUT, null);
            }
            if (region.mode() == WaitMode.SPIN) {
                Thread.yield();
            } else {
                sleep(value, Math.min(left, Facts.POLL_INTERVAL_NANOS));
                spins = false;
            }
        }
    }

    private int load() {
        // Acquire: pairs with the release of the signal.
        return (int) Region.WORD.getAcquire(region.words(), region.word());
    }

    /** Polls for a while. A virtual thread lets others have its carrier meanwhile. */
    private void spin() {
        long begin = System.nanoTime();
        do {
            for (int polls = 0; polls < 32; polls++) {
                if (load() >>> 1 != seen) {
                    return;
                }
                Thread.onSpinWait();
            }
            if (virtual) {
                Thread.yield();
            }
        } while (System.nanoTime() - begin < Facts.REGION_SPIN_NANOS);
    }

    /** Ends the wait for a reason that is not a notification. */
    private void checkEnd() throws InterruptedException {
        if (region.isClosed()) {
            throw region.detached();
        }
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
    }

    /** Checks at times whether the name is there. True: it is not, but the count differs. */
    private boolean checkName() {
        if (!region.isTimeToCheckName() || !region.vanished()) {
            return false;
        }
        // Again after the name: what was notified before it went is delivered.
        if (load() >>> 1 != seen) {
            return true;
        }
        throw region.waitEnded(ErrorKind.CLOSED, "the region's name was removed while this handle waited; nobody can open it any more");
    }

    /** Sleeps until the word is no more what it was, or a while. */
    private void sleep(int value, long nanos) {
        if (region.isReadOnly()) {
            LockSupport.parkNanos(Math.min(nanos, Facts.REGION_POLL_INTERVAL_NANOS));
            return;
        }
        int armed = value | Facts.NOTIFY_WAITING;
        // The count was compared in value; if it has changed since, this fails and the caller checks again.
        if (value != armed && !Region.WORD.compareAndSet(region.words(), region.word(), value, armed)) {
            return;
        }
        if (virtual) {
            Poller.park(region.wordAddress(), armed, nanos);
        } else {
            sleepInKernel(armed, nanos);
        }
    }

    private void sleepInKernel(int armed, long nanos) {
        WakeOnInterrupt interrupt = new WakeOnInterrupt(region::interrupt);
        interrupt.enter();
        try {
            // After the bit was set: a thread that closes or interrupts from here on clears it, and then this does not sleep. If
            // yet another waiter sets it again just in between, it does, but not longer than a poll interval.
            if (!region.isClosed() && !Thread.currentThread().isInterrupted()) {
                Futex.waitShared(region.wordAddress(), armed, nanos);
            }
        } finally {
            interrupt.leave();
        }
    }
}
