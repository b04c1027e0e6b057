package dev.ramway;

/** What went wrong. The numbers and names are part of the format: every language has the same ones. */
public enum ErrorKind {
    /** NotFound: nothing has this name. */
    NOT_FOUND(1, "NotFound", "nothing has this name"),
    /** AlreadyExists: the name is taken. */
    ALREADY_EXISTS(2, "AlreadyExists", "the name is taken"),
    /** InvalidArgument: invalid argument. */
    INVALID_ARGUMENT(3, "InvalidArgument", "invalid argument"),
    /** Busy: taken: by another handle, an open slot or a message not yet released. */
    BUSY(4, "Busy", "taken: by another handle, an open slot or a message not yet released"),
    /** Full: the ring is full. */
    FULL(5, "Full", "the ring is full"),
    /** Empty: nothing is there now. */
    EMPTY(6, "Empty", "nothing is there now"),
    /** TooLarge: the message is longer than this ring can ever hold. */
    TOO_LARGE(7, "TooLarge", "the message is longer than this ring can ever hold"),
    /** TimedOut: the deadline passed. */
    TIMED_OUT(8, "TimedOut", "the deadline passed"),
    /** Closed: the peer closed. */
    CLOSED(9, "Closed", "the peer closed"),
    /** Detached: this handle is closed. */
    DETACHED(10, "Detached", "this handle is closed"),
    /** PeerDead: the peer died without closing. */
    PEER_DEAD(11, "PeerDead", "the peer died without closing"),
    /** Corrupt: the shared memory is corrupt. */
    CORRUPT(12, "Corrupt", "the shared memory is corrupt"),
    /** AbiMismatch: not a segment that this version can use. */
    ABI_MISMATCH(13, "AbiMismatch", "not a segment that this version can use"),
    /** PermissionDenied: permission denied. */
    PERMISSION_DENIED(14, "PermissionDenied", "permission denied"),
    /** NoSpace: not enough memory or space. */
    NO_SPACE(15, "NoSpace", "not enough memory or space"),
    /** Interrupted: interrupted. */
    INTERRUPTED(16, "Interrupted", "interrupted"),
    /** Unsupported: not supported here. */
    UNSUPPORTED(17, "Unsupported", "not supported here"),
    /** Os: operating system error. */
    OS(18, "Os", "operating system error");

    private final int number;
    private final String formatName;
    private final String summary;

    ErrorKind(int number, String formatName, String summary) {
        this.number = number;
        this.formatName = formatName;
        this.summary = summary;
    }

    /**
     * {@return the number in the format's description, 1 to 18}
     */
    public int number() {
        return number;
    }

    /**
     * {@return the name in the format's description, such as {@code PeerDead}}
     */
    public String formatName() {
        return formatName;
    }

    /**
     * {@return in a few words, what went wrong}
     */
    public String summary() {
        return summary;
    }

    private static final ErrorKind[] ALL = values();

    /** The kind with this number, or null. */
    static ErrorKind of(int number) {
        return number >= 1 && number <= ALL.length ? ALL[number - 1] : null;
    }
}
