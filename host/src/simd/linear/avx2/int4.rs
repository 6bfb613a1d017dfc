//! Four rows of four bits in each 16-bit lane. Rows 0 and 1 are the halves of a column's first byte, rows 2 and 3 those
//! of its second: with the first bytes of eight columns side by side, then the second ones, a lane has four columns of
//! one row.

use std::arch::x86_64::*;

use super::sums::store_four;
use crate::simd::linear::{Activations, Line, Start};

/// Bytes per tile of eight columns.
const TILE: usize = 16;

/// Stores the activations of each tile twice, and −8·Σx.
pub(in crate::simd) fn prepare(x: &[i8], activations: &mut Activations) {
    activations.len = x.len();
    activations.lines = vec![Line([0; 64]); x.len().div_ceil(32)];
    for (line, x) in activations.lines.iter_mut().zip(x.chunks(32)) {
        for (tile, x) in line.0.chunks_exact_mut(TILE).zip(x.chunks(8)) {
            tile[..x.len()].copy_from_slice(x);
            tile[8..][..x.len()].copy_from_slice(x);
        }
    }
    let sum: i32 = x.iter().map(|&x| i32::from(x)).sum();
    activations.start = vec![Start([-8 * sum; 16])];
}

/// Processes group after group, in place.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn rows(bytes: &[u8], x: &Activations, out: &mut [i32]) {
    let group_bytes = x.len.div_ceil(8) * TILE;
    assert!(bytes.len() == out.len().div_ceil(4) * group_bytes);
    assert!(x.lines.len() == x.len.div_ceil(32));
    let start = _mm_set1_epi32(x.start[0].0[0]);
    for (group, out) in bytes.chunks_exact(group_bytes).zip(out.chunks_mut(4)) {
        let mut sums = [_mm256_setzero_si256(); 2];
        let (twos, rest) = group.as_chunks::<32>();
        // SAFETY: there is half a line for each two tiles, and for the last one.
        unsafe {
            let mut x = x.lines.as_ptr().cast::<__m256i>();
            for two in twos {
                add(&mut sums, _mm256_loadu_si256(two.as_ptr().cast()), *x);
                x = x.add(1);
            }
            if !rest.is_empty() {
                let tile = _mm_loadu_si128(rest.as_ptr().cast());
                add(&mut sums, _mm256_zextsi128_si256(tile), *x);
            }
        }
        store_four(_mm_add_epi32(four(sums), start), out);
    }
}

/// Adds the products of two tiles: two of at most 15·127 are added in 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn add([lower, upper]: &mut [__m256i; 2], bytes: __m256i, x: __m256i) {
    let halves = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
    ));
    let nibble = _mm256_set1_epi8(15);
    // Row 3 is in two's complement: with its sign flipped, it is the weight plus 8 too.
    let flip = _mm256_setr_epi64x(0, 0x0808_0808_0808_0808, 0, 0x0808_0808_0808_0808);
    let bytes = _mm256_shuffle_epi8(bytes, halves);
    let low = _mm256_and_si256(bytes, nibble);
    let high = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), nibble);
    let high = _mm256_xor_si256(high, flip);
    let ones = _mm256_set1_epi16(1);
    for (sum, codes) in [(lower, low), (upper, high)] {
        let products = _mm256_maddubs_epi16(codes, x);
        *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(products, ones));
    }
}

/// Returns the sums of four rows. Of every four lanes, two are of row 0 and two of row 2, and in the other vector of
/// rows 1 and 3.
#[inline]
#[target_feature(enable = "avx2")]
fn four([lower, upper]: [__m256i; 2]) -> __m128i {
    let first = _mm256_unpacklo_epi32(lower, upper);
    let second = _mm256_unpackhi_epi32(lower, upper);
    let sums = _mm256_add_epi32(
        _mm256_unpacklo_epi64(first, second),
        _mm256_unpackhi_epi64(first, second),
    );
    super::sums::four_sums(sums)
}
