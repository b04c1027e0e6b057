package dev.ramway;

import java.util.Locale;

/** What a tensor's elements are, as NumPy and {@code ml_dtypes} name them. The order is that of the format's page. */
public enum ElementType {
    // facts: element types (generated from format/facts.toml by `make facts`)
    /** Signed, 8 bits. */
    INT8(0, 8),
    /** Signed, 16 bits. */
    INT16(0, 16),
    /** Signed, 32 bits. */
    INT32(0, 32),
    /** Signed, 64 bits. */
    INT64(0, 64),
    /** Unsigned, 8 bits. */
    UINT8(1, 8),
    /** Unsigned, 16 bits. */
    UINT16(1, 16),
    /** Unsigned, 32 bits. */
    UINT32(1, 32),
    /** Unsigned, 64 bits. */
    UINT64(1, 64),
    /** IEEE 754 binary16. */
    FLOAT16(2, 16),
    /** IEEE 754 binary32. */
    FLOAT32(2, 32),
    /** IEEE 754 binary64. */
    FLOAT64(2, 64),
    /** The upper half of a binary32. */
    BFLOAT16(4, 16),
    /** Two binary32: real part, imaginary part. */
    COMPLEX64(5, 64),
    /** Two binary64: real part, imaginary part. */
    COMPLEX128(5, 128),
    /** One byte, 0 or 1; a peer can send any byte. */
    BOOL(6, 8),
    /** 8 bits: 3 of exponent, 4 of mantissa. */
    FLOAT8_E3M4(7, 8),
    /** 8 bits: 4 of exponent, 3 of mantissa, with infinities. */
    FLOAT8_E4M3(8, 8),
    /** 8 bits: 4 of exponent with a bias of 11, 3 of mantissa, one NaN. */
    FLOAT8_E4M3B11FNUZ(9, 8),
    /** 8 bits: 4 of exponent, 3 of mantissa, no infinities. */
    FLOAT8_E4M3FN(10, 8),
    /** 8 bits: 4 of exponent, 3 of mantissa, one NaN. */
    FLOAT8_E4M3FNUZ(11, 8),
    /** 8 bits: 5 of exponent, 2 of mantissa, with infinities. */
    FLOAT8_E5M2(12, 8),
    /** 8 bits: 5 of exponent, 2 of mantissa, one NaN. */
    FLOAT8_E5M2FNUZ(13, 8),
    /** 8 bits of exponent: a power of two. */
    FLOAT8_E8M0FNU(14, 8);
    // end of facts

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
