//! Rotary position embedding (Su and others, *RoFormer*, 2021), with 64-bit angles.

use super::ModelError;
use super::weights::floats;
use crate::number::{rope_step, sin_cos};

/// Conversion of a model's positions to angles.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Rope<'a> {
    /// Increase of each pair's phase per position, in 2⁻⁶⁴ of a turn.
    pub steps: &'a [u64],
    /// True if a pair consists of neighbours (2i, 2i + 1), not of i and i + half a head.
    pub neighbours: bool,
}

impl Rope<'_> {
    /// Fills `steps`, one per pair of a head: [`rope_step`] of the base, divided by `factor` and by the pair's own
    /// factor in `factors` (f32, little-endian; none if empty). Each quotient is rounded half to even.
    ///
    /// # Errors
    /// [`ModelError::Tensor`] unless there is one factor per pair, each between 2⁻⁴⁰ and 2⁴⁰; [`ModelError::Key`] for
    /// an invalid base or factor.
    pub fn fill(
        base: f32,
        factor: f32,
        factors: &[u8],
        steps: &mut [u64],
    ) -> Result<(), ModelError> {
        let bad = ModelError::Tensor {
            tensor: "rope_freqs.weight",
            expected: "F32, one a pair of a head, from 2^-40 to 2^40",
        };
        let pairs = u32::try_from(steps.len()).map_err(|_| bad)?;
        let dims = pairs.checked_mul(2).ok_or(bad)?;
        if !factors.is_empty() && factors.len() / 4 != steps.len() {
            return Err(bad);
        }
        let mut factors = floats(factors);
        for (pair, step) in (0..pairs).zip(steps) {
            let whole = rope_step(base, pair, dims).ok_or(ModelError::Key {
                key: "rope.freq_base",
                expected: "finite and at least 1",
            })?;
            let own = factors.next().unwrap_or(1.0);
            *step = divide(whole, factor)
                .ok_or(ModelError::Key {
                    key: "rope.scaling.factor",
                    expected: "at most 2^40",
                })
                .and_then(|step| divide(step, own).ok_or(bad))?;
        }
        Ok(())
    }

    /// Writes cosine and sine of each pair at a position to `out`, which has the length of a head.
    pub fn angles(&self, position: u32, out: &mut [f32]) {
        for (pair, &step) in out.chunks_exact_mut(2).zip(self.steps) {
            let (sine, cosine) = sin_cos(step.wrapping_mul(u64::from(position)));
            if let [first, second] = pair {
                (*first, *second) = (cosine, sine);
            }
        }
    }
}

/// Returns `step` / `by` of a turn, rounded half to even; `None` unless `by` is from 2⁻⁴⁰ to 2⁴⁰.
fn divide(step: u64, by: f32) -> Option<u64> {
    const LEAST: f32 = 1.0 / 1_099_511_627_776.0;
    if !(LEAST..=1.0 / LEAST).contains(&by) {
        return None;
    }
    let bits = by.to_bits();
    let mantissa = u128::from(bits & 0x7F_FFFF | 0x80_0000);
    // From −63 to 17.
    let exponent = (bits >> 23) as i32 - 150;
    let (numerator, denominator) = match u32::try_from(exponent) {
        Ok(exponent) => (u128::from(step), mantissa << (exponent & 31)),
        Err(_) => (u128::from(step) << (exponent.unsigned_abs() & 63), mantissa),
    };
    let quotient = numerator.checked_div(denominator)?;
    let rest = numerator.checked_rem(denominator)?;
    let up = rest * 2 > denominator || (rest * 2 == denominator && quotient & 1 == 1);
    // Whole turns have no effect.
    Some((quotient + u128::from(up)) as u64)
}

/// Rotates a head by angles from [`Rope::angles`]: a pair (a, b) becomes fl(fl(a·cos) − fl(b·sin)) and fl(fl(a·sin) +
/// fl(b·cos)). All three slices have the same length.
pub fn rotate(head: &[f32], neighbours: bool, angles: &[f32], out: &mut [f32]) {
    let turn = |a: f32, b: f32, angle: &[f32]| match angle {
        [cosine, sine] => (a * cosine - b * sine, a * sine + b * cosine),
        _ => (a, b),
    };
    let mut angles = angles.chunks_exact(2);
    if neighbours {
        let mut pairs = head.chunks_exact(2);
        for out in out.chunks_exact_mut(2) {
            if let (Some(&[a, b]), Some(angle), [first, second]) =
                (pairs.next(), angles.next(), out)
            {
                (*first, *second) = turn(a, b, angle);
            }
        }
        return;
    }
    let (first, second) = head.split_at(head.len() / 2);
    let (out_first, out_second) = out.split_at_mut(out.len() / 2);
    let pairs = first.iter().zip(second);
    for ((&a, &b), (out_first, out_second)) in pairs.zip(out_first.iter_mut().zip(out_second)) {
        let Some(angle) = angles.next() else { return };
        (*out_first, *out_second) = turn(a, b, angle);
    }
}
