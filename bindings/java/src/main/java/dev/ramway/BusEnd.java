package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Poll;
import dev.ramway.sys.Sockets;
import dev.ramway.sys.SysException;

/**
 * What the two halves of one side share: the socket, whose closing is the peer's notice, and the memory, which stays open
 * so that /proc/PID/fd shows the bus to users who may inspect this process.
 *
 * <p>Every use of a descriptor is under the lock: once closed, its number may be another file's. None of them waits.
 */
final class BusEnd {
    /** Who is at the other end, as the kernel recorded it when the connection was made. */
    final Sockets.Credentials peer;

    private int socket;
    private int memory = -1;
    /** The halves, and the handshake while it lasts; the last one closes everything. */
    private int users = 1;

    /** Takes over a connected socket, on failure too. The caller is its first user. */
    BusEnd(int socket) {
        try {
            peer = Sockets.peer(socket);
        } catch (SysException e) {
            Files.close(socket);
            throw Errors.os(e, "asking for the peer's credentials");
        }
        this.socket = socket;
    }

    /** The socket, for a user that waits for it: it stays open until that user's {@link #release}. */
    int socket() {
        return socket;
    }

    /** Takes over the memory, on failure too. During the handshake only. */
    synchronized void keepMemory(int fd) {
        memory = fd;
    }

    int memory() {
        return memory;
    }

    /** Sends a message of the handshake: {@link BusHandshake#send}. */
    void send(BusHandshake.Type type, ErrorKind status, long size, int descriptor, BusUse use) {
        BusHandshake.send(socket, type, status, size, descriptor, use);
    }

    /** Whether the peer closed its end or died, or this end is closed. One system call. */
    synchronized boolean hungUp() {
        return socket < 0 || Poll.hungUp(socket);
    }

    synchronized void addUser() {
        users++;
    }

    /** Ends one user's use. */
    synchronized void release() {
        if (--users > 0) {
            return;
        }
        if (memory >= 0) {
            Files.close(memory);
        }
        Files.close(socket);
        socket = -1;
        memory = -1;
    }

    /** A link of this side to its peer, and from here on one user. */
    Link link() {
        addUser();
        return new EndLink(this);
    }

    private record EndLink(BusEnd end) implements Link {
        @Override
        public boolean peerAlive(Role me) {
            return !end.hungUp();
        }

        @Override
        public void close() {
            end.release();
        }
    }
}
