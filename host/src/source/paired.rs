//! Rows in another order than in the file: RoPE pairs that are half a head apart become neighbouring pairs.

use super::Source;
use crate::Error;

impl Source<'_> {
    /// Returns the same tensor with its rows in another order: in each group of `head` rows, the first of the first
    /// half, the first of the second half, the second of the first half, and so on. `head` is even and divides the
    /// rows; the rows of a vector are its values.
    pub(crate) fn paired(self, head: usize) -> Self {
        Self {
            head: Some(head),
            ..self
        }
    }

    /// Reads `out.len()` values from `start` on, both within [`Source::values`]. For blocks, both are multiples of the
    /// block's length.
    pub(crate) fn read(&self, start: usize, out: &mut [f32]) -> Result<(), Error> {
        let Some(head) = self.head else {
            return self.read_stored(start, out);
        };
        let shape = self.shape();
        let cols = match shape[..] {
            [_, cols] => cols,
            _ => 1,
        };
        let (mut at, mut rest) = (start, out);
        while !rest.is_empty() {
            let (row, col) = (at / cols, at % cols);
            let (part, after) = rest.split_at_mut((cols - col).min(rest.len()));
            let within = row % head;
            let stored = row - within + within % 2 * (head / 2) + within / 2;
            self.read_stored(stored * cols + col, part)?;
            at += part.len();
            rest = after;
        }
        Ok(())
    }
}
