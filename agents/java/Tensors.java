import dev.ramway.ElementType;
import dev.ramway.ErrorKind;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.Tensor;
import dev.ramway.TensorSlot;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** {@code tensors}. */
final class Tensors {
    private Tensors() {}

    private static final long[][] SHAPES = {{}, {0}, {1}, {2, 3}, {5, 0, 7}, {3, 1, 5, 2}, {257}, manyDimensions()};

    private static long[] manyDimensions() {
        long[] shape = new long[32];
        Arrays.fill(shape, 1);
        shape[31] = 2;
        return shape;
    }

    private static final ElementType[] TYPES = ElementType.values();

    private record Made(ElementType type, long[] shape, long tag, MemorySegment data) {}

    /** Tensor number seq; null where that is an ordinary message. */
    private static Made make(long seq) {
        int k = (int) (seq % 24);
        if (k >= TYPES.length) {
            return null;
        }
        ElementType type = TYPES[k];
        long[] shape = SHAPES[(int) (seq / 24 % SHAPES.length)];
        long length = type.size();
        for (long dim : shape) {
            length *= dim;
        }
        byte[] bytes = new byte[Math.toIntExact(length)];
        int values = type == ElementType.BOOL ? 2 : 256;
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) ((seq + i) % values);
        }
        MemorySegment data = MemorySegment.ofArray(bytes);
        return new Made(type, shape, Messages.tag(seq, data), data);
    }

    static void play(Args args) throws InterruptedException {
        args.oneOf("role", args.role, "producer", "consumer");
        Messages all = new Messages(Args.Sizes.of(32), 32);
        if (args.role.equals("producer")) {
            produce(args, all);
        } else {
            consume(args, all);
        }
    }

    private static void aligned(long seq, MemorySegment elements) {
        if (elements.byteSize() > 0 && elements.address() % 64 != 0) {
            throw new Messages.BadException(seq, "the elements do not begin on a multiple of 64");
        }
    }

    private static void produce(Args args, Messages all) throws InterruptedException {
        args.oneOf("how", args.how, "", "send", "reserve");
        long count = args.counted();
        Place place = Place.sending(args);
        for (long seq = 0; seq < count; seq++) {
            Made made = make(seq);
            if (made == null) {
                Messages.Made m = all.make(seq);
                place.tx.send(m.typeId(), m.tag(), m.payload());
            } else if (args.how.equals("reserve")) {
                try (TensorSlot slot = place.tx.reserveTensor(made.type, made.shape)) {
                    aligned(seq, slot.data());
                    slot.data().copyFrom(made.data);
                    slot.commit(made.tag);
                }
            } else {
                place.tx.sendTensor(made.type, made.shape, made.tag, made.data);
            }
        }
        Main.say("sent count=" + count + " next=" + count);
        place.close();
    }

    private static void consume(Args args, Messages all) throws InterruptedException {
        Place place = Place.receiving(args);
        long received = 0;
        ErrorKind kind;
        for (;; received++) {
            Message message;
            try {
                message = place.receive();
            } catch (RamwayException e) {
                kind = e.kind();
                break;
            }
            try (message) {
                check(all, received, message);
            }
        }
        Main.say("end " + Main.named(kind) + " received=" + received);
        place.close();
    }

    private static void check(Messages all, long seq, Message message) {
        Made made = make(seq);
        if (made == null) {
            try {
                message.tensor();
            } catch (RamwayException e) {
                if (e.kind() == ErrorKind.INVALID_ARGUMENT) {
                    all.check(seq, message.typeId(), message.tag(), message.data());
                    return;
                }
                throw e;
            }
            throw new Messages.BadException(seq, "an ordinary message is a tensor");
        }
        Tensor tensor = message.tensor();
        if (tensor.type() != made.type || !Arrays.equals(tensor.shape(), made.shape)) {
            throw new Messages.BadException(seq, tensor.type() + " " + Arrays.toString(tensor.shape()) + " instead of "
                    + made.type + " " + Arrays.toString(made.shape));
        }
        if (tensor.data().mismatch(made.data) != -1 || message.tag() != made.tag) {
            throw new Messages.BadException(seq, "the bytes, or the tag");
        }
        aligned(seq, tensor.data());
    }
}
