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
    /** What was tried, such as "creating the ring"; null until somebody says. */
    private String tried;
    /** The name or path it was tried on; null until somebody says. */
    private String name;

    RamwayException(ErrorKind kind, int errno, String message) {
        super(message == null ? kind.summary() : message);
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

    /** {@return what was tried, on which name, and what was found} */
    @Override
    public final String getMessage() {
        if (tried == null) {
            return super.getMessage();
        }
        String on = name == null || name.isEmpty() ? "" : " '" + name + "'";
        return tried + on + ": " + super.getMessage();
    }

    /** What was found, without what was tried. */
    final String detail() {
        return super.getMessage();
    }

    /** Adds what was tried, on which name, unless that is known. Only before it is thrown to the user. */
    final void about(String tried, String name) {
        if (this.tried == null) {
            this.tried = tried;
            this.name = name;
        }
    }
}
