package dev.ramway;

import java.util.Locale;

/** What a tensor's elements are, as NumPy and {@code ml_dtypes} name them. The order is that of the format's page. */
public enum ElementType {
    /** 8 bits, signed. */
    INT8(0, 8),
    /** 16 bits, signed. */
    INT16(0, 16),
    /** 32 bits, signed. */
    INT32(0, 32),
    /** 64 bits, signed. */
    INT64(0, 64),
    /** 8 bits, unsigned. */
    UINT8(1, 8),
    /** 16 bits, unsigned. */
    UINT16(1, 16),
    /** 32 bits, unsigned. */
    UINT32(1, 32),
    /** 64 bits, unsigned. */
    UINT64(1, 64),
    /** Half precision: see {@link Float#float16ToFloat}. */
    FLOAT16(2, 16),
    /** Java's {@code float}. */
    FLOAT32(2, 32),
    /** Java's {@code double}. */
    FLOAT64(2, 64),
    /** The upper half of a {@code float}. */
    BFLOAT16(4, 16),
    /** Two {@code float}: the real part, then the imaginary part. */
    COMPLEX64(5, 64),
    /** Two {@code double}: the real part, then the imaginary part. */
    COMPLEX128(5, 128),
    /** A byte, 0 or 1; a peer may send others. */
    BOOL(6, 8),
    /** 3 bits of exponent, 4 of mantissa. */
    FLOAT8_E3M4(7, 8),
    /** 4 bits of exponent, 3 of mantissa. */
    FLOAT8_E4M3(8, 8),
    /** The same, with a bias of 11, finite, without a negative zero. */
    FLOAT8_E4M3B11FNUZ(9, 8),
    /** The same as FLOAT8_E4M3, finite. */
    FLOAT8_E4M3FN(10, 8),
    /** The same, finite, without a negative zero. */
    FLOAT8_E4M3FNUZ(11, 8),
    /** 5 bits of exponent, 2 of mantissa. */
    FLOAT8_E5M2(12, 8),
    /** The same, finite, without a negative zero. */
    FLOAT8_E5M2FNUZ(13, 8),
    /** 8 bits of exponent and nothing else: a scale. */
    FLOAT8_E8M0FNU(14, 8);

    private static final ElementType[] ALL = values();

    private final int code;
    private final int bits;

    ElementType(int code, int bits) {
        this.code = code;
        this.bits = bits;
    }

    /** {@return DLPack's type code} */
    public int code() {
        return code;
    }

    /** {@return how many bits an element has} */
    public int bits() {
        return bits;
    }

    /** {@return how many bytes an element takes} */
    public int size() {
        return bits / 8;
    }

    /** {@return the type's name as NumPy and {@code ml_dtypes} have it, such as {@code float32}} */
    public String formatName() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The type with this code and this many bits, or null. */
    static ElementType of(int code, int bits) {
        for (ElementType type : ALL) {
            if (type.code == code && type.bits == bits) {
                return type;
            }
        }
        return null;
    }
}
