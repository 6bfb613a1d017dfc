//! Passes sums on eight at a time, because the receiver starts and ends a loop in each call.

use crate::linear::Sums;

/// 64-bit sums on the way to `out`.
pub(super) struct Batch<'a, S: Sums> {
    sums: [i64; 8],
    len: usize,
    out: &'a mut S,
}

impl<'a, S: Sums> Batch<'a, S> {
    pub(super) fn new(out: &'a mut S) -> Self {
        Self {
            sums: [0; 8],
            len: 0,
            out,
        }
    }

    /// Adds the next row's sum.
    #[inline]
    pub(super) fn push(&mut self, sum: i64) {
        if let Some(place) = self.sums.get_mut(self.len) {
            *place = sum;
            self.len += 1;
        }
        if self.len == self.sums.len() {
            self.flush();
        }
    }

    /// Passes on the remaining sums, at the end of the rows.
    pub(super) fn flush(&mut self) {
        self.out.wide(self.sums.get(..self.len).unwrap_or_default());
        self.len = 0;
    }
}
