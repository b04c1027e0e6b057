package dev.ramway;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;

/**
 * A tensor as it lies in a message, checked. {@link Message#tensor} reads one, {@link Sender#sendTensor} writes
 * one.
 *
 * {@snippet :
 * try (Message message = rx.recv()) {
 *     Tensor image = message.tensor();
 *     float first = image.data().getAtIndex(ValueLayout.JAVA_FLOAT, 0);
 * }
 * }
 *
 * @param type of the elements
 * @param shape the outermost dimension first, each an unsigned number; empty for a single element without any dimension. A
 *     copy
 * @param data the elements in C order (the last dimension varies fastest), little-endian, as they lie in the payload: good
 *     as long as that. In a message the first one is on an address that is a multiple of 64
 */
public record Tensor(ElementType type, long[] shape, MemorySegment data) {
    /** The type id of a message that is a tensor. */
    public static final int TYPE_ID = Facts.TYPE_ID_TENSOR;
    /** How many dimensions a tensor has at most. */
    public static final int MAX_DIMENSIONS = Facts.NDIM_MAX;

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    /** None of the three may be null. */
    public Tensor {
        Objects.requireNonNull(type, "type");
        Objects.requireNonNull(shape, "shape");
        Objects.requireNonNull(data, "data");
    }

    /**
     * Reads the payload of a message as a tensor. Whether the elements lie on a multiple of 64 bytes is not checked: in a copy
     * of the payload they need not.
     *
     * @param payload the whole of it, where it lies or copied
     * @return the tensor, whose data is a part of the payload
     * @throws RamwayException INVALID_ARGUMENT, with what is wrong, if it is none
     */
    public static Tensor parse(MemorySegment payload) {
        long length = payload.byteSize();
        if (length < 8) {
            throw none("%d bytes, and its header alone has 8", length);
        }
        // One load: what is checked is what is used, also where a peer rewrites what it sent.
        long fixed = payload.get(LONG, 0);
        int code = (int) (fixed & 0xFF);
        int bits = (int) (fixed >>> 8 & 0xFF);
        int dimensions = (int) (fixed >>> 16 & 0xFF);
        int zero = (int) (fixed >>> 24 & 0xFF);
        long offset = fixed >>> 32;
        long start = headerLength(dimensions);
        ElementType type = ElementType.of(code, bits);
        if (type == null) {
            throw none("there is no element type with the code %d and %d bits", code, bits);
        }
        if (dimensions > MAX_DIMENSIONS) {
            throw none("%d dimensions, and %d are the most", dimensions, MAX_DIMENSIONS);
        }
        if (zero != 0) {
            throw none("byte 3 is %d, not 0", zero);
        }
        if (offset < start || offset >= start + Facts.TENSOR_ALIGN || offset > length) {
            throw none("the data of %d dimensions begins at %d to %d, not at %d, in a payload of %d bytes", dimensions, start,
                    start + Facts.TENSOR_ALIGN - 1, offset, length);
        }
        long[] shape = new long[dimensions];
        for (int i = 0; i < dimensions; i++) {
            shape[i] = payload.get(LONG, 8 + 8L * i);
        }
        for (long at = start; at < offset; at++) {
            if (payload.get(JAVA_BYTE, at) != 0) {
                throw none("the bytes between shape and data are not all 0");
            }
        }
        if (length(type, shape) != length - offset) {
            throw none("%d bytes are not %s of the shape %s", length - offset, type.formatName(), show(shape));
        }
        return new Tensor(type, shape, payload.asSlice(offset));
    }

    private static RamwayException none(String format, Object... arguments) {
        return Errors.fail(ErrorKind.INVALID_ARGUMENT, "not a tensor frame: " + format, arguments);
    }

    /** A message's payload as a tensor. */
    static Tensor of(int typeId, MemorySegment payload) {
        if (typeId != TYPE_ID) {
            throw none("its type id is 0x%x, and a tensor's is 0x%x", typeId, TYPE_ID);
        }
        return parse(payload);
    }

    static String show(long[] shape) {
        return Arrays.toString(Arrays.stream(shape).mapToObj(Long::toUnsignedString).toArray());
    }

    static long headerLength(int dimensions) {
        return 8 + 8L * dimensions;
    }

    /**
     * How many bytes the elements take; -1 if the product of the dimensions that are not 0 and of the element's size is 2^63
     * or more: no stride then overflows, whatever order a language multiplies in.
     */
    static long length(ElementType type, long[] shape) {
        long size = type.size();
        boolean empty = false;
        for (long dimension : shape) {
            if (dimension == 0) {
                empty = true;
                continue;
            }
            // Of unsigned numbers: what does not fit into 63 bits is negative or has an upper half.
            if (Math.unsignedMultiplyHigh(size, dimension) != 0 || size * dimension < 0) {
                return -1;
            }
            size *= dimension;
        }
        return empty ? 0 : size;
    }

    /** Writes the header into a payload, and says where the elements begin: on an address that is a multiple of 64. */
    static long writeHeader(MemorySegment payload, ElementType type, long[] shape) {
        long start = headerLength(shape.length);
        long offset = start + (-(payload.address() + start) & Facts.TENSOR_ALIGN - 1);
        payload.set(LONG, 0, type.code() | (long) type.bits() << 8 | (long) shape.length << 16 | offset << 32);
        for (int i = 0; i < shape.length; i++) {
            payload.set(LONG, 8 + 8L * i, shape[i]);
        }
        payload.asSlice(start, offset - start).fill((byte) 0);
        return offset;
    }

    /**
     * How many bytes of payload to reserve: enough wherever it begins.
     *
     * @throws RamwayException INVALID_ARGUMENT for what is no tensor, TOO_LARGE for what can never fit
     */
    static int room(ElementType type, long[] shape, int maxMessageLength) {
        if (shape.length > MAX_DIMENSIONS) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a tensor of %d dimensions: at most %d", shape.length, MAX_DIMENSIONS);
        }
        long length = length(type, shape);
        if (length < 0) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "a tensor of %s of the shape %s: that is 2^63 bytes or more",
                    type.formatName(), show(shape));
        }
        long overhead = headerLength(shape.length) + Facts.TENSOR_ALIGN - 1;
        if (length > maxMessageLength - overhead) {
            throw Errors.fail(ErrorKind.TOO_LARGE,
                    "a tensor of %d bytes, with %d for type and shape, can never fit: a message has at most %d", length, overhead,
                    maxMessageLength);
        }
        return (int) (length + overhead);
    }
}
