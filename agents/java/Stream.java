import dev.ramway.ErrorKind;
import dev.ramway.RamwayException;
import java.util.function.IntSupplier;

/** The keys that {@code produce} and {@code consume} have, and how a stream goes on after an end. */
final class Stream {
    final Line.Limits limits;
    final String how;
    /** The three of them: -1 where it is not given. */
    final long start;
    final long count;
    final int batch;
    final boolean progress;
    private long endings;

    Stream(Line line, int together) {
        limits = line.limits();
        how = line.text("how", "");
        start = line.number("start", -1);
        count = line.number("count", -1);
        batch = (int) line.number("batch", together);
        progress = line.yes("progress");
        endings = line.number("endings", 1);
        line.end();
    }

    /** {@return whether the stream goes on after this, with a successor of the other side} */
    boolean goesOn(ErrorKind kind) {
        return (kind == ErrorKind.CLOSED || kind == ErrorKind.PEER_DEAD) && --endings > 0;
    }

    /** Checks every millisecond whether the other side's epoch differs from the noted one; false: none came in time. */
    boolean successor(int noted, IntSupplier epoch) throws InterruptedException {
        long began = System.nanoTime();
        while (epoch.getAsInt() == noted) {
            if (limits.whole() != null && System.nanoTime() - began >= limits.whole().toNanos()) {
                return false;
            }
            Thread.sleep(1);
        }
        return true;
    }

    /** What a call ended with: a kind, of an exception or of a call that never waits and gave nothing. */
    static ErrorKind kindOf(Exception e) {
        return e instanceof Ending ending ? ending.kind : ((RamwayException) e).kind();
    }

    /** Whole milliseconds since then. */
    static long msSince(long began) {
        return (System.nanoTime() - began) / 1_000_000;
    }

    /** A call that never waits gave nothing. */
    static final class Ending extends Exception {
        private static final long serialVersionUID = 1L;
        private final ErrorKind kind;

        Ending(ErrorKind kind) {
            super(kind.summary(), null, false, false);
            this.kind = kind;
        }
    }
}
