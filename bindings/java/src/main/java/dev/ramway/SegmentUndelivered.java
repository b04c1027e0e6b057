package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.SysException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** What a ring still holds for its next receiver. */
final class SegmentUndelivered {
    private SegmentUndelivered() {}

    /** A ring in a copy of the header page. */
    record RingState(BlockGeometry geometry, long tail, long head, boolean unseenClose) {
        static RingState of(byte[] page, BlockGeometry geometry, int block) {
            ByteBuffer from = ByteBuffer.wrap(page).order(ByteOrder.LITTLE_ENDIAN);
            int base = Layout.block(block);
            int epoch = from.getInt(base + Facts.OFF_PRODUCER + Facts.OFF_ROLE_EPOCH);
            boolean closed = (from.getInt(base + Facts.OFF_PRODUCER + Facts.OFF_ROLE_FLAGS) & Facts.ROLE_CLOSED) != 0;
            // An orderly close that no receiver has seen: it is delivered like a message.
            boolean unseen = closed && epoch != 0 && from.getInt(base + Facts.OFF_CONSUMER + Facts.OFF_ROLE_CLOSE_SEEN) != epoch;
            return new RingState(geometry, from.getLong(base + Facts.OFF_TAIL), from.getLong(base + Facts.OFF_HEAD), unseen);
        }

        /** Positions that contradict each other count as undelivered: what is not understood is not thrown away. */
        boolean hasMessages() {
            return tail != head || !Layout.positionsAgree(tail, head, geometry.capacity(), geometry.align());
        }

        /** Bytes that are not released, at most the capacity. */
        long used() {
            return Long.compareUnsigned(tail - head, geometry.capacity()) > 0 ? geometry.capacity() : tail - head;
        }

        Count count(int fd) {
            return SegmentUndelivered.count(fd, geometry, tail, head);
        }
    }

    private static List<RingState> rings(byte[] page, SegmentHeader header) {
        List<RingState> rings = new ArrayList<>(2);
        for (int i = 0; i < 2; i++) {
            if (header.kind() != Facts.KIND_REGION && header.blocks()[i].capacity() != 0) {
                rings.add(RingState.of(page, header.blocks()[i], i));
            }
        }
        return rings;
    }

    /** Whether the last one out leaves the name in place: {@link #reasonToKeep} without counting. */
    static boolean mustStay(SegmentFile.Page page) {
        SegmentHeader header = page.header();
        return header.persistent() || rings(page.bytes(), header).stream().anyMatch(ring -> ring.hasMessages() || ring.unseenClose());
    }

    /** Why a segment that nobody uses is nevertheless not to be thrown away; null if it may be. */
    static String reasonToKeep(int fd, SegmentHeader header) {
        for (RingState ring : rings(SegmentFile.readPage(fd).bytes(), header)) {
            if (ring.hasMessages()) {
                Count counted = ring.count(fd);
                return counted.damage() != null ? counted.damage()
                        : String.format("it holds %d undelivered messages (%d bytes)", counted.messages(), counted.bytes());
            }
            if (ring.unseenClose()) {
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
    private static Count count(int fd, BlockGeometry g, long tail, long head) {
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
            long size = Layout.frameSize(length, g.align() - 1);
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
