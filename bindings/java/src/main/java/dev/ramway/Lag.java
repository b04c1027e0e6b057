package dev.ramway;

/**
 * How far a subscriber is behind.
 *
 * @param bytes published and not released, frame headers and padding included
 * @param messages published and not received
 */
public record Lag(long bytes, long messages) {}
