//! What becomes of the sums of a matrix's rows.

/// Takes the sums of rows, in order, a few at a time, as kernels find them.
///
/// Groups of rows are padded: sums past the last row stand for nothing and are left out.
pub trait Sums {
    /// Sums of the next rows, of a layout whose sums fit 32 bits.
    fn narrow(&mut self, sums: &[i32]);

    /// Sums of the next rows, of blocks.
    fn wide(&mut self, sums: &[i64]);
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
