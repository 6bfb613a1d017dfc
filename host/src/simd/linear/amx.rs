//! Tiles of 32 rows of weights by 32 of activations: four tiles of sums, and for each 64 columns two of either side.
//!
//! A panel's groups are the rows of `b` in place: sixteen rows of weights have 64 bytes of a group. 16 words of a row
//! of activations are adjacent, a row of `a`. Codes are unsigned; `tdpbsud` accepts 0 to 255, and sums wrap as in all
//! kernels.

use super::tile::{HEIGHT, Left, Right, Shape, Tiles, WORDS};
use crate::simd::avx512_vnni::linear::{KERNELS as VECTORS, TILES};
use crate::simd::linear::{Group, Linear, Multiply, Order, TileSums, Tiles as Packed, Word};

/// The kernels of layers.
pub(in crate::simd) const KERNELS: Linear = Linear {
    tiles: Some(Packed {
        order: ORDER,
        multiply: Multiply::All(multiply_all),
        in_place: None,
        ..TILES
    }),
    ..VECTORS
};

/// Two tiles of activations.
const ORDER: Order = Order {
    rows: 2 * HEIGHT,
    words: WORDS,
};

/// Computes Σ code · activation, modulo 2³², for all strips; see [`crate::simd::linear::Tiles`]. Rows of activations
/// without a sum are not multiplied.
fn multiply_all(
    panel: &[Group],
    words: &[Word],
    stride: usize,
    sums: &mut [TileSums<i32>],
    add: bool,
) {
    let strip_len = panel.len() * ORDER.rows;
    assert!(stride >= strip_len);
    let (strips, rest) = sums.as_chunks_mut::<{ ORDER.rows }>();
    let mut words = words.chunks(stride);
    let piece = |words: Option<&[Word]>| {
        let words = words.and_then(|words| words.get(..strip_len));
        words.expect("a strip for every sum").as_ptr()
    };
    // Configured once: that takes a quarter of the time of a strip's products.
    if !strips.is_empty() {
        let product = Product::new(panel, HEIGHT, HEIGHT);
        for sums in strips {
            // SAFETY: the strip has the words of the piece, and there are sums for its rows.
            unsafe { product.strip(piece(words.next()), sums.as_mut_ptr(), add) };
        }
    }
    if !rest.is_empty() {
        let (first, second) = (rest.len().min(HEIGHT), rest.len().saturating_sub(HEIGHT));
        let product = Product::new(panel, first, second);
        // SAFETY: as above.
        unsafe { product.strip(piece(words.next()), rest.as_mut_ptr(), add) };
    }
}

/// A piece of a panel, and tiles that are configured for it.
struct Product<'a> {
    panel: &'a [Group],
    tiles: Tiles,
    /// Words per step.
    words: usize,
    steps: usize,
    second: bool,
}

impl<'a> Product<'a> {
    /// Returns products for strips with so many rows in a first and a second tile.
    fn new(panel: &'a [Group], first: usize, second: usize) -> Self {
        // A span with fewer words has them adjacent.
        let words = panel.len().min(WORDS);
        assert!(words > 0 && panel.len().is_multiple_of(words));
        let shape = Shape {
            first,
            second,
            words,
        };
        Self {
            panel,
            // SAFETY: a table is only reached through a backend that was found to run its set.
            tiles: unsafe { Tiles::new(shape) },
            words,
            steps: panel.len() / words,
            second: second > 0,
        }
    }

    /// # Safety
    /// At `strip` lie as many words of 32 rows as the piece has groups, at `sums` those of the rows that the tiles were
    /// made for.
    unsafe fn strip(&self, strip: *const Word, sums: *mut TileSums<i32>, add: bool) {
        let row = 4 * self.words;
        let at = strip.cast::<i8>();
        let a = Left {
            at,
            second: self.second.then(|| at.wrapping_add(HEIGHT * row)),
            row,
            step: ORDER.rows * row,
        };
        let b = Right {
            at: self.panel.as_ptr().cast(),
            signed: false,
            row: size_of::<Group>(),
            step: self.words * size_of::<Group>(),
        };
        let (sums, sums_row) = (sums.cast(), size_of::<TileSums<i32>>());
        // SAFETY: each step takes `words` groups, and as many words of each row of the strip, whose second sixteen rows
        // follow the first; the sums are there, as the caller says.
        unsafe {
            match add {
                true => self
                    .tiles
                    .multiply::<true>(a, b, self.steps, sums, sums_row),
                false => self
                    .tiles
                    .multiply::<false>(a, b, self.steps, sums, sums_row),
            }
        }
    }
}
