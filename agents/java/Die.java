import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;

/** {@code die}. */
final class Die {
    private Die() {}

    static void play(Args args) throws Exception {
        args.counted();
        args.oneOf("role", args.role, "producer", "consumer");
        if (args.role.equals("consumer")) {
            new Consume(args).receiveAndDie();
        }
        Place place = Place.sending(args);
        Messages all = new Messages(args.sizes, place.tx.maxMessageLength());
        long last = args.first() + args.count;
        for (long seq = args.first(); seq < last; seq++) {
            Produce.put(args, place, all.make(seq), true);
        }
        Messages.Made m = all.make(last);
        int half = m.length() / 2;
        Slot slot = place.reserve(m.length());
        MemorySegment.copy(m.payload(), 0, slot.data(), 0, half);
        slot.commitUnflushed(m.typeId(), m.tag(), half);
        Main.say("dying next=" + last);
        Sys.crash();
    }
}
