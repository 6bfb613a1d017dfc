//! Rows in another order than the file's: what RoPE turns as pairs half a head apart becomes pairs of neighbours.

use super::Source;
use crate::Error;

impl Source<'_> {
    /// The same with rows in another order: of each `head` of them, the first of the one half, the first of the other, the second
    /// of the one, and so on. `head` is even and divides the rows; a vector's values are its rows.
    pub(crate) fn paired(self, head: usize) -> Self {
        Self {
            head: Some(head),
            ..self
        }
    }

    /// Reads `out.len()` values from `start` on, both within [`Source::values`]; in blocks, both are multiples of
    /// the block's length.
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
