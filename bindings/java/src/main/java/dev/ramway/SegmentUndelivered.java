package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.SysException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** What a ring still holds for its next receiver. */
final class SegmentUndelivered {
    private SegmentUndelivered() {}

    /** A ring's words in a copy of the header page. */
    private record Words(long tail, long head, int producerFlags, int producerEpoch, int closeSeen) {
        static Words of(byte[] page, int block) {
            ByteBuffer from = ByteBuffer.wrap(page).order(ByteOrder.LITTLE_ENDIAN);
            int base = Layout.block(block);
            int producer = base + Facts.OFF_PRODUCER;
            return new Words(from.getLong(base + Facts.OFF_TAIL), from.getLong(base + Facts.OFF_HEAD),
                    from.getInt(producer + Facts.OFF_ROLE_FLAGS), from.getInt(producer + Facts.OFF_ROLE_EPOCH),
                    from.getInt(base + Facts.OFF_CONSUMER + Facts.OFF_ROLE_CLOSE_SEEN));
        }

        /** An orderly close that no receiver has seen: it is delivered like a message. */
        boolean unseenClose() {
            return (producerFlags & Facts.ROLE_CLOSED) != 0 && producerEpoch != 0 && closeSeen != producerEpoch;
        }

        /** Positions that contradict each other count as undelivered: what is not understood is not thrown away. */
        boolean hasMessages(BlockGeometry g) {
            return tail != head || !Layout.positionsAgree(tail, head, g.capacity(), g.align());
        }
    }

    private static boolean hasRing(SegmentHeader header, int block) {
        return header.kind() != Facts.KIND_REGION && header.blocks()[block].capacity() != 0;
    }

    /** Whether the last one out leaves the name in place: {@link #reasonToKeep} without counting. */
    static boolean mustStay(SegmentFile.Page page) {
        SegmentHeader header = page.header();
        boolean stays = header.persistent();
        for (int i = 0; i < 2; i++) {
            if (hasRing(header, i)) {
                Words words = Words.of(page.bytes(), i);
                stays |= words.hasMessages(header.blocks()[i]) || words.unseenClose();
            }
        }
        return stays;
    }

    /** Why a segment that nobody uses is nevertheless not to be thrown away; null if it may be. */
    static String reasonToKeep(int fd, SegmentHeader header) {
        byte[] page = SegmentFile.readPage(fd).bytes();
        for (int i = 0; i < 2; i++) {
            if (!hasRing(header, i)) {
                continue;
            }
            Words words = Words.of(page, i);
            if (words.hasMessages(header.blocks()[i])) {
                Count counted = count(fd, header.blocks()[i], words.tail(), words.head());
                return counted.damage() != null ? counted.damage()
                        : String.format("it holds %d undelivered messages (%d bytes)", counted.messages(), counted.bytes());
            }
            if (words.unseenClose()) {
                return "it holds the end of a stream that no receiver has seen";
            }
        }
        return header.persistent() ? "it is persistent" : null;
    }

    /**
     * What was counted.
     *
     * @param damage what contradicts itself, in words; null if nothing does
     */
    record Count(long messages, long bytes, String damage) {
        private static Count damaged(String damage) {
            return new Count(0, 0, "it is damaged: " + damage);
        }
    }

    /**
     * Walks the frames from head to tail, checking each length, and counts them. It reads the file in pieces of
     * at most a MiB: no mapping, so a truncated file is an error and not a signal.
     */
    static Count count(int fd, BlockGeometry g, long tail, long head) {
        if (!Layout.positionsAgree(tail, head, g.capacity(), g.align())) {
            return Count.damaged(String.format("the positions %s and %s contradict each other", Long.toUnsignedString(head),
                    Long.toUnsignedString(tail)));
        }
        byte[] window = new byte[(int) Math.min(1 << 20, g.capacity())];
        ByteBuffer frames = ByteBuffer.wrap(window).order(ByteOrder.LITTLE_ENDIAN);
        // Where the window lies in the ring's data, and how much of it was read.
        long base = 0;
        long filled = 0;
        long pending = tail - head;
        long messages = 0;
        long bytes = 0;
        for (long done = 0; done < pending;) {
            // A frame's header never straddles the end of the data: it takes 16 bytes at a multiple of 16.
            long at = (head + done) & (g.capacity() - 1);
            if (at < base || at + Facts.FRAME_HEADER > base + filled) {
                try {
                    filled = Files.readAt(fd, window, (int) Math.min(window.length, g.capacity() - at), g.dataOffset() + at);
                } catch (SysException e) {
                    throw Errors.os(e, "reading the ring");
                }
                if (filled < Facts.FRAME_HEADER) {
                    return Count.damaged("the file ends before the frame at " + at);
                }
                base = at;
            }
            long length = Integer.toUnsignedLong(frames.getInt((int) (at - base)));
            long size = Layout.frameSize(length, g.align());
            if (length > Facts.MESSAGE_MAX || size > pending - done) {
                return Count.damaged(String.format("the frame at %d claims %d bytes, %d are published", at, length, pending - done));
            }
            messages++;
            bytes += length;
            done += size;
        }
        return new Count(messages, bytes, null);
    }
}
