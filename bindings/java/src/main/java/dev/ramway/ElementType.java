package dev.ramway;

/** What a tensor's elements are, as NumPy and ml_dtypes name them. */
public enum ElementType {
    /** Of one byte, signed. */
    INT8
}
