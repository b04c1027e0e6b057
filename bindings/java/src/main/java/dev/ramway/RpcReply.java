package dev.ramway;

/**
 * A reply, or an element of a stream. The arrays are the caller's.
 *
 * @param body the bytes
 * @param meta the metadata: bytes that the application defines; empty if there are none
 */
public record RpcReply(byte[] body, byte[] meta) {}
