//! The parts of a codec that differ by format; the driver does the rest.

use super::Format;
use crate::quant::{Rule, ScaleRule};

/// Rules for the codes and the scale of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) rule: Rule,
    pub(super) scale: ScaleRule,
}

impl Choice {
    /// Returns true for ggml's own rule.
    pub(super) fn is_reference(self) -> bool {
        self.rule == Rule::AbsMax && self.scale == ScaleRule::Rule
    }
}

/// A block's scale and minimum before they are rounded to f16. A format without a minimum leaves it 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scales {
    pub(super) scale: f32,
    pub(super) min: f32,
}

impl From<f32> for Scales {
    fn from(scale: f32) -> Self {
        Self { scale, min: 0.0 }
    }
}

/// The codec of a format with `LEN` values in `BYTES` bytes; [`Codec::FORMAT`] names it. The driver reads and writes
/// the scales, at the offsets in the format.
pub(super) trait Codec<const LEN: usize, const BYTES: usize> {
    /// The format: its name, size and offsets.
    const FORMAT: Format;

    /// Writes the codes of finite `values` and returns their scales. Returns `None` if the block is too small for its
    /// scale's reciprocal; zeros always have a scale.
    fn quantize(values: &[f32; LEN], choice: Choice, codes: &mut [i8; LEN]) -> Option<Scales>;

    /// Writes codes in range.
    fn pack(codes: &[i8; LEN], block: &mut [u8; BYTES]);

    /// Reads codes from any bytes.
    fn unpack(block: &[u8; BYTES], codes: &mut [i8; LEN]);
}

/// A format that can be read: every codec, and formats without an encoder.
pub(super) trait Decoder<const LEN: usize, const BYTES: usize> {
    /// Same as [`Codec::FORMAT`].
    const FORMAT: Format;

    /// Same as [`Codec::unpack`].
    fn unpack(block: &[u8; BYTES], codes: &mut [i8; LEN]);
}

impl<C: Codec<LEN, BYTES>, const LEN: usize, const BYTES: usize> Decoder<LEN, BYTES> for C {
    const FORMAT: Format = <C as Codec<LEN, BYTES>>::FORMAT;

    #[inline(always)]
    fn unpack(block: &[u8; BYTES], codes: &mut [i8; LEN]) {
        <C as Codec<LEN, BYTES>>::unpack(block, codes);
    }
}
