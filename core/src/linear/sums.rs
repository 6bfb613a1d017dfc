//! Receivers of the sums of a matrix's rows.

use crate::arch::portable::fixed;
use half::f16;

/// Receives the sums of rows from kernels, in order, a few at a time.
///
/// Groups of rows are padded: receivers ignore sums after the last row.
pub trait Sums {
    /// Receives sums of the next rows, for a layout whose sums fit 32 bits.
    fn narrow(&mut self, sums: &[i32]);

    /// Receives sums of the next rows, for blocks.
    fn wide(&mut self, sums: &[i64]);

    /// Receives sums of the next rows, for blocks that all have the scale `scale`. The sums are without the scale,
    /// with magnitudes up to `most`. Times 2²⁴ · `scale` they are the sums for [`Sums::wide`], to which the default
    /// implementation passes them.
    #[inline]
    fn by_scale(&mut self, sums: impl ExactSizeIterator<Item = i32>, (scale, _most): (f16, u32))
    where
        Self: Sized,
    {
        let scale = fixed(scale.to_bits());
        let (mut batch, mut len) = ([0; 8], 0);
        for sum in sums {
            if let Some(place) = batch.get_mut(len) {
                *place = i64::from(sum).wrapping_mul(scale);
                len += 1;
            }
            if len == batch.len() {
                self.wide(&batch);
                len = 0;
            }
        }
        self.wide(batch.get(..len).unwrap_or_default());
    }

    /// Receives sums of the next rows, at most eight, for blocks, where all blocks of a row have one scale: each sum
    /// without the scale, and the scale. Times 2²⁴ · scale they are the sums for [`Sums::wide`], to which the default
    /// implementation passes them.
    #[inline]
    fn by_scales(&mut self, sums: &[(i32, f16)]) {
        let mut wide = [0; 8];
        for (wide, (sum, scale)) in wide.iter_mut().zip(sums) {
            *wide = i64::from(*sum).wrapping_mul(fixed(scale.to_bits()));
        }
        self.wide(wide.get(..sums.len()).unwrap_or_default());
    }
}

impl<S: Sums> Sums for &mut S {
    #[inline]
    fn narrow(&mut self, sums: &[i32]) {
        (**self).narrow(sums);
    }

    #[inline]
    fn wide(&mut self, sums: &[i64]) {
        (**self).wide(sums);
    }

    #[inline]
    fn by_scale(&mut self, sums: impl ExactSizeIterator<Item = i32>, (scale, most): (f16, u32)) {
        (**self).by_scale(sums, (scale, most));
    }

    #[inline]
    fn by_scales(&mut self, sums: &[(i32, f16)]) {
        (**self).by_scales(sums);
    }
}

/// Calls a function with each row and its sum.
pub(crate) struct Each<F> {
    /// Remaining rows.
    pub(crate) rows: core::ops::Range<usize>,
    pub(crate) each: F,
}

impl<F: FnMut(usize, i64)> Sums for Each<F> {
    #[inline]
    fn narrow(&mut self, sums: &[i32]) {
        for &sum in sums {
            let Some(row) = self.rows.next() else { return };
            (self.each)(row, i64::from(sum));
        }
    }

    #[inline]
    fn wide(&mut self, sums: &[i64]) {
        for &sum in sums {
            let Some(row) = self.rows.next() else { return };
            (self.each)(row, sum);
        }
    }
}
