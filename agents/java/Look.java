import dev.ramway.Batch;
import dev.ramway.ErrorKind;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.Received;
import dev.ramway.Region;
import dev.ramway.Slot;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** {@code read} and {@code show}. */
final class Look {
    private Look() {}

    static void read(Args args) throws InterruptedException {
        if (args.region != null) {
            readRegion(args);
            return;
        }
        args.oneOf("role", args.role, "producer", "consumer");
        if (args.role.equals("producer")) {
            readAsProducer(args);
        } else {
            readAsConsumer(args);
        }
    }

    private static void readRegion(Args args) {
        try (Region region = Region.open(args.region, Place.OPENING)) {
            Main.say("region len=" + region.length() + " crc32=" + Messages.crc32(region.data()).getValue());
        }
        Main.say("closed");
    }

    private static void readAsProducer(Args args) throws InterruptedException {
        Place place = Place.sending(args);
        Input.pause(args);
        try {
            var last = place.tx.lastTag();
            Main.say(last.isPresent() ? "last tag=" + Long.toUnsignedString(last.getAsLong()) : "last none");
            var m = new Messages(Args.Sizes.of(args.size), place.tx.maxMessageLength()).make(0);
            if (place.tx.trySend(m.typeId(), m.tag(), m.payload())) {
                Main.say("sent");
            } else {
                Main.say("end " + Main.named(ErrorKind.FULL));
            }
        } catch (RamwayException e) {
            Main.say("end " + Main.named(e.kind()));
        }
        place.close();
    }

    private static void readAsConsumer(Args args) throws InterruptedException {
        Place place = Place.receiving(args);
        Input.pause(args);
        try {
            for (;;) {
                readOne(args, place);
            }
        } catch (RamwayException e) {
            Main.say("end " + Main.named(e.kind()));
        }
        place.close();
    }

    /**
     * Receives one message. Every way has checks of its own, or shares them with others: which of them meets the vectors
     * RAMWAY_CONFORMANCE_READ says.
     */
    private static void readOne(Args args, Place place) throws InterruptedException {
        switch (System.getenv().getOrDefault("RAMWAY_CONFORMANCE_READ", "recv")) {
            case "batch" -> {
                try (Batch batch = args.timeout == null ? place.rx.recvBatch(1) : place.rx.recvBatch(1, args.timeout)) {
                    saw(batch.get(0).typeId(), batch.get(0).tag(), batch.get(0).data());
                }
            }
            case "into" -> {
                byte[] target = new byte[(int) Math.min(place.rx.capacity(), 1 << 20)];
                Received r = args.timeout == null ? place.rx.recvInto(target) : place.rx.recvInto(target, args.timeout);
                saw(r.typeId(), r.tag(), MemorySegment.ofArray(target).asSlice(0, r.length()));
            }
            default -> {
                try (Message m = place.receive()) {
                    saw(m.typeId(), m.tag(), m.data());
                }
            }
        }
    }

    private static void saw(int typeId, long tag, MemorySegment data) {
        Main.say("message type_id=" + Integer.toUnsignedString(typeId) + " tag=" + Long.toUnsignedString(tag) + " len="
                + data.byteSize() + " crc32=" + Messages.crc32(data).getValue());
    }

    /** The length of the message of the proof. */
    private static final int SHOWN = 4096;

    static void show(Args args) throws InterruptedException {
        args.oneOf("role", args.role, "producer", "consumer");
        if (args.role.equals("producer")) {
            Place place = Place.sending(args);
            Slot slot = place.reserve(SHOWN);
            MemorySegment view = slot.data().fill((byte) 0x11);
            long address = view(view);
            slot.commit(0, 0);
            obey(address);
            place.close();
        } else {
            Place place = Place.receiving(args);
            Message m = place.receive();
            if (m.length() != SHOWN) {
                throw new Messages.BadException(0, "not the message of the proof");
            }
            obey(view(m.data()));
            m.close();
            place.close();
        }
    }

    private static long view(MemorySegment view) {
        Main.say("view addr=0x" + Long.toHexString(view.address()) + " len=" + view.byteSize() + " pid="
                + ProcessHandle.current().pid());
        return view.address();
    }

    /** Writes and reads single bytes of the message by its address, as standard input says. */
    private static void obey(long address) {
        // The ring stays open meanwhile, and so its mapping: beyond the slot's life on purpose.
        MemorySegment bytes = MemorySegment.ofAddress(address).reinterpret(SHOWN);
        for (String line = Input.line(); line != null; line = Input.line()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "poke" -> {
                    bytes.set(ValueLayout.JAVA_BYTE, Long.parseLong(words[1]), (byte) Integer.parseInt(words[2]));
                    Main.say("poked");
                }
                case "peek" -> Main.say("byte value="
                        + Byte.toUnsignedInt(bytes.get(ValueLayout.JAVA_BYTE, Long.parseLong(words[1]))));
                default -> {
                    return;
                }
            }
        }
    }
}
