package dev.ramway;

import dev.ramway.sys.Mapping;
import dev.ramway.sys.Memfd;
import dev.ramway.sys.Space;
import dev.ramway.sys.SysException;
import java.lang.foreign.MemorySegment;

/** The memory of a bus: made by the listener, distrusted by the connector. */
final class BusMemory {
    private BusMemory() {}

    /** The ends that one side has; null where a direction has no capacity. */
    record Halves(Sender sender, Receiver receiver) {
        /** Closes both, and with them the socket. */
        void close() {
            try {
                if (sender != null) {
                    sender.close();
                }
            } finally {
                if (receiver != null) {
                    receiver.close();
                }
            }
        }
    }

    /**
     * Makes memory with both rings empty for an end, and attaches the listener to it. The end keeps the memory, whatever
     * comes of it.
     *
     * @param name goes into the memfd's, so that `ramway ls` finds the bus
     */
    static Halves create(String name, SegmentSpec spec, BusEnd end, Options options, BusUse use) {
        int fd = Errors.checked(Memfd.create("ramway-bus:" + name), "making memory for a bus");
        end.keepMemory(fd);
        try {
            Space.allocate(fd, 0, spec.size());
        } catch (SysException e) {
            throw Errors.os(e, "allocating memory for a bus");
        }
        Errors.checked(Memfd.seal(fd), "sealing the memory of a bus");
        // Nobody else knows this memory yet.
        MemorySegment page = SegmentMapping.mapHeader(fd, true);
        byte[] header = SegmentHeader.format(spec, use.features());
        MemorySegment.copy(MemorySegment.ofArray(header), 0, page, 0, header.length);
        Mapping.unmap(page);
        return attach(name, end, spec.blocks(), options, true);
    }

    /**
     * Checks memory that a listener sent, said to have {@code size} bytes, and attaches the connector to it. Nothing of it
     * is used before it is checked; whatever the listener writes into it later is the rings' to check. The end keeps
     * the memory, whatever comes of it.
     */
    static Halves open(String name, int memory, long size, BusEnd end, Options options, BusUse use) {
        end.keepMemory(memory);
        return attach(name, end, check(memory, size, use).blocks(), options, false);
    }

    private static SegmentHeader check(int memory, long size, BusUse use) {
        long real;
        try {
            real = Memfd.sealedSize(memory);
        } catch (Memfd.NotSealed e) {
            throw Errors.of(ErrorKind.CORRUPT, e.getMessage());
        } catch (SysException e) {
            throw Errors.os(e, "checking the memory sent");
        }
        if (real < Facts.HEADER_SIZE || real != size) {
            String announced = Long.toUnsignedString(size);
            throw Errors.fail(ErrorKind.CORRUPT, "the memory received has %d bytes, WELCOME announced %s", real, announced);
        }
        MemorySegment page = SegmentMapping.mapHeader(memory, false);
        byte[] copy = SegmentMapping.snapshot(page);
        Mapping.unmap(page);
        SegmentHeader header = SegmentHeader.check(copy, real, use);
        if (header.kind() != Facts.KIND_BUS) {
            throw Errors.fail(ErrorKind.CORRUPT, "the memory sent holds a %s, expected a bus",
                    Layout.kindName(header.kind()));
        }
        if (header.blocks()[0].capacity() == 0 && header.blocks()[1].capacity() == 0) {
            throw Errors.fail(ErrorKind.CORRUPT, "the bus has no ring in either direction");
        }
        if (use.isRpc() && (header.blocks()[0].capacity() == 0 || header.blocks()[1].capacity() == 0)) {
            throw Errors.fail(ErrorKind.CORRUPT, "the bus has a ring in one direction only, and RPC needs both");
        }
        return header;
    }

    /**
     * Attaches one side to its roles: the listener sends into block 0, the connector into block 1. After an error nothing is
     * attached.
     */
    private static Halves attach(String name, BusEnd end, BlockGeometry[] blocks, Options options, boolean listener) {
        int out = listener ? 0 : 1;
        int in = 1 - out;
        Sender sender = null;
        try {
            if (blocks[out].capacity() != 0) {
                sender = Sender.attach(attachment(name, end, out, blocks[out], Role.PRODUCER, options), options);
            }
            Receiver receiver = null;
            if (blocks[in].capacity() != 0) {
                receiver = Receiver.attach(attachment(name, end, in, blocks[in], Role.CONSUMER, options), options);
            }
            Halves halves = new Halves(sender, receiver);
            if (sender != null && receiver != null) {
                sender.companion = halves;
                receiver.companion = halves;
            }
            return halves;
        } catch (Throwable t) {
            new Halves(sender, null).close();
            throw t;
        }
    }

    private static Attachment attachment(String name, BusEnd end, int block, BlockGeometry geometry, Role role, Options options) {
        Link link = end.link();
        try {
            return Attachment.memory(name, end.memory(), Layout.block(block), geometry, link, role, options);
        } catch (Throwable t) {
            link.close();
            throw t;
        }
    }
}
