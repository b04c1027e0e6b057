package dev.ramway;

/** The peer's process died without closing, and everything that it had committed has been received. */
public final class PeerDeadException extends RamwayException {
    private static final long serialVersionUID = 1L;

    PeerDeadException(String message) {
        super(ErrorKind.PEER_DEAD, 0, message);
    }
}
