import dev.ramway.RpcClient;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;

/** {@code measure do=call}: calls of a server that is open with {@code bare=yes}. */
final class RpcMeasure {
    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final RpcClient client;
    private final int size;
    private final long count;
    private final long group;
    /** When each group began, and the last one ended. */
    private final long[] stamps;
    private int stamped;

    RpcMeasure(RpcClient client, Line line) {
        this.client = client;
        String what = line.text("do", "");
        size = (int) line.number("size", 0);
        count = line.number("count", 0);
        group = line.number("group", 1);
        line.end();
        if (!what.equals("call")) {
            throw new Line.RefusedException("do=" + what + ", with a client open");
        }
        stamps = new long[(int) (count / group) + 2];
    }

    void run() throws InterruptedException {
        Agent.say("ready");
        Line.next();
        long began = System.nanoTime();
        long words = calls();
        long ended = System.nanoTime();
        var samples = new StringBuilder();
        for (int i = 1; i < stamped; i++) {
            samples.append(i > 1 ? "," : "").append(stamps[i] - stamps[i - 1]);
        }
        Agent.say("measured began_ns=" + began + " ended_ns=" + ended + " words=" + Long.toUnsignedString(words) + " compiled_ms="
                + ManagementFactory.getCompilationMXBean().getTotalCompilationTime() + " samples=" + samples);
    }

    private long calls() throws InterruptedException {
        byte[] request = new byte[size];
        long sum = 0;
        long due = group;
        stamps[stamped++] = System.nanoTime();
        for (long seq = 0; seq < count; seq++) {
            for (int at = 0; at < size; at += 8) {
                WORD.set(request, at, seq % Measure.CYCLE + at / 8);
            }
            byte[] reply = client.call(1, request);
            if (reply.length != size) {
                throw new Messages.BadException(seq, "a reply of another length than was said");
            }
            for (int at = 0; at < size; at += 8) {
                sum += (long) WORD.get(reply, at);
            }
            if (seq + 1 == due) {
                due += group;
                stamps[stamped++] = System.nanoTime();
            }
        }
        return sum;
    }
}
