package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Sockets;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Set;

/** How two strangers agree on a bus: section 12 of docs/ABI.md. Nothing here waits. */
final class BusHandshake {
    private BusHandshake() {}

    /** What a message is. */
    enum Type {
        HELLO(Facts.HANDSHAKE_HELLO),
        WELCOME(Facts.HANDSHAKE_WELCOME),
        REFUSE(Facts.HANDSHAKE_REFUSE),
        ACK(Facts.HANDSHAKE_ACK);

        private final int number;

        Type(int number) {
            this.number = number;
        }

        int number() {
            return number;
        }
    }

    /**
     * What a message says.
     *
     * @param status counts in REFUSE and ACK
     * @param size counts in WELCOME
     * @param maxInFlight counts in WELCOME of an RPC's bus; unsigned
     */
    record Content(int status, long size, int maxInFlight) {
        Content(int status, long size) {
            this(status, size, 0);
        }
    }

    /** A message; status and size are 0 where they do not count. */
    static byte[] encode(Type type, ErrorKind status, long size) {
        return encode(type, status, size, BusUse.PLAIN);
    }

    /** A message of a handshake about a bus for this use. */
    static byte[] encode(Type type, ErrorKind status, long size, BusUse use) {
        ByteBuffer b = ByteBuffer.allocate(Facts.HANDSHAKE_SIZE).order(ByteOrder.LITTLE_ENDIAN);
        b.putLong(Facts.HANDSHAKE_OFF_MAGIC, Facts.HANDSHAKE_MAGIC);
        b.putInt(Facts.HANDSHAKE_OFF_BYTE_ORDER, Facts.BYTE_ORDER);
        b.putShort(Facts.HANDSHAKE_OFF_MAJOR, (short) Facts.HANDSHAKE_MAJOR);
        b.putShort(Facts.HANDSHAKE_OFF_MINOR, (short) Facts.HANDSHAKE_MINOR);
        b.putInt(Facts.HANDSHAKE_OFF_TYPE, type.number());
        b.putInt(Facts.HANDSHAKE_OFF_STATUS, status == null ? 0 : status.number());
        b.putLong(Facts.HANDSHAKE_OFF_SIZE, size);
        if (type == Type.HELLO || type == Type.WELCOME) {
            b.putInt(Facts.HANDSHAKE_OFF_FEATURES_REQUIRED, use.features());
        }
        if (type == Type.WELCOME) {
            b.putInt(Facts.HANDSHAKE_OFF_MAX_IN_FLIGHT, use.maxInFlight());
        }
        return b.array();
    }

    /**
     * Reads a message that must be of this type. A REFUSE in WELCOME's place is the error that it carries, in every
     * version: the fields up to the status stay where they are forever.
     */
    static Content decode(byte[] message, Type expected) {
        return decode(message, expected, BusUse.PLAIN);
    }

    /** {@link #decode(byte[], Type)} where the bus must be for this use. */
    static Content decode(byte[] message, Type expected, BusUse use) {
        ByteBuffer b = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
        if (b.getLong(Facts.HANDSHAKE_OFF_MAGIC) != Facts.HANDSHAKE_MAGIC) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the other side does not speak Ramway's bus handshake");
        }
        if (b.getInt(Facts.HANDSHAKE_OFF_BYTE_ORDER) != Facts.BYTE_ORDER) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the other side has another byte order");
        }
        int type = b.getInt(Facts.HANDSHAKE_OFF_TYPE);
        int status = b.getInt(Facts.HANDSHAKE_OFF_STATUS);
        if (type == Type.REFUSE.number() && expected == Type.WELCOME) {
            if (status == ErrorKind.NO_SPACE.number()) {
                throw Errors.of(ErrorKind.NO_SPACE, "the listener refused: it has no memory or descriptors left (NoSpace)");
            }
            throw statusError(status, "the listener refused");
        }
        int major = Short.toUnsignedInt(b.getShort(Facts.HANDSHAKE_OFF_MAJOR));
        if (major != Facts.HANDSHAKE_MAJOR) {
            throw Errors.fail(ErrorKind.ABI_MISMATCH, "the other side speaks version %d of the handshake, this one %d", major,
                    Facts.HANDSHAKE_MAJOR);
        }
        int features = b.getInt(Facts.HANDSHAKE_OFF_FEATURES_REQUIRED);
        boolean about = type == Type.HELLO.number() || type == Type.WELCOME.number();
        use.check(about ? features : features | use.features(), "the other side");
        if (type != expected.number()) {
            throw Errors.fail(ErrorKind.CORRUPT, "the other side sent a message of type %s, expected %s",
                    Integer.toUnsignedString(type), expected);
        }
        int maxInFlight = b.getInt(Facts.HANDSHAKE_OFF_MAX_IN_FLIGHT);
        if (expected == Type.WELCOME && use.isRpc() && maxInFlight == 0) {
            throw Errors.fail(ErrorKind.CORRUPT, "the server allows no call in flight, expected at least 1");
        }
        return new Content(status, b.getLong(Facts.HANDSHAKE_OFF_SIZE), maxInFlight);
    }

    /** The error that a status stands for; one that this version does not know is Os. */
    static RamwayException statusError(int status, String who) {
        ErrorKind kind = ErrorKind.of(status);
        if (kind == null) {
            return Errors.fail(ErrorKind.OS, "%s with the unknown error number %s", who, Integer.toUnsignedString(status));
        }
        return Errors.fail(kind, "%s: %s (%s)", who, kind.summary(), kind.formatName());
    }

    /**
     * Sends a message, with a descriptor unless that is negative. An error only says that the other side is gone or does not read.
     */
    static void send(int socket, Type type, ErrorKind status, long size, int descriptor) {
        send(socket, type, status, size, descriptor, BusUse.PLAIN);
    }

    /** {@link #send(int, Type, ErrorKind, long, int)} about a bus for this use. */
    static void send(int socket, Type type, ErrorKind status, long size, int descriptor, BusUse use) {
        int error = -Sockets.send(socket, encode(type, status, size, use), descriptor);
        if (error == Errno.EPIPE || error == Errno.ECONNRESET) {
            throw Errors.fail(ErrorKind.PEER_DEAD, "the other side hung up before %s", type);
        }
        if (error != 0) {
            throw Errors.os(error, "sending " + type);
        }
    }

    /**
     * Says whether the other end is a user that we deal with: our own or one that was named; never the one that stands for
     * all users without a number here.
     */
    static void checkPeer(Sockets.Credentials peer, int own, Set<Integer> others, String option) {
        int uid = peer.uid();
        if (uid == Sockets.overflowUid() || uid == -1) {
            throw Errors.fail(ErrorKind.PERMISSION_DENIED,
                    "the other side's user has no number here (it shows as %s), so nothing says who it is",
                    Integer.toUnsignedString(uid));
        }
        if (uid != own && !others.contains(uid)) {
            throw Errors.fail(ErrorKind.PERMISSION_DENIED,
                    "the other side is user %s, we are user %s; name it in %s if it may take part",
                    Integer.toUnsignedString(uid), Integer.toUnsignedString(own), option);
        }
    }
}
