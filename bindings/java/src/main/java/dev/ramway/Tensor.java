package dev.ramway;

import java.lang.foreign.MemorySegment;

/**
 * A tensor as it lies in a message.
 *
 * @param type of the elements
 * @param shape the outermost dimension first; empty for a single element
 * @param data the elements in C order, good as long as the message
 */
public record Tensor(ElementType type, long[] shape, MemorySegment data) {}
