//! The types of tensors, by ggml's numbers.

use super::{LayoutError, Shape};

/// Bytes that BitNet's I2_S adds to its codes: the scale and its padding.
const I2_S_TAIL: u64 = 32;

/// Storage type of a tensor's elements, by its number in the file.
///
/// Any number is possible; [`TensorType::layout`] returns `None` for unknown ones. The numbers and block sizes are
/// those of ggml 0.25. **Forks reuse numbers** for other blocks: 36 was a repacked IQ4_NL in ggml and is I2_S in
/// BitNet's fork; 42 is Q2_0 in groups of 64 here and of 128 elsewhere. So compare a tensor's number of bytes too:
/// [`super::Reader::new`] does this, and [`super::TensorInfo::stored_len`] returns the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TensorType(pub u32);

/// Blocks of a fixed number of elements in a fixed number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BlockSize {
    /// Number of elements per block; a row is a whole number of blocks.
    pub block_len: u32,
    /// Number of bytes per block.
    pub block_bytes: u32,
}

macro_rules! tensor_types {
    ($($name:ident = $id:literal: $len:literal, $bytes:literal;)+) => {
        #[allow(missing_docs, reason = "the name and the table of `layout` say all there is")]
        impl TensorType {
            $(pub const $name: Self = Self($id);)+
        }

        impl TensorType {
            /// Returns the name in ggml's spelling, in capitals; `None` for unknown numbers.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($id => Some(stringify!($name)),)+
                    36 => Some("I2_S"),
                    _ => None,
                }
            }

            /// Returns the block layout; `None` for unknown numbers and for I2_S, which has none.
            pub const fn layout(self) -> Option<BlockSize> {
                match self.0 {
                    $($id => Some(BlockSize { block_len: $len, block_bytes: $bytes }),)+
                    _ => None,
                }
            }
        }

        /// Every type with a block layout, by number.
        const BLOCK_TYPES: &[TensorType] = &[$(TensorType($id)),+];
    };
}

tensor_types! {
    F32 = 0: 1, 4;
    F16 = 1: 1, 2;
    Q4_0 = 2: 32, 18;
    Q4_1 = 3: 32, 20;
    Q5_0 = 6: 32, 22;
    Q5_1 = 7: 32, 24;
    Q8_0 = 8: 32, 34;
    Q8_1 = 9: 32, 36;
    Q2_K = 10: 256, 84;
    Q3_K = 11: 256, 110;
    Q4_K = 12: 256, 144;
    Q5_K = 13: 256, 176;
    Q6_K = 14: 256, 210;
    Q8_K = 15: 256, 292;
    IQ2_XXS = 16: 256, 66;
    IQ2_XS = 17: 256, 74;
    IQ3_XXS = 18: 256, 98;
    IQ1_S = 19: 256, 50;
    IQ4_NL = 20: 32, 18;
    IQ3_S = 21: 256, 110;
    IQ2_S = 22: 256, 82;
    IQ4_XS = 23: 256, 136;
    I8 = 24: 1, 1;
    I16 = 25: 1, 2;
    I32 = 26: 1, 4;
    I64 = 27: 1, 8;
    F64 = 28: 1, 8;
    IQ1_M = 29: 256, 56;
    BF16 = 30: 1, 2;
    TQ1_0 = 34: 256, 54;
    TQ2_0 = 35: 256, 66;
    MXFP4 = 39: 32, 17;
    NVFP4 = 40: 64, 36;
    Q1_0 = 41: 128, 18;
    Q2_0 = 42: 64, 18;
}

impl TensorType {
    /// Ternary tensors of BitNet's fork: two bits per element, then 32 bytes for one scale and padding.
    pub const I2_S: Self = Self(36);

    /// Returns every type with a block layout, by number.
    pub const fn all() -> &'static [Self] {
        BLOCK_TYPES
    }

    /// Returns the number of bytes of a tensor.
    ///
    /// ```
    /// use tercet_core::gguf::{LayoutError, Shape, TensorType};
    ///
    /// assert_eq!(TensorType::TQ2_0.byte_len(&Shape::new(&[512, 3])?), Ok(6 * 66));
    /// let row = Shape::new(&[100])?;
    /// assert_eq!(
    ///     TensorType::TQ2_0.byte_len(&row),
    ///     Err(LayoutError::PartialRow { row: 100, block: 256 })
    /// );
    /// # Ok::<(), LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::UnknownType`]; [`LayoutError::PartialRow`] if the first dimension is not a multiple of the
    /// block (for I2_S: if the number of elements is not a multiple of 4); [`LayoutError::Bytes`].
    pub fn byte_len(self, shape: &Shape) -> Result<u64, LayoutError> {
        let elements = shape.elements();
        let row = shape.row();
        if self.0 == Self::I2_S.0 {
            if !elements.is_multiple_of(4) {
                return Err(LayoutError::PartialRow { row, block: 4 });
            }
            return Ok(elements / 4 + I2_S_TAIL);
        }
        let Some(layout) = self.layout() else {
            return Err(LayoutError::UnknownType { id: self.0 });
        };
        let block = layout.block_len;
        if !row.is_multiple_of(u64::from(block)) {
            return Err(LayoutError::PartialRow { row, block });
        }
        match (elements / u64::from(block)).checked_mul(u64::from(layout.block_bytes)) {
            Some(bytes) => Ok(bytes),
            None => Err(LayoutError::Bytes),
        }
    }
}

impl core::fmt::Display for TensorType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "type {}", self.0),
        }
    }
}

impl core::fmt::Debug for TensorType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}
