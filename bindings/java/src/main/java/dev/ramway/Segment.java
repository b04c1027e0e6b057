package dev.ramway;

import dev.ramway.sys.Files;

/**
 * A named segment that this process uses.
 *
 * @param fd a description without locks, for mapping
 * @param header what it says, checked
 * @param link its locks
 */
record Segment(int fd, SegmentHeader header, SegmentLink link) {
    /** Lets everything go. */
    void drop() {
        Files.close(fd);
        link.close();
    }
}
