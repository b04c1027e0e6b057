import com.sun.management.ThreadMXBean;
import dev.ramway.Batch;
import dev.ramway.Message;
import dev.ramway.Slot;
import dev.ramway.Subscriber;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;

/** {@code measure}: the loops that are timed, written as a user who wants speed would. */
final class Measure {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    /** Message number n has the words n % CYCLE and those after it. */
    static final int CYCLE = 4096;
    /** From this length on a view of the whole message is worth making. */
    private static final int LONG = 512;

    /** Writes the words seq, seq + 1, …. */
    private static void fill(Slot slot, int size, long seq) {
        if (size == 32) {
            slot.putLong(0, seq);
            slot.putLong(8, seq + 1);
            slot.putLong(16, seq + 2);
            slot.putLong(24, seq + 3);
            return;
        }
        if (size < LONG) {
            for (int at = 0; at < size; at += 8) {
                slot.putLong(at, seq++);
            }
            return;
        }
        MemorySegment words = slot.data();
        // An int that counts words, and a length that is one: a loop that the compiler makes vectors of.
        int count = size / 8;
        for (int i = 0; i < count; i++) {
            words.setAtIndex(ValueLayout.JAVA_LONG, i, seq + i);
        }
    }

    /** Adds up all words. */
    private static long sum(Message m, int size) {
        if (m.length() != size) {
            throw new Messages.BadException(0, "a message of another length than was said");
        }
        if (size == 32) {
            return m.getLong(0) + m.getLong(8) + m.getLong(16) + m.getLong(24);
        }
        long sum = 0;
        if (size < LONG) {
            for (int at = 0; at < size; at += 8) {
                sum += m.getLong(at);
            }
            return sum;
        }
        MemorySegment words = m.data();
        int count = size / 8;
        for (int i = 0; i < count; i++) {
            sum += words.getAtIndex(ValueLayout.JAVA_LONG, i);
        }
        return sum;
    }

    private final Agent ends;
    private final String what;
    private final int size;
    private final long count;
    private final int batch;
    private final long group;
    /** When each group began, and the last one ended. */
    private final long[] stamps;
    private int stamped;
    private long words;

    Measure(Agent ends, Line line) {
        this.ends = ends;
        what = line.text("do", "");
        size = (int) line.number("size", 0);
        count = line.number("count", 0);
        batch = (int) line.number("batch", 1);
        group = line.number("group", 1);
        var wait = line.waitMode();
        line.end();
        stamps = new long[(int) (count / group) + 2];
        if (ends.tx != null) {
            ends.tx.waitMode(wait);
        }
        if (ends.rx != null) {
            ends.rx.waitMode(wait);
        }
    }

    void run() throws InterruptedException {
        Agent.say("ready");
        if (what.equals("ping") || what.equals("send")) {
            // The other side is told first: it polls by then.
            Line.next();
        }
        long allocated = THREADS.getTotalThreadAllocatedBytes();
        long began = System.nanoTime();
        switch (what) {
            case "ping" -> ping();
            case "echo" -> echo();
            case "send" -> send();
            case "receive" -> receive();
            case "latest" -> latest();
            default -> throw new Line.RefusedException("do=" + what);
        }
        long ended = System.nanoTime();
        allocated = THREADS.getTotalThreadAllocatedBytes() - allocated;
        var samples = new StringBuilder();
        for (int i = 1; i < stamped; i++) {
            samples.append(i > 1 ? "," : "").append(stamps[i] - stamps[i - 1]);
        }
        Agent.say("measured began_ns=" + began + " ended_ns=" + ended + " words=" + Long.toUnsignedString(words)
                + " allocated=" + allocated + " compiled_ms="
                + ManagementFactory.getCompilationMXBean().getTotalCompilationTime() + " samples=" + samples);
    }

    private void stamp() {
        stamps[stamped++] = System.nanoTime();
    }

    private void put(long seq, boolean flush) throws InterruptedException {
        Slot slot = ends.tx.reserve(size);
        fill(slot, size, seq & (CYCLE - 1));
        if (flush) {
            slot.commit(0, 0);
        } else {
            slot.commitUnflushed(0, 0);
        }
    }

    private long get() throws InterruptedException {
        try (Message m = ends.rx.recv()) {
            return sum(m, size);
        }
    }

    private void ping() throws InterruptedException {
        long sum = 0;
        long due = group;
        stamp();
        for (long seq = 0; seq < count; seq++) {
            put(seq, true);
            sum += get();
            if (seq + 1 == due) {
                due += group;
                stamp();
            }
        }
        words = sum;
    }

    private void echo() throws InterruptedException {
        long sum = 0;
        for (long seq = 0; seq < count; seq++) {
            sum += get();
            put(seq, true);
        }
        words = sum;
    }

    private void send() throws InterruptedException {
        int together = 0;
        for (long seq = 0; seq < count; seq++) {
            put(seq, batch == 1);
            if (batch > 1 && (++together == batch || seq + 1 == count)) {
                together = 0;
                ends.tx.flush();
            }
        }
    }

    private void receive() throws InterruptedException {
        long sum = 0;
        // A stamp stands for a group: what came beyond it belongs to the next.
        long due = 1;
        for (long seen = 0; seen < count; ) {
            if (batch == 1) {
                sum += get();
                seen++;
            } else {
                try (Batch many = ends.rx.recvBatch((int) Math.min(batch, count - seen))) {
                    seen += many.size();
                    for (Message m : many) {
                        sum += sum(m, size);
                    }
                }
            }
            if (seen >= due) {
                due += group;
                stamp();
            }
        }
        words = sum;
    }

    private void latest() {
        if (!(ends.rx instanceof Subscriber sub)) {
            throw new Line.RefusedException("do=latest: no subscriber is open");
        }
        MemorySegment target = Arena.ofAuto().allocate(size, 8);
        long sum = 0;
        long due = group;
        stamp();
        for (long seen = 0; seen < count; ) {
            var meta = sub.latest(target);
            if (meta == null) {
                // The publisher has overtaken it again and again: a reader tries again.
                continue;
            }
            if (meta.length() != size) {
                throw new Messages.BadException(0, "a message of another length than was said");
            }
            for (int at = 0; at < size; at += 8) {
                sum += target.get(ValueLayout.JAVA_LONG, at);
            }
            if (++seen == due) {
                due += group;
                stamp();
            }
        }
        words = sum;
    }
}
