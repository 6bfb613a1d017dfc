//! Tiles in parts of 16 rows of weights by 4 or 6 of activations, whose sums stay in registers.

use std::arch::x86_64::*;

use tercet_core::linear::Layout;

use crate::simd::linear::{self, Group, ROWS, STRIP, Scales, TileSums, Word};

/// As the function of the same name, compiled for the set.
#[target_feature(enable = "avx2,bmi1,bmi2")]
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
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(in crate::simd) fn add(
    sums: &[TileSums<i32>],
    less: &[i32],
    scales: &Scales,
    totals: &mut [TileSums<i64>],
) {
    linear::add(sums, less, scales, totals);
}

/// Transposes eight rows of 32 codes at a time, in words of four.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn pack(codes: &[u8], panel: &mut [Group], second: bool) {
    let stride = codes.len() / 16;
    assert!(stride.is_multiple_of(64) && panel.len() <= stride / 4);
    for (at, groups) in panel.chunks_mut(8).enumerate() {
        for half in 0..2 {
            let mut rows = [_mm256_setzero_si256(); 8];
            for (number, row) in rows.iter_mut().enumerate() {
                let start = (8 * half + number) * stride + 32 * at;
                // SAFETY: a row is whole vectors, of which each eight groups take one.
                *row = unsafe { _mm256_loadu_si256(codes.as_ptr().add(start).cast()) };
            }
            let columns = transpose(rows);
            for (group, column) in groups.iter_mut().zip(columns) {
                let eight = &mut group.0[if second { 16 } else { 0 } + 8 * half..][..8];
                // SAFETY: eight words fit there.
                unsafe { _mm256_storeu_si256(eight.as_mut_ptr().cast(), column) };
            }
        }
    }
}

/// Word c of row r becomes word r of row c.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: [__m256i; 8]) -> [__m256i; 8] {
    // fours[4·q + c]: word c of each 128 bits, of rows 4·q to 4·q + 3.
    let mut fours = rows;
    for q in 0..2 {
        let [a, b, c, d] = [
            rows[4 * q],
            rows[4 * q + 1],
            rows[4 * q + 2],
            rows[4 * q + 3],
        ];
        let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let (next_low, next_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
        fours[4 * q] = _mm256_unpacklo_epi64(low, next_low);
        fours[4 * q + 1] = _mm256_unpackhi_epi64(low, next_low);
        fours[4 * q + 2] = _mm256_unpacklo_epi64(high, next_high);
        fours[4 * q + 3] = _mm256_unpackhi_epi64(high, next_high);
    }
    let mut columns = fours;
    for c in 0..4 {
        columns[c] = _mm256_permute2x128_si256::<0x20>(fours[c], fours[4 + c]);
        columns[4 + c] = _mm256_permute2x128_si256::<0x31>(fours[c], fours[4 + c]);
    }
    columns
}

/// Adds Σ code · activation for codes of 0 to 255, modulo 2³².
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn multiply(panel: &[Group], strip: &[Word], sums: &mut [TileSums<i32>]) {
    let strip = strip.as_chunks().0;
    for (at, sums) in sums.chunks_mut(4).take(STRIP / 4).enumerate() {
        match at {
            0 => bytes::<0>(panel, strip, sums),
            1 => bytes::<4>(panel, strip, sums),
            _ => bytes::<8>(panel, strip, sums),
        }
    }
}

/// [`multiply`] for four activations of a strip from `AT` on: even and odd columns widened to 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn bytes<const AT: usize>(panel: &[Group], strip: &[[Word; STRIP]], sums: &mut [TileSums<i32>]) {
    for rows in [0, ROWS / 2] {
        let mut tile = [[_mm256_setzero_si256(); 2]; 4];
        for (group, column) in panel.iter().zip(strip) {
            let low = _mm256_set1_epi16(0xFF);
            let codes = load(group, rows);
            for (sums, x) in tile.iter_mut().zip(&column[AT..]) {
                let x = broadcast(x);
                let x_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(x));
                let x_odd = _mm256_srai_epi16::<8>(x);
                for half in 0..2 {
                    let even = _mm256_and_si256(codes[half], low);
                    let odd = _mm256_srli_epi16::<8>(codes[half]);
                    let products = _mm256_add_epi32(
                        _mm256_madd_epi16(even, x_even),
                        _mm256_madd_epi16(odd, x_odd),
                    );
                    sums[half] = _mm256_add_epi32(sums[half], products);
                }
            }
        }
        for (tile, sums) in tile.iter().zip(&mut *sums) {
            add_to(&mut sums[rows..], tile);
        }
    }
}

/// [`multiply`] for codes of 0 to 15. A 16-bit lane adds up 8 sums of at most 3,810: 30,480.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn multiply_nibbles(
    panel: &[Group],
    strip: &[Word],
    sums: &mut [TileSums<i32>],
) {
    small::<8>(panel, strip, sums);
}

/// [`multiply`] for codes of 0 to 3. A 16-bit lane adds up 43 sums of at most 762: 32,766.
#[target_feature(enable = "avx2")]
pub(in crate::simd) fn multiply_two_bits(
    panel: &[Group],
    strip: &[Word],
    sums: &mut [TileSums<i32>],
) {
    small::<43>(panel, strip, sums);
}

/// [`multiply`] for codes whose sums a 16-bit lane adds up `FLUSH` times.
#[inline]
#[target_feature(enable = "avx2")]
fn small<const FLUSH: usize>(panel: &[Group], strip: &[Word], sums: &mut [TileSums<i32>]) {
    let strip = strip.as_chunks().0;
    // Six activations take every register; but three are not multiplied for one.
    let step = if matches!(sums.len(), 1..=4 | 7 | 8) {
        4
    } else {
        6
    };
    for (at, sums) in sums.chunks_mut(step).take(STRIP / step).enumerate() {
        match (step, at) {
            (6, 0) => some::<FLUSH, 6, 0>(panel, strip, sums),
            (6, _) => some::<FLUSH, 6, 6>(panel, strip, sums),
            (_, 0) => some::<FLUSH, 4, 0>(panel, strip, sums),
            _ => some::<FLUSH, 4, 4>(panel, strip, sums),
        }
    }
}

/// [`small`] for `ACTS` activations of a strip from `AT` on.
#[inline]
#[target_feature(enable = "avx2")]
fn some<const FLUSH: usize, const ACTS: usize, const AT: usize>(
    panel: &[Group],
    strip: &[[Word; STRIP]],
    sums: &mut [TileSums<i32>],
) {
    for rows in [0, ROWS / 2] {
        let mut tile = [[_mm256_setzero_si256(); 2]; ACTS];
        for (panel, strip) in panel.chunks(FLUSH).zip(strip.chunks(FLUSH)) {
            let mut narrow = [[_mm256_setzero_si256(); 2]; ACTS];
            for (group, column) in panel.iter().zip(strip) {
                let codes = load(group, rows);
                for (sums, x) in narrow.iter_mut().zip(&column[AT..]) {
                    let x = broadcast(x);
                    for half in 0..2 {
                        let products = _mm256_maddubs_epi16(codes[half], x);
                        sums[half] = _mm256_add_epi16(sums[half], products);
                    }
                }
            }
            for (tile, narrow) in tile.iter_mut().zip(narrow) {
                for half in 0..2 {
                    let wide = _mm256_madd_epi16(narrow[half], _mm256_set1_epi16(1));
                    tile[half] = _mm256_add_epi32(tile[half], wide);
                }
            }
        }
        for (tile, sums) in tile.iter().zip(&mut *sums) {
            add_to(&mut sums[rows..], tile);
        }
    }
}

/// Loads codes of 16 rows from a multiple of 16 on.
#[inline]
#[target_feature(enable = "avx2")]
fn load(group: &Group, rows: usize) -> [__m256i; 2] {
    let words: &[[u8; 4]; 16] = if rows == 0 {
        group.0.first_chunk().unwrap_or(&[[0; 4]; 16])
    } else {
        group.0.last_chunk().unwrap_or(&[[0; 4]; 16])
    };
    let words: *const __m256i = words.as_ptr().cast();
    // SAFETY: sixteen words are two vectors, aligned as the group is.
    unsafe { [_mm256_load_si256(words), _mm256_load_si256(words.add(1))] }
}

#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(x: &Word) -> __m256i {
    _mm256_set1_epi32(linear::word(x))
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_to(sums: &mut [i32], tile: &[__m256i; 2]) {
    for (sums, &tile) in sums.as_chunks_mut::<8>().0.iter_mut().zip(tile) {
        let sums = sums.as_mut_ptr().cast();
        // SAFETY: eight sums lie there.
        unsafe { _mm256_storeu_si256(sums, _mm256_add_epi32(_mm256_loadu_si256(sums), tile)) };
    }
}
