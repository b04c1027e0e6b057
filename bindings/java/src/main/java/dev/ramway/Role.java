package dev.ramway;

/** A side of a ring. */
enum Role {
    PRODUCER,
    CONSUMER;

    Role other() {
        return this == PRODUCER ? CONSUMER : PRODUCER;
    }

    /** The byte of a named segment that the holder of the role locks exclusively. */
    int lockByte() {
        return this == PRODUCER ? Facts.BYTE_PRODUCER : Facts.BYTE_CONSUMER;
    }

    /** Where the role's line begins in a ring's block. */
    int line() {
        return this == PRODUCER ? Facts.OFF_PRODUCER : Facts.OFF_CONSUMER;
    }

    @Override
    public String toString() {
        return this == PRODUCER ? "producer" : "consumer";
    }
}
