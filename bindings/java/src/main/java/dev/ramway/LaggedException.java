package dev.ramway;

/** {@link ErrorKind#LAGGED}: the publisher ejected this subscriber, which was too slow. It has begun anew at the oldest message left. */
public final class LaggedException extends RamwayException {
    private static final long serialVersionUID = 1L;

    /** How many. */
    private final long lost;

    LaggedException(long lost) {
        super(ErrorKind.LAGGED, 0, String.format("the publisher ejected this subscriber, which was too slow: %d messages are lost; "
                + "the next call goes on at the oldest one left", lost));
        this.lost = lost;
    }

    /** {@return how many messages that cost} */
    public long lost() {
        return lost;
    }
}
