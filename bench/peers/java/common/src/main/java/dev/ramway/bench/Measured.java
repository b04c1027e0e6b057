package dev.ramway.bench;

/** Two sides that are ready. */
public interface Measured {
    /** {@return the leading process's number, the following one's, and those of others that work for the mechanism} */
    long[] pids();

    /**
     * {@return what one burst took}
     *
     * @param burst what to do
     * @throws Exception ends the row
     */
    Outcome burst(Burst burst) throws Exception;

    /**
     * Ends both in an orderly way.
     *
     * @throws Exception becomes the row's text
     */
    void stop() throws Exception;
}
