package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Libc;
import dev.ramway.sys.Sockets;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/** One call of {@link Bus#connect}. Its waits are sleeps: they hold no carrier of a virtual thread, and an interrupt ends them. */
final class BusConnector {
    // Between two checks for an answer, in nanoseconds: a connection is made once, so a slow check is no loss.
    private static final long CHECK_MIN = 20_000;
    private static final long CHECK_MAX = 2_000_000;

    private final String name;
    private final ConnectOptions options;
    private final Options halves;
    private final BusUse use;
    private final long start = System.nanoTime();
    private final long limit;
    /** What to say if no further attempt fares better. */
    private RamwayException miss;

    BusConnector(String name, ConnectOptions options, BusUse use) {
        this.use = use;
        this.name = Objects.requireNonNull(name, "name");
        this.options = Objects.requireNonNull(options, "options");
        limit = RingEnd.nanos(options.timeout());
        halves = Options.DEFAULT.withWaitMode(options.waitMode()).withMembarrier(options.membarrier());
    }

    Bus connect() throws InterruptedException {
        for (long pause = Facts.CONNECT_PAUSE_MIN_NANOS;; pause = Math.min(2 * pause, Facts.CONNECT_PAUSE_MAX_NANOS)) {
            try {
                Bus bus = attempt();
                if (bus != null) {
                    return bus;
                }
            } catch (RamwayException e) {
                throw Errors.about(e, "connecting to the bus", name);
            }
            long left = left();
            if (left <= 0) {
                long took = Math.round((System.nanoTime() - start) / 1e6);
                throw Errors.about(miss, "connecting for " + took + " ms to the bus", name);
            }
            sleep(Math.min(pause, left));
        }
    }

    private long left() {
        return limit - (System.nanoTime() - start);
    }

    private static void sleep(long nanos) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(Math.max(nanos, 1));
    }

    /** Tries once. Without a bus it may be tried again; {@link #miss} is what to say if it stays so. */
    private Bus attempt() throws InterruptedException {
        BusPlace at;
        try {
            at = BusPlace.resolve(name, false);
        } catch (RamwayException e) {
            return again(e, e.kind() == ErrorKind.NOT_FOUND);
        }
        BusEnd end;
        try (at) {
            end = dial(at);
        }
        if (end == null) {
            return null;
        }
        // Once the halves have the socket, this is only one user less.
        try {
            BusHandshake.checkPeer(end.peer, Libc.geteuid(), options.allowUids(), "allowUids");
            return greet(end);
        } finally {
            end.release();
        }
    }

    /** Makes an error what to say if it stays so, or the end of all attempts. */
    private Bus again(RamwayException e, boolean retry) {
        if (!retry) {
            throw e;
        }
        miss = e;
        return null;
    }

    private static RamwayException listenerGone() {
        return Errors.fail(ErrorKind.NOT_FOUND, "the listener went away before it served us, and no other one came");
    }

    /** Connects a socket. Without one, {@link #miss} says why. */
    private BusEnd dial(BusPlace at) {
        int fd = Errors.checked(Sockets.stream(), "making a socket");
        int error;
        try {
            error = -at.connect(fd);
        } catch (Throwable t) {
            Files.close(fd);
            throw t;
        }
        if (error == 0) {
            return new BusEnd(fd);
        }
        Files.close(fd);
        switch (error) {
            case Errno.EAGAIN, Errno.EINPROGRESS, Errno.EINTR -> miss = Errors.fail(ErrorKind.TIMED_OUT,
                    "the backlog of %s stayed full: its listener does not accept as fast as others connect", at.socketPath());
            // What is not a socket is refused.
            case Errno.ENOENT, Errno.ECONNREFUSED -> miss = at.missed(error == Errno.ENOENT);
            default -> {
                RamwayException failure = Errors.os(error, "connecting to " + at.socketPath());
                again(failure, failure.kind() == ErrorKind.PERMISSION_DENIED && System.nanoTime() - start < Facts.PERMISSION_GRACE_NANOS);
            }
        }
        return null;
    }

    /**
     * Says HELLO, waits for the memory, and attaches to it. null if the listener ended before it served us, or is silent:
     * this process was stopped for longer than the listener waits, or the listener accepts nobody.
     */
    private Bus greet(BusEnd end) throws InterruptedException {
        try {
            end.send(BusHandshake.Type.HELLO, null, 0, -1, use);
        } catch (RamwayException e) {
            // A listener that refuses has answered and hung up already: its answer can still be read.
            if (e.kind() != ErrorKind.PEER_DEAD) {
                throw e;
            }
        }
        BusInbox inbox = new BusInbox();
        try {
            BusInbox.Progress progress = receive(end, inbox);
            if (progress == BusInbox.Progress.HUNG_UP && inbox.filled() == 0) {
                return again(listenerGone(), true);
            }
            if (progress == BusInbox.Progress.HUNG_UP) {
                throw inbox.hungUp(BusHandshake.Type.WELCOME);
            }
            if (progress == BusInbox.Progress.PARTIAL) {
                return again(Errors.fail(ErrorKind.TIMED_OUT,
                        "the listener did not answer in time: is it accepting? (%d of 64 bytes came)", inbox.filled()), true);
            }
            BusHandshake.Content welcome;
            try {
                welcome = inbox.message(BusHandshake.Type.WELCOME, 1, use);
            } catch (RamwayException e) {
                return again(e, e.kind() == ErrorKind.TIMED_OUT);
            }
            return join(end, inbox.takeDescriptor(), welcome);
        } finally {
            inbox.discard();
        }
    }

    /** Until a message is whole, the other side hangs up, or the time is over (PARTIAL). */
    private BusInbox.Progress receive(BusEnd end, BusInbox inbox) throws InterruptedException {
        for (long pause = CHECK_MIN;; pause = Math.min(2 * pause, CHECK_MAX)) {
            BusInbox.Progress progress = inbox.fill(end.socket());
            long left = left();
            if (progress != BusInbox.Progress.PARTIAL || left <= 0) {
                return progress;
            }
            sleep(Math.min(pause, left));
        }
    }

    private Bus join(BusEnd end, int memory, BusHandshake.Content welcome) {
        BusMemory.Halves attached;
        try {
            attached = BusMemory.open(name, memory, welcome.size(), end, halves, use);
        } catch (RamwayException e) {
            try {
                end.send(BusHandshake.Type.ACK, e.kind(), 0, -1, use);
            } catch (RamwayException gone) {
                e.addSuppressed(gone);
            }
            throw e;
        }
        try {
            end.send(BusHandshake.Type.ACK, null, 0, -1, use);
        } catch (RamwayException e) {
            // A listener that has the ACK has accepted us: if it has hung up since, what it sent is to be received first.
            attached.close();
            return again(listenerGone(), true);
        }
        return new Bus(end, attached, welcome.maxInFlight());
    }
}
