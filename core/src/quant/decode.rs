//! Converts codes and scales back to floats.

use core::ops::RangeInclusive;

use super::{Groups, QuantError};

/// A borrowed quantized tensor: one code per byte.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Codes<'a> {
    /// The groups that share a scale.
    pub groups: Groups,
    /// `groups.count * groups.len` codes.
    pub codes: &'a [i8],
    /// One scale per group.
    pub scales: &'a [f32],
    /// One zero point per group; empty means that all are 0.
    pub zero_points: &'a [i8],
}

impl Codes<'_> {
    /// Checks every length against the groups, and `out_len` against the codes.
    ///
    /// # Errors
    /// [`QuantError::Empty`] without codes; [`QuantError::Length`] or [`QuantError::GroupLength`] for the first
    /// length that does not fit.
    pub fn check(&self, out_len: usize) -> Result<(), QuantError> {
        self.groups.check(self.codes.len())?;
        let counts = [
            (self.codes.len(), out_len),
            (self.groups.count, self.scales.len()),
        ];
        for (expected, found) in counts {
            if expected != found {
                return Err(QuantError::Length { expected, found });
            }
        }
        if !self.zero_points.is_empty() && self.zero_points.len() != self.groups.count {
            return Err(QuantError::Length {
                expected: self.groups.count,
                found: self.zero_points.len(),
            });
        }
        Ok(())
    }
}

/// Writes `fl((code − zero_point) · scale)` for codes of a range: [`ternary::RANGE`](super::ternary::RANGE),
/// [`int8::RANGE`](super::int8::RANGE) or [`int4::RANGE`](super::int4::RANGE). O(n), no scratch.
///
/// # Errors
/// Those of [`Codes::check`]; [`QuantError::CodeRange`] with the lowest index of a code outside the range. Nothing is
/// written then.
pub fn dequantize(
    codes: Codes<'_>,
    range: RangeInclusive<i8>,
    out: &mut [f32],
) -> Result<(), QuantError> {
    codes.check(out.len())?;
    if let Some(index) = codes.codes.iter().position(|code| !range.contains(code)) {
        return Err(QuantError::CodeRange {
            index: index as u64,
        });
    }
    let len = codes.groups.len;
    // A missing zero point is 0, so this iterator may be longer than the groups.
    let zero_points = (codes.zero_points.iter().copied()).chain(core::iter::repeat(0));
    let (mut left, mut room) = (codes.codes, out);
    for (&scale, zero_point) in codes.scales.iter().zip(zero_points) {
        // Never too short after `check`. This form has no panic even if the compiler cannot see that.
        let (from, codes) = left.split_at_checked(len).unwrap_or_default();
        let (to, out) = room.split_at_mut_checked(len).unwrap_or_default();
        for (code, value) in from.iter().zip(to) {
            *value = (i32::from(*code) - i32::from(zero_point)) as f32 * scale;
        }
        (left, room) = (codes, out);
    }
    Ok(())
}
