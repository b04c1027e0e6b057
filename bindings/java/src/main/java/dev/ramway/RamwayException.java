package dev.ramway;

import java.util.OptionalInt;

/**
 * What a call throws that fails: a {@link ErrorKind} to decide on, and a text that says what was tried, on which name, and
 * what to do. {@link ClosedException}, {@link PeerDeadException} and {@link TimedOutException} have classes of their own.
 */
public class RamwayException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What to decide on. */
    private final ErrorKind kind;
    /** The operating system's error number, 0 for none. */
    private final int errno;

    RamwayException(ErrorKind kind, int errno, String message) {
        super(message);
        this.kind = kind;
        this.errno = errno;
    }

    /**
     * {@return what went wrong}
     */
    public final ErrorKind kind() {
        return kind;
    }

    /**
     * {@return the operating system's error number, if that was the cause}
     */
    public final OptionalInt errno() {
        return errno == 0 ? OptionalInt.empty() : OptionalInt.of(errno);
    }
}
