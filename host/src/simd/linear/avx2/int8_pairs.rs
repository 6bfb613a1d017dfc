//! Four rows of pairs of columns, e + 256·o in 16 bits: the lower byte is e, the upper one o, less 1 if e is negative.
//! A vector is four rows by eight columns, and two products of 16 bits are at most 2·128·127.

use std::arch::x86_64::*;

use super::sums::{four_sums, store_four};
use crate::simd::linear::{Activations, Line};

/// Bytes per tile of eight columns.
const TILE: usize = 32;

/// Stores a line per tile: the activations of its even columns in 16 bits, for each row, and those of its odd ones.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    activations.lines = vec![Line([0; 64]); x.len().div_ceil(8)];
    for (line, x) in activations.lines.iter_mut().zip(x.chunks(8)) {
        for (col, &x) in x.iter().enumerate() {
            for row in 0..4 {
                let at = col % 2 * 32 + col / 4 * 16 + 4 * row + col % 4 / 2 * 2;
                let [low, high] = i16::from(x).to_le_bytes();
                line.0[at] = low as i8;
                line.0[at + 1] = high as i8;
            }
        }
    }
}

/// Processes group after group, in place.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(8) * TILE;
    assert!(bytes.len() == out.len().div_ceil(4) * group_bytes);
    assert!(x.lines.len() == x.len.div_ceil(8));
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(4)) {
        let mut sums = [_mm256_setzero_si256(); 2];
        for (tile, line) in group.as_chunks::<TILE>().0.iter().zip(&x.lines) {
            // SAFETY: a tile is 32 bytes, a line twice that.
            let (tile, x) = unsafe {
                let tile = _mm256_loadu_si256(tile.as_ptr().cast());
                let x = line.0.as_ptr().cast();
                (tile, [_mm256_load_si256(x), _mm256_load_si256(x.add(1))])
            };
            let even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(tile));
            let negative = _mm256_srai_epi16::<15>(even);
            let odd = _mm256_sub_epi16(_mm256_srai_epi16::<8>(tile), negative);
            for (sum, (weights, x)) in sums.iter_mut().zip([(even, x[0]), (odd, x[1])]) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(weights, x));
            }
        }
        let [even, odd] = sums;
        store_four(four_sums(_mm256_add_epi32(even, odd)), out);
    }
}
