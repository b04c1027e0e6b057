//! What a tensor's elements are.

use std::fmt;

/// The type of a tensor's elements: DLPack's code and the bits of one element (`lanes` is always 1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Dtype {
    code: u8,
    bits: u8,
}

macro_rules! dtypes {
    ($($constant:ident = $code:literal, $bits:literal, $name:literal, $doc:literal;)*) => {
        impl Dtype {
            $(#[doc = $doc] pub const $constant: Self = Self { code: $code, bits: $bits };)*

            /// Every type that a tensor's elements can have.
            pub const ALL: &'static [Self] = &[$(Self::$constant),*];

            /// The name that NumPy, or `ml_dtypes` where NumPy has no such type, gives it: `"float32"`, `"bfloat16"`.
            pub const fn name(self) -> &'static str {
                match (self.code, self.bits) {
                    $(($code, $bits) => $name,)*
                    _ => unreachable!(),
                }
            }

            /// The type with this [`name`](Self::name), if there is one.
            ///
            /// ```
            /// use ramway::tensor::Dtype;
            /// assert_eq!(Dtype::from_name("bfloat16"), Some(Dtype::BF16));
            /// assert_eq!(Dtype::from_name("f4"), None);
            /// ```
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$constant),)*
                    _ => None,
                }
            }
        }
    };
}

dtypes! {
    I8 = 0, 8, "int8", "Signed, 8 bits.";
    I16 = 0, 16, "int16", "Signed, 16 bits.";
    I32 = 0, 32, "int32", "Signed, 32 bits.";
    I64 = 0, 64, "int64", "Signed, 64 bits.";
    U8 = 1, 8, "uint8", "Unsigned, 8 bits.";
    U16 = 1, 16, "uint16", "Unsigned, 16 bits.";
    U32 = 1, 32, "uint32", "Unsigned, 32 bits.";
    U64 = 1, 64, "uint64", "Unsigned, 64 bits.";
    F16 = 2, 16, "float16", "IEEE 754 binary16.";
    F32 = 2, 32, "float32", "IEEE 754 binary32.";
    F64 = 2, 64, "float64", "IEEE 754 binary64.";
    BF16 = 4, 16, "bfloat16", "The upper half of a binary32.";
    C64 = 5, 64, "complex64", "Two binary32: real part, imaginary part.";
    C128 = 5, 128, "complex128", "Two binary64: real part, imaginary part.";
    BOOL = 6, 8, "bool", "One byte, 0 or 1.";
    F8_E3M4 = 7, 8, "float8_e3m4", "8 bits: 3 of exponent, 4 of mantissa.";
    F8_E4M3 = 8, 8, "float8_e4m3", "8 bits: 4 of exponent, 3 of mantissa, with infinities.";
    F8_E4M3B11FNUZ = 9, 8, "float8_e4m3b11fnuz", "8 bits: 4 of exponent with a bias of 11, 3 of mantissa, one NaN.";
    F8_E4M3FN = 10, 8, "float8_e4m3fn", "8 bits: 4 of exponent, 3 of mantissa, no infinities.";
    F8_E4M3FNUZ = 11, 8, "float8_e4m3fnuz", "8 bits: 4 of exponent, 3 of mantissa, one NaN.";
    F8_E5M2 = 12, 8, "float8_e5m2", "8 bits: 5 of exponent, 2 of mantissa, with infinities.";
    F8_E5M2FNUZ = 13, 8, "float8_e5m2fnuz", "8 bits: 5 of exponent, 2 of mantissa, one NaN.";
    F8_E8M0FNU = 14, 8, "float8_e8m0fnu", "8 bits of exponent: a power of two.";
}

impl Dtype {
    /// The type with this DLPack code and so many bits an element, if tensors can have it.
    pub fn new(code: u8, bits: u8) -> Option<Self> {
        let dtype = Self { code, bits };
        Self::ALL.contains(&dtype).then_some(dtype)
    }

    /// DLPack's `DLDataTypeCode`.
    pub const fn code(self) -> u8 {
        self.code
    }

    /// Bits of one element: 8 to 128.
    pub const fn bits(self) -> u8 {
        self.bits
    }

    /// Bytes of one element: 1 to 16.
    pub const fn size(self) -> usize {
        self.bits as usize / 8
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type whose bytes are those of one element, for [`Tensor::as_slice`](super::Tensor::as_slice) and its like.
///
/// Here for the integers, `f32`, `f64` and, as complex numbers, `[f32; 2]` and `[f64; 2]`. Not for `bool`, because a
/// peer can send a byte that is neither 0 nor 1: read those as bytes. A type of your own can have it:
///
/// ```
/// use ramway::tensor::{Dtype, Element};
///
/// #[derive(Clone, Copy)]
/// #[repr(transparent)]
/// struct Bf16(u16);
/// # // SAFETY: a transparent u16.
/// unsafe impl bytemuck::Zeroable for Bf16 {}
/// # // SAFETY: a transparent u16.
/// unsafe impl bytemuck::Pod for Bf16 {}
///
/// impl Element for Bf16 {
///     const DTYPE: Dtype = Dtype::BF16;
/// }
/// ```
pub trait Element: bytemuck::Pod {
    /// What a tensor of these says that they are.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($type:ty = $constant:ident),* $(,)?) => {
        $(impl Element for $type { const DTYPE: Dtype = Dtype::$constant; })*
    };
}

elements! {
    i8 = I8, i16 = I16, i32 = I32, i64 = I64, u8 = U8, u16 = U16, u32 = U32, u64 = U64,
    f32 = F32, f64 = F64, [f32; 2] = C64, [f64; 2] = C128,
}
