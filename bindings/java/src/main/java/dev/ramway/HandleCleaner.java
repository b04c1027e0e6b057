package dev.ramway;

import dev.ramway.sys.Errno;
import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * Releases handles that nobody closed: when one becomes unreachable its memory, descriptors and role go, as if the process had
 * been killed.
 *
 * <p>A handle's memory is not on the heap, so the collector has no reason to run for it. It is asked to where many handles are
 * open, and where the system has no more memory or descriptors.
 */
final class HandleCleaner {
    /** A process may have 65,530 mappings, of which a ring's end takes three. */
    private static final int STEP = 4096;
    /** How long the first of what was found may take to go, where many handles are open and where an opening has failed. */
    private static final long SHORT = 100_000_000;
    private static final long LONG = 1_000_000_000;

    private static final Cleaner CLEANER = Cleaner.create();
    private static final AtomicInteger HELD = new AtomicInteger();
    private static final Mutex COLLECTING = new Mutex();
    /** With this many handles the collector is asked again. */
    private static volatile int next = STEP;

    private HandleCleaner() {}

    /**
     * Has the end run once, when the handle is unreachable or by {@link Cleaner.Cleanable#clean}; the end must not know the handle.
     */
    static Cleaner.Cleanable watch(Object handle, Runnable end) {
        if (HELD.incrementAndGet() > next) {
            try (Mutex.Held one = COLLECTING.tryHold()) {
                if (one != null) {
                    collect(SHORT);
                    next = HELD.get() + STEP;
                }
            }
        }
        return CLEANER.register(handle, () -> {
            try {
                end.run();
            } finally {
                HELD.decrementAndGet();
            }
        });
    }

    /** What an opening gives; where the system has no more, forgotten handles go first and it is tried again. */
    static <T> T freeingSpace(Supplier<T> opening) {
        try {
            return opening.get();
        } catch (RamwayException e) {
            int errno = e.errno().orElse(0);
            if (e.kind() != ErrorKind.NO_SPACE && errno != Errno.ENFILE && errno != Errno.EMFILE || !collectOnce()) {
                throw e;
            }
        }
        return opening.get();
    }

    private static boolean collectOnce() {
        try (var _ = COLLECTING.hold()) {
            return collect(LONG);
        }
    }

    /** Asks the collector, and waits until no more goes of what it found, {@code first} ns for the first. Whether anything went. */
    private static boolean collect(long first) {
        int before = HELD.get();
        if (before == 0) {
            return false;
        }
        System.gc();
        int held = before;
        for (long since = System.nanoTime(); System.nanoTime() - since < (held == before ? first : SHORT);) {
            LockSupport.parkNanos(5_000_000);
            int now = HELD.get();
            if (now != held) {
                held = now;
                since = System.nanoTime();
            }
        }
        return held < before;
    }
}
