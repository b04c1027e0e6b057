package dev.ramway.bench;

/** One side's part of a burst: the loops, the same over every mechanism. Nothing here allocates while it is measured. */
public final class Half {
    private final End end;
    private final boolean leads;
    private final Burst burst;
    private final End.Sum sum = new End.Sum();
    private final long[] stamps;
    private int stamped;

    /** When it began and when it was through, in nanoseconds of CLOCK_MONOTONIC. */
    public long began;
    public long ended;
    public Usage.Used used;

    /**
     * Ready to be run.
     *
     * @param end whose
     * @param leads which side
     * @param burst what to do
     */
    public Half(End end, boolean leads, Burst burst) {
        this.end = end;
        this.leads = leads;
        this.burst = burst;
        boolean samples = leads == (burst.test().equals("rtt") || burst.test().equals("call"));
        // What is received together may be more than a group, and the first stamp begins the first group.
        stamps = new long[samples ? Math.toIntExact(burst.count() / burst.group()) + 2 : 0];
        end.waitLike(burst.mode());
        if (burst.test().equals("call") && !leads) {
            end.serve(burst.count());
        }
    }

    /**
     * Does it.
     *
     * @throws Exception ends the row
     */
    public void run() throws Exception {
        var usage = new Usage();
        began = System.nanoTime();
        boolean receives = true;
        if (burst.test().equals("call")) {
            receives = leads;
            if (leads) {
                calls(end, burst.size(), burst.count(), burst.group());
            } else {
                end.served();
            }
        } else if (burst.test().equals("rtt")) {
            if (leads) {
                ping(end, burst.size(), burst.count(), burst.group());
            } else {
                echo(end, burst.size(), burst.count());
            }
        } else if (leads) {
            receives = false;
            if (burst.together()) {
                sendTogether(end, burst.size(), burst.count(), burst.batch());
            } else {
                sendEach(end, burst.size(), burst.count());
            }
        } else if (burst.together()) {
            receiveTogether(end, burst.size(), burst.count(), burst.group(), burst.batch());
        } else {
            receiveEach(end, burst.size(), burst.count(), burst.group());
        }
        ended = System.nanoTime();
        used = usage.end();
        if (receives && sum.words != expected(burst.size(), burst.count())) {
            throw new IllegalStateException("the bytes received are not the bytes sent");
        }
    }

    /** The words of messages 0 to count - 1. */
    private static long expected(int size, long count) {
        long words = size / 8;
        return words * triangular(count) + count * triangular(words);
    }

    /** 0 + 1 + … up to n - 1. Wraps as the sums do: the even factor is halved before it is multiplied. */
    private static long triangular(long n) {
        return n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
    }

    /** {@return nanoseconds of every group of operations} */
    public long[] samples() {
        int samples = Math.max(0, stamped - 1);
        long[] of = new long[samples];
        for (int i = 0; i < samples; i++) {
            of[i] = stamps[i + 1] - stamps[i];
        }
        return of;
    }

    private void ping(End end, int size, long count, int group) throws Exception {
        long total = 0;
        int left = group;
        stamp();
        for (long n = 0; n < count; n++) {
            end.send(size, n);
            total += end.receive(size);
            if (--left == 0) {
                left = group;
                stamp();
            }
        }
        sum.words = total;
    }

    private void calls(End end, int size, long count, int group) throws Exception {
        long total = 0;
        int left = group;
        stamp();
        for (long n = 0; n < count; n++) {
            total += end.call(size, n);
            if (--left == 0) {
                left = group;
                stamp();
            }
        }
        sum.words = total;
    }

    private void echo(End end, int size, long count) throws Exception {
        long total = 0;
        for (long n = 0; n < count; n++) {
            total += end.receive(size);
            end.send(size, n);
        }
        sum.words = total;
    }

    private static void sendEach(End end, int size, long count) throws Exception {
        for (long n = 0; n < count; n++) {
            end.send(size, n);
        }
    }

    private static void sendTogether(End end, int size, long count, int batch) throws Exception {
        for (long n = 0; n < count; n += batch) {
            end.send(size, n, (int) Math.min(batch, count - n));
        }
    }

    private void receiveEach(End end, int size, long count, int group) throws Exception {
        long total = 0;
        int left = 1;
        for (long n = 0; n < count; n++) {
            total += end.receive(size);
            if (--left == 0) {
                left = group;
                stamp();
            }
        }
        sum.words = total;
    }

    private void receiveTogether(End end, int size, long count, int group, int batch) throws Exception {
        // A stamp stands for a group: what came beyond it belongs to the next.
        long due = 0;
        for (long n = 0; n < count; ) {
            n += end.receive(size, (int) Math.min(batch, count - n), sum);
            if (n >= due) {
                due += group;
                stamp();
            }
        }
    }

    private void stamp() {
        if (stamped < stamps.length) {
            stamps[stamped++] = System.nanoTime();
        }
    }
}
