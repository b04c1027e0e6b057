//! What a tensor's elements are.

use std::fmt;

use crate::facts;

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

facts::element_types!(dtypes);

impl Dtype {
    /// The type with this DLPack code and this many bits an element, if tensors can have it.
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
