package dev.ramway;

/**
 * A message that was copied out of the ring.
 *
 * @param typeId the application's type id, an unsigned number
 * @param tag the application's tag
 * @param data the payload
 */
public record MessageCopy(int typeId, long tag, byte[] data) {}
