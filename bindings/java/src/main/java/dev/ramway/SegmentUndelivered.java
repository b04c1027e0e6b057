package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.SysException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** What a ring still holds for its next receiver, and a topic for its durable subscribers. */
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
            if (header.kind() != Facts.KIND_REGION && header.kind() != Facts.KIND_TOPIC && header.blocks()[i].capacity() != 0) {
                rings.add(RingState.of(page, header.blocks()[i], i));
            }
        }
        return rings;
    }

    /** Whether the last one out leaves the name in place: {@link #reasonToKeep} without counting. */
    static boolean mustStay(int fd, SegmentFile.Page page) {
        SegmentHeader header = page.header();
        if (header.kind() == Facts.KIND_TOPIC) {
            return header.persistent() || topicToKeep(fd, page.bytes(), header.blocks()[0]) != null;
        }
        return header.persistent() || rings(page.bytes(), header).stream().anyMatch(ring -> ring.hasMessages() || ring.unseenClose());
    }

    /** Why a segment that nobody uses is nevertheless not to be thrown away; null if it may be. */
    static String reasonToKeep(int fd, SegmentHeader header) {
        byte[] page = SegmentFile.readPage(fd).bytes();
        if (header.kind() == Facts.KIND_TOPIC) {
            String reason = topicToKeep(fd, page, header.blocks()[0]);
            if (reason != null) {
                return reason;
            }
        }
        for (RingState ring : rings(page, header)) {
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

    /** A copy of a topic's subscribers' area. */
    static byte[] readArea(int fd, BlockGeometry g) {
        byte[] area = new byte[(int) g.areaLength()];
        long read = Errors.during("reading the subscribers' area", () -> Files.readAt(fd, area, area.length, g.subsOffset()));
        if (read < area.length) {
            throw Errors.of(ErrorKind.CORRUPT, "the file ends in the subscribers' area");
        }
        return area;
    }

    /**
     * Why a topic that nobody uses is not to be thrown away; null if it may be. History alone keeps no topic: what a durable
     * subscriber is still to receive does.
     */
    private static String topicToKeep(int fd, byte[] page, BlockGeometry g) {
        ByteBuffer block = ByteBuffer.wrap(page, Facts.BLOCK0, Facts.TOPIC_BLOCK_SIZE).slice().order(ByteOrder.LITTLE_ENDIAN);
        long tail = block.getLong(Facts.OFF_TOPIC_TAIL);
        long last = block.getLong(Facts.OFF_TOPIC_LAST);
        long claim = block.getLong(Facts.OFF_TOPIC_CLAIM);
        if (!TopicLog.positionsAgree(tail, last, claim, g)) {
            return String.format("it is damaged: the positions %s, %s and %s contradict each other", Long.toUnsignedString(last),
                    Long.toUnsignedString(tail), Long.toUnsignedString(claim));
        }
        byte[] area;
        try {
            area = readArea(fd, g);
        } catch (RamwayException e) {
            if (e.kind() != ErrorKind.CORRUPT) {
                throw e;
            }
            return "it is damaged: " + e.getMessage();
        }
        int epoch = block.getInt(Facts.OFF_TOPIC_PUBLISHER + Facts.OFF_ROLE_EPOCH);
        boolean closed = epoch != 0 && (block.getInt(Facts.OFF_TOPIC_PUBLISHER + Facts.OFF_ROLE_FLAGS) & Facts.ROLE_CLOSED) != 0;
        String unseen = null;
        for (int i = 0; i < g.slots(); i++) {
            ByteBuffer slot = ByteBuffer.wrap(area, Facts.OFF_SUBS_SLOTS + i * Facts.SLOT_SIZE, Facts.SLOT_SIZE).slice()
                    .order(ByteOrder.LITTLE_ENDIAN);
            long cursor = slot.getLong(Facts.OFF_SLOT_CURSOR);
            long state = slot.getLong(Facts.OFF_SLOT_STATE);
            if ((state & Facts.SLOT_DURABLE) == 0) {
                continue;
            }
            byte[] label = new byte[Facts.LABEL_MAX];
            slot.get(Facts.OFF_SLOT_LABEL, label);
            if (cursor != tail) {
                // What was overwritten cannot be counted any more. Of what a slot keeps the claim says nothing: it goes farther.
                boolean some = (state & Facts.SLOT_GATING) == 0 && Long.compareUnsigned(claim - cursor, g.capacity()) > 0;
                Count counted = some ? Count.damaged("") : count(fd, g, tail, cursor);
                return String.format("the durable subscriber '%s' has %s", TopicLog.labelText(label), counted.damage() != null
                        ? "undelivered messages, of which some are lost"
                        : String.format("%d undelivered messages (%d bytes)", counted.messages(), counted.bytes()));
            }
            if (closed && slot.getInt(Facts.OFF_SLOT_CLOSE_SEEN) != epoch) {
                unseen = String.format("it holds the end of a stream that the durable subscriber '%s' has not seen",
                        TopicLog.labelText(label));
            }
        }
        return unseen;
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
        int header = g.frameHeader();
        long first = g.align() - header;
        if ((tail & g.align() - 1) != first || (head & g.align() - 1) != first || Long.compareUnsigned(tail - head, g.capacity()) > 0) {
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
            // A frame's header never straddles the end of the data: it takes 16 (32) bytes at a multiple of as many.
            long at = (head + done) & (g.capacity() - 1);
            if (at < base || at + header > base + filled) {
                try {
                    filled = Files.readAt(fd, window, (int) Math.min(window.length, g.capacity() - at), g.dataOffset() + at);
                } catch (SysException e) {
                    throw Errors.os(e, "reading the ring");
                }
                if (filled < header) {
                    return Count.damaged("the file ends before the frame at " + at);
                }
                base = at;
            }
            long length = Integer.toUnsignedLong(frames.getInt((int) (at - base)));
            long size = (header + length + g.align() - 1) & -g.align();
            if (length > Facts.MESSAGE_MAX + Facts.FRAME_HEADER - header || size > pending - done) {
                return Count.damaged(String.format("the frame at %d claims %d bytes, %d are published", at, length, pending - done));
            }
            messages++;
            bytes += length;
            done += size;
        }
        return new Count(messages, bytes, null);
    }
}
