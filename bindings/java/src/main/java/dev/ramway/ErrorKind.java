package dev.ramway;

/** What went wrong. The numbers and names are part of the format: every language has the same ones. */
public enum ErrorKind {
    // facts: error kinds (generated from format/facts.toml by `make facts`)
    /** NotFound: Nothing has this name. */
    NOT_FOUND(1, "NotFound", "nothing has this name"),
    /** AlreadyExists: The name is taken: by a live segment, by undelivered messages, or by something that is not Ramway's. */
    ALREADY_EXISTS(2, "AlreadyExists", "the name is taken"),
    /** InvalidArgument: An argument cannot be right; the message says which and what was expected. */
    INVALID_ARGUMENT(3, "InvalidArgument", "invalid argument"),
    /** Busy: The role, slot or view is taken. */
    BUSY(4, "Busy", "taken: by another handle, an open slot or a message not yet released"),
    /** Full: The ring or topic has no room for this message now. */
    FULL(5, "Full", "there is no room for this message now"),
    /** Empty: The ring has no message now. */
    EMPTY(6, "Empty", "nothing is there now"),
    /** TooLarge: The message can never fit into this ring. */
    TOO_LARGE(7, "TooLarge", "the message is longer than this ring can ever hold"),
    /** TimedOut: The deadline passed. */
    TIMED_OUT(8, "TimedOut", "the deadline passed"),
    /** Closed: The peer closed, and everything that it had sent has been received; or the name has vanished. */
    CLOSED(9, "Closed", "the peer closed"),
    /** Detached: This handle is closed, or it belongs to the parent of a forked process. */
    DETACHED(10, "Detached", "this handle is closed or was inherited across a fork"),
    /** PeerDead: The peer's process died without closing, and everything that it had committed has been received. */
    PEER_DEAD(11, "PeerDead", "the peer died without closing"),
    /** Corrupt: The shared memory holds what no correct peer writes; the handle stays dead. */
    CORRUPT(12, "Corrupt", "the shared memory is corrupt"),
    /** AbiMismatch: Not Ramway's, or a version, byte order, feature or page size that this side cannot use. */
    ABI_MISMATCH(13, "AbiMismatch", "not a segment that this version can use"),
    /** PermissionDenied: The operating system, or a check of the peer's user, refuses. */
    PERMISSION_DENIED(14, "PermissionDenied", "permission denied"),
    /** NoSpace: Not enough memory or file system space. */
    NO_SPACE(15, "NoSpace", "not enough memory or space"),
    /** Interrupted: The wait was interrupted: by a signal whose handler asked for it, or by the program. */
    INTERRUPTED(16, "Interrupted", "interrupted"),
    /** Unsupported: This kernel, file system or setting cannot do what was asked. */
    UNSUPPORTED(17, "Unsupported", "not supported here"),
    /** Os: Any other error of the operating system, with its number. */
    OS(18, "Os", "operating system error"),
    /**
     * Lagged: The publisher of a topic ejected this subscriber, which was too slow; the error says how many messages were lost.
     */
    LAGGED(19, "Lagged", "messages were lost: the publisher ejected this subscriber");
    // end of facts

    private final int number;
    private final String formatName;
    private final String summary;

    ErrorKind(int number, String formatName, String summary) {
        this.number = number;
        this.formatName = formatName;
        this.summary = summary;
    }

    /**
     * {@return the number in the format's description, 1 to 19}
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
