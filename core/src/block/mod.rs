//! GGUF's block formats: one codec per file, one driver for all.
//!
//! [`encode`] writes the bytes of ggml's reference quantizers if asked for its rule
//! ([`Rule::AbsMax`](crate::quant::Rule), [`ScaleRule::Rule`](crate::quant::ScaleRule)), for every [`Format`] with an
//! encoder and every input for which the reference is defined. Decoding returns the reference's floats, bit for bit.
//! [`i2_s`] is for the tensors of Microsoft's BitNet files, [`bitnet_hf`] for the packing of Hugging Face's.
//!
//! Rules for inputs that the reference leaves undefined:
//! - A NaN or an infinity is an error with its index.
//! - If a block is so small that 1/scale overflows (a scale of at most 2⁻¹²⁸, under any rule), it is encoded like
//!   zeros and counted in [`Encoded::flushed`]. If the scale only underflows f16, the block keeps its codes, as in
//!   the reference.
//! - A scale or a minimum that rounds to infinity in f16 is an error with its block.
//!
//! ```
//! use tercet_core::block::{self, Format};
//! use tercet_core::quant::{Rule, ScaleRule};
//!
//! let weights: [f32; 256] = core::array::from_fn(|i| (i as f32 - 100.0) / 64.0);
//! let mut bytes = [0; 66];
//! let done = block::encode(Format::Tq2_0, Rule::AbsMax, ScaleRule::Rule, &weights, &mut bytes)?;
//! assert_eq!((done.blocks, done.flushed), (1, 0));
//!
//! let mut decoded = [0.0; 256];
//! block::decode(Format::Tq2_0, &bytes, &mut decoded)?;
//! assert_eq!((decoded[0], decoded[100], decoded[255]), (-2.421875, 0.0, 2.421875));
//! # Ok::<(), block::BlockError>(())
//! ```

/// Calls a generic function of [`driver`] with the codec of a format; with `else`, only for formats with an encoder.
macro_rules! with_codec {
    ($format:expr, $function:ident $(::<$t:ty>)? ($($argument:expr),*)) => {
        with_codec!(@ [] $format, $function [$($t,)?] ($($argument),*)
            Format::Q4K => driver::$function::<q4_k::Q4K, $($t,)? 256, 144>($($argument),*),
            Format::Q6K => driver::$function::<q6_k::Q6K, $($t,)? 256, 210>($($argument),*),
        )
    };
    ($format:expr, $function:ident $(::<$t:ty>)? ($($argument:expr),*), else $read_only:expr) => {
        with_codec!(@ [] $format, $function [$($t,)?] ($($argument),*)
            Format::Q4K | Format::Q6K => $read_only,
        )
    };
    // Code of formats outside the set is not compiled.
    (in $set:ident, $format:expr, $function:ident ($($argument:expr),*)) => {
        with_codec!(@ [$set] $format, $function [] ($($argument),*)
            Format::Q4K if Layout::Block(Format::Q4K).is_in($set) => {
                driver::$function::<q4_k::Q4K, 256, 144>($($argument),*)
            }
            Format::Q6K if Layout::Block(Format::Q6K).is_in($set) => {
                driver::$function::<q6_k::Q6K, 256, 210>($($argument),*)
            }
            _ => Err(BlockError::LeftOut),
        )
    };
    (@ [$($set:ident)?] $format:expr, $function:ident [$($t:ty,)?] ($($argument:expr),*) $($read_only:tt)+) => {{
        #[allow(unused_imports, reason = "not all are for functions that take formats with an encoder")]
        use $crate::block::{
            Format, driver, q2_0, q4_0, q4_1, q4_k, q5_0, q5_1, q6_k, q8_0, tq1_0, tq2_0,
        };
        match $format {
            Format::Tq1_0 $(if Layout::Block(Format::Tq1_0).is_in($set))? => driver::$function::<tq1_0::Tq1_0, $($t,)? 256, 54>($($argument),*),
            Format::Tq2_0 $(if Layout::Block(Format::Tq2_0).is_in($set))? => driver::$function::<tq2_0::Tq2_0, $($t,)? 256, 66>($($argument),*),
            Format::Q2_0 $(if Layout::Block(Format::Q2_0).is_in($set))? => driver::$function::<q2_0::Q2_0, $($t,)? 64, 18>($($argument),*),
            Format::Q8_0 $(if Layout::Block(Format::Q8_0).is_in($set))? => driver::$function::<q8_0::Q8_0, $($t,)? 32, 34>($($argument),*),
            Format::Q4_0 $(if Layout::Block(Format::Q4_0).is_in($set))? => driver::$function::<q4_0::Q4_0, $($t,)? 32, 18>($($argument),*),
            Format::Q4_1 $(if Layout::Block(Format::Q4_1).is_in($set))? => driver::$function::<q4_1::Q4_1, $($t,)? 32, 20>($($argument),*),
            Format::Q5_0 $(if Layout::Block(Format::Q5_0).is_in($set))? => driver::$function::<q5_0::Q5_0, $($t,)? 32, 22>($($argument),*),
            Format::Q5_1 $(if Layout::Block(Format::Q5_1).is_in($set))? => driver::$function::<q5_1::Q5_1, $($t,)? 32, 24>($($argument),*),
            $($read_only)+
        }
    }};
}

pub mod bitnet_hf;
mod codec;
mod driver;
mod error;
mod format;
pub mod i2_s;
mod nibbles;
mod q2_0;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q6_k;
mod q8_0;
mod ternary;
mod ternary_view;
mod tq1_0;
mod tq2_0;

pub use error::BlockError;
pub use format::Format;
pub use ternary_view::Ternary;
pub(crate) use tq1_0::{pack_digits, unpack_digits};

use crate::linear::Layout;
use crate::number::Element;
use crate::quant::{Rule, ScaleRule};
use codec::Choice;

/// Result of [`encode`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Encoded {
    /// Blocks written.
    pub blocks: usize,
    /// Blocks that were not zero but too small for their scale's reciprocal, and became zeros.
    pub flushed: usize,
}

/// Encodes `values` to `out`, which must hold exactly [`Format::encoded_len`] bytes.
///
/// Ternary formats accept every rule; `AbsMax` with the rule's own scale gives ggml's bytes. The other formats have
/// one rule and accept only those defaults. Indices in errors count from the start of `values`. Blocks do not depend
/// on each other, so any split at block borders gives the same bytes. O(n), or O(n log 256) for `Optimal`; stack
/// below 4 KiB.
///
/// # Errors
/// [`BlockError::Partial`]; [`BlockError::Length`]; [`BlockError::ReadOnly`] for a format without an encoder;
/// [`BlockError::Rule`]; [`BlockError::NotFinite`]; [`BlockError::ScaleOverflow`]; [`BlockError::MinOverflow`].
pub fn encode<T: Element>(
    format: Format,
    rule: Rule,
    scale: ScaleRule,
    values: &[T],
    out: &mut [u8],
) -> Result<Encoded, BlockError> {
    expect_len(format.encoded_len(values.len())?, out.len())?;
    let choice = Choice { rule, scale };
    with_codec!(format, encode::<T>(choice, values, out), else Err(BlockError::ReadOnly))
}

/// Decodes `bytes` to `out`, one f32 per value: `code · scale`, or `code · scale + minimum`, with the scale and
/// minimum of its part. Each value is rounded once, and is bit-identical to ggml's reference.
///
/// # Errors
/// [`BlockError::Partial`] or [`BlockError::Length`] if the lengths do not fit; [`BlockError::ScaleNotFinite`];
/// [`BlockError::MinNotFinite`].
pub fn decode(format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
    expect_len(format.encoded_len(out.len())?, bytes.len())?;
    with_codec!(format, decode(bytes, out))
}

/// Does [`decode`] for the formats in a set of layouts.
pub(crate) fn decode_of<const SET: u32>(
    format: Format,
    bytes: &[u8],
    out: &mut [f32],
) -> Result<(), BlockError> {
    expect_len(format.encoded_len(out.len())?, bytes.len())?;
    with_codec!(in SET, format, decode(bytes, out))
}

/// Writes the integer codes of `bytes` to `out`, one per value; see [`Format`] for their ranges.
///
/// # Errors
/// [`BlockError::Partial`] or [`BlockError::Length`] if the lengths do not fit.
pub fn codes(format: Format, bytes: &[u8], out: &mut [i8]) -> Result<(), BlockError> {
    expect_len(format.encoded_len(out.len())?, bytes.len())?;
    with_codec!(format, codes(bytes, out));
    Ok(())
}

/// Writes the scales of `bytes` to `out`: one factor of codes per block, or one per part if a block has several
/// ([`Format::parts`]). Exact: an f16 converted to f32, times at most 8 bits.
///
/// # Errors
/// [`BlockError::Length`] unless there are [`Format::parts`] scales per block; [`BlockError::ScaleNotFinite`].
pub fn scales(format: Format, bytes: &[u8], out: &mut [f32]) -> Result<(), BlockError> {
    let parts = format.parts();
    let blocks = out.len() / parts;
    let expected = blocks.checked_mul(format.bytes());
    let expected = expected.ok_or(BlockError::TooLarge { len: out.len() })?;
    expect_len(expected, bytes.len())?;
    expect_len(blocks * parts, out.len())?;
    let blocks = bytes.chunks_exact(format.bytes());
    for (index, (block, out)) in blocks.zip(out.chunks_exact_mut(parts)).enumerate() {
        let scale = format.scale(block);
        if !scale.is_finite() {
            return Err(BlockError::ScaleNotFinite { block: index });
        }
        for (part, out) in out.iter_mut().enumerate() {
            *out = scale.to_f32() * f32::from(format.factors(block, part).0);
        }
    }
    Ok(())
}

/// Returns the product of encoded weights and int8 activations that share one scale: `fl(fl(Σ scale_b · Σ code · x +
/// minimum_b · Σ x) · x_scale)`, over parts if blocks have several.
///
/// The inner sum is exact and rounded once, so the result does not depend on the order of summation.
///
/// # Errors
/// [`BlockError::Partial`] or [`BlockError::Length`] if the lengths do not fit; [`BlockError::ScaleNotFinite`];
/// [`BlockError::MinNotFinite`].
pub fn dot(format: Format, bytes: &[u8], x: &[i8], x_scale: f32) -> Result<f32, BlockError> {
    Ok(fixed_to_f32(dot_fixed(format, bytes, x)?) * x_scale)
}

/// Returns the exact Σ scale_b · Σ code · x + minimum_b · Σ x, in units of 2⁻²⁴ (the smallest f16).
///
/// # Errors
/// Those of [`dot`].
pub fn dot_fixed(format: Format, bytes: &[u8], x: &[i8]) -> Result<i128, BlockError> {
    expect_len(format.encoded_len(x.len())?, bytes.len())?;
    with_codec!(format, dot(bytes, x))
}

/// Converts an integer in units of 2⁻²⁴ to f32, rounded once to nearest even. [`dot`] applies this to [`dot_fixed`].
///
/// The conversion rounds. The product is exact, since |n| < 2¹²⁷ and n · 2⁻²⁴ is at least 2⁻²⁴.
pub fn fixed_to_f32(n: i128) -> f32 {
    n as f32 / 16_777_216.0
}

fn expect_len(expected: usize, found: usize) -> Result<(), BlockError> {
    if expected == found {
        Ok(())
    } else {
        Err(BlockError::Length { expected, found })
    }
}
