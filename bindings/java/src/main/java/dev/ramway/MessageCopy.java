package dev.ramway;

/**
 * A message that was copied out of the ring or topic.
 *
 * @param typeId the application's type id, an unsigned number
 * @param tag the application's tag
 * @param data the payload
 * @param seq a topic's message's number, from 1; 0 on a ring
 * @param time when a topic's message was published, wall clock, in nanoseconds since 1970; 0 without {@link Topic#timestamps}, and on
 *     a ring
 * @param lost how many messages were lost just before it; 0 on a ring
 */
public record MessageCopy(int typeId, long tag, byte[] data, long seq, long time, long lost) {
    /**
     * A ring's message.
     *
     * @param typeId the application's type id, an unsigned number
     * @param tag the application's tag
     * @param data the payload
     */
    public MessageCopy(int typeId, long tag, byte[] data) {
        this(typeId, tag, data, 0, 0, 0);
    }
}
