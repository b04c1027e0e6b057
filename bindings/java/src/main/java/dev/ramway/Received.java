package dev.ramway;

/**
 * What was received into memory of the caller's.
 *
 * @param typeId the application's type id, an unsigned number
 * @param tag the application's tag
 * @param length of the payload, in bytes
 */
public record Received(int typeId, long tag, int length) {}
