//! What becomes of the sums of a matrix's rows.

use crate::arch::portable::fixed;
use half::f16;

/// Takes the sums of rows, in order, a few at a time, as kernels find them.
///
/// Groups of rows are padded: sums past the last row stand for nothing and are left out.
pub trait Sums {
    /// Sums of the next rows, of a layout whose sums fit 32 bits.
    fn narrow(&mut self, sums: &[i32]);

    /// Sums of the next rows, of blocks.
    fn wide(&mut self, sums: &[i64]);

    /// Sums of the next rows, of blocks that all have the scale `scale`, without it, and of magnitudes up to `most`: times 2²⁴ · `scale` they are what
    /// [`Sums::wide`] takes, and so it is done here.
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
}

/// Calls a function with each row and its sum.
pub(crate) struct Each<F> {
    /// Those to come.
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
