package dev.ramway;

/** The deadline passed. */
public final class TimedOutException extends RamwayException {
    private static final long serialVersionUID = 1L;

    TimedOutException(String message) {
        super(ErrorKind.TIMED_OUT, 0, message);
    }
}
