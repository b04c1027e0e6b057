package dev.ramway;

import dev.ramway.sys.Errno;
import dev.ramway.sys.Files;
import dev.ramway.sys.Lock;
import dev.ramway.sys.SysException;

/**
 * The one way in which a segment's name goes, for a creator over a stale one, {@link Segments#unlink}, {@link Segments#clean} and
 * the last one out: alone with the file (byte 0 held exclusively), while the name still leads to it, and without a reason to keep
 * it.
 *
 * @param reason why it was kept; else null
 */
record SegmentRemoval(Outcome outcome, String reason) {
    /** What became of the name. */
    enum Outcome {
        REMOVED,
        /** There is a reason to keep it. */
        KEPT,
        /** Somebody holds byte 0. */
        IN_USE,
        /** Somebody else is alone with it at the moment. */
        BEING_REMOVED,
        /** The name does not lead to the file any more. */
        CHANGED
    }

    /** Why a segment is to be kept, in words; null: it is not. Asked while alone with it. */
    interface Judge {
        String reasonToKeep();
    }

    /** Removes a segment that nobody uses, unless the judge has a reason to keep it. A stale listener's socket goes with it. */
    static SegmentRemoval tryRemove(SegmentName place, SegmentFile file, int kind, Judge judge) {
        SegmentLink link = SegmentLink.open(place, file.stat(), false);
        if (link == null) {
            return new SegmentRemoval(Outcome.CHANGED, null);
        }
        try {
            if (!Lock.tryLock(link.lock, Facts.BYTE_IN_USE, Lock.Mode.EXCLUSIVE)) {
                boolean shared = Lock.heldByAnother(link.lock, Facts.BYTE_IN_USE) == Lock.Mode.SHARED;
                return new SegmentRemoval(shared ? Outcome.IN_USE : Outcome.BEING_REMOVED, null);
            }
            return whileAlone(link, kind, judge);
        } catch (SysException e) {
            throw Errors.os(e, "locking byte 0 of the segment");
        } finally {
            // It holds nothing but the exclusive lock.
            link.closeDescriptors();
        }
    }

    /** The rest of it. The caller holds byte 0 exclusively. */
    static SegmentRemoval whileAlone(SegmentLink link, int kind, Judge judge) {
        if (!SegmentFile.leadsTo(link.dir, link.file, link.id)) {
            return new SegmentRemoval(Outcome.CHANGED, null);
        }
        String reason = judge.reasonToKeep();
        if (reason != null) {
            return new SegmentRemoval(Outcome.KEPT, reason);
        }
        if (kind == Facts.KIND_LISTENER) {
            try {
                BusDeadSocket.remove(link.dir, SegmentName.socketOf(link.file));
            } catch (SysException e) {
                // The segment goes without it.
            }
        }
        int result = Files.unlink(link.dir, link.file);
        if (result != 0 && result != -Errno.ENOENT) {
            throw Errors.os(-result, "removing the dead segment");
        }
        return new SegmentRemoval(Outcome.REMOVED, null);
    }
}
