package dev.ramway;

/** Why an attempt at a name is to be made again, and what to say when there is no time left. Never leaves this package. */
final class RetryLater extends Exception {
    private static final long serialVersionUID = 1L;

    /** What to say. */
    final RamwayException error;
    /** Somebody else was in the middle of something, which is waited for in any case. */
    final boolean race;
    /** Nothing is there to open. */
    final boolean absent;

    private RetryLater(RamwayException error, boolean race, boolean absent) {
        // One is made per attempt: without a stack trace.
        super(null, null, false, false);
        this.error = error;
        this.race = race;
        this.absent = absent;
    }

    static RetryLater raced(String why) {
        String text = why + ", at each attempt until the deadline; try again, or pick another name";
        return new RetryLater(Errors.of(ErrorKind.TIMED_OUT, text), true, false);
    }

    static RetryLater nameChanged(String during) {
        return raced("the name was removed, or given to another file, while " + during);
    }

    /** Somebody was faster, whose work is to be opened. */
    static RetryLater raced(RamwayException error) {
        return new RetryLater(error, true, false);
    }

    static RetryLater absent(RamwayException error) {
        return new RetryLater(error, false, true);
    }

    static RetryLater busy(String text) {
        return new RetryLater(Errors.of(ErrorKind.BUSY, text), false, false);
    }
}
