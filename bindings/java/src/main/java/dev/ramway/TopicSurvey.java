package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Lock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** What a topic's file says, from copies of its words: nothing is mapped. */
final class TopicSurvey {
    /** Of each slot: it lies at a multiple of its size. */
    private static final long SLOT_ALIGN = Facts.SLOT_SIZE;

    private final int fd;
    private final BlockGeometry g;
    private final ByteBuffer block;

    private TopicSurvey(int fd, BlockGeometry g) {
        this.fd = fd;
        this.g = g;
        block = block(fd);
    }

    private static ByteBuffer block(int fd) {
        byte[] page = SegmentFile.readPage(fd).bytes();
        return ByteBuffer.wrap(page, Facts.BLOCK0, Facts.TOPIC_BLOCK_SIZE).slice().order(ByteOrder.LITTLE_ENDIAN);
    }

    static Segments.TopicState of(int fd, BlockGeometry g) {
        byte[] area = SegmentUndelivered.readArea(fd, g);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment copy = arena.allocate(area.length, SLOT_ALIGN).copyFrom(MemorySegment.ofArray(area));
            // After the slots: so no cursor is ahead of tail that was not when it was read.
            return new TopicSurvey(fd, g).state(copy.address() + Facts.OFF_SUBS_SLOTS);
        }
    }

    private Segments.TopicState state(long slots) {
        long last = block.getLong(Facts.OFF_TOPIC_LAST);
        long newest = seqAt(last);
        // The publisher may have overwritten it meanwhile: then it is a later one's number, or none.
        if (newest != 0 && !TopicLog.within(block(fd).getLong(Facts.OFF_TOPIC_CLAIM) - last, g.capacity())) {
            newest = 0;
        }
        List<SubscriberInfo> all = new ArrayList<>();
        for (int i = 0; i < g.slots(); i++) {
            SubscriberInfo one = TopicLog.inspect(i, slots + (long) Facts.SLOT_SIZE * i, block.getLong(Facts.OFF_TOPIC_TAIL), newest, g,
                    this::seqAt, this::lives, 0);
            if (one != null) {
                all.add(one);
            }
        }
        return new Segments.TopicState(newest, g.slots(), (g.flags() & Facts.TOPIC_LOSSY_ONLY) != 0,
                (g.flags() & Facts.TOPIC_MAY_EJECT) != 0, List.copyOf(all));
    }

    private boolean lives(int slot) {
        return Errors.during("reading the locks", () -> Lock.heldByAnother(fd, Facts.BYTE_SLOT + slot)) == Lock.Mode.EXCLUSIVE;
    }

    /** The number of the frame at a position, which may be any number; 0 where there can be none. */
    private long seqAt(long position) {
        long published = block.getLong(Facts.OFF_TOPIC_TAIL) - position;
        if (!TopicLog.isPosition(position, g.align()) || published == 0 || !TopicLog.within(published, g.capacity())) {
            return 0;
        }
        byte[] header = new byte[Facts.TOPIC_FRAME_HEADER];
        long at = g.dataOffset() + (position & g.capacity() - 1);
        long read = Errors.during("reading the topic", () -> Files.readAt(fd, header, header.length, at));
        return read < header.length ? 0 : ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN).getLong(Facts.TOPIC_FRAME_SEQ);
    }
}
