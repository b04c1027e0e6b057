package dev.ramway;

/** How a subscriber of a topic reads. */
public enum Policy {
    /** The publisher waits for the subscriber, which gets every message. */
    RELIABLE,
    /** The publisher never waits for it. It gets every message that it is fast enough for, and how many it lost. */
    LOSSY,
    /** The publisher never waits for it. It reads the newest message. */
    LATEST
}
