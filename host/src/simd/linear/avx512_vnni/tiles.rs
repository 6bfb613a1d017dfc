//! Tiles of 32 rows of weights by 12 of activations: 24 vectors of sums stay in registers.

use std::arch::x86_64::*;

use tercet_core::linear::Layout;

use super::prefetch;
use crate::simd::linear::{self, Group, STRIP, Scales, TileSums, Word};

/// As the function of the same name, compiled for the set.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
pub(in crate::simd) fn unpack(
    layout: Layout,
    bytes: &[u8],
    cols: usize,
    out: &mut [u8],
    stride: usize,
) {
    linear::unpack(layout, bytes, cols, out, stride);
}

/// As the function of the same name, compiled for the set.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(in crate::simd) fn add(
    sums: &[TileSums<i32>],
    less: &[i32],
    scales: &Scales,
    totals: &mut [TileSums<i64>],
) {
    linear::add(sums, less, scales, totals);
}

/// Transposes sixteen rows of 64 codes at a time, in words of four.
#[target_feature(enable = "avx512f,avx512bw")]
pub(in crate::simd) fn pack(codes: &[u8], panel: &mut [Group], second: bool) {
    let stride = codes.len() / 16;
    assert!(stride.is_multiple_of(64) && panel.len() <= stride / 4);
    for (at, groups) in panel.chunks_mut(16).enumerate() {
        let mut rows = [_mm512_setzero_si512(); 16];
        for (number, row) in rows.iter_mut().enumerate() {
            // SAFETY: a row is whole vectors, of which each sixteen groups take one.
            *row =
                unsafe { _mm512_loadu_si512(codes.as_ptr().add(number * stride + 64 * at).cast()) };
        }
        let columns = transpose(rows);
        for (group, column) in groups.iter_mut().zip(columns) {
            let half = &mut group.0[if second { 16 } else { 0 }..][..16];
            // SAFETY: sixteen words fit there.
            unsafe { _mm512_storeu_si512(half.as_mut_ptr().cast(), column) };
        }
    }
}

/// Word c of row r becomes word r of row c.
#[inline]
#[target_feature(enable = "avx512f")]
fn transpose(rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut pairs = rows;
    for four in 0..8 {
        let (a, b) = (rows[2 * four], rows[2 * four + 1]);
        pairs[2 * four] = _mm512_unpacklo_epi32(a, b);
        pairs[2 * four + 1] = _mm512_unpackhi_epi32(a, b);
    }
    // fours[4·q + c]: word c of each 128 bits, of rows 4·q to 4·q + 3.
    let mut fours = pairs;
    for q in 0..4 {
        let [a, b, c, d] = [
            pairs[4 * q],
            pairs[4 * q + 1],
            pairs[4 * q + 2],
            pairs[4 * q + 3],
        ];
        fours[4 * q] = _mm512_unpacklo_epi64(a, c);
        fours[4 * q + 1] = _mm512_unpackhi_epi64(a, c);
        fours[4 * q + 2] = _mm512_unpacklo_epi64(b, d);
        fours[4 * q + 3] = _mm512_unpackhi_epi64(b, d);
    }
    let mut columns = fours;
    for c in 0..4 {
        let [a, b, d, e] = [fours[c], fours[4 + c], fours[8 + c], fours[12 + c]];
        let low = _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b);
        let high = _mm512_shuffle_i32x4::<0b10_00_10_00>(d, e);
        columns[c] = _mm512_shuffle_i32x4::<0b10_00_10_00>(low, high);
        columns[8 + c] = _mm512_shuffle_i32x4::<0b11_01_11_01>(low, high);
        let low = _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b);
        let high = _mm512_shuffle_i32x4::<0b11_01_11_01>(d, e);
        columns[4 + c] = _mm512_shuffle_i32x4::<0b10_00_10_00>(low, high);
        columns[12 + c] = _mm512_shuffle_i32x4::<0b11_01_11_01>(low, high);
    }
    columns
}

/// Prefetch distance in groups.
const AHEAD_GROUPS: usize = 8;

/// Adds Σ code · activation, modulo 2³².
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
pub(in crate::simd) fn multiply(panel: &[Group], strip: &[Word], sums: &mut [TileSums<i32>]) {
    let mut tile = [[_mm512_setzero_si512(); 2]; STRIP];
    for (group, column) in panel.iter().zip(strip.as_chunks::<STRIP>().0) {
        // A piece of a panel is in the second-level cache when the first strip uses it.
        let next = std::ptr::from_ref(group)
            .wrapping_add(AHEAD_GROUPS)
            .cast::<u8>();
        prefetch(next);
        prefetch(next.wrapping_add(64));
        // SAFETY: a group is two aligned vectors.
        let (low, high) = unsafe {
            let words: *const __m512i = group.0.as_ptr().cast();
            (_mm512_load_si512(words), _mm512_load_si512(words.add(1)))
        };
        for (sums, x) in tile.iter_mut().zip(column) {
            let x = _mm512_set1_epi32(linear::word(x));
            sums[0] = _mm512_dpbusd_epi32(sums[0], low, x);
            sums[1] = _mm512_dpbusd_epi32(sums[1], high, x);
        }
    }
    for (sums, [low, high]) in sums.iter_mut().zip(tile) {
        let sums = sums.as_mut_ptr().cast::<__m512i>();
        // SAFETY: 32 sums lie there.
        unsafe {
            let sum = _mm512_add_epi32(_mm512_loadu_si512(sums), low);
            _mm512_storeu_si512(sums, sum);
            let sums = sums.add(1);
            let sum = _mm512_add_epi32(_mm512_loadu_si512(sums), high);
            _mm512_storeu_si512(sums, sum);
        }
    }
}
