package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Lock;
import dev.ramway.sys.Stat;
import dev.ramway.sys.SysException;
import java.time.Duration;

/** The segment whose lock says that a listener lives. */
final class BusListenerLock {
    private BusListenerLock() {}

    /**
     * Makes the segment of a listener (kind 4, byte 1) under its own name or path, removing a dead one with its socket:
     * AlreadyExists if somebody listens there. Closing the link removes the segment, and a socket beside it
     * ({@link SegmentName#socketOf}), if it is the last one. A user who can open the file can lock it and so keep the next
     * listener out: our user only. Nothing but locks is shared through it, so that a disk will do.
     */
    static SegmentLink take(String name, Duration timeout) {
        Options options = Options.DEFAULT.withAllowDisk(true).withTimeout(timeout);
        return SegmentRequest.named(name, OpenMode.CREATE, Facts.KIND_LISTENER,
                () -> new SegmentRequest(name, OpenMode.CREATE, Facts.KIND_LISTENER, SegmentSpec.listener().named(false),
                        Facts.BYTE_LISTENER, false, options, found -> {}).open(Segment::link));
    }

    /**
     * Whether somebody holds the lock of a listener's segment in a directory; null: not known, if the file may not be asked.
     */
    static Boolean lives(int dir, String file) {
        int fd = -1;
        try {
            Stat stat = Files.statAt(dir, file);
            if (stat == null || !stat.isRegular()) {
                return false;
            }
            fd = Files.openAt(dir, file, false);
            return fd < 0 ? null : Lock.isHeld(fd, Facts.BYTE_LISTENER);
        } catch (SysException e) {
            return null;
        } finally {
            if (fd >= 0) {
                Files.close(fd);
            }
        }
    }
}
