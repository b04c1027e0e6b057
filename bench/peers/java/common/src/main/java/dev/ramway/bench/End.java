package dev.ramway.bench;

/**
 * One side of a mechanism that is ready to be measured. What it sends goes out on one way, what it receives comes in on
 * the other. Message n is the 64-bit words n, n + 1, …, written where the library says; the receiver reads all of them there.
 */
public interface End extends AutoCloseable {
    /**
     * How this side waits from now on.
     *
     * @param mode as in {@link Burst}
     */
    default void waitLike(String mode) {}

    /**
     * Sends a message, polling for room; it is visible on return.
     *
     * @param size its bytes
     * @param n which it is
     * @throws Exception ends the row
     */
    void send(int size, long n) throws Exception;

    /**
     * Sends messages n, n + 1, …, visible together where there is a call for it.
     *
     * @param size bytes of each
     * @param n the first
     * @param count how many
     * @throws Exception ends the row
     */
    default void send(int size, long n, int count) throws Exception {
        for (long last = n + count; n < last; n++) {
            send(size, n);
        }
    }

    /**
     * Receives one message, polling for it, and gives its space back.
     *
     * @param size its bytes
     * @return the sum of its words
     * @throws Exception ends the row
     */
    long receive(int size) throws Exception;

    /**
     * Receives at least one message and at most {@code max}, as many as there are together.
     *
     * @param size bytes of each
     * @param max not more
     * @return how many; the sum of all their words is added to {@link Sum#words}
     * @throws Exception ends the row
     */
    int receive(int size, int max, Sum sum) throws Exception;

    /**
     * Test {@code call}: calls with message n, and gets back what it sent.
     *
     * @param size its bytes
     * @param n which it is
     * @return the sum of the reply's words
     * @throws Exception ends the row
     */
    default long call(int size, long n) throws Exception {
        throw new UnsupportedOperationException("this end does not call");
    }

    /**
     * The other side of {@link #call}: answers this number of calls from now on.
     *
     * @param count how many
     */
    default void serve(long count) {}

    /**
     * Waits until all of them were answered.
     *
     * @throws Exception ends the row
     */
    default void served() throws Exception {}

    @Override
    void close() throws Exception;

    /** Where a receiver of several messages adds up. */
    final class Sum {
        public long words;
    }
}
