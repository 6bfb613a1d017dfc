//! The types of numbers by name.

use half::{bf16, f16};

/// The number types of buffers and tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(missing_docs, reason = "each is the type of its name")]
#[non_exhaustive]
pub enum Kind {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

mod sealed {
    pub trait Sealed {}
}

/// A number type for which any bits are a valid value, so that a buffer may be read after any previous use. Sealed.
pub trait Plain: Copy + Send + Sync + sealed::Sealed + 'static {
    /// The number type.
    const KIND: Kind;
}

macro_rules! plain {
    ($($number:ty: $kind:ident),+) => {
        $(
            impl sealed::Sealed for $number {}
            impl Plain for $number {
                const KIND: Kind = Kind::$kind;
            }
        )+
    };
}

plain!(u8: U8, i8: I8, u16: U16, i16: I16, u32: U32, i32: I32, u64: U64, i64: I64);
plain!(f16: F16, bf16: Bf16, f32: F32, f64: F64);
