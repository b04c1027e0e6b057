package dev.ramway;

import java.util.Objects;
import java.util.Optional;

/**
 * Why a call has no reply. Either the server answered with a status ({@link #status}), or the call ended on this side
 * ({@link #error}): CLOSED if the connection was closed, PEER_DEAD if the server died, TOO_LARGE if the request does not fit into the
 * ring or the reply not into what the client may hold, TIMED_OUT by this side's clock, CORRUPT if the server broke the format.
 *
 * <p>A handler throws one to end its call with an error of the application's: {@link #RpcException(int, String)}.
 */
public class RpcException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** What the server answered; null if it did not. */
    private final RpcStatus status;
    /** How the call ended on this side; null if the server answered. */
    private final ErrorKind error;
    /** The application's number. */
    private final int code;
    /** What went wrong. */
    private final String text;
    /** Whether the server may have begun the call. */
    private final boolean mayHaveRun;

    private RpcException(RpcStatus status, ErrorKind error, int code, String text, boolean mayHaveRun, String message) {
        super(message);
        this.status = status;
        this.error = error;
        this.code = code;
        this.text = text;
        this.mayHaveRun = mayHaveRun;
    }

    /**
     * An error of the application's: what a handler throws.
     *
     * @param code the application's number, unsigned
     * @param text what went wrong
     */
    public RpcException(int code, String text) {
        this(RpcStatus.APPLICATION, null, code, Objects.requireNonNull(text, "text"), true,
                "error " + Integer.toUnsignedString(code) + " of the application: " + text);
    }

    /** The server's answer, other than OK. */
    static RpcException of(RpcStatus status, int code, String text) {
        if (status == RpcStatus.APPLICATION) {
            return new RpcException(code, text);
        }
        String what = switch (status) {
            case NO_SUCH_METHOD -> "the server has no such method (NoSuchMethod): RpcClient.describe gives those that it has";
            case TIMED_OUT -> "the call's time was over before the server began it (TimedOut)";
            case CANCELLED -> "the server ended the call because it was cancelled or its time was over (Cancelled)";
            case OVERLOADED -> "a limit of the server was reached (Overloaded): call again later, or raise the limit where it serves";
            case REPLY_TOO_LARGE -> "the reply is longer than the ring holds or than the server's maxBytes allow (ReplyTooLarge)";
            case DRAINING -> "the server is shutting down (Draining)";
            default -> "the handler failed (HandlerFailed)" + (text.isEmpty() ? "" : ": " + text);
        };
        return new RpcException(status, null, code, text.isEmpty() ? what : text, status.mayHaveRun(), what);
    }

    /** A cancellation by this side. */
    static RpcException cancelled(boolean mayHaveRun) {
        String what = "this side cancelled the call (Cancelled)";
        return new RpcException(RpcStatus.CANCELLED, null, 0, what, mayHaveRun, what);
    }

    /** An end on this side. */
    static RpcException of(ErrorKind error, boolean mayHaveRun, String what) {
        return new RpcException(null, error, 0, what, mayHaveRun, what);
    }

    /** The same for the caller, with the caller's stack. */
    RpcException again() {
        RpcException e = new RpcException(status, error, code, text, mayHaveRun, getMessage());
        e.initCause(getCause());
        return e;
    }

    /** {@return what the server answered; CANCELLED also if this side cancelled; empty if the call ended on this side} */
    public Optional<RpcStatus> status() {
        return Optional.ofNullable(status);
    }

    /** {@return how the call ended on this side; empty if the server answered} */
    public Optional<ErrorKind> error() {
        return Optional.ofNullable(error);
    }

    /** {@return the application's number, unsigned; 0 without the status APPLICATION} */
    public int code() {
        return code;
    }

    /** {@return what went wrong: of the status APPLICATION and HANDLER_FAILED the server's text} */
    public String text() {
        return text;
    }

    /**
     * {@return whether the server may have begun the call} False: it was not run, and can be repeated. Nothing is repeated by
     * itself.
     */
    public boolean mayHaveRun() {
        return mayHaveRun;
    }
}
