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
 * The listener's half of the handshakes: one thread for all of them, which waits for whichever socket has something to
 * say. None of them can hold up another.
 */
final class Serve implements Runnable {
    /** How many handshakes run at a time; more connectors wait in the backlog. */
    static final int HANDSHAKES_MAX = 64;

    private static final int ECONNABORTED = 103;
    /** After a failure for want of descriptors, in ns. */
    private static final long PAUSE = 100_000_000;

    private final String name;
    private final Spec spec;
    private final ListenOptions options;
    private final Options halves;
    private final boolean onlyOne;
    private final int socket;
    private final int alarm;
    private final AcceptQueue queue;
    private final long patience;

    private final int own = Libc.geteuid();
    private final Poll poll = new Poll(2 + HANDSHAKES_MAX);
    private final List<Handshaking> underWay = new ArrayList<>();
    private final CountDownLatch ended = new CountDownLatch(1);
    /** Somebody was told to be welcome, and has not failed. Counts where only one is to be. */
    private boolean welcomed;
    private final Place place;
    /** A descriptor of nothing that matters, to be let go where there is no other. */
    private int reserve;
    /** Accepting has failed, at that time. */
    private boolean pausing;
    private long failed;

    /** The caller keeps the descriptors, and closes them after {@link #awaitEnd}. */
    Serve(String name, Spec spec, ListenOptions options, boolean onlyOne, int socket, int alarm, AcceptQueue queue,
            Place place) {
        this.name = name;
        this.spec = spec;
        this.options = options;
        this.halves = options.halves();
        this.onlyOne = onlyOne;
        this.socket = socket;
        this.alarm = alarm;
        this.queue = queue;
        this.place = place;
        reserve = place.reserve();
        patience = RingEnd.nanos(options.handshakeTimeout());
    }

    /** One connector. */
    private static final class Handshaking {
        final BusEnd end;
        Inbox inbox = new Inbox();
        Handshake.Type expected = Handshake.Type.HELLO;
        /** When its time for the next message began. */
        long since = System.nanoTime();
        /** Once it was told to be welcome. */
        BusMemory.Halves attached;
        /** It has said HELLO and another one is welcome at the moment. */
        boolean inLine;
        /** Its number in the wait. */
        int index;

        Handshaking(BusEnd end) {
            this.end = end;
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
                round();
            }
        } catch (Throwable t) {
            // Nobody listens any more, and those who ask are told.
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

    private void round() {
        poll.clear();
        int woken = poll.add(alarm);
        long limit = Long.MAX_VALUE;
        if (pausing) {
            long left = PAUSE - (System.nanoTime() - failed);
            pausing = left > 0;
            limit = pausing ? left : limit;
        }
        int connected = !pausing && queue.wants(HANDSHAKES_MAX) && hasRoom() ? poll.add(socket) : -1;
        for (Handshaking h : underWay) {
            // A peer in line that hangs up is found out when its turn comes.
            h.index = h.inLine ? -1 : poll.add(h.end.socket());
            limit = h.inLine ? limit : Math.min(limit, Math.max(left(h), 0));
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
            if (!h.inLine && (poll.ready(h.index) || left(h) <= 0)) {
                step(h);
            }
        }
        nextInLine();
        if (connected >= 0 && poll.ready(connected)) {
            acceptAll();
        }
    }

    private long left(Handshaking h) {
        return patience - (System.nanoTime() - h.since);
    }

    private void acceptAll() {
        // Those that are under way have their turn as well.
        for (int taken = 0; taken < HANDSHAKES_MAX && queue.wants(HANDSHAKES_MAX) && hasRoom(); taken++) {
            int fd = Sockets.accept(socket);
            if (fd == -Errno.EAGAIN) {
                return;
            }
            // A connector that is gone already is not the listener's failure.
            if (fd == -Errno.EINTR || fd == -ECONNABORTED) {
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

    /** Whether another connector can be taken: not where all that are under way wait for their turn. */
    private boolean hasRoom() {
        return underWay.size() < HANDSHAKES_MAX || underWay.stream().anyMatch(h -> !h.inLine);
    }

    private void begin(BusEnd end) {
        makeRoom();
        Handshaking h = new Handshaking(end);
        underWay.add(h);
        try {
            Handshake.checkPeer(end.peer, own, options.allowUids(), "allowUids");
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
        while (underWay.size() >= HANDSHAKES_MAX) {
            Handshaking oldest = oldest(Handshake.Type.HELLO);
            if (oldest != null) {
                // A last look at what has come.
                step(oldest);
                if (!underWay.contains(oldest) || oldest.expected != Handshake.Type.HELLO || oldest.inLine) {
                    continue;
                }
            } else {
                oldest = oldest(Handshake.Type.ACK);
            }
            if (oldest == null) {
                return;
            }
            fail(oldest, Errors.fail(ErrorKind.TIMED_OUT, "%d handshakes were under way, and this connector was silent the longest",
                    HANDSHAKES_MAX));
        }
    }

    private Handshaking oldest(Handshake.Type expected) {
        Handshaking oldest = null;
        for (Handshaking h : underWay) {
            if (h.expected == expected && !h.inLine && (oldest == null || h.since - oldest.since < 0)) {
                oldest = h;
            }
        }
        return oldest;
    }

    /** Tells everybody in the backlog that there is no descriptor for them, one after the other by the one in reserve. */
    private void refuseAll(int errno) {
        while (reserve >= 0) {
            Files.close(reserve);
            int fd = Sockets.accept(socket);
            if (fd >= 0) {
                try {
                    Handshake.send(fd, Handshake.Type.REFUSE, ErrorKind.NO_SPACE, 0, -1);
                } catch (RamwayException gone) {
                    queue.refuse(gone);
                } finally {
                    Files.close(fd);
                }
            }
            reserve = place.reserve();
            if (fd < 0 && fd != -Errno.EINTR && fd != -ECONNABORTED) {
                break;
            }
        }
        if (reserve < 0) {
            reserve = place.reserve();
        }
        pausing = true;
        failed = System.nanoTime();
        queue.offer(null, Errors.os(errno, "accepting a connection; those that waited were told. Raise the limit of descriptors "
                + "(ulimit -n, RLIMIT_NOFILE), or close what is not needed"));
    }

    /** Takes what a connector said, or what it did not say in time. */
    private void step(Handshaking h) {
        try {
            Inbox.Progress progress = h.inbox.fill(h.end.socket());
            if (progress == Inbox.Progress.PARTIAL) {
                if (left(h) > 0) {
                    return;
                }
                throw h.inbox.silent(h.expected);
            }
            if (progress == Inbox.Progress.HUNG_UP) {
                throw h.inbox.hungUp(h.expected);
            }
            int status = h.inbox.message(h.expected, 0).status();
            if (h.expected == Handshake.Type.ACK && status != 0) {
                throw Handshake.statusError(status, "the connector cannot use the memory");
            }
        } catch (RamwayException e) {
            fail(h, e);
            return;
        }
        if (h.expected == Handshake.Type.ACK) {
            accepted(h);
        } else if (onlyOne && welcomed) {
            h.inLine = true;
        } else {
            welcome(h);
        }
    }

    private void nextInLine() {
        for (int i = 0; i < underWay.size() && !welcomed; i++) {
            if (underWay.get(i).inLine) {
                welcome(underWay.get(i--));
            }
        }
    }

    /** Makes the memory and sends it. */
    private void welcome(Handshaking h) {
        h.inLine = false;
        welcomed = true;
        try {
            h.attached = BusMemory.create(name, spec, h.end, halves);
        } catch (RamwayException e) {
            // This side's: whoever calls accept is to know.
            welcomed = false;
            int errno = e.errno().orElse(0);
            refuse(h, errno == Errno.EMFILE || errno == Errno.ENFILE ? Errors.of(ErrorKind.NO_SPACE, e.detail()) : e);
            queue.offer(null, e);
            return;
        }
        h.expected = Handshake.Type.ACK;
        h.inbox = new Inbox();
        h.since = System.nanoTime();
        try {
            h.end.send(Handshake.Type.WELCOME, null, spec.size(), h.end.memory());
        } catch (RamwayException e) {
            fail(h, e);
        }
    }

    private void accepted(Handshaking h) {
        underWay.remove(h);
        Bus bus = new Bus(h.end, h.attached);
        // The halves have the socket: this is only one user less.
        h.end.release();
        if (!queue.offer(bus, null)) {
            // Nobody takes it any more: the peer is told that we closed.
            bus.close();
        }
    }

    /** The connector's fault, and that is all. */
    private void fail(Handshaking h, RamwayException why) {
        if (h.expected == Handshake.Type.HELLO) {
            refuse(h, why);
        } else {
            welcomed = false;
            drop(h);
        }
        queue.refuse(why);
    }

    /** Tells a connector why it is not served. It may be gone, which changes nothing. */
    private void refuse(Handshaking h, RamwayException why) {
        try {
            h.end.send(Handshake.Type.REFUSE, why.kind(), 0, -1);
        } catch (RamwayException gone) {
            why.addSuppressed(gone);
        }
        drop(h);
    }

    private void drop(Handshaking h) {
        underWay.remove(h);
        close(h);
    }

    private static void close(Handshaking h) {
        h.inbox.discard();
        if (h.attached != null) {
            h.attached.close();
        }
        h.end.release();
    }
}
