package dev.ramway;

/** Where a subscriber begins. */
record Start(Kind kind, long number) {
    static final Start DEFAULT = new Start(Kind.DEFAULT, 0);

    enum Kind {
        /** The oldest message for a reliable subscriber, now for any other. */
        DEFAULT,
        OLDEST,
        NOW,
        /** With so many messages that were published before. */
        HISTORY,
        AFTER_SEQ,
        /**
         * At the message with this number, or the first intact one after it. Where one goes on that was ejected: the oldest message
         * may be one that it has received.
         */
        AGAIN
    }
}
