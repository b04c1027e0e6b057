package dev.ramway.sys;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import java.lang.foreign.MemorySegment;

/**
 * What a file is.
 *
 * @param mode its type and permission bits
 * @param links how many names it has
 * @param uid whose it is
 * @param id which it is
 * @param size its length in bytes
 */
public record Stat(int mode, int links, int uid, FileId id, long size) {
    private static final int TYPE = 0xF000;
    private static final int FIFO = 0x1000;
    private static final int CHARACTER = 0x2000;
    private static final int DIRECTORY = 0x4000;
    private static final int BLOCK = 0x6000;
    private static final int REGULAR = 0x8000;
    private static final int LINK = 0xA000;
    private static final int SOCKET = 0xC000;

    /** Out of a {@code struct statx}, which is the same on every processor, unlike {@code struct stat}. */
    static Stat of(MemorySegment statx) {
        long device = (long) statx.get(JAVA_INT, 136) << 32 | statx.get(JAVA_INT, 140) & 0xFFFFFFFFL;
        return new Stat(statx.get(JAVA_SHORT, 28) & 0xFFFF, statx.get(JAVA_INT, 16), statx.get(JAVA_INT, 20),
                new FileId(device, statx.get(JAVA_LONG, 32)), statx.get(JAVA_LONG, 40));
    }

    /** Whether a file may be opened at all: anything else can have side effects on open. */
    public boolean isRegular() {
        return (mode & TYPE) == REGULAR;
    }

    /** Whether it is a socket. */
    public boolean isSocket() {
        return (mode & TYPE) == SOCKET;
    }

    /** Whether it is a symbolic link. */
    public boolean isLink() {
        return (mode & TYPE) == LINK;
    }

    /** The set-id and permission bits. */
    public int permissions() {
        return mode & 07777;
    }

    /** The kind of file in words. */
    public String describe() {
        return switch (mode & TYPE) {
            case REGULAR -> "a regular file";
            case DIRECTORY -> "a directory";
            case LINK -> "a symbolic link";
            case FIFO -> "a FIFO";
            case SOCKET -> "a socket";
            case CHARACTER, BLOCK -> "a device";
            default -> "a file of unknown type";
        };
    }
}
