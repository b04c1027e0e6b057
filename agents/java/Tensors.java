import dev.ramway.ElementType;
import dev.ramway.ErrorKind;
import dev.ramway.Message;
import dev.ramway.RamwayException;
import dev.ramway.SendingEnd;
import dev.ramway.Tensor;
import dev.ramway.TensorSlot;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/** {@code tensor}, and a tensor that is taken. */
final class Tensors {
    private Tensors() {}

    static void send(SendingEnd tx, Line line) throws InterruptedException {
        ElementType type = ElementType.values()[(int) line.number("type", 0)];
        long[] shape = Arrays.stream(line.text("shape", "").split("x")).filter(dim -> !dim.isEmpty())
                .mapToLong(Long::parseLong).toArray();
        long tag = line.number("tag", 0);
        MemorySegment data = MemorySegment.ofArray(HexFormat.of().parseHex(line.text("data", "")));
        boolean inPlace = line.yes("reserve");
        line.end();
        long offset = 0;
        if (inPlace) {
            try (TensorSlot slot = tx.reserveTensor(type, shape)) {
                offset = offset(slot.data());
                slot.data().copyFrom(data);
                slot.commit(tag);
            }
        } else {
            tx.sendTensor(type, shape, tag, data);
        }
        Agent.say("sent offset=" + offset);
    }

    /** {@return how far after a multiple of 64 the elements begin; of none, 0} */
    private static long offset(MemorySegment elements) {
        return elements.byteSize() == 0 ? 0 : elements.address() % 64;
    }

    /** {@return false where the message is no tensor} */
    static boolean say(Message message) {
        Tensor tensor;
        try {
            tensor = message.tensor();
        } catch (RamwayException e) {
            if (e.kind() == ErrorKind.INVALID_ARGUMENT) {
                return false;
            }
            throw e;
        }
        String shape = LongStream.of(tensor.shape()).mapToObj(Long::toString).collect(Collectors.joining("x"));
        String data = HexFormat.of().formatHex(tensor.data().toArray(ValueLayout.JAVA_BYTE));
        Agent.say("tensor type=" + tensor.type().ordinal() + " shape=" + shape + " tag="
                + Long.toUnsignedString(message.tag()) + " offset=" + offset(tensor.data()) + " data=" + data);
        return true;
    }
}
