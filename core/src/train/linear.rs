//! The gradient of a matrix of weights.

use super::power::{self, WEIGHT_CEILING, WEIGHT_FLOOR, exponent, two_to};
use super::rows::each_row;
use crate::number::bits;

/// Number of rows of a sequence whose gradients share an exponent per output.
pub const GROUP: usize = 64;

/// Input of a product: rows of int8 codes with one scale per row, of sequences of the same length.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// Codes, rows · columns.
    pub codes: &'a [i8],
    /// One scale per row.
    pub scales: &'a [f32],
    /// Number of rows per sequence. A sequence begins a group; its last group may have fewer rows.
    pub length: usize,
}

impl Inputs<'_> {
    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.codes.len().checked_div(self.scales.len()).unwrap_or(0)
    }

    /// Returns the rows of each group: [`GROUP`] rows of a sequence, or fewer in its last group.
    pub fn groups(&self) -> impl Iterator<Item = core::ops::Range<usize>> + use<> {
        groups(self.scales.len(), self.length)
    }

    /// Returns the number of groups.
    pub fn group_count(&self) -> usize {
        // The last sequence may be incomplete.
        let (rows, length) = (self.scales.len(), self.length.max(1));
        let whole = (rows / length).saturating_mul(length.div_ceil(GROUP));
        whole.saturating_add((rows % length).div_ceil(GROUP))
    }
}

/// Returns the rows of each group, for sequences of the same length.
fn groups(rows: usize, length: usize) -> impl Iterator<Item = core::ops::Range<usize>> {
    let length = length.max(1);
    (0..rows).step_by(length).flat_map(move |first| {
        let end = first.saturating_add(length).min(rows);
        (first..end)
            .step_by(GROUP)
            .map(move |first| first..first.saturating_add(GROUP).min(end))
    })
}

/// Writes the codes of fl(dy · scale): one row of `codes` per output, with one code per row of `dy`, and one exponent
/// per output and group of rows. Returns false if an exponent is above [`WEIGHT_CEILING`] or a value is not finite.
/// O(n).
#[inline(always)]
pub fn quantize(
    dy: &[f32],
    outputs: usize,
    x: &Inputs<'_>,
    codes: &mut [i8],
    exponents: &mut [i32],
) -> bool {
    const WIDE: usize = 16;
    let rows = x.scales.len();
    let group_count = x.group_count();
    let mut within = true;
    for (group, range) in x.groups().enumerate() {
        // Several outputs at a time, which are neighbours in a row of dy.
        for first in (0..outputs).step_by(WIDE) {
            let width = WIDE.min(outputs - first);
            let row_of = |row: usize| {
                let from = row.wrapping_mul(outputs).wrapping_add(first);
                dy.get(from..)
                    .and_then(|rest| rest.get(..width))
                    .unwrap_or_default()
            };
            let mut largest = [0u32; WIDE];
            for row in range.clone() {
                let scale = x.scales.get(row).copied().unwrap_or(0.0);
                for (most, &dy) in largest.iter_mut().zip(row_of(row)) {
                    *most = bits::magnitude(dy * scale).max(*most);
                }
            }
            let mut factors = [0.0; WIDE];
            let outputs = (first..).zip(factors.iter_mut().zip(largest)).take(width);
            for (output, (factor, largest)) in outputs {
                let found =
                    exponent(largest, WEIGHT_FLOOR).filter(|&found| found <= WEIGHT_CEILING);
                within &= found.is_some();
                let found = found.unwrap_or(WEIGHT_CEILING);
                *factor = two_to(-found);
                let at = output.wrapping_mul(group_count).wrapping_add(group);
                if let Some(exponent) = exponents.get_mut(at) {
                    *exponent = found;
                }
            }
            for row in range.clone() {
                let scale = x.scales.get(row).copied().unwrap_or(0.0);
                let at = first.wrapping_mul(rows).wrapping_add(row);
                let column = codes.get_mut(at..).unwrap_or_default();
                let to = column.iter_mut().step_by(rows.max(1));
                for ((to, &dy), factor) in to.zip(row_of(row)).zip(factors) {
                    *to = power::code(dy * scale, factor);
                }
            }
        }
    }
    within
}

/// Adds the contribution of an output's codes to the sums of its weights: for each group the exact sum of code ·
/// input, in units of 2 to the power of [`WEIGHT_FLOOR`]. `codes` has one element per row, `exponents` one per group;
/// `partial` and `sums` have one per column. O(rows · columns).
pub fn accumulate(
    codes: &[i8],
    exponents: &[i32],
    x: &Inputs<'_>,
    partial: &mut [i32],
    sums: &mut [i64],
) {
    let cols = x.cols().max(1);
    for (range, &exponent) in x.groups().zip(exponents) {
        partial.fill(0);
        let codes = codes.get(range.clone()).unwrap_or_default();
        let from = range.start.wrapping_mul(cols);
        let rows = each_row(x.codes.get(from..).unwrap_or_default(), cols);
        for (&code, row) in codes.iter().zip(rows) {
            if code == 0 {
                continue;
            }
            let code = i32::from(code);
            for (sum, &x) in partial.iter_mut().zip(row) {
                *sum = sum.wrapping_add(code.wrapping_mul(i32::from(x)));
            }
        }
        let shift = (exponent - WEIGHT_FLOOR) as u32 & 31;
        for (sum, &partial) in sums.iter_mut().zip(partial.iter()) {
            *sum = sum.wrapping_add(i64::from(partial) << shift);
        }
    }
}
