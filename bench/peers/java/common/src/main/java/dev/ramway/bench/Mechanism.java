package dev.ramway.bench;

/** A way from one process to another. */
public interface Mechanism {
    /** {@return what the list says} */
    About about();

    /**
     * {@return whether it can do this at all; what it cannot is no row}
     *
     * @param burst what it would be
     */
    boolean can(Burst burst);

    /**
     * The first step, which the leading process has done before the following one begins.
     *
     * @param setup where
     * @param leads which side
     * @return opens the end, when the other side is there
     * @throws Exception becomes the row's text
     */
    Opening open(Setup setup, boolean leads) throws Exception;

    /** The second step. */
    interface Opening {
        /**
         * {@return the end}
         *
         * @throws Exception becomes the row's text
         */
        End finish() throws Exception;
    }
}
