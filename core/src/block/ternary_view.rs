//! Blocks that contain only ternary codes.

use super::{BlockError, Format, codes, dot, expect_len};

/// Encoded blocks of a ternary format without the code +2.
///
/// The two-bit formats can store a fourth code, +2; a product for −1, 0 and +1 would be wrong for it. This type
/// checks the bytes once, and kernels take this view.
///
/// ```
/// use tercet_core::block::{BlockError, Format, Ternary};
///
/// let mut block = [0; 18];
/// assert!(Ternary::new(Format::Q2_0, &block).is_ok());
/// block[2] = 0b1100;
/// let refused = Ternary::new(Format::Q2_0, &block);
/// assert_eq!(refused.unwrap_err(), BlockError::CodeRange { index: 1 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ternary<'a> {
    format: Format,
    bytes: &'a [u8],
}

impl<'a> Ternary<'a> {
    /// Checks `bytes` once. No TQ1_0 byte decodes to +2, so for that format only the length is checked.
    ///
    /// # Errors
    /// [`BlockError::NotTernary`] for a format that is not ternary; [`BlockError::Length`] unless `bytes` is a whole
    /// number of blocks; [`BlockError::CodeRange`] with the index of the first code +2.
    pub fn new(format: Format, bytes: &'a [u8]) -> Result<Self, BlockError> {
        if !format.is_ternary() {
            return Err(BlockError::NotTernary);
        }
        let whole = bytes.len() / format.bytes() * format.bytes();
        expect_len(whole, bytes.len())?;
        let mut room = [0; Format::MAX_LEN];
        let of_block = room.get_mut(..format.len()).unwrap_or_default();
        for (block, index) in bytes.chunks_exact(format.bytes()).zip(0..) {
            codes(format, block, of_block)?;
            if let Some(position) = of_block.iter().position(|&code| code > 1) {
                let index = index * format.len() + position;
                return Err(BlockError::CodeRange { index });
            }
        }
        Ok(Self { format, bytes })
    }

    /// Returns the format.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Returns the bytes of the blocks.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the number of values in the blocks.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a count of values; emptiness is bytes().is_empty()"
    )]
    pub const fn len(&self) -> usize {
        // The number of values is less than 8 times that of bytes, and no slice exceeds isize::MAX bytes on 64 bits.
        // A longer one on 32 bits saturates and then fits no buffer.
        (self.bytes.len() / self.format.bytes()).saturating_mul(self.format.len())
    }

    /// Writes the codes, each −1, 0 or 1; see [`codes`].
    ///
    /// # Errors
    /// [`BlockError::Partial`] or [`BlockError::Length`] if `out` does not fit.
    pub fn codes(&self, out: &mut [i8]) -> Result<(), BlockError> {
        codes(self.format, self.bytes, out)
    }

    /// Returns the product with int8 activations; see [`dot`].
    ///
    /// # Errors
    /// Those of [`dot`].
    pub fn dot(&self, x: &[i8], x_scale: f32) -> Result<f32, BlockError> {
        dot(self.format, self.bytes, x, x_scale)
    }
}
