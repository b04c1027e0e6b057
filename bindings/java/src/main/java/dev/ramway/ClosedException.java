package dev.ramway;

/** The peer closed in an orderly way, and everything that it had sent has been received. */
public final class ClosedException extends RamwayException {
    private static final long serialVersionUID = 1L;

    ClosedException(String message) {
        super(ErrorKind.CLOSED, 0, message);
    }
}
