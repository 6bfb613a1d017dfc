//! Tiles of 32 rows of weights by 32 of activations: four tiles of sums, for each 64 columns two of either side.
//!
//! A panel's groups are the rows of `b` as they lie: sixteen rows of weights have 64 bytes of a group. Of activations 16 words of a
//! row lie side by side, a row of `a`. Codes are without a sign; `tdpbsud` takes 0 to 255, and sums wrap as all kernels' do.

use super::tile::{HEIGHT, Left, Right, Shape, Tiles, WORDS};
use crate::simd::linear::{Group, Order, TileSums, Word};

/// Two tiles of activations.
pub(in crate::simd) const ORDER: Order = Order {
    rows: 2 * HEIGHT,
    words: WORDS,
};

/// Adds Σ code · activation, modulo 2³². Rows of activations that have no sum are not multiplied.
pub(in crate::simd) fn multiply(panel: &[Group], strip: &[Word], sums: &mut [TileSums<i32>]) {
    // A span of fewer words has them side by side.
    let words = panel.len().min(WORDS);
    let (steps, rows) = (panel.len() / words, sums.len());
    assert!(panel.len().is_multiple_of(words) && strip.len() == panel.len() * ORDER.rows);
    assert!((1..=ORDER.rows).contains(&rows));
    let row = 4 * words;
    let at = strip.as_ptr().cast::<i8>();
    let second = (rows > HEIGHT).then(|| at.wrapping_add(HEIGHT * row));
    let a = Left {
        at,
        second,
        row,
        step: ORDER.rows * row,
    };
    let b = Right {
        at: panel.as_ptr().cast(),
        signed: false,
        row: size_of::<Group>(),
        step: words * size_of::<Group>(),
    };
    // SAFETY: a table is only reached through a backend that was found to run its set. Each step takes `words` groups, and as many
    // words of each row of the strip, whose second sixteen rows follow the first; there are `rows` sums.
    unsafe {
        let tiles = Tiles::new(Shape {
            first: rows.min(HEIGHT),
            second: rows.saturating_sub(HEIGHT),
            words,
        });
        let sums_row = size_of::<TileSums<i32>>();
        tiles.multiply::<true>(a, b, steps, sums.as_mut_ptr().cast(), sums_row);
    }
}
