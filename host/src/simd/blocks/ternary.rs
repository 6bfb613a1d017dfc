//! Encodes ternary blocks with any rule: decides the coded values and the scale.

use tercet_core::block::{BlockError, Encoded, Format};
use tercet_core::number::bits;
use tercet_core::quant::{Rule, ScaleRule};

use super::{Pack, Values, by_core, optimal};

/// The values that become ±1: the x with `fl(|x| · factor) >= least`; none if `least` is NaN.
#[derive(Clone, Copy, Debug)]
pub(in crate::simd) struct Cut {
    pub(in crate::simd) factor: f32,
    pub(in crate::simd) least: f32,
}

impl Cut {
    /// Sends every value to 0.
    const NONE: Self = Self {
        factor: 1.0,
        least: f32::NAN,
    };

    /// Returns the cut for magnitudes from `least` on.
    pub(super) const fn from(least: f32) -> Self {
        Self { factor: 1.0, least }
    }
}

/// 2⁻¹⁰⁰ and 2¹⁰⁰: between them no reciprocal, no mean of 256 values and no sum is subnormal or infinite.
const ORDINARY: std::ops::Range<u32> = (27 << 23)..(227 << 23);

/// As [`tercet_core::block::encode`], for a ternary format. The lengths must match.
pub(super) fn encode<const LEN: usize, const BYTES: usize>(
    format: Format,
    kernels: &Values,
    pack: Pack<LEN, BYTES>,
    choice: (Rule, ScaleRule),
    values: &[f32],
    out: &mut [u8],
) -> Result<Encoded, BlockError> {
    let mut whole = Encoded::default();
    let blocks = out.as_chunks_mut::<BYTES>().0.iter_mut();
    for (values, block) in values.as_chunks::<LEN>().0.iter().zip(blocks) {
        let packed = decide(kernels, choice, values).is_some_and(|(cut, scale)| {
            // SAFETY: a table is only reached through a `Backend` that was found to run its set.
            unsafe { pack(values, cut, scale, block) }
        });
        if packed {
            whole.blocks += 1;
        } else {
            by_core(format, choice, values, block, &mut whole)?;
        }
    }
    Ok(whole)
}

/// As [`tercet_core::quant::ternary::decide`]; `None` for blocks that are not ordinary.
///
/// The thresholds there and the cuts here are the same: a rule's own comparison, over the reciprocal of the largest
/// magnitude or of the mean, which are finite for ordinary blocks.
fn decide(
    kernels: &Values,
    (rule, scale_rule): (Rule, ScaleRule),
    values: &[f32],
) -> Option<(Cut, f32)> {
    // SAFETY: a table is only reached through a `Backend` that was found to run its set.
    let pattern = unsafe { (kernels.largest)(values) };
    if pattern == 0 {
        return Some((Cut::NONE, 0.0));
    }
    if !ORDINARY.contains(&pattern) {
        return None;
    }
    let largest = f32::from_bits(pattern);
    // SAFETY: as above.
    let mean = || mean(unsafe { (kernels.sum)(values) }, values.len() as u32);
    let (cut, own_scale) = match rule {
        Rule::AbsMax => (
            Cut {
                factor: 1.0 / largest,
                least: 0.5,
            },
            Some(largest),
        ),
        Rule::AbsMean => {
            let mean = mean()?;
            (
                Cut {
                    factor: 1.0 / mean,
                    // Above a half.
                    least: f32::from_bits(0.5f32.to_bits() + 1),
                },
                Some(mean),
            )
        }
        Rule::Twn => {
            let least = bits::magnitude(0.7 * mean()?) + 1;
            (Cut::from(f32::from_bits(least)), None)
        }
        Rule::Optimal => {
            let best = optimal::of(kernels, values, largest)?;
            return Some((Cut::from(best.least), self::mean(best.sum, best.count)?));
        }
    };
    match (own_scale, scale_rule) {
        (Some(scale), ScaleRule::Rule) => Some((cut, scale)),
        _ => {
            // SAFETY: as above.
            let (sum, count) = unsafe { (kernels.coded)(values, cut) };
            // The largest magnitude is at least the mean, so it is coded.
            Some((cut, self::mean(sum, count)?))
        }
    }
}

/// Returns `sum / count` rounded once to f32, for a sum of up to 256 magnitudes that is known only up to f64's rounding
/// errors; `None` if these could change the result.
///
/// A sum has at most 255 rounding errors and the quotient one more, each at most 2⁻⁵³ of the value and so one unit of
/// the quotient's last place. If the quotient is farther than those from a tie between two f32, its rounded value is
/// that of the exact sum. The caller knows that it is normal in f32.
fn mean(sum: f64, count: u32) -> Option<f32> {
    const DROPPED: u64 = 1 << (53 - 24);
    let quotient = sum / f64::from(count);
    let below = quotient.to_bits() % DROPPED;
    (below.abs_diff(DROPPED / 2) > 512).then_some(quotient as f32)
}
