//! What a codec file supplies; the driver does the rest.

use super::Format;
use crate::quant::{Rule, ScaleRule};

/// How a block's codes and scale are chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) rule: Rule,
    pub(super) scale: ScaleRule,
}

impl Choice {
    /// True for ggml's own rule.
    pub(super) fn is_reference(self) -> bool {
        self.rule == Rule::AbsMax && self.scale == ScaleRule::Rule
    }
}

/// A block's scale and minimum before they are narrowed to f16; a format without a minimum leaves it 0.
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

/// The format of `LEN` values in `BYTES` bytes that [`Codec::FORMAT`] names. Scales lie where that says; the driver moves them.
pub(super) trait Codec<const LEN: usize, const BYTES: usize> {
    /// Its name, size and places.
    const FORMAT: Format;

    /// Writes the codes of finite `values` and returns their scales; `None` where the block is too small for its scale's
    /// reciprocal. Zeros always have a scale.
    fn quantize(values: &[f32; LEN], choice: Choice, codes: &mut [i8; LEN]) -> Option<Scales>;

    /// Writes codes in range.
    fn pack(codes: &[i8; LEN], block: &mut [u8; BYTES]);

    /// Reads any bytes as codes.
    fn unpack(block: &[u8; BYTES], codes: &mut [i8; LEN]);
}

/// A format that can be read: what a codec can do as well, and all that a format without an encoder can.
pub(super) trait Decoder<const LEN: usize, const BYTES: usize> {
    /// As [`Codec::FORMAT`].
    const FORMAT: Format;

    /// As [`Codec::unpack`].
    fn unpack(block: &[u8; BYTES], codes: &mut [i8; LEN]);
}

impl<C: Codec<LEN, BYTES>, const LEN: usize, const BYTES: usize> Decoder<LEN, BYTES> for C {
    const FORMAT: Format = <C as Codec<LEN, BYTES>>::FORMAT;

    #[inline(always)]
    fn unpack(block: &[u8; BYTES], codes: &mut [i8; LEN]) {
        <C as Codec<LEN, BYTES>>::unpack(block, codes);
    }
}
