package dev.ramway;

import dev.ramway.sys.Files;
import dev.ramway.sys.Memfd;

/** Two ends of a ring within one process. Named rings begin with {@link Sender} and {@link Receiver}. */
public final class Ring {
    /** Type ids from here on (unsigned) are Ramway's own. */
    public static final int RESERVED_TYPE_IDS = Facts.TYPE_ID_RESERVED;

    private Ring() {}

    /**
     * Both ends of a ring without a name, for two threads.
     *
     * @param sender the sending end
     * @param receiver the receiving end
     */
    public record Pair(Sender sender, Receiver receiver) implements AutoCloseable {
        /** Closes both ends, the sender first. */
        @Override
        public void close() {
            try (receiver) {
                sender.close();
            }
        }
    }

    /**
     * {@return a ring for two threads of this process, of 1 MiB, payloads aligned to 16 bytes}
     */
    public static Pair pair() {
        return pair(Options.DEFAULT);
    }

    /**
     * {@return a ring for two threads of this process}
     *
     * @param options of them: capacity, align, prefault, lockMemory, and how both ends wait. UNSUPPORTED for hugePages, which
     *     are for named rings
     */
    public static Pair pair(Options options) {
        Errors.checkPlatform();
        try {
            options.check(OpenMode.CREATE);
            return HandleCleaner.freeingSpace(() -> make(options));
        } catch (RamwayException e) {
            throw Errors.about(e, "making a ring for two threads", "");
        }
    }

    /**
     * A ring without a name, for a child process. Its memory goes with the last descriptor and the last end.
     *
     * <p>A child that Java starts inherits no descriptors but three, so its standard input carries it:
     * {@code new ProcessBuilder(...).redirectInput(ring.file())}, and in the child {@code Receiver.fromFd(0)}.
     */
    public static final class Unnamed implements AutoCloseable {
        private final int fd;
        private final java.lang.ref.Cleaner.Cleanable rest;

        private Unnamed(int fd) {
            this.fd = fd;
            rest = HandleCleaner.watch(this, () -> Files.close(fd));
        }

        /** {@return the descriptor, close-on-exec, good until {@link #close}} */
        public int fd() {
            return fd;
        }

        /**
         * {@return a path to it, good in this process until {@link #close}; to be opened for reading, because writing truncates it}
         */
        public java.io.File file() {
            return new java.io.File(Files.procPath(fd));
        }

        /** Closes the descriptor. Ends that were made of it live on. */
        @Override
        public void close() {
            rest.clean();
        }
    }

    /**
     * {@return a ring without a name, whose descriptor can be handed to a child: {@link Unnamed}} No role is taken.
     *
     * @param options of it: capacity, align, numaNode
     */
    public static Unnamed unnamed(Options options) {
        Errors.checkPlatform();
        try {
            options.check(OpenMode.CREATE);
            return HandleCleaner.freeingSpace(() -> new Unnamed(memory(options)));
        } catch (RamwayException e) {
            throw Errors.about(e, "making a ring without a name", "");
        }
    }

    private static int memory(Options options) {
        SegmentSpec spec = SegmentSpec.ring(options, Facts.CAPACITY_DEFAULT).named(false);
        return filled(Memfd.unsealed("ramway-ring"), spec, options);
    }

    /** Fills new memory. On an error it is closed. */
    private static int filled(int made, SegmentSpec spec, Options options) {
        int fd = Errors.checked(made, "making memory");
        return Errors.during("writing the header page", () -> {
            try {
                SegmentMapping.allocate(fd, spec, options.numaNode());
                Errors.checked(Files.truncate(fd, spec.size()), "sizing the memory");
                Files.writeAt(fd, SegmentHeader.format(spec), 0);
                return fd;
            } catch (Throwable t) {
                Files.close(fd);
                throw t;
            }
        });
    }

    private static Pair make(Options options) {
        if (options.hugePages()) {
            throw Errors.fail(ErrorKind.UNSUPPORTED, "hugePages is for named rings");
        }
        SegmentSpec spec = SegmentSpec.ring(options, Facts.CAPACITY_DEFAULT);
        int fd = filled(Memfd.create("ramway-pair"), spec, options);
        try {
            return attach(fd, spec.blocks()[0], options);
        } finally {
            // A mapping keeps the memory.
            Files.close(fd);
        }
    }

    private static Pair attach(int fd, BlockGeometry g, Options options) {
        Sender tx = Sender.attach(Attachment.memory("", fd, Facts.BLOCK0, g, Link.NONE, Role.PRODUCER, options), options);
        try {
            return new Pair(tx, Receiver.attach(Attachment.memory("", fd, Facts.BLOCK0, g, Link.NONE, Role.CONSUMER, options), options));
        } catch (Throwable t) {
            tx.close();
            throw t;
        }
    }
}
