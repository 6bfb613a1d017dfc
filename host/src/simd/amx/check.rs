//! Checks that tiles multiply correctly before anything relies on them: few processors have them, and none of those
//! that run the checks.

use super::tile::{HEIGHT, Left, Right, Shape, Tiles};

/// Rows of `a`: all of one tile and some of a second.
const ROWS: usize = HEIGHT + 3;
/// Words per step.
const WORDS: usize = 9;
const STEPS: usize = 2;
/// Columns of `b`.
const COLS: usize = 32;

/// Compares a product of two uneven tiles by two, for signed and unsigned bytes, with plain sums. Takes about a
/// microsecond.
///
/// # Safety
/// This process may use tiles.
pub(super) unsafe fn multiplies() -> bool {
    // Odd factors, so that every byte occurs, including the smallest and the largest.
    let a: [[i8; 4 * WORDS * STEPS]; ROWS] =
        std::array::from_fn(|row| std::array::from_fn(|at| (row * 83 + at * 59 + 128) as i8));
    let b: [[[u8; 4]; COLS]; WORDS * STEPS] = std::array::from_fn(|word| {
        std::array::from_fn(|col| std::array::from_fn(|at| (word * 101 + col * 37 + at * 71) as u8))
    });
    let shape = Shape {
        first: HEIGHT,
        second: ROWS - HEIGHT,
        words: WORDS,
    };
    [true, false].into_iter().all(|signed| {
        let mut sums = [[0i32; COLS]; ROWS];
        let left = Left {
            at: a.as_ptr().cast(),
            second: Some(a[HEIGHT..].as_ptr().cast()),
            row: size_of_val(&a[0]),
            step: 4 * WORDS,
        };
        let right = Right {
            at: b.as_ptr().cast(),
            signed,
            row: size_of_val(&b[0]),
            step: WORDS * size_of_val(&b[0]),
        };
        // SAFETY: the caller's promise; both sides and the sums have what the shape and the steps say.
        unsafe {
            let tiles = Tiles::new(shape);
            tiles.multiply::<false>(left, right, STEPS, sums.as_mut_ptr().cast(), COLS * 4);
            tiles.multiply::<true>(left, right, STEPS, sums.as_mut_ptr().cast(), COLS * 4);
        }
        let value = |byte: u8| {
            if signed {
                i32::from(byte as i8)
            } else {
                i32::from(byte)
            }
        };
        sums.iter().zip(&a).all(|(sums, a)| {
            sums.iter().enumerate().all(|(col, &sum)| {
                let words = a.as_chunks::<4>().0.iter().zip(&b);
                let products = words.flat_map(|(a, b)| {
                    let bytes = a.iter().zip(b[col]);
                    bytes.map(|(&a, b)| i32::from(a) * value(b))
                });
                sum == 2 * products.sum::<i32>()
            })
        })
    })
}
