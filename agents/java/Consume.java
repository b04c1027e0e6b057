import dev.ramway.Batch;
import dev.ramway.ErrorKind;
import dev.ramway.LaggedException;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.Received;
import dev.ramway.ReceivingEnd;
import dev.ramway.Subscriber;
import dev.ramway.TopicMeta;
import dev.ramway.WaitMode;
import java.lang.foreign.MemorySegment;

/** {@code consume}, and what a consumer has seen so far. */
final class Consume {
    private final ReceivingEnd<?> rx;
    private final Messages all;
    private final Stream stream;
    /** Whether a loop over all messages does, since nothing says how long a wait may last. */
    private final boolean iterates;
    /** Where {@code into} copies to. */
    private byte[] target;
    private long first = -1;
    /** The number that is expected; -1 for whatever the first tag says. */
    private long next;
    private long received;
    private long bytes;
    /** The messages have numbers, and lost is how many it was told that it lost. */
    private final boolean ofTopic;
    private long lost;
    /** Of the call that is being made: the other side's epoch before it, and when it began. */
    private int noted;
    private long began;

    Consume(ReceivingEnd<?> rx, WaitMode wait, Line line) {
        this.rx = rx;
        all = new Messages(line, rx.maxMessageLength());
        boolean limited = line.has("timeout") || line.has("poll");
        stream = new Stream(line, 32);
        iterates = !limited && wait == WaitMode.HYBRID && (stream.how.isEmpty() || stream.how.equals("recv"));
        next = stream.start;
        ofTopic = rx instanceof Subscriber;
    }

    /** Checks a message before it is released. */
    private void take(int typeId, long tag, MemorySegment payload) {
        long seq = next >= 0 ? next : Messages.seqOf(tag);
        all.check(seq, typeId, tag, payload);
        if (first < 0) {
            first = seq;
        }
        next = seq + 1;
        received++;
        bytes += payload.byteSize();
        if (stream.progress) {
            Agent.say("at seq=" + seq);
        }
    }

    /** Takes what a topic's message says of itself; the first one has 1. */
    private void number(long number, long before) {
        long seq = number - 1;
        if (next >= 0 && next + before != seq) {
            throw new Messages.BadException(seq, "it comes after " + before + " lost ones, and " + next + " was expected");
        }
        next = seq;
        lost += before;
    }

    /** By turns the ways to look at a message. */
    private void take(Message m) {
        if (ofTopic) {
            number(m.seq(), m.lost());
        }
        switch ((int) (Messages.seqOf(m.tag()) % 3)) {
            case 0 -> take(m.typeId(), m.tag(), m.data());
            case 1 -> take(m.typeId(), m.tag(), MemorySegment.ofBuffer(m.buffer()));
            default -> take(m.typeId(), m.tag(), MemorySegment.ofArray(m.toByteArray()));
        }
    }

    /** How many messages there are left to receive. */
    private long left() {
        return stream.count >= 0 ? stream.count - received : Long.MAX_VALUE;
    }

    /** Receives one message, or a batch of them, as {@code how} says. */
    private void get() throws InterruptedException, Stream.Ending {
        boolean never = stream.how.equals("try");
        // By turns the ways of not waiting.
        String how = never ? new String[] {"recv", "batch", "into"}[(int) (received % 3)] : stream.how;
        int most = (int) Math.min(stream.batch, left());
        switch (how) {
            case "batch" -> {
                try (Batch batch = present(never
                        ? rx.tryRecvBatch(most)
                        : stream.limits.within(() -> rx.recvBatch(most), limit -> rx.recvBatch(most, limit)))) {
                    for (Message m : batch) {
                        take(m);
                    }
                }
            }
            case "into" -> {
                if (target == null) {
                    target = new byte[rx.maxMessageLength()];
                }
                Object r = present(never
                        ? rx.tryRecvInto(target)
                        : stream.limits.within(() -> rx.recvInto(target), limit -> rx.recvInto(target, limit)));
                if (r instanceof TopicMeta m) {
                    number(m.seq(), m.lost());
                    take(m.typeId(), m.tag(), MemorySegment.ofArray(target).asSlice(0, m.length()));
                } else if (r instanceof Received m) {
                    take(m.typeId(), m.tag(), MemorySegment.ofArray(target).asSlice(0, m.length()));
                }
            }
            default -> {
                try (Message m = present(never ? rx.tryRecv() : receive(rx, stream.limits))) {
                    take(m);
                }
            }
        }
    }

    /** Waits for a message, for as long as a wait may last. */
    static Message receive(ReceivingEnd<?> rx, Line.Limits limits) throws InterruptedException {
        return limits.within(rx::recv, rx::recv);
    }

    private static <T> T present(T given) throws Stream.Ending {
        if (given == null) {
            throw new Stream.Ending(ErrorKind.EMPTY);
        }
        return given;
    }

    /** Receives until nothing is left, as most programs would: each message is released when the next one is asked for. */
    private void getAll() throws Stream.Ending {
        for (Message m : rx.messages()) {
            take(m);
            if (left() == 0) {
                m.close();
                return;
            }
            begin();
        }
        throw new Stream.Ending(ErrorKind.CLOSED);
    }

    private void begin() {
        noted = rx.peerEpoch();
        began = System.nanoTime();
    }

    void run() throws InterruptedException {
        long elapsed = 0;
        while (left() > 0) {
            begin();
            try {
                if (iterates) {
                    getAll();
                } else {
                    get();
                }
                elapsed = left() > 0 ? 0 : Stream.msSince(began);
            } catch (RamwayException | Stream.Ending e) {
                elapsed = Stream.msSince(began);
                ErrorKind kind = Stream.kindOf(e);
                if (e instanceof LaggedException lagged) {
                    Agent.say("lagged lost=" + lagged.lost());
                    lost += lagged.lost();
                    next += next >= 0 ? lagged.lost() : 0;
                    continue;
                }
                report(Agent.named(kind), elapsed);
                if (!stream.goesOn(kind)) {
                    return;
                }
                if (!stream.successor(noted, rx::peerEpoch)) {
                    report(Agent.named(ErrorKind.TIMED_OUT), elapsed);
                    return;
                }
            }
        }
        report("name=Count number=0", elapsed);
    }

    private void report(String named, long elapsed) {
        long last = first >= 0 ? next - 1 : -1;
        Agent.say("end " + named + " received=" + received + " first=" + first + " last=" + last + " bytes=" + bytes
                + " elapsed_ms=" + elapsed + (ofTopic ? " lost=" + lost : ""));
    }
}
