package dev.ramway;

import dev.ramway.sys.Files;
import java.time.Duration;
import java.util.function.Consumer;

/** Opening or creating one named segment: everything that it needs to know, and what it holds between attempts. */
final class Named {
    /** How long races with others (a segment that is just going away) are retried at least. */
    private static final long RACE_NANOS = 1_000_000_000L;
    private static final long PAUSE_MIN = 100_000;
    private static final long PAUSE_MAX = 10_000_000;

    final String name;
    final How how;
    /** What an existing segment must be. */
    final int kind;
    /** What to make; null if nothing is to be made. */
    final Spec spec;
    /** The byte to lock exclusively, or {@link NamedLink#NO_ROLE}. */
    final int roleByte;
    /** Read-only handles take no role and create nothing. */
    final boolean readOnly;
    final Options options;
    /** Is asked about an existing segment before it is locked: what it throws keeps it untouched. */
    private final Consumer<Header> check;
    /**
     * A segment whose role is taken, kept between attempts. With its byte 0 held, nobody is the last one out: if the role's
     * holder goes, its ring is still there to be taken over. Letting go between attempts would make us the last one out of a
     * ring whose holder died just then, and remove what we were waiting for.
     */
    private Segment waiting;

    Named(String name, How how, int kind, Spec spec, int roleByte, boolean readOnly, Options options, Consumer<Header> check) {
        this.name = name;
        this.how = how;
        this.kind = kind;
        this.spec = spec;
        this.roleByte = roleByte;
        this.readOnly = readOnly;
        this.options = options;
        this.check = check;
    }

    /**
     * Creates or opens the segment and locks it. It blocks only as the time-out says, and up to a second against others who
     * are just creating or removing the same name.
     */
    Segment open() {
        String tried = how.verb() + " the " + Layout.kindName(kind);
        Birth birth = new Birth(this);
        try {
            return retry(RingEnd.nanos(options.timeout()), () -> attempt(birth));
        } catch (RamwayException e) {
            throw Errors.about(e, tried, name);
        } finally {
            birth.drop();
            stopWaiting();
        }
    }

    /** Something that may have to be tried again. */
    interface Attempt<T> {
        T make() throws Later;
    }

    /** What the first attempt gives that is not to be made again, within so many nanoseconds. */
    static <T> T retry(long timeout, Attempt<T> attempt) {
        long start = System.nanoTime();
        for (long pause = PAUSE_MIN;; pause = Math.min(2 * pause, PAUSE_MAX)) {
            try {
                return attempt.make();
            } catch (Later again) {
                long limit = again.race ? Math.max(timeout, RACE_NANOS) : timeout;
                long left = limit - (System.nanoTime() - start);
                if (left <= 0) {
                    throw again.error;
                }
                sleep(Math.min(pause, left));
            }
        }
    }

    private static void sleep(long nanos) {
        try {
            Thread.sleep(Duration.ofNanos(nanos));
        } catch (InterruptedException e) {
            // The caller's method does not declare it: its thread is told in the usual other way.
            Thread.currentThread().interrupt();
            throw Errors.of(ErrorKind.INTERRUPTED, "the thread was interrupted while it waited");
        }
    }

    private Segment attempt(Birth birth) throws Later {
        SegmentName place;
        try {
            place = SegmentName.resolve(name, how != How.OPEN);
        } catch (RamwayException e) {
            if (how == How.OPEN && e.kind() == ErrorKind.NOT_FOUND) {
                throw Later.absent(e);
            }
            throw e;
        }
        try (place) {
            if (how == How.CREATE) {
                return birth.create(place);
            }
            try {
                return openOnce(place);
            } catch (Later again) {
                if (how == How.OPEN || !again.absent) {
                    throw again;
                }
            }
            return createInstead(place, birth);
        }
    }

    private static Segment createInstead(SegmentName place, Birth birth) throws Later {
        try {
            return birth.create(place);
        } catch (RamwayException e) {
            // Somebody was faster: what they made is to be opened.
            if (e.kind() == ErrorKind.ALREADY_EXISTS) {
                throw Later.raced(e);
            }
            throw e;
        }
    }

    private Segment openOnce(SegmentName place) throws Later {
        if (waiting != null) {
            if (SegmentFile.leadsTo(place.dir, place.file, waiting.link().id)) {
                return takeRole(waiting);
            }
            stopWaiting();
            throw Later.raced("the name changed hands while its role was waited for");
        }
        SegmentFile file = SegmentFile.open(place, !readOnly);
        if (file == null) {
            throw Later.absent(Errors.fail(ErrorKind.NOT_FOUND, "no segment has the name '%s': create it first, or check RAMWAY_DIR",
                    place.path));
        }
        Segment segment = null;
        try {
            segment = lockExisting(place, file);
        } finally {
            if (segment == null) {
                Files.close(file.fd());
            }
        }
        return takeRole(segment);
    }

    /** Locks the role's byte of a segment in use. Where it is taken, the segment waits for the next attempt. */
    private Segment takeRole(Segment segment) throws Later {
        waiting = segment;
        if (roleByte != NamedLink.NO_ROLE) {
            segment.link().takeRole(roleByte, kind);
        }
        waiting = null;
        return segment;
    }

    /** Releases a segment whose role was taken. */
    private void stopWaiting() {
        if (waiting != null) {
            waiting.drop();
            waiting = null;
        }
    }

    /** Judges an open file and locks byte 0, shared. On an error the file stays the caller's. */
    private Segment lockExisting(SegmentName place, SegmentFile file) throws Later {
        SegmentFile.checkFileSystem(file.fd(), options.allowDisk());
        // The header is written before the name exists and never after, so it can be judged without a lock.
        SegmentFile.Page page = SegmentFile.readPage(file.fd());
        Header header = Header.check(page.bytes(), page.fileSize());
        if (header.kind() != kind) {
            throw Errors.fail(ErrorKind.INVALID_ARGUMENT, "this is a %s, not a %s", Layout.kindName(header.kind()),
                    Layout.kindName(kind));
        }
        if (header.ofAnotherBoot()) {
            throw Later.absent(Errors.fail(ErrorKind.NOT_FOUND,
                    "the segment '%s' is stale: it was left by another boot; creating starts anew", place.path));
        }
        check.accept(header);
        NamedLink link = NamedLink.open(place, file.stat(), readOnly);
        if (link == null) {
            throw Later.raced("the name changed hands while it was opened");
        }
        boolean used = false;
        try {
            link.use(place);
            used = true;
        } finally {
            if (!used) {
                link.close();
            }
        }
        return new Segment(file.fd(), header, link);
    }
}
