package dev.ramway;

import java.util.Locale;

/** How a call ended, as the server's final reply says: the same numbers and names in every language. */
public enum RpcStatus {
    /** The call succeeded. */
    OK(Facts.RPC_OK, true),
    /** The handler replied with an error of the application's: a number and a text. */
    APPLICATION(Facts.RPC_APPLICATION, true),
    /** The server has no such method. The call was not run. */
    NO_SUCH_METHOD(Facts.RPC_NO_SUCH_METHOD, false),
    /** The call's time was over before it was begun. It was not run. */
    TIMED_OUT(Facts.RPC_TIMED_OUT, false),
    /** The call was cancelled, or its time was over while it ran. */
    CANCELLED(Facts.RPC_CANCELLED, true),
    /** A limit of the server was reached: calls in flight, bytes, its queue. The call was not run. */
    OVERLOADED(Facts.RPC_OVERLOADED, false),
    /** The call was run, but its reply is longer than the ring can hold or than the server's limit of bytes allows. */
    REPLY_TOO_LARGE(Facts.RPC_REPLY_TOO_LARGE, true),
    /** The server is shutting down. The call was not run. */
    DRAINING(Facts.RPC_DRAINING, false),
    /** The handler failed in a way that it did not mean to: it threw an exception. */
    HANDLER_FAILED(Facts.RPC_HANDLER_FAILED, true);

    private static final RpcStatus[] ALL = values();

    private final int number;
    private final boolean run;

    RpcStatus(int number, boolean run) {
        this.number = number;
        this.run = run;
    }

    /** {@return the name that the format has for it, such as NoSuchMethod} */
    public String formatName() {
        StringBuilder words = new StringBuilder();
        for (String word : name().split("_")) {
            words.append(word.charAt(0)).append(word.substring(1).toLowerCase(Locale.ROOT));
        }
        return words.toString();
    }

    /** {@return the number in a reply} */
    public int number() {
        return number;
    }

    /** {@return whether a call that ended so was run, or was begun} */
    public boolean mayHaveRun() {
        return run;
    }

    /** The status of a number; null if it stands for none. The numbers are consecutive from 0. */
    static RpcStatus of(int number) {
        return number >= 0 && number < ALL.length ? ALL[number] : null;
    }
}
