//! The codes of master weights, as in a file.

use half::f16;

use super::power::largest;
use crate::number::Stats;
use crate::number::bits;
use crate::number::round::{half_away_i8, half_even_i8};

/// Smallest scale of a ternary matrix: below it f16 has fewer bits.
pub const LEAST_SCALE: f32 = 1.0 / 16_384.0;

/// Computes the ternary codes of a matrix with one scale s = f16(the exact mean of |w|): fl(w · fl(1 / s)) rounded
/// half to even, within ±1. Returns the scale, or `None` if it is below [`LEAST_SCALE`] or above f16's range, or if a
/// weight is not finite. Both slices have the same length. O(n).
///
/// (Ma and others, *The Era of 1-bit LLMs*, 2024.)
///
/// ```
/// use tercet_core::train::ternary;
///
/// let mut codes = [0; 4];
/// let scale = ternary(&[0.5, -0.25, 0.1, 0.15], &mut codes);
/// assert_eq!((scale.unwrap().to_f32(), codes), (0.25, [1, -1, 0, 1]));
/// ```
pub fn ternary(weights: &[f32], codes: &mut [i8]) -> Option<f16> {
    let mean = Stats::of(weights).abs_mean()?;
    let scale = f16::from_f32(mean);
    if !(scale.to_f32() >= LEAST_SCALE && scale.is_finite()) {
        return None;
    }
    let inverse = 1.0 / scale.to_f32();
    for (code, &weight) in codes.iter_mut().zip(weights) {
        *code = half_even_i8((weight * inverse).clamp(-1.0, 1.0));
    }
    Some(scale)
}

/// Computes the codes of an embedding's row with one scale d = f16(max |w| / 127): fl(w · fl(1 / d)) rounded half
/// away from zero, within ±127. Returns the scale. If 1 / d is not finite, codes and scale are 0. Returns `None` if a
/// value or d is not finite. O(n).
///
/// ```
/// use tercet_core::train::row_codes;
///
/// let mut codes = [0; 3];
/// let scale = row_codes(&[63.5, -127.0, 0.25], &mut codes);
/// assert_eq!((scale.unwrap().to_f32(), codes), (1.0, [64, -127, 0]));
/// ```
pub fn row_codes(weights: &[f32], codes: &mut [i8]) -> Option<f16> {
    let most = largest(weights);
    let scale = f16::from_f32(f32::from_bits(most) / 127.0);
    if most >= bits::INFINITE || !scale.is_finite() {
        return None;
    }
    let inverse = 1.0 / scale.to_f32();
    if !inverse.is_finite() {
        codes.fill(0);
        return Some(f16::ZERO);
    }
    for (code, &weight) in codes.iter_mut().zip(weights) {
        *code = half_away_i8((weight * inverse).clamp(-127.0, 127.0));
    }
    Some(scale)
}

/// Writes the columns of a matrix of codes as rows, in bytes for [`Layout::Int8`](crate::linear::Layout::Int8): one
/// row of `out` per column of `cols`. O(n).
pub fn transpose(codes: &[i8], cols: usize, out: &mut [u8]) {
    const TILE: usize = 32;
    let cols = cols.max(1);
    let rows = codes.len() / cols;
    for first_row in (0..rows).step_by(TILE) {
        for first_col in (0..cols).step_by(TILE) {
            for row in first_row..rows.min(first_row.saturating_add(TILE)) {
                let from = row.wrapping_mul(cols).wrapping_add(first_col);
                let from = codes.get(from..).unwrap_or_default();
                let at = first_col.wrapping_mul(rows).wrapping_add(row);
                let to = out
                    .get_mut(at..)
                    .unwrap_or_default()
                    .iter_mut()
                    .step_by(rows.max(1));
                let width = TILE.min(cols - first_col);
                for (to, &code) in to.zip(from.iter().take(width)) {
                    *to = code as u8;
                }
            }
        }
    }
}
