import dev.ramway.Message;
import dev.ramway.Options;
import dev.ramway.ReceivingEnd;
import dev.ramway.Region;
import dev.ramway.SendingEnd;
import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** {@code region}, {@code write} and {@code hold}. */
final class Look {
    private Look() {}

    static void region(Line line) throws InterruptedException {
        String name = line.text("name", "");
        line.end();
        try (Region region = Region.open(name, Options.DEFAULT.withTimeout(Agent.OPEN_TIMEOUT))) {
            Agent.say("region len=" + region.length() + " crc32=" + Messages.crc32(region.data()).getValue());
        }
    }

    /** Reserves, fills, and commits what is to be kept. */
    static void write(SendingEnd tx, Line line) throws InterruptedException {
        int length = (int) line.number("len", 0);
        int kept = (int) line.number("kept", length);
        boolean unflushed = line.yes("unflushed");
        line.end();
        Slot slot = tx.reserve(length, Agent.OPEN_TIMEOUT);
        long address = slot.data().fill((byte) 0x11).address();
        if (unflushed) {
            slot.commitUnflushed(0, 0, kept);
        } else {
            slot.commit(0, 0, kept);
        }
        lookAt(address, length, 0);
    }

    static void hold(ReceivingEnd<?> rx, Line line) throws InterruptedException {
        line.end();
        try (Message m = rx.recv(Agent.OPEN_TIMEOUT)) {
            lookAt(m.data().address(), m.length(), m.tag());
        }
    }

    /** Writes and reads single bytes of a message by its address, until {@code release}. */
    private static void lookAt(long address, int length, long tag) {
        Agent.say("view addr=0x" + Long.toHexString(address) + " len=" + length + " tag=" + Long.toUnsignedString(tag));
        // The ring stays open meanwhile, and so its mapping: beyond the slot's life on purpose.
        MemorySegment bytes = MemorySegment.ofAddress(address).reinterpret(length);
        for (Line line = Line.next(); line != null; line = Line.next()) {
            switch (line.word) {
                case "poke" -> {
                    bytes.set(ValueLayout.JAVA_BYTE, line.number("offset", 0), (byte) line.number("value", 0));
                    Agent.say("poked");
                }
                case "peek" -> Agent.say("byte value="
                        + Byte.toUnsignedInt(bytes.get(ValueLayout.JAVA_BYTE, line.number("offset", 0))));
                case "release" -> {
                    Agent.say("released");
                    return;
                }
                default -> throw new Line.RefusedException(line.word + " while a message is held");
            }
            line.end();
        }
    }
}
