//! The tensor types of the formats that this crate reads.

use std::borrow::Cow;

use tercet_core::block::Format;
use tercet_core::gguf::TensorType;

/// How to read the bytes of a tensor. All types are little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DType {
    /// 64-bit float; quantizers read it rounded to `f32`, ties to even.
    F64,
    /// 32-bit float.
    F32,
    /// 16-bit float, IEEE.
    F16,
    /// 16-bit float with `f32`'s exponent.
    Bf16,
    /// 64-bit signed integer.
    I64,
    /// 32-bit signed integer.
    I32,
    /// 16-bit signed integer.
    I16,
    /// 8-bit signed integer; the codes of int8 and ternary tensors.
    I8,
    /// 64-bit unsigned integer.
    U64,
    /// 32-bit unsigned integer.
    U32,
    /// 16-bit unsigned integer.
    U16,
    /// 8-bit unsigned integer; four ternary codes each in Hugging Face BitNet files.
    U8,
    /// One byte, 0 or 1.
    Bool,
    /// Blocks of codes with a scale in each.
    Block(Format),
    /// Microsoft BitNet's two-bit codes, with one scale after the last code. The reader must know the layout.
    I2S,
    /// A GGUF type that is copied from file to file but never decoded.
    Ggml(TensorType),
    /// A safetensors type that is copied from file to file but never decoded.
    Safetensors(safetensors::Dtype),
}

impl DType {
    /// Returns the type's name as reports print it: lower case, as ggml and NumPy write theirs.
    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::F64 => "f64",
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::I64 => "i64",
            Self::I32 => "i32",
            Self::I16 => "i16",
            Self::I8 => "i8",
            Self::U64 => "u64",
            Self::U32 => "u32",
            Self::U16 => "u16",
            Self::U8 => "u8",
            Self::Bool => "bool",
            Self::Block(format) => format.name(),
            Self::I2S => "i2_s",
            Self::Ggml(kind) => {
                return Cow::Owned(kind.to_string().to_ascii_lowercase());
            }
            Self::Safetensors(dtype) => {
                return Cow::Owned(dtype.to_string().to_ascii_lowercase());
            }
        })
    }

    /// Returns true for the types whose values are plain floats: `f64`, `f32`, `f16` and `bf16`.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F64 | Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Returns the number of values per block and the bytes of a block; `(1, n)` if values stand alone.
    pub fn block(self) -> (usize, usize) {
        match self {
            Self::F64 | Self::I64 | Self::U64 => (1, 8),
            Self::F32 | Self::I32 | Self::U32 => (1, 4),
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => (1, 2),
            Self::I8 | Self::U8 | Self::Bool => (1, 1),
            Self::Block(format) => format.layout(),
            // Without the 32 bytes at the tensor's end.
            Self::I2S => (4, 1),
            Self::Ggml(kind) => kind.layout().map_or((1, 1), |layout| {
                (layout.block_len as usize, layout.block_bytes as usize)
            }),
            // Eight values of any width fill whole bytes.
            Self::Safetensors(dtype) => (8, dtype.bitsize()),
        }
    }

    /// Returns the bytes of `values` values; `None` on overflow.
    pub(crate) fn bytes(self, values: usize) -> Option<usize> {
        let (len, bytes) = self.block();
        if values.is_multiple_of(len) {
            (values / len).checked_mul(bytes)
        } else {
            Some(values.checked_mul(bytes)?.div_ceil(len))
        }
    }
}

/// Returns the number of values of a shape: 1 for a scalar's empty shape, `None` on overflow.
pub(crate) fn values(shape: &[usize]) -> Option<usize> {
    // Zeros first: [0, huge, huge] has no values and must not count as an overflow.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim))
}
