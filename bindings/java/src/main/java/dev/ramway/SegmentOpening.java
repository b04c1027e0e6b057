package dev.ramway;

import dev.ramway.sys.Files;
import java.time.Duration;

/** One call that opens or creates a named segment, and what it holds between its attempts. */
final class SegmentOpening {

    private final SegmentRequest request;
    private final SegmentStage stage;
    /**
     * A segment whose role is taken, kept between attempts. With its byte 0 held, nobody is the last one out: if the role's
     * holder goes, its ring is still there to be taken over. If it were released between the attempts, this side could be the last
     * one out of a ring whose holder died just then, and would remove what it waits for.
     */
    private Segment waiting;

    SegmentOpening(SegmentRequest request) {
        this.request = request;
        stage = new SegmentStage(request);
    }

    Segment open() {
        try {
            return retry(RingEnd.nanos(request.options().timeout()), this::attempt);
        } finally {
            stage.drop();
            stopWaiting();
        }
    }

    /** Something that may have to be tried again. */
    interface Attempt<T> {
        T make() throws RetryLater;
    }

    /** The result of the first attempt that is not to be made again, within {@code timeout} ns. */
    static <T> T retry(long timeout, Attempt<T> attempt) {
        long start = System.nanoTime();
        for (long pause = Facts.RACE_PAUSE_MIN_NANOS;; pause = Math.min(2 * pause, Facts.RACE_PAUSE_MAX_NANOS)) {
            try {
                return attempt.make();
            } catch (RetryLater again) {
                long limit = again.race ? Math.max(timeout, Facts.RACE_TIMEOUT_NANOS) : timeout;
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

    private Segment attempt() throws RetryLater {
        SegmentName place;
        try {
            place = SegmentName.resolve(request.name(), request.mode() != OpenMode.OPEN);
        } catch (RamwayException e) {
            if (request.mode() == OpenMode.OPEN && e.kind() == ErrorKind.NOT_FOUND) {
                throw RetryLater.absent(e);
            }
            throw e;
        }
        try (place) {
            if (request.mode() == OpenMode.CREATE) {
                return stage.create(place);
            }
            try {
                return openOnce(place);
            } catch (RetryLater again) {
                if (request.mode() == OpenMode.OPEN || !again.absent) {
                    throw again;
                }
            }
            return createInstead(place);
        }
    }

    private Segment createInstead(SegmentName place) throws RetryLater {
        try {
            return stage.create(place);
        } catch (RamwayException e) {
            // Somebody was faster: what they made is to be opened.
            if (e.kind() == ErrorKind.ALREADY_EXISTS) {
                throw RetryLater.raced(e);
            }
            throw e;
        }
    }

    private Segment openOnce(SegmentName place) throws RetryLater {
        if (waiting != null) {
            if (SegmentFile.leadsTo(place.dir, place.file, waiting.link().id)) {
                return takeRole(waiting);
            }
            stopWaiting();
            throw RetryLater.nameChanged("its role was waited for");
        }
        SegmentFile file = SegmentFile.open(place, !request.readOnly());
        if (file == null) {
            throw RetryLater.absent(Errors.fail(ErrorKind.NOT_FOUND,
                    "no segment has the name '%s': create it first, or check RAMWAY_DIR", place.path));
        }
        Segment segment;
        try {
            segment = lockExisting(place, file);
        } catch (Throwable t) {
            Files.close(file.fd());
            throw t;
        }
        return takeRole(segment);
    }

    /** Locks the role's byte of a segment in use. Where it is taken, the segment waits for the next attempt. */
    private Segment takeRole(Segment segment) throws RetryLater {
        waiting = segment;
        if (request.roleByte() != SegmentLink.NO_ROLE) {
            segment.link().takeRole(request.roleByte(), request.kind());
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
    private Segment lockExisting(SegmentName place, SegmentFile file) throws RetryLater {
        SegmentFile.checkFileSystem(file.fd(), request.options().allowDisk());
        // The header is written before the name exists and never after, so it can be judged without a lock.
        SegmentHeader header = SegmentFile.readPage(file.fd()).header();
        header.expect(request.kind());
        if (header.ofAnotherBoot()) {
            throw RetryLater.absent(Errors.fail(ErrorKind.NOT_FOUND,
                    "the segment '%s' is stale: it was left by another boot; creating starts anew", place.path));
        }
        request.check().accept(header);
        SegmentLink link = SegmentLink.open(place, file.stat(), request.readOnly());
        if (link == null) {
            throw RetryLater.nameChanged("it was opened");
        }
        try {
            link.use(place);
            return new Segment(file.fd(), header, link);
        } catch (Throwable t) {
            link.close();
            throw t;
        }
    }
}
