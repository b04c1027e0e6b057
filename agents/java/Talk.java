import dev.ramway.Batch;
import dev.ramway.ErrorKind;
import dev.ramway.LaggedException;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.Received;
import dev.ramway.ReceivingEnd;
import dev.ramway.SendingEnd;
import dev.ramway.Slot;
import dev.ramway.Subscriber;
import dev.ramway.TopicMeta;
import java.lang.foreign.MemorySegment;

/** {@code echo}, {@code ping}, {@code last} and {@code take}. */
final class Talk {
    private Talk() {}

    static void echo(SendingEnd tx, ReceivingEnd<?> rx, Line line) throws InterruptedException {
        Line.Limits limits = line.limits();
        line.end();
        long first = -1;
        long last = -1;
        long received = 0;
        long bytes = 0;
        for (;;) {
            long began = System.nanoTime();
            Message m;
            try {
                m = Consume.receive(rx, limits);
            } catch (RamwayException e) {
                Agent.say("end " + Agent.named(e.kind()) + " received=" + received + " first=" + first + " last=" + last
                        + " bytes=" + bytes + " elapsed_ms=" + Stream.msSince(began));
                return;
            }
            try (m) {
                last = Messages.seqOf(m.tag());
                if (received++ == 0) {
                    first = last;
                }
                bytes += m.length();
                Slot slot = Produce.reserve(tx, limits, m.length());
                slot.data().copyFrom(m.data());
                slot.commit(m.typeId(), m.tag());
            }
        }
    }

    static void ping(SendingEnd tx, ReceivingEnd<?> rx, Line line) throws InterruptedException {
        Line.Limits limits = line.limits();
        long count = line.number("count", 0);
        Messages all = new Messages(line, tx.maxMessageLength());
        line.end();
        for (long seq = 0; seq < count; seq++) {
            Messages.Made made = all.make(seq);
            Slot slot = Produce.reserve(tx, limits, made.length());
            slot.data().copyFrom(made.payload());
            slot.commit(made.typeId(), made.tag());
            try (Message m = Consume.receive(rx, limits)) {
                all.check(seq, m.typeId(), m.tag(), m.data());
            }
        }
        Agent.say("answered count=" + count);
    }

    static void last(SendingEnd tx, Line line) {
        line.end();
        var last = tx.lastTag();
        Agent.say(last.isPresent() ? "last tag=" + Long.toUnsignedString(last.getAsLong()) : "last none");
    }

    /** Every way to receive has checks of its own, or shares them with others. */
    static void take(ReceivingEnd<?> rx, Line line) throws InterruptedException {
        Line.Limits limits = line.limits();
        String how = line.text("how", "recv");
        boolean tensor = line.yes("tensor");
        line.end();
        try {
            switch (how) {
                case "batch" -> {
                    try (Batch batch = limits.within(() -> rx.recvBatch(1), limit -> rx.recvBatch(1, limit))) {
                        say(rx, batch.get(0));
                    }
                }
                case "into" -> {
                    byte[] target = new byte[(int) Math.min(rx.capacity(), 1 << 20)];
                    Object given = limits.within(() -> rx.recvInto(target), limit -> rx.recvInto(target, limit));
                    if (given instanceof TopicMeta m) {
                        say(m.typeId(), m.tag(), MemorySegment.ofArray(target).asSlice(0, m.length()), stamp(m.seq(), m.lost()));
                    } else if (given instanceof Received r) {
                        say(r.typeId(), r.tag(), MemorySegment.ofArray(target).asSlice(0, r.length()), "");
                    }
                }
                default -> {
                    try (Message m = how.equals("try") ? rx.tryRecv() : Consume.receive(rx, limits)) {
                        if (m == null) {
                            Agent.say("end " + Agent.named(ErrorKind.EMPTY));
                        } else if (!tensor || !Tensors.say(m)) {
                            say(rx, m);
                        }
                    }
                }
            }
        } catch (LaggedException e) {
            Agent.say("end " + Agent.named(e.kind()) + " lost=" + e.lost());
        } catch (RamwayException e) {
            Agent.say("end " + Agent.named(e.kind()));
        }
    }

    private static void say(ReceivingEnd<?> rx, Message m) {
        say(m.typeId(), m.tag(), m.data(), rx instanceof Subscriber ? stamp(m.seq(), m.lost()) : "");
    }

    private static String stamp(long seq, long lost) {
        return " seq=" + seq + " lost=" + lost;
    }

    private static void say(int typeId, long tag, MemorySegment data, String stamp) {
        Agent.say("message type_id=" + Integer.toUnsignedString(typeId) + " tag=" + Long.toUnsignedString(tag) + " len="
                + data.byteSize() + " crc32=" + Messages.crc32(data).getValue() + stamp);
    }
}
