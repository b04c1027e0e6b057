package dev.ramway;

/**
 * What a message of a topic was published with, of which the payload was copied into memory of the caller's.
 *
 * @param typeId the application's type id, an unsigned number
 * @param tag the application's tag
 * @param length of the payload, in bytes
 * @param seq the message's number: the first one of a topic has 1
 * @param time when it was published, wall clock, in nanoseconds since 1970; 0 without {@link Topic#timestamps}
 * @param lost how many messages were lost just before it
 */
public record TopicMeta(int typeId, long tag, int length, long seq, long time, long lost) {}
