//! Activations for the layout with two ternary rows per lane.
//!
//! Byte k of a word holds fields of four rows for one of its two columns each; see
//! [`Layout`](tercet_core::linear::Layout). With the bytes k of four words side by side, a field f of all of them is a
//! 32-bit lane of one row and of four even or four odd columns:
//!
//! | f | k = 0 | 1 | 2 | 3 |
//! |---|---|---|---|---|
//! | 0 | row 0, even | row 4, even | row 0, odd | row 4, odd |
//! | 1 | row 3, odd | row 7, odd | row 3, even | row 7, even |
//! | 2 | row 2, even | row 6, even | row 2, odd | row 6, odd |
//! | 3 | row 5, odd | row 1, even | row 5, even | row 1, odd |
//!
//! So three orders of activations are enough: for fields 0 and 2, for field 1, and for field 3. With the upper bits of
//! second rows flipped, fields are a + 1 and b + 2.

use super::{Activations, Line, Start};

/// Stores three lines for every 32 columns, with sixteen bytes for every eight: even, even, odd, odd; odd, odd, even,
/// even; odd, even, even, odd. Then the initial sums of a group's rows, −Σx for first rows and −2·Σx for second ones.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    activations.lines = vec![Line([0; 64]); x.len().div_ceil(64) * 6];
    let lines = activations.lines.as_chunks_mut::<3>().0;
    for (lines, x) in lines.iter_mut().zip(x.chunks(32)) {
        for (at, x) in x.chunks(8).enumerate() {
            let mut eight = [0; 8];
            eight[..x.len()].copy_from_slice(x);
            let [a, b, c, d, e, f, g, h] = eight;
            let (even, odd) = ([a, c, e, g], [b, d, f, h]);
            let orders = [
                [even, even, odd, odd],
                [odd, odd, even, even],
                [odd, even, even, odd],
            ];
            for (line, order) in lines.iter_mut().zip(orders) {
                line.0[16 * at..][..16].copy_from_slice(order.as_flattened());
            }
        }
    }
    activations.start = vec![start(x)];
}

/// Returns the initial sums of a group's rows.
pub(in crate::simd) fn start(x: &[i8]) -> Start {
    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
    Start(std::array::from_fn(|row| match row % 2 {
        0 => -sum,
        _ => -2 * sum,
    }))
}

/// Returns the sums of a group's rows, from those of fields by bytes of words, each of even and of odd columns.
pub(in crate::simd) fn rows(fields: [[i32; 4]; 4], start: &Start) -> [i32; 8] {
    let halves = fields.map(|[a, b, c, d]| [a + c, b + d]);
    let [[r0, r4], [r3, r7], [r2, r6], [r5, r1]] = halves;
    let mut rows = [r0, r1, r2, r3, r4, r5, r6, r7];
    rows.iter_mut()
        .zip(start.0)
        .for_each(|(row, start)| *row += start);
    rows
}
