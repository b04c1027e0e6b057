package dev.ramway;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** The frames of RPC, to bytes and back, with every check that a frame allows by itself (ABI.md, section 20). No state, no waiting. */
final class RpcFrames {
    static final byte[] NONE = {};
    /** What fills up metadata. */
    static final byte[] ZEROS = new byte[Facts.RPC_HEADER];
    /** The largest number of a u32. */
    static final long U32_MAX = 0xFFFF_FFFFL;

    private RpcFrames() {}

    /** What a server receives. */
    sealed interface FromClient permits Call, Cancel, Credit {
        /** The call's id. */
        long id();
    }

    /**
     * The header of a CALL. Nothing is copied yet.
     *
     * @param timeoutMicros unsigned; 0: no limit
     * @param method unsigned
     * @param window unsigned; 0: one reply
     */
    record Call(long id, int timeoutMicros, int method, int window, int metaLength) implements FromClient {
        byte[] meta(Message message) {
            return RpcFrames.meta(message, metaLength);
        }

        byte[] body(Message message) {
            return RpcFrames.body(message, metaLength);
        }
    }

    /** A CANCEL. */
    record Cancel(long id) implements FromClient {}

    /** A CREDIT of n elements. */
    record Credit(long id, long n) implements FromClient {}

    /**
     * A REPLY.
     *
     * @param code unsigned
     */
    record Reply(long id, RpcStatus status, boolean element, int code, byte[] meta, byte[] body) {
        /** What its copies count. */
        long bytes() {
            return (long) meta.length + body.length;
        }
    }

    /** The number of a method's name: FNV-1a, and out of the numbers that are Ramway's own. */
    static int methodId(String name) {
        int hash = 0x811C9DC5;
        for (byte each : name.getBytes(StandardCharsets.UTF_8)) {
            hash = (hash ^ each & 0xFF) * 0x01000193;
        }
        return isReserved(hash) ? hash - Facts.METHOD_RESERVED : hash;
    }

    /** Whether a method is Ramway's own. */
    static boolean isReserved(int method) {
        return Integer.compareUnsigned(method, Facts.METHOD_RESERVED) >= 0;
    }

    /** What fills metadata of this length up. */
    static int padding(int length) {
        return -length & Facts.RPC_HEADER - 1;
    }

    /** The payload's length. */
    static long length(byte[] header, byte[] meta, byte[] body) {
        return (header == null ? 0 : header.length) + (long) meta.length + padding(meta.length) + body.length;
    }

    static byte[] callHeader(int timeoutMicros, int metaLength, int method, int window) {
        return header().putInt(Facts.CALL_OFF_TIMEOUT_US, timeoutMicros).putInt(Facts.CALL_OFF_META_LEN, metaLength)
                .putInt(Facts.CALL_OFF_METHOD, method).putInt(Facts.CALL_OFF_WINDOW, window).array();
    }

    static byte[] replyHeader(RpcStatus status, boolean element, int code, int metaLength) {
        return header().putInt(Facts.REPLY_OFF_STATUS, status.number()).putInt(Facts.REPLY_OFF_FLAGS, element ? Facts.RPC_ELEMENT : 0)
                .putInt(Facts.REPLY_OFF_CODE, code).putInt(Facts.REPLY_OFF_META_LEN, metaLength).array();
    }

    /** The payload of a CREDIT, 1 to {@link #U32_MAX}. */
    static byte[] credit(long n) {
        return ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(0, (int) n).array();
    }

    private static ByteBuffer header() {
        return ByteBuffer.allocate(Facts.RPC_HEADER).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The microseconds that a CALL says it has left: rounded up, at least 1; 0 where there is no limit or more than can be said. */
    static int timeoutMicros(long nanos) {
        if (nanos == RingEnd.FOREVER) {
            return 0;
        }
        long micros = nanos <= 0 ? 1 : (nanos - 1) / 1000 + 1;
        return micros > U32_MAX ? 0 : (int) micros;
    }

    /** What a client sent. Corrupt is thrown. */
    static FromClient fromClient(Message message) {
        long id = message.tag();
        switch (message.typeId()) {
            case Facts.TYPE_ID_CALL -> {
                ByteBuffer b = header(message, Facts.CALL_OFF_META_LEN, "a CALL");
                return new Call(id, b.getInt(Facts.CALL_OFF_TIMEOUT_US), b.getInt(Facts.CALL_OFF_METHOD), b.getInt(Facts.CALL_OFF_WINDOW),
                        b.getInt(Facts.CALL_OFF_META_LEN));
            }
            case Facts.TYPE_ID_CANCEL -> {
                if (message.length() != 0) {
                    throw corrupt("a CANCEL of %d bytes, expected none", message.length());
                }
                return new Cancel(id);
            }
            case Facts.TYPE_ID_CREDIT -> {
                if (message.length() != Integer.BYTES) {
                    throw corrupt("a CREDIT of %d bytes, expected 4", message.length());
                }
                long n = message.getInt(0) & U32_MAX;
                if (n == 0) {
                    throw corrupt("a CREDIT of 0 elements");
                }
                return new Credit(id, n);
            }
            default -> throw corrupt("a frame of type %#x, which no client sends", message.typeId());
        }
    }

    /** What a server sent, copied. Corrupt is thrown. */
    static Reply fromServer(Message message) {
        if (message.typeId() != Facts.TYPE_ID_REPLY) {
            throw corrupt("a frame of type %#x, which no server sends", message.typeId());
        }
        ByteBuffer b = header(message, Facts.REPLY_OFF_META_LEN, "a REPLY");
        RpcStatus status = RpcStatus.of(b.getInt(Facts.REPLY_OFF_STATUS));
        int flags = b.getInt(Facts.REPLY_OFF_FLAGS);
        int code = b.getInt(Facts.REPLY_OFF_CODE);
        int metaLength = b.getInt(Facts.REPLY_OFF_META_LEN);
        if (status == null) {
            throw corrupt("a REPLY with the unknown status %s", Integer.toUnsignedString(b.getInt(Facts.REPLY_OFF_STATUS)));
        }
        if ((flags & ~Facts.RPC_ELEMENT) != 0) {
            throw corrupt("a REPLY with the flags %#x", flags);
        }
        boolean element = flags != 0;
        if (element && status != RpcStatus.OK) {
            throw corrupt("an element with the status %s", status);
        }
        if (code != 0 && status != RpcStatus.APPLICATION) {
            throw corrupt("a REPLY with the code %s and the status %s", Integer.toUnsignedString(code), status);
        }
        return new Reply(message.tag(), status, element, code, meta(message, metaLength), body(message, metaLength));
    }

    /**
     * The header in memory of this process's own, by which everything is decided: a peer that rewrites what it sent cannot pass a check
     * with one value and be used with another.
     */
    private static ByteBuffer header(Message message, int metaLengthAt, String what) {
        int length = message.length();
        if (length < Facts.RPC_HEADER) {
            throw corrupt("%s of %d bytes, less than its header", what, length);
        }
        ByteBuffer header = ByteBuffer.wrap(message.copyOf(0, Facts.RPC_HEADER)).order(ByteOrder.LITTLE_ENDIAN);
        long meta = header.getInt(metaLengthAt) & U32_MAX;
        if (Facts.RPC_HEADER + (meta + Facts.RPC_HEADER - 1 & -Facts.RPC_HEADER) > length) {
            throw corrupt("%s of %d bytes with %d bytes of metadata", what, length, meta);
        }
        return header;
    }

    private static byte[] meta(Message message, int length) {
        return length == 0 ? NONE : message.copyOf(Facts.RPC_HEADER, length);
    }

    private static byte[] body(Message message, int metaLength) {
        int from = Facts.RPC_HEADER + metaLength + padding(metaLength);
        return from == message.length() ? NONE : message.copyOf(from, message.length() - from);
    }

    static RamwayException corrupt(String format, Object... arguments) {
        return Errors.fail(ErrorKind.CORRUPT, "the other side sent " + format + ": the connection is over", arguments);
    }
}
