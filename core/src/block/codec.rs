//! What a codec file supplies; the driver does the rest.

use half::f16;

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

/// One block format of `LEN` values in `BYTES` bytes.
pub(super) trait Codec<const LEN: usize, const BYTES: usize> {
    /// Whether other rules than ggml's make sense.
    const TERNARY: bool;

    /// Writes the codes of finite `values` and returns their scale before it is narrowed to f16; `None` where
    /// the block is too small for its scale's reciprocal. Zeros always have a scale.
    fn quantize(values: &[f32; LEN], choice: Choice, codes: &mut [i8; LEN]) -> Option<f32>;

    /// Writes codes in range and a scale as bytes.
    fn pack(codes: &[i8; LEN], scale: f16, block: &mut [u8; BYTES]);

    /// Reads any bytes as codes.
    fn unpack(block: &[u8; BYTES], codes: &mut [i8; LEN]);

    /// The scale's bits; not checked.
    fn scale(block: &[u8; BYTES]) -> f16;
}

/// The f16 at the first two bytes of a block.
pub(super) fn leading_scale<const BYTES: usize>(block: &[u8; BYTES]) -> f16 {
    block
        .first_chunk()
        .map_or(f16::ZERO, |&bytes| f16::from_le_bytes(bytes))
}

/// The f16 at the last two bytes of a block.
pub(super) fn trailing_scale<const BYTES: usize>(block: &[u8; BYTES]) -> f16 {
    block
        .last_chunk()
        .map_or(f16::ZERO, |&bytes| f16::from_le_bytes(bytes))
}
