package dev.ramway;

/** A callback that was asked for. */
public interface Registration extends AutoCloseable {
    /** Calls it off. The callback may be running at this moment; it does not begin after this has returned. */
    @Override
    void close();
}
