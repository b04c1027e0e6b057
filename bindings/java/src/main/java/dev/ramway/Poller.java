package dev.ramway;

import dev.ramway.sys.Futex;
import dev.ramway.sys.FutexWaitv;
import java.lang.foreign.Arena;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Sleeps on many handles' wait words in one daemon thread, for virtual threads, which must not block their carrier in a
 * system call, and for callbacks. A thread takes 127 words, so there is one for each 127; where {@code futex_waitv} is refused,
 * one for each.
 *
 * <p>An entry's word is peersChecked at only with the lock and while the entry is in, and it is taken out before the word is
 * unmapped. A call that has begun may outlive the mapping: the kernel then says EFAULT, or sleeps on by what it has peersChecked
 * up.
 */
final class Poller implements Runnable {
    /** Of all pollers and entries. Taken with a handle's lock held, never the other way round. */
    private static final Mutex LOCK = new Mutex();
    private static final List<Poller> ALL = new ArrayList<>();
    /** One word is the poller's own. */
    private static final int WORDS = FutexWaitv.MAX - 1;
    private static final boolean MANY = FutexWaitv.supported();

    private final List<Entry> entries = new ArrayList<>();
    private final ArrayDeque<Entry> due = new ArrayDeque<>();
    private final FutexWaitv sleep = MANY ? new FutexWaitv() : null;
    /** The address of a word that changes with the lists. It lives as long as the process, as the thread does. */
    private final long changeWord = Arena.global().allocate(8, 8).address();
    private int changes;
    private boolean sleeping;
    private long peersChecked = System.nanoTime();

    private enum State {
        PENDING,
        DUE,
        DONE
    }

    /** Something that waits for a word to be another than it is. */
    static final class Entry implements Registration {
        private final long word;
        /** What the word holds while there is nothing new. */
        private final int armed;
        private final RingEnd end;
        private final Thread thread;
        private final Runnable callback;
        /** Shorter than a poll interval where a wake-up can be missed. */
        private final long longest;
        private final long since = System.nanoTime();
        private State state = State.PENDING;
        private Poller poller;

        private Entry(long word, int armed) {
            this.word = word;
            this.armed = armed;
            end = null;
            thread = Thread.currentThread();
            callback = null;
            longest = Facts.POLL_INTERVAL_NANOS;
        }

        Entry(RingEnd end, int armed, Runnable callback, long longest) {
            this.word = end.waitWord();
            this.armed = armed;
            this.end = end;
            this.thread = null;
            this.callback = callback;
            this.longest = longest;
        }

        boolean isPending() {
            try (var _ = LOCK.hold()) {
                return state != State.DONE;
            }
        }

        /** Makes it due, whatever the word holds. */
        void fire() {
            try (var _ = LOCK.hold()) {
                if (state == State.PENDING) {
                    poller.makeDue(this);
                    poller.poke();
                }
            }
        }

        @Override
        public void close() {
            try (var _ = LOCK.hold()) {
                if (state == State.PENDING) {
                    poller.entries.remove(this);
                    takeBack();
                    poller.poke();
                }
                state = State.DONE;
            }
        }

        /** A callback's waiter leaves: nobody waits by the word any more. While the entry is in, and so the word mapped. */
        private void takeBack() {
            if (end != null) {
                end.disarm();
            }
        }

        private void run() {
            try (var _ = LOCK.hold()) {
                if (state != State.DUE) {
                    return;
                }
                state = State.DONE;
            }
            try {
                callback.run();
            } catch (Throwable t) {
                report(t);
            }
        }

        private static void report(Throwable t) {
            Thread me = Thread.currentThread();
            try {
                me.getUncaughtExceptionHandler().uncaughtException(me, t);
            } catch (Throwable ignored) {
                // As the virtual machine does with a handler that throws; this thread has others to serve.
                return;
            }
        }

        /** Whether the peer is gone or the handle closed, so that the callback is to come. */
        private boolean isOver() {
            try (var _ = end.lock.hold()) {
                if (end.isClosed()) {
                    return true;
                }
                boolean ended = end.ended(true) != null;
                if (ended) {
                    // The call that follows says it.
                    end.checkPeerAgain();
                }
                return ended;
            }
        }
    }

    /** Has an entry wait, or be called right away. */
    static void add(Entry e, boolean over) {
        try (var _ = LOCK.hold()) {
            Poller p = null;
            for (Poller each : ALL) {
                if (each.entries.size() < (MANY ? WORDS : 1)) {
                    p = each;
                    break;
                }
            }
            if (p == null) {
                p = new Poller();
                // Started first: one without a thread would be waited for in vain.
                Thread.ofPlatform().daemon().name("ramway-poller-" + (ALL.size() + 1)).start(p);
                ALL.add(p);
            }
            e.poller = p;
            if (over) {
                e.state = State.DUE;
                p.due.add(e);
            } else {
                p.entries.add(e);
            }
            p.poke();
        }
    }

    /**
     * Parks a virtual thread until the word holds something else.
     *
     * @param word mapped until this returns
     * @param armed what it holds
     * @param nanos how long at most; it may return earlier for no reason, and at an interrupt
     * @return whether the word was woken
     */
    static boolean park(long word, int armed, long nanos) {
        Entry e = new Entry(word, armed);
        add(e, false);
        LockSupport.parkNanos(e, nanos);
        boolean woken = !e.isPending();
        e.close();
        return woken;
    }

    private void makeDue(Entry e) {
        entries.remove(e);
        if (e.thread != null) {
            e.state = State.DONE;
            LockSupport.unpark(e.thread);
        } else {
            e.takeBack();
            e.state = State.DUE;
            due.add(e);
        }
    }

    /** Has the thread check its lists again. */
    private void poke() {
        if (sleeping) {
            sleeping = false;
            Words.setInt(changeWord, ++changes);
            Futex.wakeAll(changeWord);
            if (!MANY && !entries.isEmpty()) {
                Futex.wakeAll(entries.get(0).word);
            }
        }
    }

    @Override
    public void run() {
        while (true) {
            List<Entry> called = new ArrayList<>();
            int count = 0;
            long longest = Facts.POLL_INTERVAL_NANOS;
            long only = changeWord;
            int expected;
            try (var _ = LOCK.hold()) {
                while (!due.isEmpty()) {
                    called.add(due.poll());
                }
                sleeping = called.isEmpty();
                expected = changes;
                if (sleeping) {
                    if (entries.isEmpty()) {
                        longest = 3_600_000_000_000L;
                    }
                    if (MANY) {
                        sleep.set(count++, changeWord, changes);
                    }
                    for (Entry e : entries) {
                        longest = Math.min(longest, e.longest);
                        if (MANY) {
                            sleep.set(count++, e.word, e.armed);
                        } else {
                            only = e.word;
                            expected = e.armed;
                        }
                    }
                }
            }
            for (Entry e : called) {
                e.run();
            }
            if (!called.isEmpty()) {
                continue;
            }
            if (MANY) {
                sleep.await(count, longest);
            } else {
                // A word that was taken out is woken too late, by its unmapping or by the next poll interval.
                Futex.waitShared(only, expected, Math.min(longest, UNWATCHED));
            }
            for (Entry e : collect()) {
                if (e.isOver()) {
                    e.fire();
                }
            }
        }
    }

    /** Without futex_waitv a sleep on an entry's word does not see a change of the lists; it is short instead. */
    private static final long UNWATCHED = 10_000_000;

    /** Makes due what was woken. Once in a poll interval it returns the entries whose peers are to be checked. */
    private List<Entry> collect() {
        try (var _ = LOCK.hold()) {
            sleeping = false;
            long now = System.nanoTime();
            for (int i = entries.size(); --i >= 0;) {
                Entry e = entries.get(i);
                if (Words.getIntAcquire(e.word) != e.armed || e.longest < Facts.POLL_INTERVAL_NANOS && now - e.since >= e.longest) {
                    makeDue(e);
                }
            }
            if (now - peersChecked < Facts.POLL_INTERVAL_NANOS) {
                return List.of();
            }
            peersChecked = now;
            List<Entry> asked = new ArrayList<>();
            for (Entry e : entries) {
                if (e.end != null) {
                    asked.add(e);
                }
            }
            return asked;
        }
    }
}
