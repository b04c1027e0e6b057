import dev.ramway.Batch;
import dev.ramway.ErrorKind;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.Received;
import dev.ramway.Receiver;
import dev.ramway.WaitMode;
import java.lang.foreign.MemorySegment;

/** {@code consume}, and what a consumer has seen so far. */
final class Consume {
    private final Args args;
    private final Place place;
    private final Receiver rx;
    private final Messages all;
    /** Where {@code into} copies to. */
    private byte[] target;
    private long first = -1;
    /** The number that is expected; -1 for whatever the first tag says. */
    private long next;
    private long received;
    private long bytes;
    /** Of the call that is being made: the other side's epoch before it, and when it began. */
    private int noted;
    private long began;

    Consume(Args args) throws InterruptedException {
        this.args = args;
        place = Place.receiving(args);
        rx = place.rx;
        all = new Messages(args.sizes, rx.maxMessageLength());
        next = args.start;
    }

    static void play(Args args) throws InterruptedException {
        args.oneOf("how", args.how, "", "recv", "batch", "into", "try");
        new Consume(args).run();
    }

    /** Checks a message before it is released. */
    void take(int typeId, long tag, MemorySegment payload) throws InterruptedException {
        long seq = next >= 0 ? next : Messages.seqOf(tag);
        all.check(seq, typeId, tag, payload);
        if (first < 0) {
            first = seq;
        }
        next = seq + 1;
        received++;
        bytes += payload.byteSize();
        if (args.progress) {
            Main.say("at seq=" + seq);
        }
        Place.sleep(args.work);
    }

    /** By turns the ways to look at a message. */
    void take(Message m) throws InterruptedException {
        switch ((int) (Messages.seqOf(m.tag()) % 3)) {
            case 0 -> take(m.typeId(), m.tag(), m.data());
            case 1 -> take(m.typeId(), m.tag(), MemorySegment.ofBuffer(m.buffer()));
            default -> take(m.typeId(), m.tag(), MemorySegment.ofArray(m.toByteArray()));
        }
    }

    /** How many messages there are left to receive. */
    private long left() {
        long left = args.count >= 0 ? args.count - received : Long.MAX_VALUE;
        return args.until >= 0 ? Math.min(left, Math.max(args.until - Math.max(next, 0), 0)) : left;
    }

    /** Receives one message, or a batch of them, as --how says. */
    private void get() throws InterruptedException, Main.Ending {
        // By turns the ways of not waiting.
        String how = !args.how.equals("try") ? args.how : new String[] {"recv", "batch", "into"}[(int) (received % 3)];
        int most = (int) Math.min(args.batch > 0 ? args.batch : 32, left());
        switch (how) {
            case "batch" -> {
                try (Batch batch = present(batch(most))) {
                    for (Message m : batch) {
                        take(m);
                    }
                }
            }
            case "into" -> {
                if (target == null) {
                    target = new byte[rx.maxMessageLength()];
                }
                Received r = present(into());
                take(r.typeId(), r.tag(), MemorySegment.ofArray(target).asSlice(0, r.length()));
            }
            default -> {
                try (Message m = present(args.how.equals("try") ? rx.tryRecv() : place.receive())) {
                    take(m);
                }
            }
        }
    }

    private Batch batch(int most) throws InterruptedException {
        if (args.how.equals("try")) {
            return rx.tryRecvBatch(most);
        }
        return Place.within(args, () -> rx.recvBatch(most), limit -> rx.recvBatch(most, limit));
    }

    private Received into() throws InterruptedException {
        if (args.how.equals("try")) {
            return rx.tryRecvInto(target);
        }
        return Place.within(args, () -> rx.recvInto(target), limit -> rx.recvInto(target, limit));
    }

    private static <T> T present(T given) throws Main.Ending {
        if (given == null) {
            throw new Main.Ending(ErrorKind.EMPTY);
        }
        return given;
    }

    /** Receives until nothing is left, as most programs would: each message is released when the next one is asked for. */
    private void getAll() throws InterruptedException, Main.Ending {
        for (Message m : rx.messages()) {
            take(m);
            if (left() == 0) {
                m.close();
                return;
            }
            begin();
        }
        throw new Main.Ending(ErrorKind.CLOSED);
    }

    private void begin() {
        noted = rx.peerEpoch();
        began = System.nanoTime();
    }

    private void run() throws InterruptedException {
        String end = "name=Count number=0";
        long elapsed = 0;
        long endings = 0;
        while (left() > 0) {
            begin();
            try {
                if (args.patient && args.wait == WaitMode.HYBRID && (args.how.isEmpty() || args.how.equals("recv"))) {
                    getAll();
                } else {
                    get();
                }
                elapsed = left() > 0 ? 0 : Place.msSince(began);
            } catch (RamwayException | Main.Ending e) {
                elapsed = Place.msSince(began);
                ErrorKind kind = Main.kindOf(e);
                end = Main.named(kind);
                if (Main.isEnding(kind) && ++endings < args.endings) {
                    report(end, elapsed);
                    if (place.awaitSuccessor(noted, rx::peerEpoch)) {
                        end = "name=Count number=0";
                        continue;
                    }
                    end = Main.named(ErrorKind.TIMED_OUT);
                }
                break;
            }
        }
        report(end, elapsed);
        Input.linger(args);
        place.close();
    }

    private void report(String named, long elapsed) {
        long last = first >= 0 ? next - 1 : -1;
        Main.say("end " + named + " received=" + received + " first=" + first + " last=" + last + " bytes=" + bytes
                + " elapsed_ms=" + elapsed);
    }

    /** Receives --count messages and dies with the last one in hand. */
    void receiveAndDie() throws InterruptedException {
        for (;;) {
            Message m = place.receive();
            take(m);
            if (received >= args.count) {
                Main.say("dying next=" + (next - 1));
                Sys.crash();
            }
            m.close();
        }
    }
}
