package dev.ramway;

/**
 * When a receiver whose ring is empty, by what was seen last, leaves its sender alone for a while: each poll takes tail's line away
 * from it, and the frames' lines. A sender that has to fetch them back for each message or two takes 100 ns for each, and the
 * receiver, which is as fast then, finds no more of them with each poll: both stay in that state until one of them is delayed
 * (decision 39).
 */
final class BackOff {
    /** More bytes than these: the receiver is behind. */
    private final long behind;
    /** What the last poll found that found something, in bytes, and how long the first of its frames is; 0 once used. */
    private long found;
    private long frame = 1;
    /** Polls until the next trial, and between that and the one after it. */
    private int left = Facts.BACK_OFF_TRIAL_MIN;
    private int every = Facts.BACK_OFF_TRIAL_MIN;

    BackOff(long behind) {
        this.behind = behind;
    }

    /** A poll has found so much. */
    void found(long bytes, long firstFrame) {
        found = bytes;
        frame = firstFrame;
    }

    /**
     * Before a poll: whether to {@link #pause} first. Where messages come densely, some time. Where they do not, nothing, since a
     * message may be waited for by itself; but now and then it is tried whether they would.
     */
    boolean isDue() {
        return --left <= 0 || found >= Facts.BACK_OFF_FEW * frame;
    }

    /** A call of its own, so that the way of a message stays short enough for the compiler to see all of it. */
    void pause() {
        long bytes = found;
        found = 0;
        if (bytes > behind) {
            left = every;
            return;
        }
        int pauses = Facts.BACK_OFF_PAUSES;
        if (bytes >= Facts.BACK_OFF_FEW * frame) {
            left = every = Facts.BACK_OFF_TRIAL_MIN;
            pauses = bytes < Facts.BACK_OFF_MANY * frame ? pauses : 2 * pauses;
        } else {
            left = every = Math.min(2 * every, Facts.BACK_OFF_TRIAL_MAX);
        }
        for (; pauses > 0; pauses--) {
            Thread.onSpinWait();
        }
    }
}
