package dev.ramway;

/** Why an attempt at a name is to be made again, and what to say when there is no time left. Never leaves this package. */
final class Later extends Exception {
    private static final long serialVersionUID = 1L;

    /** What to say. */
    final RamwayException error;
    /** Somebody else was in the middle of something, which is waited for in any case. */
    final boolean race;
    /** Nothing is there to open. */
    final boolean absent;

    private Later(RamwayException error, boolean race, boolean absent) {
        // One is made per attempt: without a stack trace.
        super(null, null, false, false);
        this.error = error;
        this.race = race;
        this.absent = absent;
    }

    static Later raced(String why) {
        return new Later(Errors.of(ErrorKind.TIMED_OUT, why + ", over and over until the deadline"), true, false);
    }

    /** Somebody was faster, whose work is to be opened. */
    static Later raced(RamwayException error) {
        return new Later(error, true, false);
    }

    static Later absent(RamwayException error) {
        return new Later(error, false, true);
    }

    static Later busy(String text) {
        return new Later(Errors.of(ErrorKind.BUSY, text), false, false);
    }
}
