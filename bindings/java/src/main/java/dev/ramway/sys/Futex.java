package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

/**
 * Sleeping on a word and waking its sleepers. The shared kind, never {@code FUTEX_PRIVATE_FLAG}: a private futex is keyed
 * by address space and would not be woken from another process.
 */
public final class Futex {
    private static final int NUMBER = Platform.pick(202, 98);
    private static final int WAIT = 0;
    private static final int WAKE = 1;

    private Futex() {}

    /**
     * Sleeps while the 4 bytes at an address hold a value. Holds its platform thread, but no safepoint waits for it; a
     * thread's interrupt does not end it.
     *
     * @param word the address, aligned to 4 and mapped for as long as this lasts
     * @param expected the value to sleep on
     * @param nanos how long at most, above 0
     * @return whether somebody woke the word or it held something else. False: the time passed, or a signal handler ran
     */
    public static boolean waitShared(long word, int expected, long nanos) {
        Libc.Scratch s = Libc.scratch();
        s.buffer.set(JAVA_LONG, 0, nanos / 1_000_000_000L);
        s.buffer.set(JAVA_LONG, 8, nanos % 1_000_000_000L);
        int result = (int) Libc.syscall(NUMBER, word, WAIT, expected & 0xFFFFFFFFL, s.buffer.address(), 0, 0);
        switch (result) {
            case 0, -Errno.EAGAIN:
                return true;
            case -Errno.EINTR, -Errno.ETIMEDOUT:
                return false;
            default:
                // Anything else (a seccomp filter, say) must not become a busy loop.
                java.util.concurrent.locks.LockSupport.parkNanos(Math.min(nanos, 1_000_000));
                return false;
        }
    }

    /**
     * Wakes everyone who sleeps on a word. Costs 260 ns even if nobody does: ask the word first. Never blocks.
     *
     * @param word the address; one that is mapped no more wakes nobody and harms nothing
     */
    public static void wakeAll(long word) {
        // All rather than one: a waiter that was killed may still be queued and would swallow a single wake-up.
        Libc.syscall(NUMBER, word, WAKE, Integer.MAX_VALUE, 0, 0, 0);
    }
}
