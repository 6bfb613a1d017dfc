//! Ternary rules: they choose which values become ±1, and the scale.
//!
//! Every rule is one threshold T on the bit pattern of |x|: code = sign(x) if `bits(|x|) >= T`, else 0.
//!
//! # Example
//! ```
//! use tercet_core::quant::ternary::{Rule, ScaleRule, decide};
//!
//! let decision = decide(&[0.9f32, -0.1, 0.4, -1.1], Rule::AbsMean, ScaleRule::Rule)?;
//! assert_eq!(decision.scale, 0.625); // the mean of the magnitudes
//! assert_eq!([0.9, -0.1, 0.4, -1.1].map(|x| decision.code(x)), [1, 0, 1, -1]);
//! # Ok::<(), tercet_core::quant::QuantError>(())
//! ```

use core::ops::RangeInclusive;

use super::decode::{self, Codes};
pub use super::rule::{BLOCK_LEN, Rule, ScaleRule};
use super::{QuantError, optimal, threshold};
use crate::number::{self, Element, ExactSum, Stats, bits};

/// The codes and the scale of one block.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Decision {
    /// Smallest pattern of |x| that becomes ±1; `u32::MAX` makes all codes 0.
    pub threshold: u32,
    /// The value of code 1; 0 if every code is 0.
    pub scale: f32,
}

impl Decision {
    /// Returns the code of one value: −1, 0 or 1.
    #[inline]
    pub fn code(&self, x: f32) -> i8 {
        code(x, self.threshold)
    }
}

/// Returns sign(x) if `bits(|x|) >= threshold`, else 0, without branches.
#[inline]
pub fn code(x: f32, threshold: u32) -> i8 {
    // −1 or 1, and a mask of all ones or zeros: shifts and masks, which every vector unit has.
    let sign = (x.to_bits() as i32 >> 31) | 1;
    let kept = -i32::from(bits::magnitude(x) >= threshold);
    (sign & kept) as i8
}

/// Decides the codes and the scale of one block of up to [`BLOCK_LEN`] values, as block formats need it.
///
/// A block of zeros gives threshold `u32::MAX` and scale 0. So does a block that is too small for its rule (its mean
/// rounds to 0, or all values are below the threshold).
///
/// Stack: about 1.2 KiB for [`Rule::Optimal`] (O(n log² n)), otherwise below 200 bytes (O(n)).
///
/// # Errors
/// [`QuantError::Empty`]; [`QuantError::Length`] above [`BLOCK_LEN`]; [`QuantError::NotFinite`] with the lowest index
/// in the block.
pub fn decide<T: Element>(
    values: &[T],
    rule: Rule,
    scale_rule: ScaleRule,
) -> Result<Decision, QuantError> {
    if values.is_empty() {
        return Err(QuantError::Empty);
    }
    if values.len() > BLOCK_LEN {
        return Err(QuantError::Length {
            expected: BLOCK_LEN,
            found: values.len(),
        });
    }
    let max = block_max(values)?;
    let needs_mean = matches!(rule, Rule::AbsMean | Rule::Twn);
    let mean = if needs_mean { block_mean(values) } else { 0.0 };
    let threshold = match rule {
        Rule::AbsMax => threshold::abs_max(max),
        Rule::AbsMean => threshold::abs_mean(mean),
        Rule::Twn => threshold::twn(mean),
        Rule::Optimal => optimal::of_block(values),
    };
    let scale = match (rule, scale_rule) {
        (Rule::AbsMax, ScaleRule::Rule) => max,
        (Rule::AbsMean, ScaleRule::Rule) => mean,
        _ => coded_mean(values, threshold),
    };
    // If no value has a code, the decoded values are 0 too.
    if scale == 0.0 || threshold > bits::magnitude(max) {
        return Ok(Decision {
            threshold: threshold::NONE,
            scale: 0.0,
        });
    }
    Ok(Decision { threshold, scale })
}

fn block_max<T: Element>(values: &[T]) -> Result<f32, QuantError> {
    number::abs_max(values).ok_or_else(|| QuantError::NotFinite {
        index: number::first_not_finite(values).unwrap_or(0) as u64,
    })
}

fn block_mean<T: Element>(values: &[T]) -> f32 {
    let mut sum = ExactSum::ZERO;
    sum.add_slice(values);
    sum.mean(values.len() as u64).unwrap_or(0.0)
}

fn coded_mean<T: Element>(values: &[T], threshold: u32) -> f32 {
    let (mut sum, mut coded) = (ExactSum::ZERO, 0);
    for values in values.chunks(64) {
        // Zeros for the values that are not coded, so that the sum takes a slice.
        let mut kept = [0f32; 64];
        for (kept, value) in kept.iter_mut().zip(values) {
            let x = value.to_f32();
            let is_coded = bits::magnitude(x) >= threshold;
            *kept = if is_coded { x } else { 0.0 };
            coded += u64::from(is_coded);
        }
        sum.add_slice(&kept);
    }
    sum.mean(coded).unwrap_or(0.0)
}

/// Returns the threshold of a rule that needs only the statistics; `None` for [`Rule::Optimal`].
///
/// `stats` must hold at least one value, and only finite ones. The threshold is `u32::MAX` if nothing is coded.
pub fn plan(rule: Rule, stats: &Stats) -> Option<u32> {
    let mean = || stats.abs_mean().unwrap_or(0.0);
    if stats.abs_max() == 0.0 {
        return Some(threshold::NONE);
    }
    match rule {
        Rule::AbsMax => Some(threshold::abs_max(stats.abs_max())),
        Rule::AbsMean => Some(threshold::abs_mean(mean())),
        Rule::Twn => Some(threshold::twn(mean())),
        Rule::Optimal => None,
    }
}

/// Returns the smallest number of [`MagnitudeBin`](crate::engine::MagnitudeBin)s that [`quantize`](super::quantize)
/// needs: [`optimal::MIN_BINS`] for [`Rule::Optimal`] over more than [`BLOCK_LEN`] values, else 0. More bins mean
/// fewer passes.
pub const fn scratch_len(rule: Rule, group_len: usize) -> usize {
    match rule {
        Rule::Optimal if group_len > BLOCK_LEN => optimal::MIN_BINS,
        _ => 0,
    }
}

/// Codes that [`dequantize`] accepts.
pub const RANGE: RangeInclusive<i8> = -1..=1;

/// Writes `fl(code · scale)`.
///
/// # Errors
/// [`QuantError::Empty`] without values; [`QuantError::Length`] or [`QuantError::GroupLength`] if lengths do not fit
/// the groups; [`QuantError::CodeRange`] with the lowest index of a code outside −1..=1. Nothing is written then.
pub fn dequantize(codes: Codes<'_>, out: &mut [f32]) -> Result<(), QuantError> {
    decode::dequantize(codes, RANGE, out)
}
