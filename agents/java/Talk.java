import dev.ramway.Batch;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.Received;
import dev.ramway.Receiver;
import dev.ramway.Sender;
import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;

/** {@code echo}, {@code ping}, {@code last} and {@code take}. */
final class Talk {
    private Talk() {}

    static void echo(Sender tx, Receiver rx, Line line) throws InterruptedException {
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

    static void ping(Sender tx, Receiver rx, Line line) throws InterruptedException {
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

    static void last(Sender tx, Line line) {
        line.end();
        var last = tx.lastTag();
        Agent.say(last.isPresent() ? "last tag=" + Long.toUnsignedString(last.getAsLong()) : "last none");
    }

    /** Every way to receive has checks of its own, or shares them with others. */
    static void take(Receiver rx, Line line) throws InterruptedException {
        Line.Limits limits = line.limits();
        String how = line.text("how", "recv");
        boolean tensor = line.yes("tensor");
        line.end();
        try {
            switch (how) {
                case "batch" -> {
                    try (Batch batch = limits.within(() -> rx.recvBatch(1), limit -> rx.recvBatch(1, limit))) {
                        say(batch.get(0).typeId(), batch.get(0).tag(), batch.get(0).data());
                    }
                }
                case "into" -> {
                    byte[] target = new byte[(int) Math.min(rx.capacity(), 1 << 20)];
                    Received r = limits.within(() -> rx.recvInto(target), limit -> rx.recvInto(target, limit));
                    say(r.typeId(), r.tag(), MemorySegment.ofArray(target).asSlice(0, r.length()));
                }
                default -> {
                    try (Message m = Consume.receive(rx, limits)) {
                        if (!tensor || !Tensors.say(m)) {
                            say(m.typeId(), m.tag(), m.data());
                        }
                    }
                }
            }
        } catch (RamwayException e) {
            Agent.say("end " + Agent.named(e.kind()));
        }
    }

    private static void say(int typeId, long tag, MemorySegment data) {
        Agent.say("message type_id=" + Integer.toUnsignedString(typeId) + " tag=" + Long.toUnsignedString(tag) + " len="
                + data.byteSize() + " crc32=" + Messages.crc32(data).getValue());
    }
}
