//! The evenly spaced integer grid of int8 and int4.

use super::QuantError;
use crate::number::round;

/// An evenly spaced integer grid, as in ONNX `QuantizeLinear`: value = `(code − zero_point) · scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Grid {
    /// Distance between neighbours: positive and finite, or 0 for a group that becomes zeros.
    pub scale: f32,
    /// The code of 0.0.
    pub zero_point: i8,
    /// Smallest code (−127 or −7 symmetric, −128 affine).
    pub low: i8,
    /// Largest code.
    pub high: i8,
}

impl Grid {
    /// Returns the grid `−limit..=limit` with its ends at ±`abs_max`: scale = `fl(abs_max / limit)`, zero point 0.
    ///
    /// `limit` is 127 for int8 and 7 for int4. A scale that underflows is 0.
    ///
    /// # Errors
    /// [`QuantError::Range`] if `abs_max` is negative or not finite, or if `limit` is not positive.
    pub fn symmetric(abs_max: f32, limit: i8) -> Result<Self, QuantError> {
        if !(abs_max >= 0.0 && abs_max.is_finite() && limit > 0) {
            return Err(QuantError::Range);
        }
        Ok(Self {
            scale: abs_max / f32::from(limit),
            zero_point: 0,
            low: -limit,
            high: limit,
        })
    }

    /// Returns the int8 grid `−128..=127` over `min..=max`, widened to hold 0, as ONNX `DynamicQuantizeLinear`
    /// chooses it.
    ///
    /// scale = `fl(fl(max − min) / 255)`, or `fl(max / 255) − fl(min / 255)` if the difference overflows. zero point
    /// = `half_even(fl(−128 − fl(min / scale)))`, saturated. A scale that underflows is 0, with zero point 0.
    ///
    /// # Errors
    /// [`QuantError::Range`] if an end is not finite or `min > max`.
    pub fn affine(min: f32, max: f32) -> Result<Self, QuantError> {
        if !(min.is_finite() && max.is_finite() && min <= max) {
            return Err(QuantError::Range);
        }
        // Plain comparisons: f32::min leaves the sign of a zero open.
        let min = if min < 0.0 { min } else { 0.0 };
        let max = if max > 0.0 { max } else { 0.0 };
        let width = max - min;
        let scale = if width.is_finite() {
            width / 255.0
        } else {
            max / 255.0 - min / 255.0
        };
        let zero_point = if scale > 0.0 {
            // `as` saturates.
            round::half_even(-128.0 - min / scale) as i8
        } else {
            0
        };
        Ok(Self {
            scale,
            zero_point,
            low: -128,
            high: 127,
        })
    }

    /// Returns the grid itself.
    ///
    /// # Errors
    /// [`QuantError::Range`] unless the scale is finite and not negative and low ≤ zero point ≤ high.
    pub fn checked(self) -> Result<Self, QuantError> {
        let ordered = self.low <= self.zero_point && self.zero_point <= self.high;
        if ordered && self.scale >= 0.0 && self.scale.is_finite() {
            Ok(self)
        } else {
            Err(QuantError::Range)
        }
    }

    /// Returns the code of one finite value: `clamp(half_even(fl(x / scale)) + zero_point, low, high)`.
    ///
    /// If the scale is 0, the code is the zero point.
    pub fn code(&self, x: f32) -> i8 {
        if self.scale == 0.0 {
            return self.zero_point;
        }
        let steps = round::half_even(x / self.scale);
        // The cast saturates. The zero point moves the result by at most 128, so the clamp still sees the correct
        // side.
        let code = (steps as i32).saturating_add(i32::from(self.zero_point));
        // `clamp` would panic on swapped ends.
        code.max(i32::from(self.low)).min(i32::from(self.high)) as i8
    }

    /// Returns the value of one code: `fl((code − zero_point) · scale)`.
    pub fn value(&self, code: i8) -> f32 {
        (i32::from(code) - i32::from(self.zero_point)) as f32 * self.scale
    }
}
