//! `Layout::TernaryLanes`: two rows with one multiplication.
//!
//! In a word, weights of the even column are at bits 4j (first rows) and 4j + 14 (second rows), and those of the odd
//! column at bits 16 + 4j and 4j − 2 (30 for j = 0). With the upper bits of second rows flipped, first rows' fields
//! hold a + 1 and second rows' b + 2. So two fields are extracted at a time, 14 bits apart, or 18 with the second row
//! below, and multiplied by the activation modulo 2³². Over 64 columns, an accumulator that began with minus the sums
//! of x, weighted 1 and 2, holds
//!     S_a + 2¹⁴·S_b or S_b + 2¹⁸·S_a.
//! The pair j = 0 collects both columns: |S| ≤ 64·127 < 2¹³; the others collect one: |S| ≤ 32·127 < 2¹³. So the lower
//! field, read as signed, is its sum, and the rest above it is the other's: at least 14 bits remain.

use crate::linear::{I8Sym, Matrix, Sums};

/// Number of columns after which fields are read.
const BLOCK: usize = 64;
/// Bytes of a block in a group of rows.
const BYTES: usize = BLOCK * 2;
/// The upper bits of second rows.
const FLIP: u32 = 0x8888_8888;

/// `scratch` has at least two words per [`BLOCK`] columns; otherwise nothing is done.
pub(super) fn sums(matrix: &Matrix<'_>, x: I8Sym<'_>, scratch: &mut [u32], out: &mut impl Sums) {
    let x = x.get();
    // The start values of accumulators depend on the sums of even and of odd columns.
    let pairs = scratch
        .chunks_exact_mut(2)
        .filter_map(<[u32]>::first_chunk_mut);
    for (x, sums) in x.chunks(BLOCK).zip(pairs) {
        let column = |odd| x.iter().skip(odd).step_by(2);
        let sum = |odd| column(odd).fold(0, |sum: u32, &x| sum.wrapping_add(x as u32));
        *sums = [sum(0), sum(1)];
    }
    let blocks = x.len().div_ceil(BLOCK);
    for group in matrix.bytes().chunks_exact((blocks * BYTES).max(1)) {
        let mut totals = [0; 8];
        // Through arrays, since a zip of only two exact chunkings divides by sizes that it does not know at
        // `opt-level = "s"`.
        let blocks = group
            .chunks_exact(BYTES)
            .filter_map(<[u8]>::first_chunk::<BYTES>);
        let sums = scratch.chunks_exact(2).filter_map(<[u32]>::first_chunk);
        for ((weights, x), &[even, odd]) in blocks.zip(x.chunks(BLOCK)).zip(sums) {
            add_block(weights, x, even, odd, &mut totals);
        }
        out.narrow(&totals);
    }
}

/// Adds 64 columns of eight rows; `even` and `odd` are the sums of their activations.
#[inline(never)]
fn add_block(weights: &[u8], x: &[i8], even: u32, odd: u32, totals: &mut [i32; 8]) {
    let first_below = |sum: u32| sum.wrapping_mul(0u32.wrapping_sub(1 + (2 << 14)));
    let second_below = |sum: u32| sum.wrapping_mul(0u32.wrapping_sub(2 + (1 << 18)));
    let mut first = [first_below(even); 4];
    first[0] = first_below(even.wrapping_add(odd));
    let mut second = [second_below(odd); 3];
    let words = weights.chunks_exact(4).filter_map(<[u8]>::first_chunk);
    for (&word, pair) in words.zip(x.chunks(2)) {
        let word = u32::from_le_bytes(word) ^ FLIP;
        let (even, odd) = match *pair {
            [even, odd] => (even as u32, odd as u32),
            [even] => (even as u32, 0),
            _ => (0, 0),
        };
        let add = |sum: &mut u32, fields: u32, x: u32| {
            *sum = sum.wrapping_add(fields.wrapping_mul(x));
        };
        add(&mut first[0], word & 0xC003, even);
        add(&mut first[1], (word >> 4) & 0xC003, even);
        add(&mut first[2], (word >> 8) & 0xC003, even);
        add(&mut first[3], (word >> 12) & 0xC003, even);
        add(&mut first[0], (word >> 16) & 0xC003, odd);
        add(&mut second[0], (word >> 2) & 0xC_0003, odd);
        add(&mut second[1], (word >> 6) & 0xC_0003, odd);
        add(&mut second[2], (word >> 10) & 0xC_0003, odd);
    }
    for (rows, &sum) in totals.chunks_exact_mut(2).zip(&first) {
        if let [a, b] = rows {
            let low = ((sum << 18) as i32) >> 18;
            *a += low;
            *b += (sum.wrapping_sub(low as u32) as i32) >> 14;
        }
    }
    for (rows, &sum) in totals.chunks_exact_mut(2).skip(1).zip(&second) {
        if let [a, b] = rows {
            let low = ((sum << 14) as i32) >> 14;
            *b += low;
            *a += (sum.wrapping_sub(low as u32) as i32) >> 18;
        }
    }
}
