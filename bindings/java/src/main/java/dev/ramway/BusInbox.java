package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Sockets;

/** A message of a handshake that arrives in pieces, and the descriptors that came with it. For one thread. */
final class BusInbox {
    private final byte[] bytes = new byte[Facts.HANDSHAKE_SIZE];
    private int filled;
    /** The first one that came; -1 if none has. */
    private int descriptor = -1;
    /** How many came in all. Those beyond the first are closed on arrival. */
    private int descriptors;

    /** How far it has arrived. */
    enum Progress { PARTIAL, WHOLE, HUNG_UP }

    int filled() {
        return filled;
    }

    /** Takes what is there without waiting, and not one byte beyond the message. */
    Progress fill(int socket) {
        while (filled < bytes.length) {
            Sockets.Received got = Sockets.receive(socket, bytes, filled, bytes.length - filled);
            int error = -got.count();
            if (error == Errno.EAGAIN) {
                return Progress.PARTIAL;
            }
            if (error == Errno.ECONNRESET || error == Errno.EPIPE) {
                return Progress.HUNG_UP;
            }
            if (error > 0) {
                throw Errors.os(error, "receiving the bus handshake");
            }
            take(got);
            if (got.count() == 0) {
                return Progress.HUNG_UP;
            }
            filled += got.count();
        }
        return Progress.WHOLE;
    }

    private void take(Sockets.Received got) {
        descriptors += got.descriptors().length + (got.truncated() ? 1 : 0);
        for (int fd : got.descriptors()) {
            if (descriptor < 0) {
                descriptor = fd;
            } else {
                Files.close(fd);
            }
        }
    }

    /** Decodes what is whole, if it came with exactly this many descriptors. */
    BusHandshake.Content message(BusHandshake.Type expected, int wanted) {
        return message(expected, wanted, BusUse.PLAIN);
    }

    /** {@link #message(BusHandshake.Type, int)} about a bus for this use. */
    BusHandshake.Content message(BusHandshake.Type expected, int wanted, BusUse use) {
        BusHandshake.Content content = BusHandshake.decode(bytes, expected, use);
        if (descriptors != wanted) {
            throw Errors.fail(ErrorKind.CORRUPT, "%s came with %d descriptors, expected %d; they are closed", expected, descriptors,
                    wanted);
        }
        if (wanted == 1 && descriptor < 0) {
            // The kernel had one for us and could not install it.
            throw Errors.os(Errno.EMFILE, "receiving the descriptor of WELCOME");
        }
        return content;
    }

    /** Hands the descriptor over: the caller closes it. */
    int takeDescriptor() {
        int fd = descriptor;
        descriptor = -1;
        return fd;
    }

    /** Closes a descriptor that nobody took. */
    void discard() {
        if (descriptor >= 0) {
            Files.close(takeDescriptor());
        }
    }

    /** What to say if the other side goes before its message is whole. */
    RamwayException hungUp(BusHandshake.Type expected) {
        return Errors.fail(ErrorKind.PEER_DEAD, "the other side hung up after %d of the 64 bytes of %s", filled, expected);
    }

    /** What to say if its time is over before. */
    RamwayException silent(BusHandshake.Type expected) {
        return Errors.fail(ErrorKind.TIMED_OUT, "only %d of the 64 bytes of %s came before the deadline", filled, expected);
    }
}
