//! Dot products of many int8 queries with a block of 64 rows: the loops of clustering's tiles, with queries in place of
//! centroids.

use super::{BLOCK, Dots, Queries};
use crate::simd::cluster::products::{Format, Products};
use crate::simd::cluster::tile::{block, part_len, turn};
use crate::simd::vectors::Vectors;

/// Queries at a time: as many sums as registers hold.
const QUERIES: usize = 6;

/// Returns the number of words that [`pack`] writes: those of a block, and room for its rows in whole 16s.
pub(in crate::simd) const fn packed_len<S: Products>(dim: usize) -> usize {
    words::<S>(dim) + dim.next_multiple_of(16) * BLOCK / 4
}

const fn words<S: Products>(dim: usize) -> usize {
    dim.div_ceil(4) * S::FORMAT.words() * BLOCK
}

/// See [`super::Search::pack`].
#[inline(always)]
pub(in crate::simd) fn pack<S: Products, const P: usize>(
    set: S,
    rows: &[i8],
    dim: usize,
    packed: &mut [u32],
) {
    let (words, room) = packed.split_at_mut(words::<S>(dim));
    // SAFETY: u32 and i32 are alike.
    let words = unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) };
    if dim.is_multiple_of(16) && rows.len() == BLOCK * dim {
        turn::<S, P>(set, rows, dim, dim, words);
    } else {
        let whole = dim.next_multiple_of(16);
        // SAFETY: u32 have no padding, and any bytes are i8.
        let room = unsafe {
            core::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<i8>(), size_of_val(room))
        };
        for (row, room) in rows.chunks_exact(dim).zip(room.chunks_exact_mut(whole)) {
            room[..dim].copy_from_slice(row);
        }
        turn::<S, P>(set, room, whole, dim, words);
    }
    if matches!(S::FORMAT, Format::Unsigned) {
        // Larger by 128, unsigned.
        words
            .iter_mut()
            .for_each(|word| *word ^= 0x8080_8080_u32 as i32);
    }
}

/// See [`super::Search::many_dots`].
#[inline(always)]
pub(in crate::simd) fn dots<S: Products, const P: usize>(
    set: S,
    packed: &[u32],
    queries: Queries<'_>,
    dots: &mut [Dots],
) {
    let vectors = set.vectors();
    let steps = queries.dim.div_ceil(4) * S::FORMAT.words();
    let part = part_len::<S, P>(set, queries.dim);
    let rows = &packed[..words::<S>(queries.dim)];
    // SAFETY: u32 and i32 are alike.
    let rows: &[i32] = unsafe { core::slice::from_raw_parts(rows.as_ptr().cast(), rows.len()) };
    let mut laid = vec![0; steps * QUERIES];
    let groups = queries.values.chunks(QUERIES * queries.dim);
    let groups = groups.zip(queries.sums.chunks(QUERIES));
    for ((values, sums), dots) in groups.zip(dots.chunks_mut(QUERIES)) {
        for (column, query) in values.chunks_exact(queries.dim).enumerate() {
            lay::<S>(query, &mut laid[column..], sums.len());
        }
        let mut starts = [0; QUERIES];
        if matches!(S::FORMAT, Format::Unsigned) {
            for (start, sum) in starts.iter_mut().zip(sums) {
                *start = sum.wrapping_mul(-128);
            }
        }
        let step = P * set.vectors().lanes();
        for (index, first) in (0..BLOCK).step_by(step).enumerate() {
            let rows = &rows[index * part..][..part];
            macro_rules! run {
                ($queries:literal) => {{
                    let sums = block::<S, P, $queries, true>(set, rows, &laid, &starts);
                    for (dots, sums) in dots.iter_mut().zip(sums) {
                        let dots = &mut dots[first..][..step];
                        for (dots, sum) in dots.chunks_exact_mut(set.vectors().lanes()).zip(sums) {
                            vectors.write(sum, dots);
                        }
                    }
                }};
            }
            match sums.len() {
                6 => run!(6),
                5 => run!(5),
                4 => run!(4),
                3 => run!(3),
                2 => run!(2),
                _ => run!(1),
            }
        }
    }
}

/// Writes a query's words `step` apart; missing values are 0.
#[inline(always)]
fn lay<S: Products>(query: &[i8], to: &mut [i32], step: usize) {
    let words = S::FORMAT.words();
    let mut to = to.iter_mut().step_by(step);
    let (fours, rest) = query.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let last = (!rest.is_empty()).then_some(&last);
    for four in fours.iter().chain(last) {
        let pair = |low: i8, high: i8| i32::from(low) & 0xFFFF | i32::from(high) << 16;
        let both = match words {
            1 => [i32::from_le_bytes(four.map(|x| x as u8)), 0],
            _ => [pair(four[0], four[2]), pair(four[1], four[3])],
        };
        for word in &both[..words] {
            if let Some(to) = to.next() {
                *to = *word;
            }
        }
    }
}

/// Defines the functions of a set for many queries.
macro_rules! many_kernels {
    ($set:ty, $vectors:literal, $features:literal) => {
        use $crate::simd::search::many;
        use $crate::simd::search::{Dots, Queries};

        /// See [`many::packed_len`].
        pub(in crate::simd) const fn packed_len(dim: usize) -> usize {
            many::packed_len::<$set>(dim)
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd) fn pack(rows: &[i8], dim: usize, packed: &mut [u32]) {
            many::pack::<$set, $vectors>(<$set>::here(), rows, dim, packed);
        }

        #[target_feature(enable = $features)]
        pub(in crate::simd) fn dots(packed: &[u32], queries: Queries<'_>, dots: &mut [Dots]) {
            many::dots::<$set, $vectors>(<$set>::here(), packed, queries, dots);
        }
    };
}
pub(in crate::simd) use many_kernels;
