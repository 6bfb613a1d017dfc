//! Dot products of many int8 queries with a block of 64 rows: 32 queries by 32 rows at a time.
//!
//! Blocks are packed as in [`many_search`]: a step of theirs, four values + 128 of each of 64 rows, is a row of four
//! tiles side by side. Queries are read in place.

use std::arch::x86_64::*;

use super::tile::{HEIGHT, Left, Right, Shape, Tiles, WORDS};
use crate::simd::avx512_vnni::{many_search, search};
use crate::simd::search::{BLOCK, Dots, Many, Queries, Search};

/// The kernels of integer search.
pub(in crate::simd) const KERNELS: Search = Search {
    many: Some(Many {
        pack: many_search::pack,
        dots,
    }),
    ..search::KERNELS
};

/// Queries at a time: two tiles.
const QUERIES: usize = 2 * HEIGHT;

/// As [`tercet_core::arch::plain::dot`] for each query and row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn dots(packed: &[u32], queries: Queries<'_>, dots: &mut [Dots]) {
    let dim = queries.dim;
    // Values in whole tiles, and after them whole words.
    let (wide, whole) = (dim / 64 * 64, dim / 4 * 4);
    let mut more = [[0; BLOCK]; QUERIES];
    let groups = queries.values.chunks(QUERIES * dim);
    let groups = groups.zip(queries.sums.chunks(QUERIES));
    for ((values, sums), dots) in groups.zip(dots.chunks_mut(QUERIES)) {
        let more = &mut more[..sums.len()];
        if wide > 0 {
            part(packed, values, dim, (0, WORDS, wide / 64), dots);
        } else {
            dots.fill([0; BLOCK]);
        }
        if whole > wide {
            part(packed, values, dim, (wide, (whole - wide) / 4, 1), more);
        }
        let queries = values.chunks_exact(dim).zip(sums);
        for ((query, sum), (dots, more)) in queries.zip(dots.iter_mut().zip(more)) {
            finish(packed, &query[whole..], *sum, dots, more);
        }
    }
}

/// Computes the products of some of each query's values with the rows': from the value `first` on, `steps` times
/// `words` words.
fn part(
    packed: &[u32],
    queries: &[i8],
    dim: usize,
    (first, words, steps): (usize, usize, usize),
    dots: &mut [Dots],
) {
    let count = dots.len();
    assert!((1..=QUERIES).contains(&count) && queries.len() == count * dim);
    assert!(first + 4 * words * steps <= dim && packed.len() >= dim / 4 * BLOCK);
    let at = queries[first..].as_ptr();
    let a = Left {
        at,
        second: (count > HEIGHT).then(|| at.wrapping_add(HEIGHT * dim)),
        row: dim,
        step: 4 * words,
    };
    let row = size_of::<Dots>();
    // SAFETY: a table is only reached through a backend that was found to run its set. The asserted values of each
    // query and words of the block are there, and dots for each query.
    unsafe {
        let tiles = Tiles::new(Shape {
            first: count.min(HEIGHT),
            second: count.saturating_sub(HEIGHT),
            words,
        });
        for rows in [0, 2 * WORDS] {
            let b = Right {
                at: packed.as_ptr().add(first / 4 * BLOCK + rows).cast(),
                signed: false,
                row,
                step: words * row,
            };
            let dots = dots.as_mut_ptr().cast::<i32>().add(rows);
            tiles.multiply::<false>(a, b, steps, dots, row);
        }
    }
}

/// Adds `more`, the products of the last values, which are fewer than four, and subtracts the 128 · Σq that rows + 128
/// added.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
fn finish(packed: &[u32], last: &[i8], sum: i32, dots: &mut Dots, more: &Dots) {
    // The last word is padded with zeros.
    let mut word = [0; 4];
    for (byte, &x) in word.iter_mut().zip(last) {
        *byte = x as u8;
    }
    let word = _mm512_set1_epi32(i32::from_le_bytes(word));
    let less = _mm512_set1_epi32(sum.wrapping_mul(128));
    let steps = packed.as_chunks::<BLOCK>().0;
    let step = steps.last().unwrap_or(&[0; BLOCK]);
    for at in (0..BLOCK).step_by(16) {
        // SAFETY: sixteen of 64 in each.
        unsafe {
            let dots = dots.as_mut_ptr().add(at).cast();
            let more = _mm512_loadu_si512(more.as_ptr().add(at).cast());
            let step = _mm512_loadu_si512(step.as_ptr().add(at).cast());
            let sums = _mm512_add_epi32(_mm512_loadu_si512(dots), more);
            let sums = _mm512_dpbusd_epi32(sums, step, word);
            _mm512_storeu_si512(dots, _mm512_sub_epi32(sums, less));
        }
    }
}
