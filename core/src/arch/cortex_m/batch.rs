//! Sums handed on eight at a time: what becomes of them begins and ends a loop at each call.

use crate::linear::Sums;

/// Sums of 64 bits on their way to `out`.
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

    /// The next row's.
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

    /// Hands on what is left; the end of the rows.
    pub(super) fn flush(&mut self) {
        self.out.wide(self.sums.get(..self.len).unwrap_or_default());
        self.len = 0;
    }
}
