package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Libc;
import dev.ramway.sys.Poll;
import dev.ramway.sys.Sockets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * The listener's side of the handshakes: one thread for all of them, which waits for all of their sockets at once. None of them can
 * hold up another.
 */
final class BusServer implements Runnable {
    private final String name;
    private final SegmentSpec spec;
    private final ListenOptions options;
    private final Options halves;
    private final BusGuests guests;
    private final boolean onlyOne;
    private final int socket;
    private final int alarm;
    private final BusAcceptQueue queue;
    /** How long a connector may take for each message, in ns. */
    private final long messageNanos;

    private final int own = Libc.geteuid();
    private final Poll poll = new Poll(2 + Facts.HANDSHAKES_MAX);
    private final List<Handshaking> underWay = new ArrayList<>();
    private final CountDownLatch ended = new CountDownLatch(1);
    private final BusPlace place;
    /** With {@link #onlyOne}: its connector has been accepted, so no other one is welcome. */
    private boolean taken;
    /** A descriptor that is closed where there is no other one left, to tell a connector so. */
    private int reserve;
    /** No connector is accepted before this time of {@link System#nanoTime}. */
    private long pausedUntil = System.nanoTime();

    /** The caller keeps the descriptors, and closes them after {@link #awaitEnd}. */
    BusServer(String name, SegmentSpec spec, ListenOptions options, BusGuests guests, int socket, int alarm, BusAcceptQueue queue,
            BusPlace place) {
        this.name = name;
        this.spec = spec;
        this.options = options;
        this.halves = options.halves();
        this.guests = guests;
        this.onlyOne = guests.onlyOne();
        this.socket = socket;
        this.alarm = alarm;
        this.queue = queue;
        this.place = place;
        reserve = place.reserve();
        messageNanos = RingEnd.nanos(options.handshakeTimeout());
    }

    /** What a handshake waits for. */
    private enum Stage {
        /** The connector's HELLO. */
        HELLO(BusHandshake.Type.HELLO),
        /** The end of another handshake: only one connector at a time is welcome. It has said HELLO. */
        IN_LINE(null),
        /** The connector's ACK. It was told that it is welcome, and {@link Handshaking#halves} are attached. */
        ACK(BusHandshake.Type.ACK);

        /** The connector's next message; null: it has nothing to say. */
        final BusHandshake.Type expected;

        Stage(BusHandshake.Type expected) {
            this.expected = expected;
        }
    }

    /** One connector. */
    private static final class Handshaking {
        final BusEnd end;
        Stage stage = Stage.HELLO;
        BusInbox inbox = new BusInbox();
        /** When its time for the next message began. */
        long since = System.nanoTime();
        /** This side's ends, in the stage {@link Stage#ACK}. */
        BusMemory.Halves halves;
        /** It counts among the guests. */
        boolean counts;
        /** Its number in the wait. */
        int index;

        Handshaking(BusEnd end) {
            this.end = end;
        }

        boolean speaks() {
            return stage != Stage.IN_LINE;
        }
    }

    /** Returns once {@link #run} has. An interrupt does not end it, and is kept. */
    void awaitEnd() {
        boolean interrupted = false;
        while (true) {
            try {
                ended.await();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void run() {
        try {
            while (!queue.isOver()) {
                serveOnce();
            }
        } catch (Throwable t) {
            // Nobody listens any more, and calls of accept are told.
            RamwayException why = Errors.fail(ErrorKind.OS, "the listener's thread ended: %s", t);
            why.initCause(t);
            queue.end(why);
        } finally {
            // They are told by the hang-up alone, and wait for the next listener.
            for (Handshaking h : underWay) {
                close(h);
            }
            if (reserve >= 0) {
                Files.close(reserve);
            }
            ended.countDown();
        }
    }

    private void serveOnce() {
        poll.clear();
        int woken = poll.add(alarm);
        long paused = pausedUntil - System.nanoTime();
        long limit = paused > 0 ? paused : Long.MAX_VALUE;
        int connected = paused <= 0 && wantsConnector() ? poll.add(socket) : -1;
        for (Handshaking h : underWay) {
            // A connector in line that hangs up is found out when it is welcomed.
            h.index = h.speaks() ? poll.add(h.end.socket()) : -1;
            limit = h.speaks() ? Math.min(limit, Math.max(left(h), 0)) : limit;
        }
        int error = -poll.await(limit == Long.MAX_VALUE ? -1 : limit);
        if (error > 0) {
            throw Errors.os(error, "waiting for connectors");
        }
        if (poll.ready(woken)) {
            Poll.reset(alarm);
        }
        for (Handshaking h : List.copyOf(underWay)) {
            if (queue.isOver()) {
                return;
            }
            if (h.index >= 0 && (poll.ready(h.index) || left(h) <= 0)) {
                step(h);
            }
        }
        welcomeNextInLine();
        if (connected >= 0 && poll.ready(connected)) {
            acceptAll();
        }
    }

    private long left(Handshaking h) {
        return messageNanos - (System.nanoTime() - h.since);
    }

    private void acceptAll() {
        // Not without end: the handshakes that are under way go on as well.
        for (int accepted = 0; accepted < Facts.HANDSHAKES_MAX && wantsConnector(); accepted++) {
            int fd = Sockets.accept(socket);
            if (fd == -Errno.EAGAIN) {
                return;
            }
            // A connector that is gone already is not the listener's failure.
            if (fd == -Errno.EINTR || fd == -Errno.ECONNABORTED) {
                continue;
            }
            if (fd == -Errno.EMFILE || fd == -Errno.ENFILE) {
                refuseAll(-fd);
                return;
            }
            try {
                if (fd < 0) {
                    throw Errors.os(-fd, "accepting a connection");
                }
                begin(new BusEnd(fd));
            } catch (RamwayException e) {
                queue.offer(null, e);
            }
        }
    }

    /** Whether to accept another connector: not where all that are under way wait in line. */
    private boolean wantsConnector() {
        return queue.wants(Facts.HANDSHAKES_MAX) && (underWay.size() < Facts.HANDSHAKES_MAX
                || underWay.stream().anyMatch(Handshaking::speaks));
    }

    private void begin(BusEnd end) {
        makeRoom();
        Handshaking h = new Handshaking(end);
        underWay.add(h);
        try {
            BusHandshake.checkPeer(end.peer, own, options.allowUids(), "allowUids");
        } catch (RamwayException e) {
            refuse(h, e);
            queue.refuse(e);
            return;
        }
        // What it has said already is no reason to take it for a silent one.
        step(h);
    }

    /** Ends the handshake of the connector that has been silent the longest, where there are as many as there may be. */
    private void makeRoom() {
        while (underWay.size() >= Facts.HANDSHAKES_MAX) {
            Handshaking oldest = oldest(Stage.HELLO);
            if (oldest != null) {
                // What has come meanwhile counts.
                step(oldest);
                if (!underWay.contains(oldest) || oldest.stage != Stage.HELLO) {
                    continue;
                }
            } else {
                oldest = oldest(Stage.ACK);
            }
            if (oldest == null) {
                return;
            }
            fail(oldest, Errors.fail(ErrorKind.TIMED_OUT, "%d handshakes were under way, and this connector was silent the longest",
                    Facts.HANDSHAKES_MAX));
        }
    }

    private Handshaking oldest(Stage stage) {
        return underWay.stream().filter(h -> h.stage == stage).min((a, b) -> Long.signum(a.since - b.since)).orElse(null);
    }

    /** Tells connectors in the backlog that there is no descriptor for them, one after the other by the one in reserve. */
    private void refuseAll(int errno) {
        for (int told = 0; reserve >= 0 && told < Facts.TURNED_AWAY_MAX; told++) {
            Files.close(reserve);
            int fd = Sockets.accept(socket);
            if (fd >= 0) {
                try {
                    BusHandshake.send(fd, BusHandshake.Type.REFUSE, ErrorKind.NO_SPACE, 0, -1);
                } catch (RamwayException gone) {
                    queue.refuse(gone);
                } finally {
                    Files.close(fd);
                }
            }
            reserve = place.reserve();
            if (fd < 0 && fd != -Errno.EINTR && fd != -Errno.ECONNABORTED) {
                break;
            }
        }
        if (reserve < 0) {
            reserve = place.reserve();
        }
        pausedUntil = System.nanoTime() + Facts.ACCEPT_PAUSE_NANOS;
        queue.offer(null, Errors.os(errno, "accepting a connection; those that waited were told. Raise the limit of descriptors "
                + "(ulimit -n, RLIMIT_NOFILE), or close what is not needed"));
    }

    /** Takes what a connector said, or what it did not say in time. */
    private void step(Handshaking h) {
        try {
            BusInbox.Progress progress = h.inbox.fill(h.end.socket());
            if (progress == BusInbox.Progress.PARTIAL) {
                if (left(h) > 0) {
                    return;
                }
                throw h.inbox.silent(h.stage.expected);
            }
            if (progress == BusInbox.Progress.HUNG_UP) {
                throw h.inbox.hungUp(h.stage.expected);
            }
            int status = h.inbox.message(h.stage.expected, 0, guests.use()).status();
            if (h.stage == Stage.ACK && status != 0) {
                throw BusHandshake.statusError(status, "the connector cannot use the memory");
            }
        } catch (RamwayException e) {
            fail(h, e);
            return;
        }
        if (h.stage == Stage.ACK) {
            accepted(h);
        } else if (mayWelcome()) {
            welcome(h);
        } else {
            h.stage = Stage.IN_LINE;
        }
    }

    /** Whether a connector can be told that it is welcome; with {@link #onlyOne} no other one may be, or have been accepted. */
    private boolean mayWelcome() {
        return !onlyOne || !taken && underWay.stream().noneMatch(h -> h.stage == Stage.ACK);
    }

    private void welcomeNextInLine() {
        for (Handshaking h : List.copyOf(underWay)) {
            if (h.stage == Stage.IN_LINE && mayWelcome()) {
                welcome(h);
            }
        }
    }

    /** Makes the memory and sends it. */
    private void welcome(Handshaking h) {
        if (!guests.enter()) {
            fail(h, Errors.fail(ErrorKind.BUSY, "there are as many clients as there may be"));
            return;
        }
        h.counts = true;
        try {
            h.halves = BusMemory.create(name, spec, h.end, halves, guests.use());
        } catch (RamwayException e) {
            // This side's: the caller of accept is to know.
            int errno = e.errno().orElse(0);
            refuse(h, errno == Errno.EMFILE || errno == Errno.ENFILE ? Errors.of(ErrorKind.NO_SPACE, e.detail()) : e);
            queue.offer(null, e);
            return;
        }
        h.stage = Stage.ACK;
        h.inbox = new BusInbox();
        h.since = System.nanoTime();
        try {
            h.end.send(BusHandshake.Type.WELCOME, null, spec.size(), h.end.memory(), guests.use());
        } catch (RamwayException e) {
            fail(h, e);
        }
    }

    private void accepted(Handshaking h) {
        underWay.remove(h);
        taken = true;
        Bus bus = new Bus(h.end, h.halves, 0);
        // The halves have the socket: this is only one user less.
        h.end.release();
        if (!queue.offer(bus, null)) {
            // Nobody takes it any more: the peer is told that we closed.
            bus.close();
            guests.leave();
        }
    }

    /** The connector's fault, and that is all. */
    private void fail(Handshaking h, RamwayException why) {
        if (h.stage == Stage.ACK) {
            drop(h);
        } else {
            refuse(h, why);
        }
        queue.refuse(why);
    }

    /** Tells a connector why it is not served. It may be gone, which changes nothing. */
    private void refuse(Handshaking h, RamwayException why) {
        try {
            h.end.send(BusHandshake.Type.REFUSE, why.kind(), 0, -1, guests.use());
        } catch (RamwayException gone) {
            why.addSuppressed(gone);
        }
        drop(h);
    }

    private void drop(Handshaking h) {
        underWay.remove(h);
        close(h);
    }

    private void close(Handshaking h) {
        if (h.counts) {
            guests.leave();
        }
        h.inbox.discard();
        if (h.halves != null) {
            h.halves.close();
        }
        h.end.release();
    }
}
