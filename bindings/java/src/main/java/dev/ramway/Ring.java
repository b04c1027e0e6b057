package dev.ramway;

/** Two ends of a ring within one process. Named rings begin with {@link Sender} and {@link Receiver}. */
public final class Ring {
    /** Type ids from here on (unsigned) are Ramway's own. */
    public static final int RESERVED_TYPE_IDS = 0xFFFF0000;

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
     * {@return a ring for two threads of this process}
     *
     * @param options its size and alignment, and how both ends wait
     */
    public static Pair pair(Options options) {
        throw new UnsupportedOperationException();
    }
}
