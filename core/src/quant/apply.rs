//! Applies an int8 or int4 grid.

use super::{Applied, Grid, QuantError};
use crate::number::{Element, round};

impl Grid {
    /// Writes [`Grid::code`] of each value. Counts the codes other than the zero point and the values beyond the
    /// grid's ends.
    ///
    /// One pass, no scratch. Values should be finite; the code of a NaN is unspecified.
    ///
    /// # Errors
    /// [`QuantError::Length`] unless there is one code per value; [`QuantError::Range`] if [`Grid::checked`] refuses
    /// the grid.
    pub fn apply<T: Element>(&self, values: &[T], codes: &mut [i8]) -> Result<Applied, QuantError> {
        if values.len() != codes.len() {
            return Err(QuantError::Length {
                expected: values.len(),
                found: codes.len(),
            });
        }
        let grid = self.checked()?;
        let mut applied = Applied::default();
        if grid.scale == 0.0 {
            codes.fill(grid.zero_point);
            return Ok(applied);
        }
        let zero_point = i32::from(grid.zero_point);
        let (low, high) = (i32::from(grid.low), i32::from(grid.high));
        // One step beyond each end: far enough to detect clipping, near enough to be exact below.
        let (below, above) = (
            (low - zero_point - 1) as f32,
            (high - zero_point + 1) as f32,
        );
        for (values, codes) in values.chunks(1 << 20).zip(codes.chunks_mut(1 << 20)) {
            let (mut coded, mut clipped) = (0u32, 0u32);
            for (value, code) in values.iter().zip(codes.iter_mut()) {
                // Plain comparisons, which vectorize; `clamp` contains a panic.
                let steps = value.to_f32() / grid.scale;
                let steps = if steps > below { steps } else { below };
                let steps = if steps < above { steps } else { above };
                let unclipped = round::half_even_small(steps) + zero_point;
                let clamped = unclipped.max(low).min(high);
                *code = clamped as i8;
                coded += u32::from(clamped != zero_point);
                clipped += u32::from(clamped != unclipped);
            }
            applied.coded += u64::from(coded);
            applied.clipped += u64::from(clipped);
        }
        Ok(applied)
    }
}
