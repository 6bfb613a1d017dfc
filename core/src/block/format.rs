//! The block formats by name, number and size.

use super::BlockError;

/// A block format of GGUF files: a fixed number of values in a fixed number of bytes.
///
/// | format | values | bytes | bits a value | codes | scale |
/// |---|---|---|---|---|---|
/// | TQ1_0 | 256 | 54 | 1.6875 | −1..=1 | max\|x\| |
/// | TQ2_0 | 256 | 66 | 2.0625 | −1..=1, decodes −1..=2 | max\|x\| |
/// | Q2_0 | 64 | 18 | 2.25 | −1..=1, decodes −1..=2 | max\|x\| |
/// | Q4_0 | 32 | 18 | 4.5 | −8..=7 | (first x of largest \|x\|) / −8 |
/// | Q8_0 | 32 | 34 | 8.5 | −127..=127, decodes −128 too | max\|x\| / 127 |
///
/// A value is `code · scale`; the scale is an f16. Forks of llama.cpp reuse type numbers for blocks of other
/// sizes: compare a tensor's byte size with [`Format::encoded_len`] before decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Format {
    /// Five ternary digits a byte.
    Tq1_0,
    /// Four two-bit codes a byte, interleaved over 32 bytes.
    Tq2_0,
    /// Four two-bit codes a byte, in order; groups of 64.
    Q2_0,
    /// Bytes.
    Q8_0,
    /// Two four-bit codes a byte, interleaved over 16 bytes.
    Q4_0,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Tq1_0, Self::Tq2_0, Self::Q2_0, Self::Q8_0, Self::Q4_0];

    /// The longest block of any format, in values.
    pub const MAX_LEN: usize = 256;

    /// Values in a block.
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty")]
    pub const fn len(self) -> usize {
        self.layout().0
    }

    /// Bytes of a block.
    pub const fn bytes(self) -> usize {
        self.layout().1
    }

    /// Values in a block, and its bytes.
    pub const fn layout(self) -> (usize, usize) {
        match self {
            Self::Tq1_0 => (256, 54),
            Self::Tq2_0 => (256, 66),
            Self::Q2_0 => (64, 18),
            Self::Q8_0 => (32, 34),
            Self::Q4_0 => (32, 18),
        }
    }

    /// The name as ggml writes it, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tq1_0 => "tq1_0",
            Self::Tq2_0 => "tq2_0",
            Self::Q2_0 => "q2_0",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }

    /// The format of a name, in either case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.name().eq_ignore_ascii_case(name))
    }

    /// The number of the type in a GGUF file.
    pub const fn gguf_type(self) -> u32 {
        match self {
            Self::Tq1_0 => 34,
            Self::Tq2_0 => 35,
            Self::Q2_0 => 42,
            Self::Q8_0 => 8,
            Self::Q4_0 => 2,
        }
    }

    /// The format of a GGUF type number.
    pub fn from_gguf_type(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|format| format.gguf_type() == number)
    }

    /// True for the formats that take a ternary [`Rule`](crate::quant::Rule).
    pub const fn is_ternary(self) -> bool {
        matches!(self, Self::Tq1_0 | Self::Tq2_0 | Self::Q2_0)
    }

    /// Bytes of `values` values.
    ///
    /// # Errors
    /// [`BlockError::Partial`] when they are no whole number of blocks, [`BlockError::TooLarge`] when the
    /// bytes do not fit `usize`.
    pub const fn encoded_len(self, values: usize) -> Result<usize, BlockError> {
        let (len, bytes) = self.layout();
        if !values.is_multiple_of(len) {
            return Err(BlockError::Partial {
                len: values,
                block: len,
            });
        }
        match (values / len).checked_mul(bytes) {
            Some(total) => Ok(total),
            None => Err(BlockError::TooLarge { len: values }),
        }
    }
}
